"""Two loads without redo, in two files, whose pages go home side by side: a few of one, then a few of the
other, so that both share the slots of pages that are written one by one. Only their flushes are crashed.

In the same checkpoint interval both files have had an INDEX_LOAD, and the pages another life, which is in the
log: recovery reads them, whether or not a load of them ends.
"""

from __future__ import annotations

from functools import partial

from tornpage.workloads.kinds import ALL_ROWS, LOADED, Ground
from tornpage.workloads.preambles import PreambleKind
from tornpage.workloads.script import Column, IndexDef
from tornpage.workloads.shapes import Shape
from tornpage.workloads.table import Table

__all__ = ["SIDE_BY_SIDE_KINDS", "SLOTS"]

SLOTS = 8
"""Of the target, for pages that are written one by one."""
SHAPE = Shape(
    (Column("k"), Column("v", 255)),
    "k",
    (IndexDef("wide", (("v", 0),)), IndexDef("one", (("k", 0),))),
)
WIDE, ONE = SHAPE.indexes
ROWS = 120
"""A wide index of them has more pages than there are slots."""
ROWS_PER_PAGE = 64
"""Of a step of a flush: with so many more it writes a page more."""
POOL = "192"
"""Pages of the pool."""
PAIRS = ((1, 8), (2, 7), (3, 5), (7, 2), (1, 1))
"""Pages of a step of either."""


def _pair(ground: Ground) -> tuple[Table, Table]:
    tables = ground.book.tables
    return tables["m"], tables["n"]


def _prepare(ground: Ground) -> None:
    """With room for all pages. Rows come while the index is there, which goes; what a load leaves comes
    last."""
    book = ground.book
    book.restart(True, {"buffer_pool_pages": POOL})
    for table in (book.create("m", SHAPE, system=False), book.create("n", SHAPE, system=False)):
        book.add_indexes(table, [WIDE])
        book.insert_seq(table, 1, ROWS)
        book.drop_index(table, WIDE.name)
        book.add_indexes(table, [ONE])


def _load(ground: Ground, rebuilt: bool) -> None:
    book = ground.book
    for table in _pair(ground):
        if rebuilt and table.name == "n":
            book.rebuild(table, in_steps=True)
        else:
            book.start_build(table, [WIDE])
        book.step_build(table, LOADED, ALL_ROWS)


def _flush(ground: Ground, pages: tuple[int, int]) -> None:
    """In turn, until all are home; the ends of both loads."""
    book, pair = ground.book, _pair(ground)
    for _ in range(-(-2 * SLOTS // max(pages))):
        for table, number in zip(pair, pages, strict=True):
            book.step_build(table, 1, (number - 1) * ROWS_PER_PAGE + 1)
    for table in reversed(pair):
        book.end_build(table, finish=True)


SIDE_BY_SIDE_KINDS = tuple(
    PreambleKind(
        f"two loads side by side, {pages[0]} and {pages[1]} pages{', one of a rebuild' if rebuilt else ''}",
        _prepare,
        partial(_load, rebuilt=rebuilt),
        "clean",
        range(1, 26, 16),
        then=partial(_flush, pages=pages),
    )
    for pages in PAIRS
    for rebuilt in (False, True)
)
