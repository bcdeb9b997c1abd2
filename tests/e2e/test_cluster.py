"""Runs on a cluster: a real scheduler, worker processes on the loopback, and a store that cannot be told from
that of a run on this machine alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from builders import make_spec
from kills import rows_of

from tornpage.campaigns.cluster import _Handed, open_cluster
from tornpage.campaigns.workers import Job, play, play_census
from tornpage.vocabulary.errors import ConfigError, MachineError
from tornpage.vocabulary.model import Outcome
from tornpage.vocabulary.paths import BUILD_VARIABLE

KILLS = ("run", "smoke", "--set", "doublewrite=off", "--trials", "24", "--scripts", "1")
LOSSES = ("run", "powerloss", "--set", "doublewrite=off", "--states", "30", "--depth", "1")
TABLES = ("trial", "violation", "census", "census_violation", "exploration", "bug", "sighting")
DEADLINE_S = 240.0


def command(*arguments: str, out: Path) -> list[str]:
    """`tornpage` with few undisturbed runs and one worker process."""
    few = ["--undisturbed", "2", "--jobs", "1", "--out", str(out)]
    return [sys.executable, "-m", "tornpage", *arguments, *few]


def run(build: Path, *arguments: str, out: Path) -> subprocess.CompletedProcess[str]:
    """To its end."""
    return subprocess.run(
        command(*arguments, out=out),
        env={**os.environ, BUILD_VARIABLE: str(build)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def tables(out: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What a run left in its store, without times and places."""
    with contextlib.closing(sqlite3.connect(out / "tornpage.db")) as db:
        return {name: rows_of(db.execute(f"select * from {name}")) for name in TABLES}


def images(out: Path) -> set[str]:
    """Names of all files of kept images."""
    root = out / "images"
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@dataclass
class Machines:
    """A scheduler and the workers that were started for it."""

    address: str
    start: Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def machines(build: Path, tmp_path: Path) -> Iterator[Machines]:
    """A scheduler of its own; whatever was started is ended by its pid."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, **environment: str) -> subprocess.Popen[bytes]:
        with (tmp_path / f"dask-{len(started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words, "--no-dashboard"],
                env={**os.environ, BUILD_VARIABLE: str(build), **environment},
                cwd=tmp_path,
                stdout=log,
                stderr=log,
            )
        started.append(process)
        return process

    start("scheduler", "--host", "127.0.0.1", "--port", str(port))
    try:
        yield Machines(f"127.0.0.1:{port}", start)
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def worker(machines: Machines, threads: int = 1, **environment: str) -> subprocess.Popen[bytes]:
    """One more, which nobody starts again when it dies."""
    words = ("worker", f"tcp://{machines.address}", "--nthreads", str(threads), "--no-nanny")
    return machines.start(*words, **environment)


def wait_for(what: Callable[[], bool]) -> None:
    """Fails after a time."""
    until = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def verdicts(out: Path) -> int:
    """How many are in the store."""
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"file:{out}/tornpage.db?mode=ro", uri=True)) as db,
    ):
        return int(db.execute("select count(*) from trial where result is not null").fetchone()[0])
    return 0


def test_a_worker_is_killed_in_the_middle(build: Path, machines: Machines, tmp_path: Path) -> None:
    """Three workers, one of which dies with a trial under way: every verdict, bug and image is that of a run
    on this machine, and nothing of the run is left on the workers."""
    alone, many = tmp_path / "alone", tmp_path / "many"
    assert run(build, *KILLS, out=alone).returncode == 1
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    workers = [worker(machines, TORNPAGE_TMP=str(scratch)) for _ in range(3)]
    owner = subprocess.Popen(
        command(*KILLS, "--cluster", f"dask://{machines.address}", out=many),
        env={**os.environ, BUILD_VARIABLE: str(build)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: verdicts(many) >= 4 or owner.poll() is not None)
    workers[0].send_signal(signal.SIGKILL)
    assert owner.poll() is None and verdicts(many) < 20, "the run was over too soon"
    told, errors = owner.communicate(timeout=DEADLINE_S)
    assert owner.returncode == 1, told + errors
    assert "cluster: " in errors and "tcp://127.0.0.1:" in errors and "dashboard: http" in errors
    assert tables(many) == tables(alone)
    assert images(many) == images(alone) != set()
    workers[0].wait()
    # What the killed one left is removed by the next that asks for a scratch folder.
    left = [path for path in scratch.iterdir() if path.name.startswith("tornpage-")]
    assert len(left) <= 1
    assert [
        child
        for child in psutil.Process().children(recursive=True)
        if "tornpage-launch" in child.name()
    ] == []


def test_explorations_on_local_workers(build: Path, tmp_path: Path) -> None:
    """Power loss: explorations that end in any order are stored as one after the other."""
    alone, many = tmp_path / "alone", tmp_path / "many"
    one, two = (
        run(build, *LOSSES, out=alone),
        run(build, *LOSSES, "--cluster", "local:2", out=many),
    )
    assert one.returncode == two.returncode == 1, one.stderr + two.stderr
    assert tables(many) == tables(alone)
    assert images(many) == images(alone) != set()


def test_others_than_the_owner_are_refused(build: Path, machines: Machines, tmp_path: Path) -> None:
    """Another program, several threads: exit code 2, the worker and what is other in one line, and no run."""
    other = tmp_path / "build"
    shutil.copytree(
        build / "engine", other / "engine", ignore=shutil.ignore_patterns("*.a", "CMakeFiles")
    )
    for part in ("faults", "explorer"):
        (other / part).symlink_to(build / part)
    with (other / "engine" / "engine").open("ab") as program:
        program.write(b"\0")
    first = worker(machines, **{BUILD_VARIABLE: str(other)})
    address = f"dask://{machines.address}"
    done = run(build, *KILLS, "--cluster", address, out=tmp_path / "out")
    assert done.returncode == 2 and "has another engine than" in done.stderr, done.stderr
    first.kill()
    first.wait()
    worker(machines, threads=2)
    done = run(build, *KILLS, "--cluster", address, out=tmp_path / "out")
    assert done.returncode == 2 and "--nthreads 1" in done.stderr, done.stderr
    for wrong in ("dask://nowhere", "local:0", "local:x"):
        with pytest.raises(ConfigError, match="expected dask://"), open_cluster(wrong, "engine"):
            pass
    assert not (tmp_path / "out" / "images").exists()


class Broken:
    """A future whose task failed for good."""

    def done(self) -> bool:
        return True

    def release(self) -> None:
        pass

    def result(self) -> None:
        raise RuntimeError("KilledWorker")


def test_what_fails_twice_is_a_failure_of_that_trial() -> None:
    """A trial that no worker could play is a harness failure with its reason; other work ends the run, which
    can go on."""
    spec = make_spec(number=7)
    job = Job(spec, None, Path(), Path())  # type: ignore[arg-type]
    told, result = _Handed(Broken(), play, job).result()
    assert told == spec and result.number == 7
    assert result.outcome is Outcome.HARNESS_ERROR and "two workers" in result.reason
    with pytest.raises(MachineError):
        _Handed(Broken(), play_census, job).result()
