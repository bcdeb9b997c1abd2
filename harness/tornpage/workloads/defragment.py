"""Pieces of scripts that defragment a table in place: rows go from all of its pages, then the leaves are
packed, in one statement or in steps between which rows change, transactions stay open, and purge works. At
times defragmentation is switched off meanwhile, and on again.
"""

from __future__ import annotations

from tornpage.workloads import phases
from tornpage.workloads.book import Book
from tornpage.workloads.capacity import clustered_tree
from tornpage.workloads.script import Verb
from tornpage.workloads.shapes import LARGE, WIDE
from tornpage.workloads.table import Table

__all__ = ["defragment"]

LEFT = (0.3, 0.5, 0.7)
"""Shares of the rows that a table keeps: below a third a page would merge by itself."""
NAME = "packed"
LEAVES = 12
"""Of a table that is worth it: several groups of neighbours."""
ROWS_MAX = 120
"""Of such a table, if it has to be made."""
PAUSE_SHARE = 0.25
"""Steps before which it is switched off for a while."""
WHOLE = ""
"""In place of an index: all of them."""


def defragment(book: Book, table: Table) -> None:
    """Rows go here and there, and their pages are packed. A table of few leaves leaves it to another."""
    if _leaves(book, table) < LEAVES:
        table = _larger(book)
    book.release(table)
    _thin_out(book, table)
    index = book.rng.choice((WHOLE, WHOLE, "PRIMARY", *table.indexes))
    in_steps = book.rng.random() < 0.7
    book.defragment(table, index, in_steps)
    if in_steps:
        _in_steps(book, table)
    if book.rng.random() < 0.4:
        phases.housekeeping(book)


def _larger(book: Book) -> Table:
    """A table of few rows that fill many leaves, those of its indexes too."""
    table = book.tables.get(NAME) or book.create(NAME, book.rng.choice((WIDE, LARGE)))
    book.release(table)
    phases.fill(book, table, min(ROWS_MAX, LEAVES * book.page_size // table.shape.row_size))
    missing = book.missing_indexes(table)
    if missing and book.rng.random() < 0.5:
        book.add_indexes(table, book.rng.sample(missing, 1))
    return table


def _leaves(book: Book, table: Table) -> int:
    """About so many full ones."""
    tree = clustered_tree(table.shape.columns, (table.shape.primary,))
    size = tree[0] if tree is not None else book.page_size // 16
    return len(table.live) * size // book.page_size


def _thin_out(book: Book, table: Table) -> None:
    keys = sorted(table.live)
    gone = book.rng.sample(keys, round(len(keys) * (1 - book.rng.choice(LEFT))))

    def delete(trx: str) -> None:
        for key in sorted(gone):
            book.delete(table, trx, key)

    phases.transaction(book, delete, commit=True)
    book.add(Verb.PURGE, number=book.rng.choice((16, -1, -1)))


def _in_steps(book: Book, table: Table) -> None:
    """Steps and what happens between them; then it ends, or is left as it is."""
    pieces = (phases.change, phases.change, phases.revive, phases.hold, _keep_house, _session)
    for _step in range(book.rng.randint(2, 8)):
        for _piece in range(book.rng.randint(0, 3)):
            book.rng.choice(pieces)(book, table)
        if book.rng.random() < PAUSE_SHARE:
            _pause(book, table)
        book.step_build(table, book.rng.randint(1, 4), 1)
    if book.rng.random() < 0.85:
        book.end_build(table, finish=book.rng.random() < 0.7)


def _pause(book: Book, table: Table) -> None:
    """Rows change while it rests; a step and its end are refused."""
    book.add(Verb.SET_DEFRAGMENT, full=False)
    for _piece in range(book.rng.randint(1, 4)):
        book.rng.choice((phases.change, phases.change, _keep_house, _refused))(book, table)
    book.add(Verb.SET_DEFRAGMENT, full=True)


def _refused(book: Book, table: Table) -> None:
    if book.rng.random() < 0.5:
        book.step_build(table, 1, 1)
    else:
        book.add(Verb.FINISH_INDEX, table=table.name)


def _session(book: Book, table: Table) -> None:
    """Several transactions, while leaves move."""
    phases.mixed(book, table, None, book.rng.choice((4, 8)))


def _keep_house(book: Book, table: Table) -> None:  # noqa: ARG001 - one shape
    """Of all tables."""
    phases.housekeeping(book)
