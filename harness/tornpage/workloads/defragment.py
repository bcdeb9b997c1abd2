"""Pieces of scripts that defragment a table in place: rows go from all of its pages, then the leaves are
packed, in one statement or in steps between which rows change, transactions stay open, and purge works.

May import: book, phases, script.
"""

from __future__ import annotations

from tornpage.workloads import phases
from tornpage.workloads.book import Book, Table
from tornpage.workloads.script import Verb

__all__ = ["defragment"]

LEFT = (0.3, 0.5, 0.7)
"""Shares of the rows that a table keeps: below a third a page would merge by itself."""
WHOLE = ""
"""In place of an index: all of them."""


def defragment(book: Book, table: Table) -> None:
    """Rows go here and there, and their pages are packed."""
    book.release(table)
    _thin_out(book, table)
    index = book.rng.choice((WHOLE, WHOLE, "PRIMARY", *table.indexes))
    in_steps = book.rng.random() < 0.7
    book.defragment(table, index, in_steps)
    if in_steps:
        _in_steps(book, table)
    if book.rng.random() < 0.4:
        phases.housekeeping(book)


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
        book.step_build(table, book.rng.randint(1, 4), 1)
    if book.rng.random() < 0.85:
        book.end_build(table, finish=book.rng.random() < 0.7)


def _session(book: Book, table: Table) -> None:
    """Several transactions, while leaves move."""
    phases.mixed(book, table, None, book.rng.choice((4, 8)))


def _keep_house(book: Book, table: Table) -> None:  # noqa: ARG001 - one shape
    """Of all tables."""
    phases.housekeeping(book)
