"""Statements that log more than the log has room for, some of them several times as much, on tables of their
own; and the log full when they come to a yield point, so that the next step of theirs must ask for room.

A step that does not ask overwrites the log behind the checkpoint once it has logged what a full log has
left, a sixteenth of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tornpage.workloads.book import Book
from tornpage.workloads.script import Algorithm, Column, IndexDef, Verb
from tornpage.workloads.shapes import Shape
from tornpage.workloads.table import Table

__all__ = ["LARGE_KINDS", "LargeKind", "prepare_large"]

SHAPE = Shape(
    (Column("k"), Column("v", 255), Column("w", 255)),
    "k",
    (IndexDef("large", (("k", 0), ("v", 0), ("w", 240))),),
)
"""Seven rows fill a page, and seven entries of the index; the log has each entry nearly whole."""
ROWS = 700
"""They, or their entries, take more than the log has."""
MANY = 9000
"""Freeing the index of so many logs more than a full log has left."""

_Play = Callable[[Book, Table], None]


@dataclass(frozen=True, slots=True)
class LargeKind:
    """before: what leads to the statement; yields: about how many yield points it has."""

    name: str
    play: _Play
    yields: int
    rows: int = ROWS
    logged: bool = True
    indexed: bool = False
    before: _Play | None = None


def prepare_large(book: Book, kind: LargeKind) -> Table:
    """The table as the statement finds it, behind a full checkpoint."""
    table = book.create("t", SHAPE)
    book.insert_seq(table, 1, kind.rows)
    if kind.indexed:
        book.add_indexes(table, SHAPE.indexes)
    if kind.logged:
        book.set_optimize(False)
    book.add(Verb.PURGE, number=-1)
    if kind.before:
        kind.before(book, table)
    book.add(Verb.CHECKPOINT, full=True)
    return table


def _load(book: Book, table: Table) -> None:
    book.add_indexes(table, SHAPE.indexes)


def _rebuild(book: Book, table: Table) -> None:
    book.rebuild(table, in_steps=False)


def _copy(book: Book, table: Table) -> None:
    book.release(table)
    book.add(Verb.REBUILD_TABLE, table=table.name, algorithm=Algorithm.COPY)


def _drop(book: Book, table: Table) -> None:
    book.drop_index(table, SHAPE.indexes[0].name)


def _insert(book: Book, table: Table) -> None:
    book.insert_seq(table, ROWS + 1, 2 * ROWS)


def _begin_updates(book: Book, table: Table) -> None:
    trx = book.begin()
    for key in range(1, ROWS + 1):
        book.update(table, trx, key)


def _begin_inserts(book: Book, table: Table) -> None:
    book.insert_seq(table, ROWS + 1, 3 * ROWS, book.begin())


def _delete_all(book: Book, table: Table) -> None:
    trx = book.begin()
    for key in range(1, ROWS + 1):
        book.delete(table, trx, key)
    book.end(trx, commit=True)


def _purge(book: Book, _: Table) -> None:
    book.add(Verb.PURGE, number=-1)


def _roll_back(book: Book, _: Table) -> None:
    (trx,) = tuple(book.undo)
    book.end(trx, commit=False)


LARGE_KINDS = (
    LargeKind("large load", _load, 400),
    LargeKind("large rebuild", _rebuild, 700, indexed=True),
    LargeKind("large copy", _copy, 1500, logged=False),
    LargeKind("large drop", _drop, 220, rows=MANY, logged=False, indexed=True),
    LargeKind("large insert", _insert, 2200, logged=False, indexed=True),
    LargeKind("large update, rolled back", _roll_back, 1400, logged=False, before=_begin_updates),
    LargeKind(
        "large insert, rolled back",
        _roll_back,
        4000,
        logged=False,
        indexed=True,
        before=_begin_inserts,
    ),
    LargeKind("large purge", _purge, 1400, logged=False, indexed=True, before=_delete_all),
)
