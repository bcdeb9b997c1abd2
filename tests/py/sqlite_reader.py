"""Reads a SQLite database after a crash, in Python: what explorer/targets/sqlite does in C, written
independently, so that each can be held against the other. An index is read through itself, in its own order.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from tornpage.oracle.state import State, TableDigest, names_hash, plain_tables
from tornpage.targets.sqlite.driver import DATABASE
from tornpage.targets.sqlite.schema import quote
from tornpage.workloads.script import Column, IndexDef

__all__ = ["Shape", "examine", "read_shapes", "read_state"]

_CHAR = re.compile(r"CHAR\((\d+)\)")
_KEY = re.compile(r'"(\w+)"|substr\("(\w+)",1,(\d+)\)')
MASK64 = (1 << 64) - 1
FINDINGS_MAX = 20

_INVARIANTS = (
    (10, ("missing from index", "wrong # of entries")),
    (11, ("never used", "reference to page", "reelist", "free-page", "ptr map", "page number")),
    (7, ("out of order", "non-unique entry")),
    (9, ("depth differs",)),
)
"""Which invariant a line of integrity_check is about, by what it contains; otherwise page shape, I6."""


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


def read_state(db: sqlite3.Connection) -> State:
    """The logical state. Raises sqlite3.DatabaseError on damage, ValueError on a foreign schema or value."""
    return {shape.name: _read_table(db, shape) for shape in read_shapes(db)}


def _read_table(db: sqlite3.Connection, shape: Shape) -> TableDigest:
    widths = [column.length for column in shape.columns]
    names = ", ".join(quote(column.name) for column in shape.columns)
    rows, total = _digest(
        db.execute(f"SELECT {names} FROM {quote(shape.name)} NOT INDEXED"), widths
    )
    total = (total + names_hash(shape.columns)) & MASK64
    indexes = []
    for index, sql_name in shape.indexes:
        entries, sum_ = _digest(
            db.execute(_index_query(shape, index, sql_name)), _widths(shape, index)
        )
        indexes.append((index.name, entries, (sum_ + index.unique) & MASK64))
    return rows, total, tuple(indexes)


def _index_query(shape: Shape, index: IndexDef, sql_name: str) -> str:
    keys = ", ".join(_key_sql(column, length) for column, length in index.columns)
    primary = ", ".join(quote(name) for name in shape.primary)
    table = f"{quote(shape.name)} INDEXED BY {quote(sql_name)}"
    return f"SELECT {keys}, {primary} FROM {table} ORDER BY {keys}"


def _key_sql(column: str, length: int) -> str:
    return f"substr({quote(column)},1,{length})" if length else quote(column)


def _widths(shape: Shape, index: IndexDef) -> list[int]:
    keys = [length or shape.width(column) for column, length in index.columns]
    return [*keys, *(shape.width(name) for name in shape.primary)]


def _digest(rows: Iterable[tuple[object, ...]], widths: list[int]) -> tuple[int, int]:
    count = total = 0
    for row in rows:
        image = b"".join(_encode(value, width) for value, width in zip(row, widths, strict=True))
        total += xxhash.xxh64_intdigest(image)
        count += 1
    return count, total & MASK64


def _encode(value: object, width: int) -> bytes:
    """A value in the engine's row format: BIGINT big-endian with the sign inverted, CHAR padded."""
    if not width:
        if not isinstance(value, int):
            raise ValueError(f"{value!r} in a BIGINT column")
        return ((value & MASK64) ^ (1 << 63)).to_bytes(8, "big")
    text = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else None
    if text is None or len(text) > width:
        raise ValueError(f"{value!r} in a CHAR({width}) column")
    return text.ljust(width, b" ")


def examine(directory: Path) -> dict[str, Any]:
    """Recovers by opening, checks, and closes cleanly. An object as verify_sqlite answers with."""
    db = sqlite3.connect(directory / DATABASE, isolation_level=None)
    try:
        db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        findings = [
            _finding(row[0]) for row in db.execute(f"PRAGMA integrity_check({FINDINGS_MAX})")
        ]
        findings = [item for item in findings if item is not None]
        state = read_state(db)
        findings += _count_findings(state)
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
        return {"ok": False, "error": name, "message": f"{name}: {error}"}
    except ValueError as error:
        return {"ok": False, "error": "MISFIT", "message": str(error)}
    finally:
        db.close()
    check = {"needs_recovery": False, "findings": findings, "tables": plain_tables(state)}
    return {"ok": True, "check": check}


def _finding(line: str) -> dict[str, Any] | None:
    if line == "ok":
        return None
    number = next((n for n, words in _INVARIANTS if any(word in line for word in words)), 6)
    return {"invariant": number, "path": DATABASE, "page": None, "what": line.replace("\n", " ")}


def _count_findings(state: State) -> list[dict[str, Any]]:
    return [
        {
            "invariant": 10,
            "path": DATABASE,
            "page": None,
            "what": f"{name}.{index} has {entries} entries for {rows} rows",
        }
        for name, (rows, _, indexes) in sorted(state.items())
        for index, entries, _ in indexes
        if entries != rows
    ]
