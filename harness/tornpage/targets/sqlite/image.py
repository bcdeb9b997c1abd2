"""Opens a SQLite database after a crash, which is its recovery, and tells what is in it.

    python -m tornpage.targets.sqlite.image DIR

prints one JSON object of the form of `engine recover --json --check` for DIR/main.db: integrity_check's
lines as findings under our numbers, and the digest of every table and index by the oracle's definition.
An index is read through itself, in its own order, so that its digest is of its own entries.

Exit codes: 0 ok, 1 findings, 3 refused (SQLite's error name and message in the object). A missing or empty
main.db is an empty database, as for every program that opens one. explorer/targets/sqlite is the same in C.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xxhash

from tornpage.oracle.state import State, TableDigest, names_hash, plain_tables
from tornpage.targets.sqlite.schema import Shape, index_key_sql, quote, read_shapes
from tornpage.workloads.script import IndexDef

__all__ = ["DATABASE", "examine", "read_state"]

DATABASE = "main.db"
EXIT_REFUSED = 3
MASK64 = (1 << 64) - 1
FINDINGS_MAX = 20

_INVARIANTS = (
    (10, ("missing from index", "wrong # of entries")),
    (11, ("never used", "reference to page", "reelist", "free-page", "ptr map", "page number")),
    (7, ("out of order", "non-unique entry")),
    (9, ("depth differs",)),
)
"""Which invariant a line of integrity_check is about, by what it contains; otherwise page shape, I6."""


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
    keys = ", ".join(index_key_sql(column, length) for column, length in index.columns)
    primary = ", ".join(quote(name) for name in shape.primary)
    table = f"{quote(shape.name)} INDEXED BY {quote(sql_name)}"
    return f"SELECT {keys}, {primary} FROM {table} ORDER BY {keys}"


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
    """Recovers by opening, checks, and closes cleanly. The object that the module's docstring tells of."""
    found = _leftovers(directory)
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
    return {"ok": True, "status": found, "check": check}


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


def _leftovers(directory: Path) -> dict[str, int]:
    """What the crash has left to recover from, in bytes."""
    journal = directory / f"{DATABASE}-journal"
    wal = directory / f"{DATABASE}-wal"
    journal_bytes = journal.stat().st_size if journal.exists() else 0
    wal_bytes = wal.stat().st_size if wal.exists() else 0
    return {"journal_bytes": journal_bytes, "wal_bytes": wal_bytes}


def main() -> int:
    """DIR on the command line, the object on standard output."""
    answer = examine(Path(sys.argv[1]))
    print(json.dumps(answer))
    if not answer["ok"]:
        return EXIT_REFUSED
    return 1 if answer["check"]["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
