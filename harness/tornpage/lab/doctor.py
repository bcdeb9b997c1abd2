"""`tornpage doctor`: is everything here that a run needs? Each check ends in one line with its remedy."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from tornpage.faults.limits import FLOORS, Floor
from tornpage.faults.preload import EXIT_PRELOAD_REFUSED, preload_environment, preload_path
from tornpage.faults.scratch import scratch_folder
from tornpage.faults.under import DISKS, why_no_disk
from tornpage.targets.registry import TARGETS, make_target, target_names
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.paths import Paths, filesystem_of, tmpfs_folder

__all__ = ["Finding", "examine"]

PROBE_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor: name, well or not, what was seen, what to do about it. needed: nothing works
    without it."""

    name: str
    ok: bool
    seen: str
    remedy: str = ""
    needed: bool = True


def examine(paths: Paths) -> list[Finding]:
    """Runs every check; none of them changes anything but a scratch file."""
    checks: list[Callable[[], Finding]] = [
        _python,
        _sqlite,
        lambda: _engine(paths),
        lambda: _preload(paths),
        _tmpfs,
    ]
    found = [check() for check in checks] + [_limit(floor) for floor in FLOORS]
    found += [_disk(name, paths) for name in DISKS]
    return found + [_target(name, paths) for name in target_names()]


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Finding("python", sys.version_info >= (3, 11), version, "Python 3.11 or newer")


def _sqlite() -> Finding:
    ok = sqlite3.sqlite_version_info >= (3, 35, 0)
    return Finding(
        "result database", ok, f"SQLite {sqlite3.sqlite_version}", "SQLite 3.35 or newer"
    )


def _engine(paths: Paths) -> Finding:
    program = paths.build / "engine" / "engine"
    return _run("engine", [str(program), "--help"], str(program), "make build")


def _preload(paths: Paths) -> Finding:
    library = preload_path(paths.build)
    if not library.is_file() or library.stat().st_size == 0:
        return Finding("preload", False, f"{library} is missing or empty", "make build")
    try:
        with scratch_folder() as folder:
            env = preload_environment(library, folder, folder / "trace", None)
            loaded = _run("preload", ["true"], str(library), "make build", env)
            # It refuses what cannot be done: a library that does not is loaded for nothing.
            refused = _call(["true"], env | {"TORNPAGE_ROOT": "no/absolute/path"})
    except TornpageError as error:
        return Finding("preload", False, str(error))
    if loaded.ok and refused.returncode != EXIT_PRELOAD_REFUSED:
        return Finding("preload", False, f"{library} does nothing", "make build")
    return loaded


def _disk(name: str, paths: Paths) -> Finding:
    """Whether --under is possible: only a run that asks for it needs it."""
    seen, _, remedy = why_no_disk(preload_path(paths.build), name).partition(": ")
    told = seen or "targets can work on it"
    return Finding(f"--under {name}", not seen, told, remedy, needed=False)


def _target(name: str, paths: Paths) -> Finding:
    """Others than our own are here or not: a run needs its own target only."""
    try:
        target = make_target(name, paths.build)
        target.check_needs({})
    except TornpageError as error:
        seen, _, remedy = str(error).partition(": ")
        return Finding(f"target {name}", False, seen, remedy, needed=name in TARGETS)
    return Finding(f"target {name}", True, target.what)


def _run(
    name: str, command: list[str], seen: str, remedy: str, env: dict[str, str] | None = None
) -> Finding:
    try:
        done = _call(command, env or {})
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(name, False, str(error), remedy)
    if done.returncode != 0 or done.stderr:
        problem = done.stderr.strip().splitlines()[:1] or [f"exit code {done.returncode}"]
        return Finding(name, False, problem[0], remedy)
    return Finding(name, True, seen)


def _call(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={"PATH": "/usr/bin:/bin", **env},
        capture_output=True,
        text=True,
        timeout=PROBE_TIMEOUT_S,
        check=False,
    )


def _tmpfs() -> Finding:
    try:
        folder = tmpfs_folder()
    except TornpageError as error:
        return Finding("scratch", False, str(error))
    kind = filesystem_of(folder)
    free = shutil.disk_usage(folder).free >> 20
    return Finding(
        "scratch",
        kind in ("tmpfs", "ramfs"),
        f"{folder} is {kind}, {free} MiB free",
        "TORNPAGE_TMP should name a tmpfs: anything else is slow and wears out a disk",
    )


def _limit(floor: Floor) -> Finding:
    return Finding(
        floor.name, not floor.low(), f"limit {floor.said(floor.allowed())}", floor.remedy
    )
