"""What the clauses of ALTER TABLE make of a table, one alone or several together. They raise Failure where
the target must refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from tornpage.oracle.table import (
    NEW,
    Failure,
    Recast,
    Table,
    built_index,
    default_of,
    encoded,
    index_parts,
)
from tornpage.workloads.script import Statement, Verb

__all__ = [
    "PRIMARY",
    "altered",
    "check_clauses",
    "check_instant",
    "check_new_indexes",
    "drop_index",
    "new_indexes",
    "recast_by",
    "rename_column",
    "rename_index",
]

COLUMNS_MAX = 32
"""Columns of a table."""
INDEXES_MAX = 64
"""Secondary indexes of a table."""
META_VALUE_MAX = 40
"""Bytes of a VARCHAR that records may be without."""
PRIMARY = "PRIMARY"
"""Name of the primary key, which no other index can have."""


def check_new_indexes(table: Table, statement: Statement) -> None:
    """May the table get these indexes?"""
    names = [index.name for index in statement.indexes]
    if len(set(names)) < len(names) or set(names) & set(table.indexes):
        raise Failure("DB_ALREADY_EXISTS")
    if len(table.indexes) + len(names) > INDEXES_MAX:
        raise Failure("DB_ERROR")
    for definition in statement.indexes:
        index_parts(table, definition)


def _add_indexes(table: Table, statement: Statement) -> None:
    check_new_indexes(table, statement)
    built = [built_index(table, definition) for definition in statement.indexes]
    table.indexes.update({index.name: index for index in built})


def _check_index(table: Table, name: str) -> None:
    """Is it one of its secondary indexes?"""
    if name == PRIMARY:
        raise Failure("DB_ERROR")
    if name not in table.indexes:
        raise Failure("DB_NOT_FOUND")


def drop_index(table: Table, statement: Statement) -> None:
    """An index goes."""
    _check_index(table, statement.name)
    del table.indexes[statement.name]


def rename_index(table: Table, statement: Statement) -> None:
    """An index gets another name."""
    _check_index(table, statement.name)
    if statement.to in (*table.indexes, PRIMARY):
        raise Failure("DB_ALREADY_EXISTS")
    table.rename_index(statement.name, statement.to)


def rename_column(table: Table, statement: Statement) -> None:
    """A column gets another name."""
    if statement.name not in table.positions:
        raise Failure("DB_NOT_FOUND")
    if statement.to in table.positions:
        raise Failure("DB_ALREADY_EXISTS")
    table.rename_column(statement.name, statement.to)


def recast_by(table: Table, statement: Statement) -> Recast:
    """What rows become by one column more or less."""
    adds = statement.verb in (Verb.ADD_COLUMN, Verb.START_ADD_COLUMN)
    return (_one_more if adds else _one_less)(table, statement)


def check_instant(table: Table, statement: Statement) -> None:
    """May rows be without the column? Only the last one of records that have sizes of their own, with a value
    that is short."""
    (column,) = statement.columns
    sizes = any(c.nullable or c.varying for c in table.columns if c.name not in table.primary)
    value = (statement.values or {}).get(column.name)
    long = column.varying and isinstance(value, bytes) and len(value) > META_VALUE_MAX
    if not sizes or statement.to or long:
        raise Failure("DB_UNSUPPORTED")


def _one_more(table: Table, statement: Statement) -> Recast:
    (column,) = statement.columns
    if column.name in table.positions:
        raise Failure("DB_ALREADY_EXISTS")
    at = 0 if statement.to else len(table.columns)
    after = statement.to.removeprefix("after=")
    if after != statement.to:
        if after not in table.positions:
            raise Failure("DB_NOT_FOUND")
        at = table.positions[after] + 1
    if len(table.columns) == COLUMNS_MAX:
        raise Failure("DB_ERROR")
    value = (statement.values or {}).get(column.name, default_of(column))
    old = tuple(range(len(table.columns)))
    return Recast(
        (*table.columns[:at], column, *table.columns[at:]),
        (*old[:at], NEW, *old[at:]),
        encoded(table.name, column, value),
    )


def _one_less(table: Table, statement: Statement) -> Recast:
    if statement.name not in table.positions:
        raise Failure("DB_NOT_FOUND")
    at = table.positions[statement.name]
    keys = [part.position for index in table.indexes.values() for part in index.parts]
    if statement.name in table.primary or at in keys:
        raise Failure("DB_ERROR")
    left = tuple(each for each in range(len(table.columns)) if each != at)
    return Recast(tuple(table.columns[each] for each in left), left)


def _recast(table: Table, statement: Statement) -> None:
    table.recast(recast_by(table, statement))


_IN_ORDER: dict[Verb, Callable[[Table, Statement], None]] = {
    Verb.DROP_INDEX: drop_index,
    Verb.DROP_COLUMN: _recast,
    Verb.RENAME_INDEX: rename_index,
    Verb.RENAME_COLUMN: rename_column,
    Verb.ADD_COLUMN: _recast,
    Verb.ADD_INDEX: _add_indexes,
}
"""Clauses are applied in this order, however they are written."""


def new_indexes(clauses: Sequence[Statement]) -> list[Statement]:
    """Those that add some."""
    return [clause for clause in clauses if clause.verb is Verb.ADD_INDEX]


def altered(table: Table, clauses: Sequence[Statement], rows: bool = True) -> Table:
    """The table that all clauses together make of it, which stays as it is; without rows: as far as
    definitions tell."""
    made = table.copy(rows)
    for verb, apply in _IN_ORDER.items():
        for clause in clauses:
            if clause.verb is verb:
                apply(made, clause)
    added = sum(len(clause.indexes) for clause in new_indexes(clauses))
    if len(table.indexes) + added > INDEXES_MAX:
        raise Failure("DB_ERROR")  # those that go are there until the commit
    return made


_OF_INDEX = (Verb.ADD_INDEX, Verb.DROP_INDEX, Verb.RENAME_INDEX)
_RENAMES = (Verb.RENAME_INDEX, Verb.RENAME_COLUMN)


def check_clauses(clauses: Sequence[Statement]) -> None:
    """A name can go and come in one statement; twice it can do neither, and what a rename gives no other
    takes."""
    for one, other in combinations(clauses, 2):
        if (one.verb in _OF_INDEX) is not (other.verb in _OF_INDEX):
            continue
        taken, given = {_taken(one)} - {""}, {_given(one)} - {""}
        renames = one.verb in _RENAMES and other.verb in _RENAMES
        if _taken(other) in taken or _given(other) in given:
            raise Failure("DB_UNSUPPORTED")
        if renames and (_taken(other) in given or _given(other) in taken):
            raise Failure("DB_UNSUPPORTED")


def _taken(clause: Statement) -> str:
    """The name that goes, "" without one."""
    return clause.name


def _given(clause: Statement) -> str:
    """The name that comes, "" without one."""
    if clause.verb is Verb.ADD_INDEX:
        return clause.indexes[0].name
    return clause.columns[0].name if clause.verb is Verb.ADD_COLUMN else clause.to
