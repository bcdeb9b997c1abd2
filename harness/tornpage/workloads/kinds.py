"""Statements that "bounded" and "places" are made of, about a table that is prepared: one statement each, or
the few lines that are one thing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from tornpage.workloads.book import Book
from tornpage.workloads.combined import Plan, combine
from tornpage.workloads.instant import add_instant
from tornpage.workloads.script import Column, IndexDef, Lock, Verb
from tornpage.workloads.shapes import Shape
from tornpage.workloads.table import Table

__all__ = [
    "ALL_ROWS",
    "EMPTY",
    "IN_SYSTEM",
    "KINDS",
    "LEVELS",
    "LOADED",
    "OFF_PAGE",
    "PAGE",
    "SHAPE",
    "Ground",
    "Kind",
    "give_up_index",
    "switch",
]

SHAPE = Shape(
    (Column("k"), Column("v", 60), Column("w"), Column("x", 90, varying=True, nullable=True)),
    "k",
    (
        IndexDef("iv", (("v", 0),)),
        IndexDef("iw", (("w", 0), ("v", 6))),
        IndexDef("ix", (("x", 12),)),
        IndexDef("iu", (("w", 0), ("k", 0)), unique=True),
        IndexDef("ip", (("v", 4), ("k", 0))),
    ),
)
"""Of both tables. The first index is there from the beginning."""
OFF_PAGE = replace(
    SHAPE,
    columns=(*SHAPE.columns[:3], replace(SHAPE.columns[3], length=6000)),
    indexes=tuple(sorted(SHAPE.indexes, key=lambda index: index.name != "ix")),
)
"""The same with a text that has pages of its own, and an index on its beginning."""
EMPTY, PAGE, LEVELS = 0, 10, 100
"""Rows of the table: none, what one page has room for, a tree of two levels and one of the index."""
BULK = 30
"""Rows of a change that splits pages, or empties them."""
ALL_ROWS = 1000
LOADED = 3
"""Steps of a build: its scan, merge and load."""
"""Of a step of a build."""


@dataclass(slots=True)
class Ground:
    """What a statement finds. table: None if it was dropped; other: one that only a transaction that stays
    open changes; logged: log_optimize_ddl is off."""

    book: Book
    table: Table | None
    other: Table
    logged: bool = False
    names: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def it(self) -> Table:
        """The table, which is there: Kind.after() says so."""
        assert self.table is not None, "a statement about a table that is not there"
        return self.table


_Play = Callable[[Ground], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A statement, or the few lines that are one thing. indexes: how many more the table has behind it;
    named: how many it names; loads: whether log_optimize_ddl matters to it; about: whether it needs the
    table; alone: it comes by itself and before a purge only."""

    name: str
    play: _Play
    indexes: int = 0
    named: int = 0
    loads: bool = False
    about: bool = True
    alone: bool = False

    def after(self, facts: tuple[bool, int]) -> tuple[bool, int] | None:
        """facts: whether the table is there, and how many indexes it has. None: there it cannot be issued."""
        there, indexes = facts[0], facts[1] + self.indexes
        if (self.about and not there) or facts[1] < self.named or indexes > len(SHAPE.indexes):
            return None
        if self.play is _create:
            return True, indexes
        return (False, 0) if self.play is _drop else (there, indexes)


def _row(change: Callable[[Book, Table, str], None], commit: bool) -> _Play:
    def play(ground: Ground) -> None:
        trx = ground.book.begin()
        change(ground.book, ground.it, trx)
        ground.book.end(trx, commit)

    return play


def _insert(book: Book, table: Table, trx: str) -> None:
    book.insert(table, trx)


def _update(book: Book, table: Table, trx: str) -> None:
    book.update(table, trx)


def _delete(book: Book, table: Table, trx: str) -> None:
    book.delete(table, trx, book.free_key(table, live=True))


def _insert_many(book: Book, table: Table, trx: str) -> None:
    for _ in range(BULK):
        book.insert(table, trx)


def _delete_many(book: Book, table: Table, trx: str) -> None:
    for key in sorted(table.live)[: 2 * BULK]:
        book.delete(table, trx, key)


def _update_many(book: Book, table: Table, trx: str) -> None:
    for key in sorted(table.live)[:BULK]:
        book.update(table, trx, key)


def _stay_open(ground: Ground) -> None:
    """A transaction that has no end."""
    trx = ground.book.begin()
    ground.book.insert(ground.other, trx)
    ground.book.update(ground.other, trx)


def _create(ground: Ground) -> None:
    """The table, if it is gone, or another one."""
    name = ground.other.name
    while name in ground.book.tables:
        name = f"n{next(ground.names)}"
    made = ground.book.create("t" if ground.table is None else name, SHAPE)
    ground.table = ground.table or made


def _drop(ground: Ground) -> None:
    ground.book.drop(ground.it)
    ground.table = None


def _rename(ground: Ground) -> None:
    ground.book.rename(ground.it, f"r{next(ground.names)}")


def _of_table(statement: Callable[[Book, Table], None]) -> _Play:
    return lambda ground: statement(ground.book, ground.it)


def _copied(statement: Callable[[Book, Table], None]) -> _Play:
    def play(ground: Ground) -> None:
        ground.book.copy_share = 1
        statement(ground.book, ground.it)
        ground.book.copy_share = 0

    return play


def _add_index(book: Book, table: Table) -> None:
    book.add_indexes(table, book.missing_indexes(table)[:1])


def _finish_online(book: Book, table: Table) -> None:
    """Meanwhile a row comes, and one changes in all its columns and is as it was again."""
    book.step_build(table, 1, ALL_ROWS)
    book.insert(table)
    trx = book.begin()
    book.update(table, trx, values=book.values(table, 1))
    book.end(trx, commit=False)
    book.end_build(table, finish=True)


def _add_index_online(book: Book, table: Table) -> None:
    book.start_build(table, book.missing_indexes(table)[:1], online=True)
    _finish_online(book, table)


def _drop_index(book: Book, table: Table) -> None:
    book.drop_index(table, table.indexes[0])


def _rename_index(book: Book, table: Table) -> None:
    book.rename_index(table, table.indexes[0])


def _rename_column(book: Book, table: Table) -> None:
    book.rename_column(table, table.shape.columns[2].name)


def _lengthen(book: Book, table: Table) -> None:
    column = next(column for column in table.shape.columns if column.varying)
    book.resize_column(table, column.name, column.length + 10)


def _rebuild(book: Book, table: Table) -> None:
    book.rebuild(table, in_steps=False)


def _rebuild_online(book: Book, table: Table) -> None:
    book.rebuild(table, in_steps=True, online=True)
    _finish_online(book, table)


def _add_column_online(book: Book, table: Table) -> None:
    _add_column(book, table, in_steps=True, lock=Lock.NONE)
    _finish_online(book, table)


def _add_column(
    book: Book, table: Table, in_steps: bool = False, lock: Lock = Lock.DEFAULT
) -> None:
    """At the end, with a value."""
    new = _new_column(table)
    shape = table.shape.add_column(new, len(table.shape.columns))
    values = {new.name: b"added"}
    verb = Verb.START_ADD_COLUMN if in_steps else Verb.ADD_COLUMN
    book.reshape(verb, table, shape, lock, columns=(new,), values=values)


def _add_instant(book: Book, table: Table) -> None:
    """Then a row that has it."""
    add_instant(book, table, _new_column(table), b"added")
    book.insert(table)


def _new_column(table: Table) -> Column:
    names = [column.name for column in table.shape.columns]
    return Column(next(name for name in ("y", "z1", "z2", "z3") if name not in names), 20)


def _drop_column(book: Book, table: Table) -> None:
    """The first one that no index is about; if there is none, one comes before."""
    if not table.shape.free_columns():
        _add_column(book, table)
    name = table.shape.free_columns()[0]
    book.reshape(Verb.DROP_COLUMN, table, table.shape.drop_column(name), name=name)


def _change_primary(book: Book, table: Table) -> None:
    """Other columns, in another order, and back."""
    primary, number = table.shape.primary, table.shape.columns[2].name
    for key in ((number, primary), (primary,)):
        book.reshape(Verb.CHANGE_PRIMARY, table, table.shape, primary=key)


def _clauses(book: Book, table: Table) -> None:
    """An index goes and comes again under its name, another one comes, a column gets another name."""
    plan = Plan.of(table)
    plan.rename_column(table.shape.columns[2].name)
    plan.drop_index(table.indexes[0])
    for name in (table.indexes[0], book.missing_indexes(table)[0].name):
        plan.add_index(next(index for index in table.shape.indexes if index.name == name))
    combine(book, table, plan)


def _clauses_rebuilding(book: Book, table: Table) -> None:
    """An index goes, another one comes, and a column, too."""
    plan = Plan.of(table)
    plan.drop_index(table.indexes[0])
    plan.add_column(_new_column(table), len(table.shape.columns))
    plan.add_index(book.missing_indexes(table)[0])
    combine(book, table, plan)


def give_up_index(ground: Ground, steps: int = LOADED) -> None:
    """Builds an index so far, and no further."""
    book, table = ground.book, ground.it
    book.start_build(table, book.missing_indexes(table)[:1])
    book.step_build(table, steps, ALL_ROWS)
    book.end_build(table, finish=False)


def _abort_rebuild(steps: int) -> _Play:
    def play(ground: Ground) -> None:
        ground.book.rebuild(ground.it, in_steps=True)
        ground.book.step_build(ground.it, steps, ALL_ROWS)
        ground.book.end_build(ground.it, finish=False)

    return play


def _defragment(book: Book, table: Table) -> None:
    book.defragment(table, "", in_steps=False)


def _export(book: Book, table: Table) -> None:
    book.export(table)
    book.unlock(table)


def _import(ground: Ground) -> None:
    """The table's rows take the place of another's of the same definition."""
    book, table = ground.book, ground.it
    other = book.create(f"n{next(ground.names)}", table.shape)
    indexes = [index for index in table.shape.indexes if index.name in table.indexes]
    for index in indexes:
        book.add_indexes(other, [index])
    book.export(table)
    book.import_rows(other, table)
    book.unlock(table)


def _backup(ground: Ground) -> None:
    name = f"b{next(ground.names)}"
    ground.book.add(Verb.START_BACKUP, name=name)
    ground.book.add(Verb.FINISH_BACKUP, name=name)


def switch(ground: Ground) -> None:
    ground.book.set_optimize(ground.logged)
    ground.logged = not ground.logged


def _flush_table(book: Book, table: Table) -> None:
    book.add(Verb.FLUSH_TABLE, table=table.name)


def _plain(verb: Verb, **fields: object) -> _Play:
    return lambda ground: ground.book.add(verb, **fields)


def _restart(clean: bool) -> _Play:
    return lambda ground: ground.book.restart(clean, {})


KINDS = (
    Kind("insert", _row(_insert, True)),
    Kind("insert, rolled back", _row(_insert, False)),
    Kind("update", _row(_update, True)),
    Kind("update, rolled back", _row(_update, False)),
    Kind("delete", _row(_delete, True)),
    Kind("delete, rolled back", _row(_delete, False)),
    Kind("insert many", _row(_insert_many, True)),
    Kind("insert many, rolled back", _row(_insert_many, False)),
    Kind("delete many", _row(_delete_many, True)),
    Kind("delete many, rolled back", _row(_delete_many, False)),
    Kind("update many", _row(_update_many, True), alone=True),
    Kind("update many, rolled back", _row(_update_many, False), alone=True),
    Kind("transaction that stays open", _stay_open, about=False),
    Kind("create table", _create, about=False),
    Kind("drop table", _drop),
    Kind("truncate table", _of_table(Book.truncate)),
    Kind("rename table", _rename),
    Kind("add index", _of_table(_add_index), indexes=1, loads=True),
    Kind("add index, lock=none", _of_table(_add_index_online), indexes=1, loads=True),
    Kind("add index, algorithm=copy", _copied(_add_index), indexes=1),
    Kind("drop index", _of_table(_drop_index), indexes=-1, named=1),
    Kind("rename index", _of_table(_rename_index), named=1),
    Kind("rename column", _of_table(_rename_column)),
    Kind("modify column", _of_table(_lengthen)),
    Kind("modify column, algorithm=copy", _copied(_lengthen)),
    Kind("rebuild", _of_table(_rebuild), loads=True),
    Kind("rebuild, lock=none", _of_table(_rebuild_online), loads=True),
    Kind("rebuild, algorithm=copy", _copied(_rebuild)),
    Kind("add column, lock=none", _of_table(_add_column_online), loads=True),
    Kind("drop column", _of_table(_drop_column), loads=True),
    Kind("another primary key", _of_table(_change_primary), loads=True),
    Kind("several clauses", _of_table(_clauses), indexes=1, named=1, loads=True),
    Kind("several clauses, rebuild", _of_table(_clauses_rebuilding), named=1, loads=True),
    Kind("add column, algorithm=instant", _of_table(_add_instant)),
    *(
        Kind(f"add index, aborted after step {n}", partial(give_up_index, steps=n), loads=True)
        for n in (1, 2, LOADED)
    ),
    *(Kind(f"rebuild, aborted after step {n}", _abort_rebuild(n), loads=True) for n in (1, 3, 5)),
    Kind("defragment", _of_table(_defragment)),
    Kind("export", _of_table(_export)),
    Kind("import", _import, loads=True),
    Kind("backup", _backup, about=False),
    Kind("set log_optimize_ddl", switch, about=False, loads=True),
    Kind("flush table", _of_table(_flush_table)),
    Kind("clean", _plain(Verb.CLEAN, number=4), about=False),
    Kind("checkpoint", _plain(Verb.CHECKPOINT), about=False),
    Kind("full checkpoint", _plain(Verb.CHECKPOINT, full=True), about=False),
    Kind("purge", _plain(Verb.PURGE, number=-1), about=False),
    Kind("restart", _restart(True), about=False),
    Kind("restart behind a crash", _restart(False), about=False),
)


IN_SYSTEM = frozenset(
    {
        "create table",
        "drop table",
        "truncate table",
        "rename table",
        "add index",
        "drop index",
        "rebuild",
        "add index, aborted after step 3",
        "rebuild, aborted after step 5",
        "full checkpoint",
        "restart behind a crash",
    }
)
"""Kinds that come with the table in the system tablespace, too."""
