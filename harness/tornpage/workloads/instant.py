"""Pieces of scripts that give a table columns by ALGORITHM=INSTANT: rows are not touched. Rows of before and
rows that have the columns change, split pages and go. A rebuild may come between two such columns.
"""

from __future__ import annotations

from dataclasses import replace

from tornpage.workloads import phases
from tornpage.workloads.book import Book
from tornpage.workloads.script import Algorithm, Column, IndexDef, Value, Verb
from tornpage.workloads.shapes import NEW_COLUMNS, VARYING
from tornpage.workloads.table import Table

__all__ = ["add_instant", "instant"]

NAME = "varied"
FREE_MAX = 4
"""Columns of a table that no key and no index is about: its records have room for no more."""
VALUE_MAX = 40
"""Bytes of a VARCHAR that metadata has room for."""
ROWS = (0, 1, 8, 60)
"""Rows of a table that is made for it: none needs no metadata, many are a tree of several levels."""
VALUE_SHARE, INDEX_SHARE, REFUSED_SHARE, REBUILD_SHARE, HOUSE_SHARE = 0.7, 0.3, 0.1, 0.2, 0.3


def instant(book: Book, table: Table) -> None:
    """Some columns; rows change before them, between them and behind them."""
    for _ in range(book.rng.randint(1, 3)):
        table = _with_sizes(book, table)
        _change(book, table)
        if book.rng.random() < REFUSED_SHARE:
            _refused(book, table)
        if len(table.shape.free_columns()) >= FREE_MAX or book.rng.random() < REBUILD_SHARE:
            _rebuilt(book, table)
            table = _with_sizes(book, table)
        column = _column(book, table)
        value = book.value(column) if book.rng.random() < VALUE_SHARE else None
        if isinstance(value, bytes) and column.varying:
            value = value[:VALUE_MAX]
        add_instant(book, table, column, value)
        _set_back(book, table, value)
        _change(book, table)
        if book.rng.random() < INDEX_SHARE:
            _indexed(book, table)
        if book.rng.random() < HOUSE_SHARE:
            phases.housekeeping(book)


def add_instant(book: Book, table: Table, column: Column, value: Value = None) -> None:
    """The last column of the table, with this value in its rows, or the one that it has by itself."""
    book.reshape(
        Verb.ADD_COLUMN,
        table,
        table.shape.add_column(column, len(table.shape.columns)),
        columns=(column,),
        values={column.name: value} if value is not None else None,
        algorithm=Algorithm.INSTANT,
    )


def _with_sizes(book: Book, table: Table) -> Table:
    """A table whose records have sizes of their own: only those can be without a column."""
    if table.shape.varies:
        return table
    if NAME in book.tables:
        table = book.tables[NAME]
        if table.building:
            book.end_build(table, finish=book.rng.random() < 0.5)
        if table.shape.varies:
            return table
        book.drop(table)
    table = book.create(NAME, VARYING)
    phases.fill(book, table, book.rng.choice(ROWS))
    book.release(table)
    return table


def _column(book: Book, table: Table) -> Column:
    names = {column.name.rstrip("_") for column in table.shape.columns}
    name = next(name for name in (f"i{number}" for number in range(99)) if name not in names)
    return replace(book.rng.choice(NEW_COLUMNS), name=name)


def _change(book: Book, table: Table) -> None:
    for _ in range(book.rng.randint(0, 6)):
        phases.change(book, table)


def _set_back(book: Book, table: Table, value: Value) -> None:
    """A row gets another value of the last column. Then it gets the one of rows without it, and changes
    again: these two are taken back."""
    free = [key for key in table.live if key not in table.held]
    if not free or value is None:
        return
    column, key = table.shape.columns[-1], min(free)
    book.update(table, key=key, values={column.name: b"set" if column.is_text else 1001})
    trx = book.begin()
    book.update(table, trx, key, values={column.name: value})
    book.update(table, trx, key)
    book.end(trx, commit=False)


def _indexed(book: Book, table: Table) -> None:
    """An index has the values that no row has, and goes."""
    column = table.shape.columns[-1]
    index = IndexDef("inst", ((column.name, min(column.length, 8)),))
    book.add_indexes(table, [index])
    phases.change(book, table)
    book.drop_index(table, index.name)


def _rebuilt(book: Book, table: Table) -> None:
    """The first column that no index is about goes, or none: either makes a new table."""
    free = table.shape.free_columns()
    if free and book.rng.random() < 0.7:
        shape = table.shape.drop_column(free[0])
        book.reshape(Verb.DROP_COLUMN, table, shape, name=free[0])
    else:
        book.rebuild(table, in_steps=False)


def _refused(book: Book, table: Table) -> None:
    """Not the last column, or a value that metadata has no room for."""
    book.release(table)
    column = replace(NEW_COLUMNS[-1], name="refused")
    long = book.rng.random() < 0.5
    book.add(
        Verb.ADD_COLUMN,
        table=table.name,
        columns=(column,),
        values={column.name: b"v" * (VALUE_MAX + 1)} if long else None,
        to="" if long else "first",
        algorithm=book.rng.choice((Algorithm.INSTANT, Algorithm.NOCOPY)),
    )
