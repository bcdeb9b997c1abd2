"""The workload "smoke": a table of large rows under changes before, between and after index builds, in one
order for every seed; and the same tables for a database with one writer.
"""

from __future__ import annotations

import random

from pydantic import BaseModel, ConfigDict, Field

from tornpage.workloads.book import Book
from tornpage.workloads.builds import rename_parts, stepped
from tornpage.workloads.phases import change, expected_error, mixed, rolled_back_deletes, settle
from tornpage.workloads.script import AUTOCOMMIT, Script, Verb
from tornpage.workloads.shapes import LARGE, SMALL
from tornpage.workloads.table import Table

__all__ = ["SmokeParams", "SqliteSmokeParams", "generate_smoke", "generate_sqlite_smoke"]


class SmokeParams(BaseModel):
    """A table of large rows under DML before, between and after index builds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: int = Field(default=48, ge=8, le=100_000)
    """Rows of the table before the first index build."""
    changes: int = Field(default=12, ge=1, le=100_000)
    """Statements of each of the seven rounds of mixed DML."""
    clean_pages: int = Field(default=6, ge=1, le=10_000)
    """Pages per page cleaner step."""


class SqliteSmokeParams(BaseModel):
    """The tables of smoke for a database with one writer: one open transaction at a time, small data."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: int = Field(default=64, ge=8, le=100_000)
    """Rows of the table before the first index build."""
    changes: int = Field(default=8, ge=1, le=100_000)
    """Statements, or whole transactions, of each of the five rounds of DML."""


def generate_smoke(params: SmokeParams, rng: random.Random) -> Script:
    """The script of these parameters."""
    book = Book(rng, clean_pages=params.clean_pages)
    table, small = _tables(book, params.rows, together=False)
    mixed(book, table, small, params.changes)
    book.add(Verb.CHECKPOINT)
    mixed(book, table, small, params.changes)
    indexes = list(table.shape.indexes)
    rng.shuffle(indexes)
    book.add_indexes(table, indexes[:3])
    mixed(book, table, small, params.changes)
    book.add_indexes(table, indexes[3:])
    mixed(book, table, small, params.changes)
    rolled_back_deletes(book, table)
    again = rng.sample(indexes, 3)
    for index in again:
        book.drop_index(table, index.name)
    book.set_optimize(False)
    mixed(book, table, small, params.changes)
    book.add_indexes(table, again[:1])
    book.set_optimize(True)
    stepped(book, table, again[1:], finish=False)
    mixed(book, table, small, params.changes)
    stepped(book, table, again[1:], finish=True)
    rename_parts(book, table)
    book.rename(small, "s2")
    mixed(book, table, small, params.changes)
    book.drop(small)
    small = book.create("s1", SMALL)
    for _ in range(4):
        book.insert(small)
    book.add(Verb.FLUSH_TABLE, table=table.name)
    book.add(Verb.PURGE, number=-1)
    rename_parts(book, table)
    book.update(table)
    if rng.random() < 0.5:
        settle(book)
    return Script.of(book.out)


def generate_sqlite_smoke(params: SqliteSmokeParams, rng: random.Random) -> Script:
    """The script of these parameters."""
    book = Book(rng)
    table, small = _tables(book, params.rows, together=True)
    _serial(book, params, table, small)
    indexes = list(table.shape.indexes)
    rng.shuffle(indexes)
    book.add_indexes(table, indexes[:2])
    _serial(book, params, table, small)
    book.add(Verb.CHECKPOINT)
    book.add_indexes(table, indexes[2:4])
    _serial(book, params, table, small)
    book.drop_index(table, indexes[0].name)
    book.rename(small, "s2")
    _serial(book, params, table, small)
    book.add_indexes(table, indexes[:1])
    book.rename_column(table, rng.choice(table.shape.columns).name)
    book.drop(small)
    small = book.create("s1", SMALL)
    _serial(book, params, table, small)
    return Script.of(book.out)


def _tables(book: Book, rows: int, together: bool) -> tuple[Table, Table]:
    """The table of large rows with so many of them, half of them in one statement, the others each alone or
    together in one transaction; and a small table without any."""
    table = book.create("t1", LARGE)
    small = book.create("s1", SMALL)
    book.insert_seq(table, 1, rows // 2)
    trx = book.begin() if together else AUTOCOMMIT
    while len(table.live) < rows:
        book.insert(table, trx)
    if together:
        book.end(trx, commit=True)
    return table, small


def _serial(book: Book, params: SqliteSmokeParams, table: Table, small: Table) -> None:
    """One round of DML, each transaction ended before anything else happens."""
    for _ in range(params.changes):
        choice = book.rng.random()
        if choice < 0.4:
            trx = book.begin()
            for _ in range(book.rng.randint(1, 6)):
                (expected_error if book.rng.random() < 0.08 else change)(book, table, trx)
            book.end(trx, commit=book.rng.random() < 0.65)
        elif choice < 0.5:
            book.add(Verb.CHECKPOINT, full=book.rng.random() < 0.3)
        elif choice < 0.65:
            change(book, small)
        else:
            (expected_error if choice > 0.95 else change)(book, table, AUTOCOMMIT)
