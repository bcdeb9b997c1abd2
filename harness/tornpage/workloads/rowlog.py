"""How much of a table changes during a build with LOCK=NONE, as far as a generator knows: between two bounds,
because it does not know which entries an update changes.

Sizes are those of engine/ddl/row_log.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tornpage.workloads.script import Column, IndexDef, row_size

__all__ = ["ONLINE_LOG_MAX", "SORT_BUFFER", "Changes", "log_capacity"]

SORT_BUFFER = ONLINE_LOG_MAX = 1 << 20
"""The engine's own sort_buffer_size and online_alter_log_max_size, where a target is not told others."""


def log_capacity(buffer: int, most: int, logs: int) -> int:
    """Bytes that each of so many logs of one build has room for. buffer: sort_buffer_size, which is divided
    into blocks; most: online_alter_log_max_size."""
    block = buffer // max(logs, 1)
    return max(1, most // block) * block


@dataclass(slots=True)
class Changes:
    """Of one build. indexes: the new ones; none: a rebuild, which logs rows."""

    capacity: int
    columns: Sequence[Column]
    primary: str
    indexes: Sequence[IndexDef]
    least: list[int] = field(init=False)
    most: list[int] = field(init=False)
    """Bytes in each log, at least and at most."""

    def __post_init__(self) -> None:
        """None yet."""
        self.least = [0] * max(1, len(self.indexes))
        self.most = list(self.least)

    @property
    def overflowed(self) -> bool:
        """Does one certainly have no room?"""
        return max(self.least) > self.capacity

    @property
    def unsure(self) -> bool:
        """May it be either way?"""
        return max(self.least) <= self.capacity < max(self.most)

    def add(self, before: bool, after: bool) -> None:
        """A row changes that is there before, or not, and after that."""
        for log in range(len(self.least)):
            size = self._size(log, after)
            update = before and after and bool(self.indexes)
            self.least[log] += 0 if update else size
            self.most[log] += 2 * size if update else size

    def add_doubtful(self) -> None:
        """A row changes, and is put back, if the statement came so far before it was refused."""
        for log in range(len(self.most)):
            self.most[log] += 2 * self._size(log, True) + 2 * self._size(log, False)

    def rows_for(self, share: float) -> int:
        """So many rows that come and go fill this share of the fullest log."""
        sizes = [self._size(log) + self._size(log, False) for log in range(len(self.least))]
        return round(share * self.capacity / max(sizes))

    def _size(self, log: int, after: bool = True) -> int:
        """Of one record: the entry of an index, a row, or its primary key."""
        columns = {column.name: column for column in self.columns}
        key = columns[self.primary].size
        if self.indexes:
            parts = [(columns[name], cut) for name, cut in self.indexes[log].columns]
            return 1 + sum((cut or c.length or 8) + c.nullable for c, cut in parts) + key
        return 1 + (row_size(self.columns) if after else key)
