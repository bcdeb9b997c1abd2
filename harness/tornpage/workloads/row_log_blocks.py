"""Builds with LOCK=NONE whose log of row changes has just gone over the end of a block, so that one block is
behind, when a checkpoint comes: behind the scan, so that the block waits for the load, or behind all loads.
"""

from __future__ import annotations

from functools import partial

from tornpage.workloads.kinds import ALL_ROWS, Ground
from tornpage.workloads.preambles import PreambleKind
from tornpage.workloads.script import Column, IndexDef
from tornpage.workloads.shapes import Shape
from tornpage.workloads.table import Table

__all__ = ["ROW_LOG_KINDS"]

SORT_BUFFER = 64 << 10
"""Of the campaign, in bytes: a block of a rebuild, and what the logs of new indexes share."""
ROWS = 20
"""Of the table before the build."""
_SHAPE = Shape(
    (Column("k"), Column("a", 255), Column("b", 255), Column("x", 2000, varying=True)),
    "k",
    tuple(IndexDef(f"i{cut}", (("b", 0), ("a", cut))) for cut in range(200, 204)),
)
"""Rows of little more than their two texts, which are logged at the length that they could have."""
_BEHIND_LOADS = 25
"""Steps of a build that come before its end: all loads have an INDEX_LOAD."""


def _start_indexes(ground: Ground) -> Table:
    table = _table(ground)
    ground.book.start_build(table, table.shape.indexes, online=True)
    return table


def _start_rebuild(ground: Ground) -> Table:
    table = _table(ground)
    ground.book.add_indexes(table, table.shape.indexes[:1])
    ground.book.rebuild(table, in_steps=True, online=True)
    return table


def _table(ground: Ground) -> Table:
    table = ground.book.create("m", _SHAPE)
    for key in range(ROWS):
        ground.book.insert(table, key=key)
    return table


def _go_over(ground: Ground, table: Table) -> None:
    """As many rows as fill a block of the smallest log, and more: a record goes on in the next one."""
    changes = table.changes
    assert changes is not None, "a build with LOCK=NONE"
    block = SORT_BUFFER // len(changes.least)
    first = last = table.next_key
    while min(changes.least) <= block:
        ground.book.insert(table, key=last)
        last += 1
    ground.book.update(table, key=first)


def _scanned(ground: Ground, rebuild: bool) -> None:
    ground.table = (_start_rebuild if rebuild else _start_indexes)(ground)
    ground.book.step_build(ground.it, 1, ALL_ROWS)
    _go_over(ground, ground.it)


def _loaded(ground: Ground, rebuild: bool) -> None:
    ground.table = (_start_rebuild if rebuild else _start_indexes)(ground)
    ground.book.step_build(ground.it, _BEHIND_LOADS, ALL_ROWS)
    _go_over(ground, ground.it)


def _finish(ground: Ground) -> None:
    ground.book.end_build(ground.it, finish=True)


_NUMBERS = {
    (False, False): range(4, 174, 17),
    (False, True): range(8, 270, 27),
    (True, False): range(4, 119, 12),
    (True, True): range(6, 140, 14),
}
"""Yield points at which the checkpoint comes, of a rebuild or not, which was scanned only or not."""

ROW_LOG_KINDS = tuple(
    PreambleKind(
        f"{'rebuild' if rebuild else 'new indexes'}, a block behind when {'scanned' if early else 'loaded'}",
        partial(_scanned if early else _loaded, rebuild=rebuild),
        _finish,
        act,
        _NUMBERS[rebuild, early],
        full=act == "checkpoint",
    )
    for rebuild in (False, True)
    for early in (False, True)
    for act in ("checkpoint", "clean")
)
