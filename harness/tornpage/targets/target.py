"""Targets: what can be tortured, and how it is run, recovered and read.

A target turns the harness's wishes into command lines, and what its programs print into typed answers.
It knows nothing of trials. Capabilities say which judgements make sense for it.

May import: aim, errors, forkserver, judgement, model, option, preload, process, rules, state, workload.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any, Protocol

from tornpage.faults.aim import SECTOR
from tornpage.faults.forkserver import fork_server
from tornpage.faults.preload import WHOLE, preload_environment
from tornpage.faults.process import ChildResult, run_child
from tornpage.oracle.judgement import FoundBackup
from tornpage.oracle.rules import Setting
from tornpage.oracle.state import State, read_tables
from tornpage.targets.option import TargetOption
from tornpage.vocabulary.errors import TargetError
from tornpage.vocabulary.model import Site, Violation
from tornpage.workloads.workload import bytes_of

__all__ = [
    "EXIT_REFUSED",
    "Capability",
    "Command",
    "EngineTarget",
    "RecoveryAnswer",
    "RunAnswer",
    "Target",
    "last_object",
    "read_findings",
    "read_run",
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

    def run(self, env: Mapping[str, str], *, may_be_killed: bool = False) -> ChildResult:
        """run_child() of it with these settings beside its own."""
        server = fork_server(Path(self.argv[0]), self.fork) if self.fork is not None else None
        whole = {**self.env, **env}
        return run_child(
            self.argv, whole, self.deadline_s, may_be_killed=may_be_killed, starter=server
        )


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """What a run said: failed statements (line -> error name). told: with Capability.OBSERVED the state
    after each statement, by its number, 0 for the state that it began with; of a run that was killed, as
    far as it got."""

    ok: bool
    message: str
    failed: Mapping[int, str]
    status: Mapping[str, int]
    told: Mapping[int, State] | None = None


@dataclass(frozen=True, slots=True)
class RecoveryAnswer:
    """What a recovery said.

    ok: it works again. refused: it said clearly that it will not start (message); refusal: the
    target's stable name of the cause, "" if it has none. stopped: it said clearly that a file operation
    failed. None of them: it crashed or hung, see message.
    state: logical digest, None if the scan did not run.
    findings: of the scanner. backups: finished ones, by name, as preparing them left them.
    counters: recovery counters by the names of model.TrialResult.
    """

    ok: bool
    refused: bool = False
    stopped: bool = False
    refusal: str = ""
    message: str = ""
    state: State | None = None
    findings: tuple[Violation, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    backups: Mapping[str, FoundBackup] = field(default_factory=dict)
    no_database: bool = False
    recovered: bool | None = None
    """Whether the crash had left anything to recover; None: the trace of the recovery tells."""


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
    crossed: Mapping[str, list[str]]
    """Options of which power loss takes every value, unless the campaign says another."""

    def check_ready(self) -> None:
        """Raises TargetError if programs or libraries are missing."""

    def programs(self) -> dict[str, Path]:
        """The files that make its verdicts, by a short name: another one is another target."""

    def preload_env(self, data: Path, trace: Path, plan: Path | None) -> dict[str, str]:
        """Environment under which a command of this target is recorded and disturbed."""

    def options(self) -> tuple[TargetOption, ...]:
        """What --set and a campaign's options may name. Raises TargetError."""

    def lay_out(self, data: Path, options: Mapping[str, str]) -> None:
        """Puts into an empty data directory what is to be there, and durable, before a run. Raises
        CensusError."""

    def run_command(self, data: Path, script: Path, options: Mapping[str, str]) -> Command:
        """Runs the script on the data directory, which may be missing."""

    def recover_command(self, data: Path, options: Mapping[str, str]) -> Command:
        """Opens, recovers, closes cleanly and scans the data directory."""

    def explore_command(self, trace: Path, allowed: Path, options: Mapping[str, str]) -> Command:
        """The explorer on a trace with contents; allowed: the oracle's prefixes (powerloss.py). Further
        options are added behind. Its deadline is that of one recovery."""

    def judge_command(self) -> Command:
        """The program that holds recordings against the rules (rules.py). Raises TargetError without
        Capability.RULES."""

    def page_command(self, file: Path, page: int, page_size: int) -> Command | None:
        """Prints a page of a data file, decoded, as one JSON object; None if the file has none that
        this target decodes."""

    def judge_setting(self, options: Mapping[str, str], page_size: int) -> Setting:
        """What that program must know of a run with these options."""

    def keeps_acknowledged(self, options: Mapping[str, str]) -> bool:
        """Whether a commit is there after a kill as soon as it is acknowledged."""

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


_COUNTERS = {
    "recv_dblwr_restored": "dblwr_restored",
    "recv_pages_read": "pages_read",
    "recv_pages_created": "pages_created",
    "recv_index_load_reads": "index_load_reads",
    "recv_records": "redo_records",
    "recv_pages_compared": "pages_compared",
    "recv_batches": "batches",
    "recv_trx_rolled_back": "trx_rolled_back",
    "recv_indexes_dropped": "indexes_dropped",
    "recv_tables_dropped": "tables_dropped",
    "recv_swaps_finished": "swaps_finished",
}

JUDGE = "tornpage-judge"
OPTIONS_DEADLINE_S = 10.0
EXIT_REFUSED = 3
EXIT_IO = 4
EXIT_NO_DATABASE = 6
LOG_FILE = "ib_logfile0"
LOG_FILES = frozenset({LOG_FILE, "ib_logfile101"})
"""The log has the second name while a new database is being made."""
LOG_HEADER = 2048
DICT_INDEX_MAX = 32
"""Ids below this belong to the catalogue's own trees."""


class EngineTarget:
    """The bundled engine: build/.../engine and libtornpage_preload.so."""

    name = "engine"
    what = "the bundled engine"
    unrecorded: tuple[str, ...] = ()
    sites = frozenset(Site) - {Site.ROLLBACK_JOURNAL}
    crossed: Mapping[str, list[str]] = {}
    lines: Path | None = None
    capabilities = frozenset(
        {
            Capability.ACKS,
            Capability.RULES,
            Capability.DETERMINISTIC,
            Capability.EXPLORE,
        }
    )

    def __init__(self, program: Path, preload: Path, explorer: Path | None = None) -> None:
        """program, preload, explorer: absolute paths of the built files."""
        self.program = program
        self.preload = preload
        self.explorer = explorer

    def check_ready(self) -> None:
        """Raises TargetError naming the file that is missing."""
        require_built(self.program, self.preload)

    def programs(self) -> dict[str, Path]:
        """Engine, preload, explorer, judge."""
        files = {"engine": self.program, "preload": self.preload}
        if self.explorer is not None:
            files |= {"explorer": self.explorer, "judge": self.explorer.with_name(JUDGE)}
        return files

    def preload_env(self, data: Path, trace: Path, plan: Path | None) -> dict[str, str]:
        """The variables of faults/README.md; contents are recorded, since the rules judge them."""
        return preload_environment(self.preload, data, trace, plan) | WHOLE

    def options(self) -> tuple[TargetOption, ...]:
        """What `engine options --json` says. Raises TargetError."""
        child = run_child([self.program, "options", "--json"], os.environ, OPTIONS_DEADLINE_S)
        data = last_object(child.stdout)
        if child.exit_code != 0 or data is None:
            raise TargetError(f"{self.program} tells no options: {child.describe()}")
        return tuple(
            TargetOption(item["name"], item["values"], item["default"], item["what"])
            for item in data["options"]
        )

    def lay_out(self, data: Path, options: Mapping[str, str]) -> None:
        """Nothing: it makes its database."""

    def run_command(self, data: Path, script: Path, options: Mapping[str, str]) -> Command:
        """engine run --json --set ... DIR SCRIPT."""
        return Command(
            (str(self.program), "run", "--json", *_sets(options), str(data), str(script)),
            fork=self.preload,
        )

    def loop_command(self, data: Path, script: Path, options: Mapping[str, str]) -> Command:
        """engine run --acks --set ... DIR SCRIPT: prints "ack LINE" at each acknowledgement."""
        return Command(
            (str(self.program), "run", "--acks", *_sets(options), str(data), str(script))
        )

    def recover_command(self, data: Path, options: Mapping[str, str]) -> Command:
        """engine recover --json --check --backups --set ... DIR. A log that is there keeps its format,
        which a restart of the run may have changed."""
        found = (data / LOG_FILE).exists()
        asked = {k: v for k, v in options.items() if not (found and k == "log_format")}
        return Command(
            (
                str(self.program),
                "recover",
                "--json",
                "--check",
                "--backups",
                *_sets(asked),
                str(data),
            ),
            fork=self.preload,
        )

    def explore_command(self, trace: Path, allowed: Path, options: Mapping[str, str]) -> Command:
        """tornpage-explore --trace ... --allowed ... --set ..."""
        if self.explorer is None or not self.explorer.is_file():
            raise TargetError(f"{self.explorer} is missing: build it first (make build)")
        program = str(self.explorer)
        return Command((program, "--trace", str(trace), "--allowed", str(allowed), *_sets(options)))

    def judge_command(self) -> Command:
        """tornpage-judge, which lies beside tornpage-explore."""
        judge = self.programs().get("judge")
        if judge is None or not judge.is_file():
            raise TargetError(f"{judge} is missing: build it first (make build)")
        return Command((str(judge),))

    def page_command(self, file: Path, page: int, page_size: int) -> Command | None:
        """engine page FILE N --json --page-size SIZE"""
        if not _has_pages(file.name):
            return None
        size = ("--page-size", str(page_size))
        return Command((str(self.program), "page", str(file), str(page), "--json", *size))

    def judge_setting(self, options: Mapping[str, str], page_size: int) -> Setting:
        """Where a page is written without doublewrite there is nothing to be held against its rules."""
        unit = bytes_of("atomic_write_unit", options.get("atomic_write_unit", "0"))
        doublewrite = options.get("doublewrite", "on").lower() in ("on", "1")
        return Setting(page_size, doublewrite and unit < page_size, max(unit, SECTOR))

    def keeps_acknowledged(self, options: Mapping[str, str]) -> bool:
        """Not where the log is only written from time to time."""
        return options.get("flush_log_at_trx_commit", "1") != "0"

    def parse_run(self, child: ChildResult) -> RunAnswer:
        """The object of `engine run --json`."""
        return read_run(child)

    def parse_recovery(self, child: ChildResult) -> RecoveryAnswer:
        """The object of `engine recover --json --check`."""
        if child.timed_out or child.signal:
            return RecoveryAnswer(False, message=child.describe())
        data = last_object(child.stdout)
        if child.exit_code in (EXIT_REFUSED, EXIT_IO, EXIT_NO_DATABASE):
            message = str(data.get("message", "")) if data else child.last_line
            return RecoveryAnswer(
                ok=False,
                refused=bool(message) and child.exit_code != EXIT_IO,
                stopped=bool(message) and child.exit_code == EXIT_IO,
                refusal=str(data.get("refusal", "")) if data else "",
                message=message or child.describe(),
                no_database=child.exit_code == EXIT_NO_DATABASE,
            )
        if child.exit_code not in (0, 1) or data is None or not data.get("ok"):
            return RecoveryAnswer(False, message=child.describe())
        status, check = data["status"], data.get("check")
        backups = {item["name"]: _read_backup(item) for item in data.get("backups", ())}
        counters = {ours: int(status.get(theirs, 0)) for theirs, ours in _COUNTERS.items()}
        counters["backups_prepared"] = sum(not found.wrong for found in backups.values())
        return RecoveryAnswer(
            ok=True,
            state=read_tables(check["tables"]) if check else None,
            findings=read_findings(check) if check else (),
            backups=backups,
            counters=counters,
        )

    def site_of(
        self,
        file: str,
        offset: int,
        facts: Mapping[str, str] | None,
        page_size: int,
        data: bytes = b"",  # noqa: ARG002 - its markers tell
    ) -> Site | None:
        """By file and offset, and for a home write by its marker."""
        if file in LOG_FILES:
            return Site.CHECKPOINT_HEADER if offset < LOG_HEADER else Site.REDO
        if file == "ib_dblwr":
            return Site.DOUBLEWRITE
        if file.endswith(("/backup_info", ".cfg")):
            return Site.METADATA
        if not _has_pages(file):
            return Site.OTHER
        if offset < page_size:
            return Site.PAGE0
        return Site.OTHER if facts is None else _page_site(facts)

    def holds_pages(self, file: str) -> bool:
        """Those of the database, and their copies in a backup."""
        return _has_pages(PurePath(file).name)


def _has_pages(file: str) -> bool:
    """The system space, a table's file or an undo tablespace."""
    return (
        file == "ibdata1" or file.endswith(".ibd") or re.fullmatch(r"undo\d{3}", file) is not None
    )


def _page_site(facts: Mapping[str, str]) -> Site:
    if facts["type"] == "freed":
        return Site.FREED_PAGE
    if facts["type"] == "undo":
        return Site.UNDO_PAGE
    if facts["type"] not in ("index", "blob"):
        return Site.SYSTEM_PAGE
    if facts["load"] == "1":
        return Site.INDEX_LOAD_PAGE
    if facts["type"] == "blob":
        return Site.DATA_PAGE
    if facts["space"] == "0" or int(facts["index"]) < DICT_INDEX_MAX:
        return Site.DICT_PAGE
    return Site.INTERNAL_PAGE if facts["level"] != "0" else Site.DATA_PAGE


def _read_backup(item: Mapping[str, Any]) -> FoundBackup:
    if not item["ok"]:
        return FoundBackup(None, f"refused: {item['error']}: {item['message']}")
    findings = read_findings(item["check"])
    return FoundBackup(
        read_tables(item["check"]["tables"]), f"{findings[0].what}" if findings else ""
    )


def _sets(options: Mapping[str, str]) -> list[str]:
    out = []
    for name, value in options.items():
        out += ["--set", f"{name}={value}"]
    return out


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
