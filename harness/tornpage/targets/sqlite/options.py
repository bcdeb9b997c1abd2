"""SQLite's options: the driver's arguments and what people are told of them, from one table."""

from __future__ import annotations

from dataclasses import dataclass

from tornpage.targets.option import TargetOption

__all__ = ["OPTIONS", "SqliteOption"]


@dataclass(frozen=True, slots=True)
class SqliteOption:
    """choices: what it takes; none: a number."""

    name: str
    default: str
    what: str
    choices: tuple[str, ...] = ()

    def told(self) -> TargetOption:
        """For people."""
        return TargetOption(
            self.name, ", ".join(self.choices) or "a number", self.default, self.what
        )


OPTIONS = (
    SqliteOption("journal_mode", "wal", "write-ahead log or rollback journal", ("wal", "delete")),
    SqliteOption(
        "synchronous",
        "full",
        "when SQLite syncs: never, at critical moments, at each commit, the directory too",
        ("off", "normal", "full", "extra"),
    ),
    SqliteOption("page_size", "4096", "bytes", tuple(str(512 << power) for power in range(8))),
    SqliteOption("cache_size", "0", "pages of the cache; 0: SQLite's own choice"),
    SqliteOption(
        "wal_autocheckpoint", "1000", "pages of the log after which it is copied back; 0: never"
    ),
)
