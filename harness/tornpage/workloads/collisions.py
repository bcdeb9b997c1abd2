"""Pieces of scripts around unique indexes: keys that are taken, given up, fought for by open transactions,
and found twice by a build.
"""

from __future__ import annotations

from tornpage.workloads.book import Book
from tornpage.workloads.builds import stepped
from tornpage.workloads.phases import change, fill, housekeeping, transaction
from tornpage.workloads.script import AUTOCOMMIT
from tornpage.workloads.shapes import UNIQUE
from tornpage.workloads.table import Table

__all__ = ["collide"]

NAME = "uniq"


def collide(book: Book, _: Table) -> None:
    """A table of its own, which goes as a rule: rows, unique indexes, and changes that these refuse or just
    let pass."""
    table = book.tables.get(NAME)
    if table is None:
        table = book.create(NAME, UNIQUE)
    book.release(table)
    fill(book, table, len(table.live) + book.rng.randint(4, 40))
    if book.rng.random() < 0.3:
        _twins(book, table)
    _index(book, table)
    pieces = (_copy, _copy, _hand_over, _hand_over, _within, _fight, _fight, _come_back, change)
    for _piece in range(book.rng.randint(6, 16)):
        book.rng.choice(pieces)(book, table)
        if book.rng.random() < 0.3:
            housekeeping(book)
    if book.rng.random() < 0.5:
        _index(book, table)
    if book.rng.random() < 0.6:
        book.drop(table)


def _index(book: Book, table: Table) -> None:
    """Unique indexes that the table does not have, before or behind other ones: a duplicate is met at the
    first change of a row, or after several."""
    missing = book.missing_indexes(table)
    plain = [index for index in missing if not index.unique]
    some = [index for index in missing if index.unique]
    if plain and book.rng.random() < 0.4:
        book.add_indexes(table, plain[:1])
    if not some:
        return
    some = book.rng.sample(some, book.rng.randint(1, len(some)))
    if book.rng.random() < 0.6:
        book.add_indexes(table, some)
    else:
        stepped(book, table, some, finish=book.rng.random() < 0.8)


def _rows(book: Book, table: Table, count: int) -> list[int]:
    """So many live rows that no transaction holds and that have a value, or none."""
    free = sorted(key for key in table.serials if key not in table.held)
    return book.rng.sample(free, count) if len(free) >= count else []


def _twins(book: Book, table: Table) -> None:
    """Another row with the value of one that is there, if no index refuses that: the next build does."""
    for key in _rows(book, table, 1):
        book.insert(table, serial=table.serials[key])


def _put(book: Book, table: Table, trx: str, value: bytes) -> None:
    """Another row gets this value: a new one, or one that is there."""
    rows = _rows(book, table, 1)
    if rows and book.rng.random() < 0.4:
        book.update(table, trx, rows[0], serial=value)
    else:
        book.insert(table, trx, serial=value)


def _free(book: Book, table: Table, trx: str, key: int) -> None:
    """The row gives its value up: it goes, or gets another one."""
    if book.rng.random() < 0.5:
        book.delete(table, trx, key)
    else:
        book.update(table, trx, key, serial=book.new_serial())


def _copy(book: Book, table: Table) -> None:
    """A value that another row has, alone or amid a transaction."""
    rows = _rows(book, table, 1)
    if not rows:
        return
    value = table.serials[rows[0]]
    if book.rng.random() < 0.5:
        _put(book, table, AUTOCOMMIT, value)
        return

    def work(trx: str) -> None:
        change(book, table, trx)
        _put(book, table, trx, value)
        change(book, table, trx)

    transaction(book, work, commit=book.rng.random() < 0.6)


def _hand_over(book: Book, table: Table) -> None:
    """A value that was given up and committed; its old entry waits for purge, or is gone."""
    for key in _rows(book, table, 1):
        value = table.serials[key]
        _free(book, table, AUTOCOMMIT, key)
        if book.rng.random() < 0.3:
            housekeeping(book)
        _put(book, table, AUTOCOMMIT, value)


def _within(book: Book, table: Table) -> None:
    """A value changes its row within one transaction, which commits or not."""
    rows = _rows(book, table, 1)

    def work(trx: str) -> None:
        value = table.serials[rows[0]]
        _free(book, table, trx, rows[0])
        _put(book, table, trx, value)

    if rows:
        transaction(book, work, commit=book.rng.random() < 0.5)


def _fight(book: Book, table: Table) -> None:
    """Another transaction, still open, has given the value up, or has taken it."""
    rows = _rows(book, table, 1)
    if not rows:
        return
    trx = book.begin()
    value = table.serials[rows[0]]
    if book.rng.random() < 0.6:
        _free(book, table, trx, rows[0])
    else:
        value = book.new_serial()
        _put(book, table, trx, value)
    _put(book, table, AUTOCOMMIT, value)
    if book.rng.random() < 0.5:
        _put(book, table, trx, value)
    book.end(trx, commit=book.rng.random() < 0.5)
    _put(book, table, AUTOCOMMIT, value)


def _come_back(book: Book, table: Table) -> None:
    """A row goes, another one takes its value, and the row comes back and wants it."""
    for key in _rows(book, table, 1):
        value = table.serials[key]
        book.delete(table, key=key)
        book.insert(table, serial=value)
        book.insert(table, key=key, serial=value)
        book.insert(table, key=key)
