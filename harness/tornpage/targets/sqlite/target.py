"""SQLite as a target: the system's library in a Python program, under the same preload.

It marks what was acknowledged but no page writes, and has no scanner that knows our invariants; what a
write was for follows from its file.

main.db-shm is no part of an image: it is a shared mapping, which the preload cannot see, and SQLite makes it
anew when the first connection comes.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

from tornpage.faults.preload import preload_environment
from tornpage.faults.process import ChildResult
from tornpage.oracle.promise import Promise
from tornpage.oracle.rules import Setting
from tornpage.oracle.state import read_tables
from tornpage.targets.filesystems import fs_arguments, fs_option, without_fs
from tornpage.targets.option import TargetOption
from tornpage.targets.sqlite.options import OPTIONS
from tornpage.targets.target import (
    EXIT_REFUSED,
    Capability,
    Command,
    RecoveryAnswer,
    RunAnswer,
    last_object,
    read_findings,
    read_run,
    require_built,
)
from tornpage.vocabulary.errors import ConfigError, TargetError
from tornpage.vocabulary.model import Site

__all__ = ["PROMISES", "SqliteTarget", "promise_of"]

WAL_HEADER = 32
"""Bytes of a log before its first frame: salts and page size."""


PROMISES: Mapping[tuple[str, str], Promise] = {
    ("wal", "off"): Promise(consistent=False, durable=False),
    ("wal", "normal"): Promise(consistent=True, durable=False),
    ("wal", "full"): Promise(consistent=True, durable=True),
    ("wal", "extra"): Promise(consistent=True, durable=True),
    ("delete", "off"): Promise(consistent=False, durable=False),
    ("delete", "normal"): Promise(consistent=False, durable=False),
    ("delete", "full"): Promise(consistent=True, durable=False),
    ("delete", "extra"): Promise(consistent=True, durable=True),
}
"""By journal_mode and synchronous, what SQLite's documentation says of a power loss (docs/TARGETS.md has the
sources). False also stands for "not said"."""


def promise_of(options: Mapping[str, str]) -> Promise:
    """What these options promise. Raises ConfigError for a value that is not known."""
    key = (options.get("journal_mode", "wal"), options.get("synchronous", "full"))
    if key not in PROMISES:
        known = "journal_mode wal or delete, synchronous off, normal, full or extra"
        raise ConfigError(f"journal_mode={key[0]} synchronous={key[1]} is not known ({known})")
    return PROMISES[key]


class SqliteTarget:
    """The system's SQLite library, driven by tornpage.targets.sqlite.driver."""

    name = "sqlite"
    what = "the SQLite library of this Python"
    unrecorded: tuple[str, ...] = ("*-shm",)
    crossed: Mapping[str, list[str]] = {}
    on_shm = True
    lines: Path | None = None
    counters = frozenset({"journal", "wal"})
    sites = frozenset(
        {Site.PAGE0, Site.DATA_PAGE, Site.REDO, Site.CHECKPOINT_HEADER, Site.ROLLBACK_JOURNAL}
    )
    capabilities = frozenset({Capability.ACKS, Capability.DETERMINISTIC, Capability.EXPLORE})

    def __init__(self, preload: Path, explorer: Path) -> None:
        """preload, explorer: absolute paths of the built files."""
        self.preload = preload
        self.explorer = explorer

    def check_ready(self) -> None:
        """Raises TargetError if the preload is missing, or Python's sqlite3 is no module with a library."""
        require_built(self.preload)
        found = importlib.util.find_spec("_sqlite3")
        if found is None or not (found.origin or "").endswith(".so"):
            raise TargetError("this Python's _sqlite3 is no shared module: SQLite cannot be seeded")

    def programs(self) -> dict[str, Path]:
        """Preload, explorer, Python and the library that its module has loaded."""
        maps = Path("/proc/self/maps").read_text("utf-8").splitlines()
        libraries = {line.split(maxsplit=5)[5] for line in maps if "libsqlite3.so" in line}
        return {
            "preload": self.preload,
            "explorer": self.explorer,
            "python": Path(sys.executable).resolve(),
            **{Path(library).name: Path(library) for library in libraries},
        }

    def preload_env(self, data: Path, trace: Path, plan: Path | None) -> dict[str, str]:
        """The variables of faults/README.md."""
        return preload_environment(self.preload, data, trace, plan)

    def options(self) -> tuple[TargetOption, ...]:
        """Those of the driver."""
        return (fs_option(self.explorer), *(option.told() for option in OPTIONS))

    def lay_out(self, data: Path, options: Mapping[str, str]) -> None:
        """Nothing: it makes its database."""

    def run_command(self, data: Path, script: Path, options: Mapping[str, str]) -> Command:
        """python -m tornpage.targets.sqlite.driver DIR SCRIPT --journal-mode ... ."""
        promise_of(options)
        arguments = []
        for name, value in without_fs(self.explorer, options).items():
            names = sorted(option.name for option in OPTIONS)
            if name not in names:
                known = ", ".join(names)
                raise ConfigError(f"target sqlite has no option {name!r} (known: {known})")
            arguments.append(f"--{name.replace('_', '-')}={value}")
        return _python("driver", str(data), str(script), *arguments)

    def recover_command(self, data: Path, options: Mapping[str, str]) -> Command:  # noqa: ARG002
        """python -m tornpage.targets.sqlite.image DIR: the files say how they want to be recovered."""
        return _python("image", str(data))

    def explore_command(
        self,
        trace: Path,
        allowed: Path,
        options: Mapping[str, str],
    ) -> Command:
        """tornpage-explore --target sqlite --fs ... --trace ... --allowed ...: recovery follows the files."""
        if not self.explorer.is_file():
            raise TargetError(f"{self.explorer} is missing: build it first (make build)")
        program = (str(self.explorer), "--target", "sqlite", "--scratch", str(trace.parent))
        recorder = ("--preload", str(self.preload), *fs_arguments(self.explorer, options))
        return Command((*program, *recorder, "--trace", str(trace), "--allowed", str(allowed)))

    def judge_command(self) -> Command:
        """There is none: what SQLite writes is not decoded."""
        raise TargetError("no rules on what SQLite writes")

    def page_command(self, file: Path, page: int, page_size: int) -> Command | None:  # noqa: ARG002
        """There is none: its pages are not decoded."""
        return None

    def judge_setting(self, options: Mapping[str, str], page_size: int) -> Setting:  # noqa: ARG002
        """Only the size of a page: there are no rules."""
        return Setting(page_size)

    def promise(self, options: Mapping[str, str]) -> Promise:  # noqa: ARG002
        """All, whatever `synchronous` is: a kill takes no commit, and what a power loss breaks is read
        against PROMISES."""
        return Promise()

    def damage_pages(self, data: Path, page_size: int) -> bool:  # noqa: ARG002
        """None are known."""
        return False

    def plant_stale_log(self, data: Path, variant: int) -> None:
        """Nothing: its log is not decoded."""

    def parse_run(self, child: ChildResult) -> RunAnswer:
        """The object of driver."""
        return read_run(child)

    def parse_recovery(self, child: ChildResult) -> RecoveryAnswer:
        """The object of image; its counters say what the crash had left to recover from."""
        data = last_object(child.stdout)
        if child.timed_out or child.signal or data is None:
            return RecoveryAnswer(False, message=child.describe())
        if child.exit_code == EXIT_REFUSED:
            return RecoveryAnswer(False, refused=True, message=str(data["message"]))
        if child.exit_code not in (0, 1) or not data.get("ok"):
            return RecoveryAnswer(False, message=child.describe())
        left = data["status"]
        return RecoveryAnswer(
            ok=True,
            state=read_tables(data["check"]["tables"]),
            findings=read_findings(data["check"]),
            counters={name: int(left[f"{name}_bytes"] > 0) for name in sorted(self.counters)},
            recovered=left["journal_bytes"] + left["wal_bytes"] > 0,
        )

    def site_of(
        self,
        file: str,
        offset: int,
        facts: Mapping[str, str] | None,  # noqa: ARG002 - SQLite marks no page writes
        page_size: int,
        data: bytes = b"",  # noqa: ARG002 - the place tells
    ) -> Site | None:
        """By file and offset; the first bytes of the log say, as a checkpoint does, where it starts."""
        if file.endswith("-shm"):
            return None
        if file.endswith("-wal"):
            return Site.CHECKPOINT_HEADER if offset < WAL_HEADER else Site.REDO
        if file.endswith("-journal"):
            return Site.ROLLBACK_JOURNAL
        return Site.PAGE0 if offset < page_size else Site.DATA_PAGE

    def holds_pages(self, file: str) -> bool:
        """The database, and none of the logs beside it."""
        return not file.endswith(("-shm", "-wal", "-journal"))


def _python(module: str, *arguments: str) -> Command:
    """-P -s: neither the working directory nor the user's packages take part."""
    return Command((sys.executable, "-P", "-s", "-m", f"{__package__}.{module}", *arguments))
