"""How the script language's tables and indexes look in SQLite; explorer/targets/sqlite/sqlite_schema.c
reads them.

A BIGINT is an INTEGER column, a CHAR(n) a column declared CHAR(n): that has TEXT affinity, and the declared
type tells the width to whoever reads the database. Texts are stored without trailing spaces, which
are not significant. A table with one BIGINT in its primary key gets it as its rowid, any other is WITHOUT
ROWID: both are clustered by primary key as the engine's tables are.

An index on whole columns is an ordinary index. A key prefix becomes an index on substr(column, 1, n): its
entries are then the cut values, as the engine's are, and one digest serves both; an index on the whole
column would be larger, and its digest another. Index names are global in SQLite and survive
the rename of a table, so an index is called NAME@LINE after the line of the script that made it.
"""

from __future__ import annotations

import re

from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.script import IndexDef, Statement

__all__ = [
    "check_name",
    "create_index_sql",
    "create_table_sql",
    "quote",
]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quote(name: str) -> str:
    """An identifier in SQL; names have passed check_name()."""
    return f'"{name}"'


def check_name(name: str) -> None:
    """Raises WorkloadError for a name that SQLite would not take as it is."""
    if not _NAME.fullmatch(name) or name.lower().startswith("sqlite_"):
        raise WorkloadError(f"{name!r} cannot be a name in SQLite")


def create_table_sql(statement: Statement) -> str:
    """CREATE TABLE for a `create table` statement."""
    single = len(statement.primary) == 1 and _is_bigint(statement, statement.primary[0])
    parts = []
    for column in statement.columns:
        if single and column.name == statement.primary[0]:
            parts.append(f"{quote(column.name)} INTEGER PRIMARY KEY")
        elif column.is_text:
            parts.append(f"{quote(column.name)} CHAR({column.length}) NOT NULL DEFAULT ''")
        else:
            parts.append(f"{quote(column.name)} INTEGER NOT NULL DEFAULT 0")
    if single:
        return f"CREATE TABLE {quote(statement.table)}({', '.join(parts)})"
    keys = ", ".join(quote(name) for name in statement.primary)
    body = f"{', '.join(parts)}, PRIMARY KEY({keys})"
    return f"CREATE TABLE {quote(statement.table)}({body}) WITHOUT ROWID"


def _is_bigint(statement: Statement, name: str) -> bool:
    return any(column.name == name and not column.is_text for column in statement.columns)


def create_index_sql(table: str, index: IndexDef, line: int) -> str:
    """CREATE INDEX for one index of an `add index` statement."""
    keys = ",".join(_index_key_sql(column, length) for column, length in index.columns)
    create = "CREATE UNIQUE INDEX" if index.unique else "CREATE INDEX"
    return f"{create} {quote(f'{index.name}@{line}')} ON {quote(table)}({keys})"


def _index_key_sql(column: str, length: int) -> str:
    """One key of an index: a column or its prefix of `length` characters."""
    return f"substr({quote(column)},1,{length})" if length else quote(column)
