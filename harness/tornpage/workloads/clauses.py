"""Pieces of scripts that alter a table by several clauses of one statement: indexes come and go, under one
name too, names change, columns come and go; in one statement or in steps, in place, by a rebuild or a copy,
with LOCK=NONE too.
"""

from __future__ import annotations

from dataclasses import replace

from tornpage.workloads import builds, online, phases
from tornpage.workloads.book import Book, other_name
from tornpage.workloads.combined import Plan, combine
from tornpage.workloads.script import Algorithm, Column, IndexDef, Lock, Statement, Verb
from tornpage.workloads.table import Table

__all__ = ["clauses"]

NEW = (Column("", nullable=True), Column("", 12), Column("", 300, varying=True, nullable=True))
"""Columns that a table gets, but for their names."""
FREE_MAX = 3
"""Columns of a table that no key and no index is about: its records have room for no more."""
DROP_SHARE, AGAIN_SHARE, RENAME_SHARE, RECAST_SHARE = 0.7, 0.5, 0.4, 0.4
STEPS_SHARE, ONLINE_SHARE = 0.5, 0.5
REFUSED_SHARE, OPTIMIZE_SHARE = 0.1, 0.15


def clauses(book: Book, table: Table) -> None:
    """Statements of several clauses; rows change before them, meanwhile and behind them."""
    for _ in range(book.rng.randint(1, 3)):
        for _ in range(book.rng.randint(0, 4)):
            phases.change(book, table)
        if book.rng.random() < OPTIMIZE_SHARE:
            book.set_optimize(book.rng.random() < 0.5)
        book.release(table)
        if book.rng.random() < REFUSED_SHARE:
            _refused(book, table)
        plan = _drawn(book, table)
        in_steps = book.rng.random() < STEPS_SHARE
        loads = plan.rebuilds or plan.added
        lock = (
            Lock.NONE if in_steps and loads and book.rng.random() < ONLINE_SHARE else Lock.DEFAULT
        )
        combine(book, table, plan, in_steps, lock)
        if in_steps:
            (online if lock is Lock.NONE else builds).in_steps(book, table)
        if table.build is not None:
            return
        if book.rng.random() < 0.3:
            phases.housekeeping(book)


def _drawn(book: Book, table: Table) -> Plan:
    """Two clauses at least, in any order."""
    plan = Plan.of(table)
    missing = book.missing_indexes(table)
    if table.indexes and (not missing or book.rng.random() < DROP_SHARE):
        most = book.rng.randint(1, min(2, len(table.indexes)))
        for name in book.rng.sample(table.indexes, most):
            plan.drop_index(name)
    if plan.kept and book.rng.random() < RENAME_SHARE:
        plan.rename_index(book.rng.choice(plan.kept))
    if book.rng.random() < RENAME_SHARE:
        plan.rename_column(book.rng.choice(table.shape.columns).name)
    if book.rng.random() < RECAST_SHARE:
        _recast(book, table, plan)
    _add_some(book, table, plan, missing)
    while len(plan.clauses) < 2:
        plan.force()
    book.rng.shuffle(plan.clauses)
    return plan


def _add_some(book: Book, table: Table, plan: Plan, missing: list[IndexDef]) -> None:
    """Indexes that the table has not, or that have just gone."""
    names = {clause.name for clause in plan.clauses if clause.verb is Verb.DROP_INDEX}
    if names and book.rng.random() < AGAIN_SHARE:
        missing = missing + [index for index in table.shape.indexes if index.name in names]
    for index in book.rng.sample(missing, min(len(missing), book.rng.randint(1, 3))):
        plan.add_index(index)


def _recast(book: Book, table: Table, plan: Plan) -> None:
    """A column more, one less, both, or just a new table."""
    free = [name for name in plan.shape.free_columns() if name in table.shape.free_columns()]
    if free and book.rng.random() < 0.6:
        plan.drop_column(book.rng.choice(free))
    if len(plan.shape.free_columns()) < FREE_MAX and book.rng.random() < 0.6:
        names = {column.name.rstrip("_") for column in (*plan.shape.columns, *table.shape.columns)}
        name = next(name for name in (f"c{number}" for number in range(99)) if name not in names)
        column = replace(book.rng.choice(NEW), name=name)
        plan.add_column(column, book.rng.randint(0, len(plan.shape.columns)))
    if not plan.rebuilds:
        plan.force()


def _refused(book: Book, table: Table) -> None:
    """Clauses that do not go together, or a promise that one of them cannot keep."""
    name = table.shape.columns[-1].name
    rename = Statement(0, Verb.RENAME_COLUMN, name=name, to=other_name(name))
    force = Statement(0, Verb.REBUILD_TABLE)
    twice = book.rng.random() < 0.5
    way = Algorithm.DEFAULT if twice else book.rng.choice((Algorithm.NOCOPY, Algorithm.INSTANT))
    both = (rename, rename) if twice else (rename, force)
    book.add(Verb.ALTER_TABLE, table=table.name, clauses=both, algorithm=way)
