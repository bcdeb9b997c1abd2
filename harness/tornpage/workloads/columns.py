"""Pieces of scripts that give a table one column more or less, or another primary key: in one statement or in
steps, in place or by a copy, with LOCK=NONE too; rows change before that, meanwhile and behind it.
"""

from __future__ import annotations

from dataclasses import replace

from tornpage.workloads import builds, online, phases
from tornpage.workloads.book import Book
from tornpage.workloads.script import Lock, Verb
from tornpage.workloads.shapes import MIRRORED, NEW_COLUMNS
from tornpage.workloads.table import Table

__all__ = ["change_primary", "columns"]

TWO_KEYS = "two_keys"
FREE_MAX = 3
"""Columns of a table that no key and no index is about: its records have room for no more."""


def columns(book: Book, table: Table) -> None:
    """Columns come and go."""
    for _ in range(book.rng.randint(1, 3)):
        _change(book, table)
        in_steps = book.rng.random() < 0.7
        lock = Lock.NONE if in_steps and book.rng.random() < 0.6 else Lock.DEFAULT
        book.rng.choice((_add_column, _drop_column))(book, table, in_steps, lock)
        if in_steps:
            (online if lock is Lock.NONE else builds).in_steps(book, table)
        if table.build is not None:
            return
        if book.rng.random() < 0.3:
            phases.housekeeping(book)


def _change(book: Book, table: Table) -> None:
    """Some rows, and how loads are written."""
    for _ in range(book.rng.randint(0, 4)):
        phases.change(book, table)
    if book.rng.random() < 0.3:
        book.set_optimize(book.rng.random() < 0.5)


def _add_column(book: Book, table: Table, in_steps: bool, lock: Lock) -> None:
    """A new column at the end, at the beginning or behind another one; in all rows it is NULL, nothing or a
    value."""
    shape = table.shape
    if len(shape.free_columns()) >= FREE_MAX:
        _drop_column(book, table, in_steps, lock)
        return
    names = {column.name.rstrip("_") for column in shape.columns}
    name = next(name for name in (f"n{number}" for number in range(99)) if name not in names)
    column = replace(book.rng.choice(NEW_COLUMNS), name=name)
    value = {name: book.value(column)} if book.rng.random() < 0.6 else None
    last = len(shape.columns)
    at = book.rng.choice((last, last, 0, book.rng.randint(1, last)))
    to = f"after={shape.columns[at - 1].name}" if at > 0 else "first"
    book.reshape(
        Verb.START_ADD_COLUMN if in_steps else Verb.ADD_COLUMN,
        table,
        shape.add_column(column, at),
        lock,
        columns=(column,),
        values=value,
        to="" if at == last else to,
    )


def _drop_column(book: Book, table: Table, in_steps: bool, lock: Lock) -> None:
    """A column goes that is in no index; if there is none, one comes."""
    free = table.shape.free_columns()
    if not free:
        _add_column(book, table, in_steps, lock)
        return
    name = book.rng.choice(free)
    verb = Verb.START_DROP_COLUMN if in_steps else Verb.DROP_COLUMN
    book.reshape(verb, table, table.shape.drop_column(name), lock, name=name)


def change_primary(book: Book, table: Table) -> None:
    """Another primary key, whose order is the opposite one, and back, as a rule; by way of one of two
    columns, for which rows need no sort, too. A table that has no other key leaves it to one that has."""
    if not table.shape.mirror:
        if TWO_KEYS in book.tables and not book.tables[TWO_KEYS].shape.mirror:
            book.drop(book.tables[TWO_KEYS])
        table = book.tables.get(TWO_KEYS) or book.create(TWO_KEYS, MIRRORED)
        book.release(table)
        phases.fill(book, table, book.rng.randint(2, 60))
    for _ in range(book.rng.randint(1, 3)):
        _change(book, table)
        by_two = book.rng.random() < 0.4
        if by_two:
            _by_two(book, table)
        shape = table.shape.swapped_keys()
        in_steps = not by_two and book.rng.random() < 0.6
        verb = Verb.START_PRIMARY if in_steps else Verb.CHANGE_PRIMARY
        book.reshape(verb, table, shape, primary=(shape.primary,))
        if in_steps:
            builds.in_steps(book, table)
        if table.build is not None:
            return


def _by_two(book: Book, table: Table) -> None:
    """Two columns are the key, in an order that stays, in another one, or both; rows are added meanwhile."""
    both = (table.shape.primary, table.shape.mirror)
    for key in book.rng.choice(((both,), (both[::-1],), (both, both[::-1]))):
        book.reshape(Verb.CHANGE_PRIMARY, table, table.shape, primary=key)
        if book.rng.random() < 0.5:
            book.insert(table)
        if book.rng.random() < 0.3:
            phases.housekeeping(book)
