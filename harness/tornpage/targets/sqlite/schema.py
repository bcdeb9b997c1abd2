"""How the script language's tables and indexes look in SQLite, both ways: DDL text and its reading.

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
import sqlite3
from dataclasses import dataclass

from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.script import Column, IndexDef, Statement

__all__ = [
    "Shape",
    "check_name",
    "create_index_sql",
    "create_table_sql",
    "index_key_sql",
    "index_sql_name",
    "quote",
    "read_shapes",
]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CHAR = re.compile(r"CHAR\((\d+)\)")
_KEY = re.compile(r'"(\w+)"|substr\("(\w+)",1,(\d+)\)')


@dataclass(frozen=True, slots=True)
class Shape:
    """A table as the schema describes it. indexes: (definition, SQL name) pairs by name."""

    name: str
    columns: tuple[Column, ...]
    primary: tuple[str, ...]
    indexes: tuple[tuple[IndexDef, str], ...]

    def width(self, column: str) -> int:
        """Bytes of a CHAR column, 0 for BIGINT."""
        return next(item.length for item in self.columns if item.name == column)


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


def index_sql_name(name: str, line: int) -> str:
    """What the index `name`, made in this line of the script, is called in SQLite."""
    return f"{name}@{line}"


def create_index_sql(table: str, index: IndexDef, line: int) -> str:
    """CREATE INDEX for one index of an `add index` statement."""
    keys = ",".join(index_key_sql(column, length) for column, length in index.columns)
    create = "CREATE UNIQUE INDEX" if index.unique else "CREATE INDEX"
    return f"{create} {quote(index_sql_name(index.name, line))} ON {quote(table)}({keys})"


def index_key_sql(column: str, length: int) -> str:
    """One key of an index: a column or its prefix of `length` characters."""
    return f"substr({quote(column)},1,{length})" if length else quote(column)


def read_shapes(db: sqlite3.Connection) -> list[Shape]:
    """All tables that the scripts made, by name. Raises ValueError when the schema has another shape."""
    query = "SELECT name, sql FROM sqlite_schema WHERE type = ? AND tbl_name = ? ORDER BY name"
    tables: list[Shape] = []
    names = db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
    ).fetchall()
    for (table,) in names:
        info = db.execute(f"PRAGMA table_info({quote(table)})").fetchall()
        columns = tuple(Column(row[1], _width(table, row[2])) for row in info)
        keys = sorted((row[5], row[1]) for row in info if row[5])
        found = db.execute(query, ("index", table)).fetchall()
        indexes = tuple((_index(name, sql), name) for name, sql in found if sql is not None)
        by_name = sorted(indexes, key=lambda item: item[0].name)
        tables.append(Shape(table, columns, tuple(name for _, name in keys), tuple(by_name)))
    return tables


def _width(table: str, declared: str) -> int:
    if declared == "INTEGER":
        return 0
    match = _CHAR.fullmatch(declared)
    if match is None:
        raise ValueError(f"{table}: unexpected column type {declared!r}")
    return int(match[1])


def _index(sql_name: str, sql: str) -> IndexDef:
    """The definition behind `CREATE [UNIQUE] INDEX "NAME@LINE" ON "TABLE"(KEYS)`, TABLE as it is now
    called."""
    keys = sql.partition(" ON ")[2].partition("(")[2].removesuffix(")")
    columns = []
    at = 0
    while at < len(keys):
        match = _KEY.match(keys, at)
        if match is None:
            raise ValueError(f"index {sql_name}: unexpected key {keys[at:]!r}")
        columns.append((match[1] or match[2], int(match[3] or 0)))
        at = match.end() + 1
    if not columns:
        raise ValueError(f"index {sql_name}: no keys in {sql!r}")
    unique = sql.startswith("CREATE UNIQUE ")
    return IndexDef(sql_name.partition("@")[0], tuple(columns), unique)
