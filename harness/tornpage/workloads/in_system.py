"""Statements about a table of the system tablespace, with something at their yield points: its trees are
made and freed beside those of the catalogue and the undo logs, in many mini-transactions where another
table's file would come or go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tornpage.workloads.kinds import ALL_ROWS, KINDS, LOADED, SHAPE, Ground, Kind

__all__ = ["SYSTEM_KINDS", "SystemKind"]


@dataclass(frozen=True, slots=True)
class SystemKind:
    """yields: how many yield points are tried; apart: one in so many of them."""

    kind: Kind
    yields: int
    apart: int = 1

    @property
    def name(self) -> str:
        """Of the kind, and where its table is."""
        return f"{self.kind.name} in system"

    @property
    def play(self) -> Callable[[Ground], None]:
        """What is issued."""
        return self.kind.play

    @property
    def numbers(self) -> range:
        """Yield points at which a full checkpoint comes."""
        return range(self.apart, self.yields + 1, self.apart)


def _beside_aborted(ground: Ground) -> None:
    """Two loads of one space, of which one is given up while the other one is not flushed."""
    book, table = ground.book, ground.it
    other = book.create("n", SHAPE)
    book.insert(other)
    for one in (other, table):
        book.start_build(one, book.missing_indexes(one)[:1])
        book.step_build(one, LOADED, ALL_ROWS)
    book.end_build(other, finish=False)
    book.end_build(table, finish=True)


_YIELDS = {
    "create table": 36,
    "drop table": 56,
    "add index": 36,
    "add index, aborted after step 3": 40,
    "rebuild, aborted after step 5": 108,
}
_APART = {"truncate table": 92, "rebuild": 124}
"""The same of those that are made of others: one in four."""
_BESIDE = Kind("add index beside an aborted one", _beside_aborted)

SYSTEM_KINDS = (
    *(SystemKind(kind, _YIELDS[kind.name]) for kind in KINDS if kind.name in _YIELDS),
    *(SystemKind(kind, _APART[kind.name], 4) for kind in KINDS if kind.name in _APART),
    SystemKind(_BESIDE, 112, 4),
)
