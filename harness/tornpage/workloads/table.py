"""What a generator knows of one table: live keys, hot ones, values of its serial column, the build that is
under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tornpage.workloads.rowlog import Changes
from tornpage.workloads.script import IndexDef
from tornpage.workloads.shapes import Shape

__all__ = ["Table"]

HOT_MAX = 12
"""Keys of a table that count as hot."""
FREED_MAX = 12
"""Values of the serial column that rows had before, of which a table remembers so many."""


@dataclass(slots=True)
class Table:
    """live: keys of rows, those of open transactions included; held: keys that an open transaction has
    changed; hot: the last ones that were changed, deleted or rolled back; indexes: names; build: those of the
    build that is under way, a rebuild's none; changes: with LOCK=NONE, how much has changed meanwhile;
    packing: the build is a defragmentation; exported: there is none, but the lock of one; system: it has no
    file of its own."""

    name: str
    shape: Shape
    live: set[int] = field(default_factory=set)
    held: dict[int, str] = field(default_factory=dict)
    hot: list[int] = field(default_factory=list)
    indexes: list[str] = field(default_factory=list)
    build: tuple[IndexDef, ...] | None = None
    new_shape: Shape | None = None
    """What the build makes of it, if it is finished."""
    kept: list[str] | None = None
    """The names that its indexes have then, without those that go; None: as now."""
    changes: Changes | None = None
    packing: bool = False
    exported: bool = False
    system: bool = False
    serials: dict[int, bytes] = field(default_factory=dict)
    """Of each live row: its value of the serial column."""
    pinned: list[tuple[str, int, bytes]] = field(default_factory=list)
    """Values that open transactions have taken or freed, and for which row."""
    freed: list[bytes] = field(default_factory=list)

    @property
    def building(self) -> bool:
        """Is a build under way, so that the table takes no changes?"""
        return self.build is not None and self.changes is None and not self.packing

    @property
    def next_key(self) -> int:
        """The first one behind all rows, those that an open transaction has deleted included."""
        return max((*self.live, *self.held), default=0) + 1

    def unique_lengths(self, indexes: Sequence[str]) -> list[int]:
        """How much of a serial value each of these unique indexes compares; 0 = all."""
        return [
            index.columns[0][1]
            for index in self.shape.indexes
            if index.unique and index.columns[0][0] == self.shape.serial and index.name in indexes
        ]

    def collides(self, trx: str, key: int, value: bytes) -> bool:
        """Is the value another row's, or may it be, as far as a unique index of the table asks?"""
        others = [other for row, other in self.serials.items() if row != key]
        others += [other for who, row, other in self.pinned if row != key and who != trx]
        return any(
            other[: length or None] == value[: length or None]
            for length in self.unique_lengths(self.indexes)
            for other in others
        )

    def has_duplicates(self, indexes: Sequence[IndexDef]) -> bool:
        """Would a build of these indexes find two rows with one key?"""
        return any(
            len({value[: length or None] for value in self.serials.values()}) < len(self.serials)
            for length in self.unique_lengths([index.name for index in indexes])
        )

    def become(self, built: Sequence[IndexDef]) -> None:
        """What the build has made of it, with these indexes."""
        kept = self.indexes if self.kept is None else self.kept
        self.indexes = [*kept, *(index.name for index in built)]
        self.shape = self.new_shape or self.shape

    def keep_serial(self, key: int, serial: bytes | None) -> None:
        """The row has this value now, or there is no row."""
        before = self.serials.pop(key, None)
        if before is not None and before != serial:
            self.freed = [*self.freed, before][-FREED_MAX:]
        if serial is not None:
            self.serials[key] = serial

    def touch(self, key: int, live: bool) -> None:
        """The row is there now, or it is not; either way its key is hot."""
        (self.live.add if live else self.live.discard)(key)
        if key in self.hot:
            self.hot.remove(key)
        self.hot = [*self.hot, key][-HOT_MAX:]
