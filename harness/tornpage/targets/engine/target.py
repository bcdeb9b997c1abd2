"""The bundled engine as a target."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Any

from tornpage.faults.aim import SECTOR
from tornpage.faults.preload import WHOLE
from tornpage.faults.process import ChildResult, run_child
from tornpage.faults.recorder import Recorder, fs_path, why_no_fs
from tornpage.faults.stacks import Note
from tornpage.faults.trace import Trace
from tornpage.oracle.judgement import FoundBackup
from tornpage.oracle.promise import Promise
from tornpage.oracle.rules import Setting
from tornpage.oracle.state import read_tables
from tornpage.targets.engine.damage import damage_tables
from tornpage.targets.engine.log_groups import LogGroups
from tornpage.targets.engine.stale_log import LOG_FILE, PlantedBlock, plant_stale_block
from tornpage.targets.filesystems import fs_arguments, fs_option, recorder_option, without_fs
from tornpage.targets.option import FS, RECORDER, TargetOption
from tornpage.targets.target import (
    EXIT_REFUSED,
    STATEMENTS,
    ByHand,
    Capability,
    Command,
    Recorded,
    RecoveryAnswer,
    RunAnswer,
    last_object,
    read_findings,
    read_run,
    recorded_by,
    require_built,
)
from tornpage.vocabulary.errors import MissingError, TargetError
from tornpage.vocabulary.model import Site
from tornpage.workloads.workload import bytes_of, page_size_of

__all__ = ["EngineTarget"]


_COUNTERS = {
    "recv_dblwr_restored": "dblwr_restored",
    "recv_pages_read": "pages_read",
    "recv_pages_created": "pages_created",
    "recv_index_load_reads": "index_load_reads",
    "recv_freed_reads": "freed_reads",
    "recv_records": "redo_records",
    "recv_pages_compared": "pages_compared",
    "recv_batches": "batches",
    "recv_trx_rolled_back": "trx_rolled_back",
    "recv_indexes_dropped": "indexes_dropped",
    "recv_tables_dropped": "tables_dropped",
    "recv_swaps_finished": "swaps_finished",
}
_EXPLORED = (
    "backups_prepared",
    "exports_judged",
    "purged",
    "recovered_in_batches",
    "several_batches",
    "worked",
)
"""Further paths that the explorer counts of it."""

REFUSALS = {"torn-page": 5, "page-beyond-log": 4, "page-differs": 27}
"""The invariant that a refusal for such a cause breaks."""

JUDGE = "tornpage-judge"
OPTIONS_DEADLINE_S = 10.0
EXIT_IO = 4
EXIT_NO_DATABASE = 6
LOG_FILES = frozenset({LOG_FILE, "ib_logfile101"})
"""The log has the second name while a new database is being made."""
LOG_HEADER = 2048
TEMPORARY = "#sql-tmp-"
"""Files of an index build: nothing in them lasts."""
DICT_INDEX_MAX = 32
"""Ids below this belong to the catalogue's own trees."""


@cache
def _refusal(program: Path, name: str, value: str) -> str:
    """Why the engine does not take this value of an option, "" if it does."""
    words: list[str | Path] = [program, "options", "--option", f"{name}={value}"]
    child = run_child(words, os.environ, OPTIONS_DEADLINE_S)
    return "" if child.exit_code == 0 else child.last_line.removeprefix("engine: ")


WRAPPERS = (
    *("probe_*", "*/engine/base/*", "*/engine/os/*", "*/disk/*", "fil_page_write"),
    *("blocks_write", "buffer_write", "log_write_up_to", "buf_log_wait"),
    *("log_append*", "mtr_log_append", "mtr_commit*", "mtr_end"),
    *("undo_commit", "trx_commit*", "ddl_commit*", "ddl_build_commit"),
)
"""Every write of a page or of the log, every group of the log, every change of a page, every commit goes
through these: they do not tell one from another."""


class EngineTarget:
    """The bundled engine: build/.../engine and libtornpage_preload.so."""

    name = "engine"
    what = "the bundled engine"
    unrecorded: tuple[str, ...] = ()
    sites = frozenset(Site) - {Site.ROLLBACK_JOURNAL}
    counters = frozenset({*_COUNTERS.values(), *_EXPLORED})
    wrappers: tuple[str, ...] = WRAPPERS
    crossed: Mapping[str, list[str]] = {}
    on_shm = True
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

    def check_needs(self, options: Mapping[str, str]) -> None:
        """MissingError: their recorder cannot be here."""
        if self.is_below(options) and (why := self.why_not_below()):
            raise MissingError(f"recorder=fs: {why}", self.name, why)

    def chosen_programs(self, options: Mapping[str, str]) -> dict[str, Path]:
        """Their recorder, where it is none of the preload."""
        return {"recorder": fs_path(self.preload)} if self.is_below(options) else {}

    def lines_of(self, options: Mapping[str, str]) -> Path:
        """It has none."""
        raise NotImplementedError

    def recorded(self, command: Command, how: Recorded) -> Command:
        """With contents, since the rules judge them."""
        command = recorded_by(self.preload, command, how, below=self.is_below(how.options))
        return replace(command, env={**command.env, **WHOLE})

    def is_below(self, options: Mapping[str, str]) -> bool:
        """As they say."""
        return options.get(RECORDER) == Recorder.FS

    def why_not_below(self) -> str:
        """It is tried once."""
        return why_no_fs(fs_path(self.preload))

    def options(self) -> tuple[TargetOption, ...]:
        """What `engine options --json` says, the file system and the recorder. Raises TargetError."""
        child = run_child([self.program, "options", "--json"], os.environ, OPTIONS_DEADLINE_S)
        data = last_object(child.stdout)
        if child.exit_code != 0 or data is None:
            raise TargetError(f"{self.program} lists no options: {child.describe()}")
        own = (
            TargetOption(
                item["name"],
                item["values"],
                item["default"],
                item["what"],
                partial(_refusal, self.program, item["name"]),
            )
            for item in data["options"]
        )
        recorder = recorder_option(Recorder.PRELOAD)
        fs = (fs_option(self._explorer()),) if self.explorer else ()
        return (*fs, recorder, *own)

    def lay_out(self, data: Path, options: Mapping[str, str]) -> None:
        """Nothing: it makes its database."""

    def run_command(self, data: Path, script: Path, options: Mapping[str, str]) -> Command:
        """engine run --json --option ... DIR SCRIPT."""
        return Command(
            (str(self.program), "run", "--json", *self._sets(options), str(data), str(script)),
            fork=self.preload,
        )

    def loop_command(self, data: Path, script: Path, options: Mapping[str, str]) -> Command:
        """engine run --acks --option ... DIR SCRIPT: prints "ack LINE" at each acknowledgement."""
        return Command(
            (str(self.program), "run", "--acks", *self._sets(options), str(data), str(script))
        )

    def recover_command(self, data: Path, options: Mapping[str, str]) -> Command:
        """engine recover --json --check --backups --option ... DIR. A log that is there keeps its format,
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
                *self._sets(asked),
                str(data),
            ),
            fork=self.preload,
        )

    def by_hand(self, options: Mapping[str, str]) -> ByHand:
        """engine recover --check --option ... DIR."""
        sets = self._sets(options)
        recover = shlex.join([str(self.program), "recover", "--check", *sets])
        work = shlex.join([str(self.program), "run", *sets, "DIR", STATEMENTS])
        return ByHand(f'{recover} "$dir"', work)

    def explore_command(self, trace: Path, allowed: Path, options: Mapping[str, str]) -> Command:
        """tornpage-explore --trace ... --allowed ... --option ..."""
        program = self._explorer()
        told = (*fs_arguments(program, options), *self._sets(options))
        return Command((str(program), "--trace", str(trace), "--allowed", str(allowed), *told))

    def _explorer(self) -> Path:
        if self.explorer is None or not self.explorer.is_file():
            raise TargetError(f"{self.explorer} is missing: build it first (make build)")
        return self.explorer

    def _sets(self, options: Mapping[str, str]) -> list[str]:
        """What the engine and the explorer are told of the engine's own options."""
        own = without_fs(self._explorer(), options) if FS in options else options
        sets = (f"{name}={value}" for name, value in own.items() if name != RECORDER)
        return [word for option in sets for word in ("--option", option)]

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

    def log_command(self, data: Path) -> Command:
        """engine log DIR"""
        return Command((str(self.program), "log", str(data)))

    def parts_of(self, trace: Trace, notes: Sequence[Note]) -> LogGroups:
        """Record groups of writes of the log."""
        return LogGroups(trace, notes)

    def judge_setting(self, options: Mapping[str, str]) -> Setting:
        """Where a page is written without doublewrite there is nothing to be held against its rules."""
        page_size = page_size_of(options)
        unit = bytes_of("atomic_write_unit", options.get("atomic_write_unit", "0"))
        doublewrite = options.get("doublewrite", "on").lower() in ("on", "1")
        return Setting(page_size, doublewrite and unit < page_size, max(unit, SECTOR))

    def promise(self, options: Mapping[str, str]) -> Promise:
        """Durable, but where the log is only written from time to time."""
        return Promise(durable=options.get("flush_log_at_trx_commit", "1") != "0")

    def damage_pages(self, data: Path, page_size: int) -> bool:
        """Of the first table."""
        return damage_tables(data, page_size)

    def plant_stale_log(self, data: Path, variant: int) -> PlantedBlock | None:
        """A stale block behind the end of the log. PlanError: there is no log yet."""
        return plant_stale_block(data, variant)

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
                breaks=_breaks(str(data.get("refusal", ""))) if data else None,
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
        if file.startswith(TEMPORARY):
            return Site.ROW_LOG if file.endswith("-log") else Site.SORT_RUN
        if not _has_pages(file):
            return Site.OTHER
        if offset < page_size:
            return Site.PAGE0
        return Site.OTHER if facts is None else _page_site(facts)

    def holds_pages(self, file: str) -> bool:
        """Those of the database, and their copies in a backup."""
        return _has_pages(PurePath(file).name)


def _breaks(refusal: str) -> int | None:
    """The invariant that a refusal by this name breaks; None: it has no name."""
    return REFUSALS.get(refusal, 30) if refusal else None


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
