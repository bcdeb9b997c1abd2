"""Targets: what can be tortured, and how it is run, recovered and read.

A target turns the harness's wishes into command lines, and what its programs print into typed answers.
It knows nothing of trials. Capabilities say which judgements make sense for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from tornpage.faults.forkserver import fork_server
from tornpage.faults.preload import preload_environment
from tornpage.faults.process import ChildResult, require_loaded, run_child
from tornpage.faults.recorder import control_name, fs_environment, fs_path
from tornpage.faults.stacks import Note, stacks_environment
from tornpage.faults.trace import Trace
from tornpage.oracle.judgement import FoundBackup
from tornpage.oracle.promise import Promise
from tornpage.oracle.rules import Setting
from tornpage.oracle.state import State
from tornpage.targets.option import TargetOption
from tornpage.vocabulary.errors import TargetError
from tornpage.vocabulary.model import Site, Violation

__all__ = [
    "EXIT_REFUSED",
    "STATEMENTS",
    "ByHand",
    "Capability",
    "Command",
    "Part",
    "Parts",
    "Planted",
    "Recorded",
    "RecoveryAnswer",
    "RunAnswer",
    "Target",
    "last_object",
    "read_findings",
    "read_run",
    "recorded_by",
    "require_built",
]


class Capability(StrEnum):
    """What a target gives the judges to look at."""

    ACKS = "acks"
    """It marks each statement in the trace: issued, acknowledged, failed."""
    RULES = "rules"
    """What it writes can be decoded, so that the rules on bytes can be judged (judge_command)."""
    DETERMINISTIC = "deterministic"
    """The same script gives the same events, byte for byte."""
    EXPLORE = "explore"
    """The power-loss explorer can recover its images (explore_command)."""
    OBSERVED = "observed"
    """It makes its work itself and tells its states, which are the oracle; scripts are not for it."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run: absolute path first; env is added to the harness's own additions. deadline_s: seconds
    after which it hangs."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    deadline_s: float = 60.0
    fork: Path | None = None
    """With this preload its program is a fork server of itself: it does nothing before its main that may
    not be done once for all."""

    def run(
        self,
        env: Mapping[str, str],
        *,
        may_be_killed: bool = False,
        over: Callable[[], bool] | None = None,
    ) -> ChildResult:
        """run_child() of it with these settings beside its own. Raises TargetError too, if it could not be
        loaded."""
        server = fork_server(Path(self.argv[0]), self.fork) if self.fork is not None else None
        whole = {**self.env, **env}
        child = run_child(
            self.argv,
            whole,
            self.deadline_s,
            may_be_killed=may_be_killed,
            over=over,
            starter=server,
        )
        if child.exit_code:
            require_loaded(child.last_line)
        return child


@dataclass(frozen=True, slots=True)
class Recorded:
    """How a command is recorded: what it does below `data`, to the file `trace`, disturbed by a compiled
    plan. options: of the target, which may say by what; stacks: call stacks too, if the recorder sees
    them."""

    data: Path
    trace: Path
    options: Mapping[str, str]
    plan: Path | None = None
    stacks: bool = False


def recorded_by(
    preload: Path, command: Command, how: Recorded, *, below: bool, served: bool = False
) -> Command:
    """The command under the preload, or below: over the file system beside it. served: marks come from
    another process, through a socket; those that a file system takes all do."""
    if below:
        env = fs_environment(how.data, how.trace, how.plan)
        command = replace(command, argv=(str(fs_path(preload)), *command.argv), fork=None)
    else:
        env = preload_environment(preload, how.data, how.trace, how.plan)
        env |= stacks_environment(how.trace) if how.stacks else {}
    if below or served:
        env["TORNPAGE_CONTROL"] = control_name(how.trace)
    return replace(command, env={**command.env, **env})


STATEMENTS = "work.txt"
"""What the file of statements is called in ByHand.work."""


@dataclass(frozen=True, slots=True)
class ByHand:
    """How somebody without Tornpage starts the store on a crashed folder. text: of a shell, which finds the
    folder as "$dir" and begins in that of `files`, by their paths in it; work: the command that did the
    work."""

    text: str
    work: str
    files: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """What a run said: failed statements (line -> error name), status counters.

    told: with Capability.OBSERVED the state after each statement, by its number, 0 for the state that it
    began with; of a run that was killed, as far as it got.
    """

    ok: bool
    message: str
    failed: Mapping[int, str]
    status: Mapping[str, int]
    told: Mapping[int, State] | None = None


@dataclass(frozen=True, slots=True)
class RecoveryAnswer:
    """What a recovery said.

    ok: it works again. refused: it said clearly that it will not start (message); breaks: the invariant
    that this breaks, None if the target does not name its cause. machine: it calls that the machine's
    failure, not the store's. stopped: it said clearly that a file operation failed. None of them: it crashed
    or hung, see message.
    state: logical digest, None if the scan did not run.
    findings: of the scanner. backups: finished ones, by name, as preparing them left them.
    counters: recovery counters by the names of model.TrialResult.
    """

    ok: bool
    refused: bool = False
    machine: bool = False
    stopped: bool = False
    breaks: int | None = None
    message: str = ""
    state: State | None = None
    findings: tuple[Violation, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    backups: Mapping[str, FoundBackup] = field(default_factory=dict)
    no_database: bool = False
    recovered: bool | None = None
    """Whether the crash had left anything to recover; None: the trace of the recovery tells."""


class Planted(Protocol):
    """What was put into a crashed image, in this file."""

    @property
    def file(self) -> str:
        """Its path inside the data directory."""

    def remove(self, data: Path) -> None:
        """Takes it out of this data directory, a copy of the image."""


@dataclass(frozen=True, slots=True)
class Part:
    """One of the steps whose changes a write brings to a file. what: in words; end: where the step ends, in
    the target's own count; event: number of the last one that had ended when it was made; stack: number of
    the call stack of who made it."""

    what: str
    end: int
    event: int
    stack: int


class Parts(Protocol):
    """The steps that writes of a recording bring to files together, one behind the other, and who made what
    they bring."""

    def of(self, seq: int) -> tuple[Part, ...]:
        """Those of this operation, the oldest first; none if it brings none."""

    def whole(self, seq: int, share: float) -> int:
        """How many of them are there if only this share of the write is, from its beginning."""

    def cut(self, seq: int, count: int) -> bytes:
        """The contents that the write would have had behind so many of them, of the same length."""

    def changer(self, seq: int) -> Part | None:
        """Of a write of a page the step that changed that last; None: it is none, or nobody knows."""


class Target(Protocol):
    """The seam behind which SQLite, MariaDB and others will stand."""

    name: str
    what: str
    """One line on it."""
    capabilities: frozenset[Capability]
    unrecorded: tuple[str, ...]
    """Patterns of files whose changes the trace need not show: no crashed image needs them."""
    sites: frozenset[Site]
    """What its writes may be for."""
    lines: Path | None
    """A file with statements in its own language, which its run takes."""
    counters: frozenset[str]
    """What it counts of its recoveries, by the names of model.TrialResult; of others nothing is shown."""
    wrappers: tuple[str, ...]
    """Patterns of functions, and of files of source, that only pass calls on to the system."""
    on_shm: bool
    """Whether it works in scratch on /dev/shm as elsewhere."""
    crossed: Mapping[str, list[str]]
    """Options of which power loss takes every value, unless the campaign says another."""

    def check_ready(self) -> None:
        """Raises TargetError if programs or libraries are missing."""

    def check_needs(self, options: Mapping[str, str]) -> None:
        """Raises MissingError if what these options name is not here."""

    def programs(self) -> dict[str, Path]:
        """The files that make its verdicts, by a short name: another one is another target."""

    def chosen_programs(self, options: Mapping[str, str]) -> dict[str, Path]:
        """Those besides that these options name."""

    def lines_of(self, options: Mapping[str, str]) -> Path:
        """`lines` under these options; for a target that has some."""

    def recorded(self, command: Command, how: Recorded) -> Command:
        """A command of this target, recorded and disturbed."""

    def is_below(self, options: Mapping[str, str]) -> bool:
        """A file system below its programs records it, which sees all that the kernel is asked for."""

    def why_not_below(self) -> str:
        """Why a file system cannot record it here, and what to do; "" if it can."""

    def options(self) -> tuple[TargetOption, ...]:
        """What --option and a campaign's options may name. Raises TargetError."""

    def lay_out(self, data: Path, options: Mapping[str, str]) -> None:
        """Puts into an empty data directory what is to be there, and durable, before a run. Raises
        GoldenRunError."""

    def run_command(self, data: Path, script: Path, options: Mapping[str, str]) -> Command:
        """Runs the script on the data directory, which may be missing."""

    def recover_command(self, data: Path, options: Mapping[str, str]) -> Command:
        """Opens, recovers, closes cleanly and scans the data directory."""

    def by_hand(self, options: Mapping[str, str]) -> ByHand:
        """What a report says to somebody who has only the store."""

    def explore_command(self, trace: Path, allowed: Path, options: Mapping[str, str]) -> Command:
        """The explorer on a trace with contents; allowed: the oracle's prefixes (prefixes.py). Further
        options are added behind. Its deadline is that of one recovery."""

    def judge_command(self) -> Command:
        """The program that holds recordings against the rules (rules.py). Raises TargetError without
        Capability.RULES."""

    def page_command(self, file: Path, page: int, page_size: int) -> Command | None:
        """Prints a page of a data file, decoded, as one JSON object; None if the file has none that
        this target decodes."""

    def log_command(self, data: Path) -> Command | None:
        """Prints the redo log of a data directory from its checkpoint on: a line per group of records, as
        366938..366973, and below it a line per record, which says space=N page=N; None if this target decodes
        none."""

    def parts_of(self, trace: Trace, notes: Sequence[Note]) -> Parts | None:
        """What its writes are made of, by the notes in its log of call stacks; None: nobody knows."""

    def judge_setting(self, options: Mapping[str, str]) -> Setting:
        """What that program must know of a run with these options."""

    def promise(self, options: Mapping[str, str]) -> Promise:
        """What a crash must leave."""

    def plant_stale_log(self, data: Path, variant: int) -> Planted | None:
        """Puts into a crashed image what recovery must not see (I21), in one of two variants; None:
        this image, or this target, has no place for it. PlanError: the crash comes before there can be."""

    def damage_pages(self, data: Path, page_size: int) -> bool:
        """Damages pages in the files of a closed database: whoever judges them must see it (I5). False: there
        are none, or we do not know the files."""

    def parse_run(self, child: ChildResult) -> RunAnswer:
        """Reads the output of a run command that was not killed."""

    def parse_recovery(self, child: ChildResult) -> RecoveryAnswer:
        """Reads the output of a recover command."""

    def site_of(
        self,
        file: str,
        offset: int,
        facts: Mapping[str, str] | None,
        page_size: int,
        data: bytes = b"",
    ) -> Site | None:
        """What a write was for. facts: of the page_write marker right before it, None if there is none; data:
        what was written, empty where contents were not recorded.
        None: the file is no part of a crashed image, and its writes are no subject."""

    def holds_pages(self, file: str) -> bool:
        """Whether it holds pages, in any folder: the storage's promise (Setting.unit) covers those."""


EXIT_REFUSED = 3
"""Exit code of our own programs: the database cannot be recovered."""


def require_built(*files: Path) -> None:
    """Raises TargetError naming the first file of the build that cannot be read."""
    for path in files:
        if not os.access(path, os.R_OK):
            raise TargetError(f"{path} is missing: build it first (make build)")


def last_object(stdout: bytes) -> dict[str, Any] | None:
    """The last line of an output as a JSON object."""
    last = stdout.rstrip().rpartition(b"\n")[2]
    try:
        data = json.loads(last)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def read_run(child: ChildResult) -> RunAnswer:
    """What the object that a run prints last says."""
    data = last_object(child.stdout)
    if child.exit_code != 0 or data is None or not data.get("ok"):
        return RunAnswer(False, child.describe(), {}, {})
    failed = {int(item["line"]): str(item["error"]) for item in data["failed"]}
    status = {name: int(value) for name, value in data["status"].items()}  # of true and false too
    return RunAnswer(True, "", failed, status)


def read_findings(check: Mapping[str, Any]) -> tuple[Violation, ...]:
    """The findings of a check object."""
    found = []
    for item in check["findings"]:
        page = item.get("page")
        place = f"page {page}: " if page is not None else ""
        found.append(Violation(int(item["invariant"]), f"{place}{item['what']}", path=item["path"]))
    if check["needs_recovery"]:
        found.append(Violation(19, "the scanner says that recovery is needed after recovery"))
    return tuple(found)
