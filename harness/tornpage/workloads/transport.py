"""Pieces of scripts that export a table and import its pages into another one: amid dirty pages and purge,
onto a table with rows or without, twice; then both change. Before that, pages whose copies of several
ages lie in the doublewrite area.
"""

from __future__ import annotations

from tornpage.workloads import phases
from tornpage.workloads.book import Book
from tornpage.workloads.script import Verb
from tornpage.workloads.table import Table

__all__ = ["transport"]

NAMES = ("carried", "carried2")


def transport(book: Book, table: Table) -> None:
    """Another table gets the rows of this one; refused if it has no file."""
    if table.system:
        book.add(Verb.FLUSH_EXPORT, table=table.name)
        return
    for _ in range(book.rng.randint(0, 6)):
        phases.change(book, table)
    other = _make(book, table)
    if book.rng.random() < 0.5:
        _age_copies(book, table)
    book.export(table)
    for _ in range(book.rng.randint(1, 2)):
        _change(book, other)
        book.import_rows(other, table)
    _change(book, other)
    if book.rng.random() < 0.85:
        book.unlock(table)
        _change(book, table)
        _change(book, other)


def _age_copies(book: Book, table: Table) -> None:
    """The pages have copies in a batch, in the slots of an export, and soon in those of the next one; a
    checkpoint passes the first two, and few pages are written that could overwrite them."""
    book.add(Verb.FLUSH_TABLE, table=table.name)
    for _ in range(book.rng.randint(1, 3)):
        for _ in range(book.rng.randint(1, 6)):
            phases.change(book, table)
        book.export(table)
        book.unlock(table)
        book.add(Verb.CLEAN, number=book.rng.randint(2, 8))
        book.add(Verb.CHECKPOINT)
    for _ in range(book.rng.randint(1, 6)):
        phases.change(book, table)


def _make(book: Book, table: Table) -> Table:
    """A table of the same definition, one that is there or a new one with its indexes in another order."""
    name = NAMES[table.name == NAMES[0]]
    if name in book.tables:
        other = book.tables[name]
        if other.shape == table.shape and set(other.indexes) == set(table.indexes):
            return other
        book.drop(other)
    other = book.create(name, table.shape, system=False)
    if book.rng.random() < 0.5:
        phases.fill(book, other, book.rng.randint(1, 12))
        book.release(other)
    indexes = [index for index in table.shape.indexes if index.name in table.indexes]
    for unique in (True, False):
        some = [index for index in indexes if index.unique is unique]
        if some:
            book.add_indexes(other, some)
    return other


def _change(book: Book, table: Table) -> None:
    for _ in range(book.rng.randint(0, 4)):
        phases.change(book, table)
    if book.rng.random() < 0.4:
        phases.housekeeping(book)
