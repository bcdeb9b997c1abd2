"""The logs of row changes of a build with LOCK=NONE, as far as a script tells of them: how many bytes are in
each. A log that has no room for all of them fails the build.

Sizes are those of engine/ddl/row_log.h: an operation is one byte and what it puts or deletes. An index logs
its entries, where a change is one of the entry; a rebuild logs rows, and primary keys of rows that go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tornpage.workloads.rowlog import ONLINE_LOG_MAX, SORT_BUFFER, log_capacity
from tornpage.workloads.workload import bytes_of

__all__ = ["DEFAULTS", "RowLogs"]

DEFAULTS = {"sort_buffer_size": SORT_BUFFER, "online_alter_log_max_size": ONLINE_LOG_MAX}

Row = tuple[bytes, ...]


@dataclass(slots=True)
class RowLogs:
    """The logs of one build, for a target with these options. entries: what makes those of each new
    index; None: a rebuild logs rows of row_size bytes, whose primary key has key_size bytes."""

    options: Mapping[str, str]
    entries: Sequence[Callable[[Row], bytes]] | None
    row_size: int
    key_size: int
    written: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """All are empty."""
        self.written = [0] * (1 if self.entries is None else len(self.entries))

    @property
    def overflowed(self) -> bool:
        """Was more changed than one of them has room for?"""
        buffer, most = (
            bytes_of(key, self.options[key]) if key in self.options else size
            for key, size in DEFAULTS.items()
        )
        return max(self.written, default=0) > log_capacity(buffer, most, len(self.written))

    def add(self, before: Row | None, after: Row | None) -> None:
        """A row becomes another; None: it is not there."""
        if self.entries is None:
            self.written[0] += 1 + (self.key_size if after is None else self.row_size)
            return
        for number, entry_of in enumerate(self.entries):
            entries = [b"" if row is None else entry_of(row) for row in (before, after)]
            if entries[0] != entries[1]:
                self.written[number] += sum(1 + len(entry) for entry in entries if entry)
