"""Targets: what can be tortured, and how it is run, recovered and read.

A target turns the harness's wishes into command lines, and what its programs print into typed answers.
It knows nothing of trials. Capabilities say which judgements make sense for it.

May import: errors, model, oracle, process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from tornpage.errors import ConfigError, TargetError
from tornpage.model import Violation
from tornpage.oracle import State, TableDigest
from tornpage.process import ChildResult

__all__ = [
    "TARGETS",
    "Capability",
    "Command",
    "EngineTarget",
    "RecoveryAnswer",
    "RunAnswer",
    "Target",
    "make_target",
]


class Capability(StrEnum):
    """What a target gives the judges to look at."""

    MARKERS = "markers"
    """It writes markers into the trace: sites, trace invariants and acknowledgements come from there."""
    DETERMINISTIC = "deterministic"
    """The same script gives the same events, byte for byte."""
    SCAN = "scan"
    """It has an offline scanner whose findings carry invariant numbers."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run: absolute path first; env is added to the harness's own additions."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """What an undisturbed run said: failed statements (line -> error name)."""

    ok: bool
    message: str
    failed: Mapping[int, str]
    status: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RecoveryAnswer:
    """What a recovery said.

    ok: it works again. refused: it said clearly that it will not start (error, message); neither:
    it crashed or hung, see message. state: logical digest, None if the scan did not run.
    findings: of the scanner. counters: recovery counters by the names of model.TrialResult.
    """

    ok: bool
    refused: bool = False
    error: str = ""
    message: str = ""
    state: State | None = None
    findings: tuple[Violation, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    no_database: bool = False


class Target(Protocol):
    """The seam behind which SQLite, MariaDB and others will stand."""

    name: str
    capabilities: frozenset[Capability]

    def check_ready(self) -> None:
        """Raises TargetError if programs or libraries are missing."""

    def preload_env(self, data: Path, trace: Path, plan: Path | None) -> dict[str, str]:
        """Environment under which a command of this target is recorded and disturbed."""

    def run_command(self, data: Path, script: Path, options: Mapping[str, str]) -> Command:
        """Runs the script on the data directory, which may be missing."""

    def recover_command(self, data: Path, options: Mapping[str, str]) -> Command:
        """Opens, recovers, closes cleanly and scans the data directory."""

    def parse_run(self, child: ChildResult) -> RunAnswer:
        """Reads the output of a run command that was not killed."""

    def parse_recovery(self, child: ChildResult) -> RecoveryAnswer:
        """Reads the output of a recover command."""


_COUNTERS = {
    "recv_dblwr_restored": "dblwr_restored",
    "recv_pages_read": "pages_read",
    "recv_pages_created": "pages_created",
    "recv_index_load_reads": "index_load_reads",
    "recv_records": "redo_records",
    "recv_batches": "batches",
    "recv_trx_rolled_back": "trx_rolled_back",
    "recv_indexes_dropped": "indexes_dropped",
    "recv_tables_dropped": "tables_dropped",
}

EXIT_REFUSED = 3
EXIT_NO_DATABASE = 6


class EngineTarget:
    """The bundled engine: build/.../engine and libtornpage_preload.so."""

    name = "engine"
    capabilities = frozenset(
        {Capability.MARKERS, Capability.DETERMINISTIC, Capability.SCAN}
    )

    def __init__(self, program: Path, preload: Path) -> None:
        """program, preload: absolute paths of the built files."""
        self.program = program
        self.preload = preload

    def check_ready(self) -> None:
        """Raises TargetError naming the file that is missing."""
        for path in (self.program, self.preload):
            if not os.access(path, os.R_OK):
                raise TargetError(f"{path} is missing: build it first (make setup)")

    def preload_env(self, data: Path, trace: Path, plan: Path | None) -> dict[str, str]:
        """The variables of faults/README.md."""
        env = {
            "LD_PRELOAD": str(self.preload),
            "TORNPAGE_ROOT": str(data),
            "TORNPAGE_TRACE": str(trace),
        }
        if plan is not None:
            env["TORNPAGE_PLAN"] = str(plan)
        return env

    def run_command(self, data: Path, script: Path, options: Mapping[str, str]) -> Command:
        """engine run --json --set ... DIR SCRIPT."""
        return Command((str(self.program), "run", "--json", *_sets(options), str(data), str(script)))

    def recover_command(self, data: Path, options: Mapping[str, str]) -> Command:
        """engine recover --json --check --set ... DIR."""
        return Command((str(self.program), "recover", "--json", "--check", *_sets(options), str(data)))

    def parse_run(self, child: ChildResult) -> RunAnswer:
        """The object of `engine run --json`."""
        data = _last_object(child.stdout)
        if child.exit_code != 0 or data is None or not data.get("ok"):
            return RunAnswer(False, child.describe(), {}, {})
        failed = {int(item["line"]): str(item["error"]) for item in data["failed"]}
        return RunAnswer(True, "", failed, data["status"])

    def parse_recovery(self, child: ChildResult) -> RecoveryAnswer:
        """The object of `engine recover --json --check`."""
        if child.timed_out or child.signal:
            return RecoveryAnswer(False, message=child.describe())
        data = _last_object(child.stdout)
        if child.exit_code in (EXIT_REFUSED, EXIT_NO_DATABASE):
            error = str(data.get("error", "")) if data else ""
            message = str(data.get("message", "")) if data else child.last_line
            return RecoveryAnswer(
                ok=False,
                refused=bool(message),
                error=error,
                message=message or child.describe(),
                no_database=child.exit_code == EXIT_NO_DATABASE,
            )
        if child.exit_code not in (0, 1) or data is None or not data.get("ok"):
            return RecoveryAnswer(False, message=child.describe())
        status, check = data["status"], data.get("check")
        return RecoveryAnswer(
            ok=True,
            state=_state(check) if check else None,
            findings=_findings(check) if check else (),
            counters={ours: int(status.get(theirs, 0)) for theirs, ours in _COUNTERS.items()},
        )


def _sets(options: Mapping[str, str]) -> list[str]:
    out = []
    for name, value in options.items():
        out += ["--set", f"{name}={value}"]
    return out


def _last_object(stdout: bytes) -> dict[str, Any] | None:
    """The last line of the output as a JSON object."""
    last = stdout.rstrip().rpartition(b"\n")[2]
    try:
        data = json.loads(last)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _state(check: Mapping[str, Any]) -> State:
    state: dict[str, TableDigest] = {}
    for table in check["tables"]:
        indexes = tuple(
            (str(item["name"]), int(item["entries"]), int(item["hash"], 16))
            for item in table["indexes"]
        )
        state[table["name"]] = (int(table["rows"]), int(table["hash"], 16), indexes)
    return state


def _findings(check: Mapping[str, Any]) -> tuple[Violation, ...]:
    found = []
    for item in check["findings"]:
        page = item.get("page")
        place = f"page {page}: " if page is not None else ""
        found.append(Violation(int(item["invariant"]), f"{place}{item['what']}", path=item["path"]))
    if check["needs_recovery"]:
        found.append(Violation(30, "the scanner says that recovery is needed after recovery"))
    return tuple(found)


def _make_engine(build: Path) -> Target:
    return EngineTarget(build / "engine" / "engine", build / "faults" / "libtornpage_preload.so")


TARGETS = {"engine": _make_engine}
"""Known targets: name -> constructor that takes the build folder."""


def make_target(name: str, build: Path) -> Target:
    """The target of this name from a build folder (as build/release). Raises ConfigError, TargetError."""
    if name not in TARGETS:
        raise ConfigError(f"unknown target {name!r} (known: {', '.join(sorted(TARGETS))})")
    target = TARGETS[name](build.resolve())
    target.check_ready()
    return target
