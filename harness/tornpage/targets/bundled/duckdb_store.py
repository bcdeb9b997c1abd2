"""DuckDB in this process: the commands of duckdb.toml.

    python -m tornpage.targets.bundled.duckdb_store run DIR LINES
    python -m tornpage.targets.bundled.duckdb_store recover

The state is the rows of every table, a checksum each, in order, and its columns, constraints and indexes.
Recovery also looks for some keys, which an index answers, and counts their rows in a scan (I10).
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
from tornpage_mark import Refused, ack, issue, ready, serve

from tornpage.targets.bundled.statements import parts_of, statements_of

__all__ = ["main"]

SETTINGS = {"threads": "1"}
TABLES = "SELECT table_name FROM information_schema.tables ORDER BY 1"
DEFINED = (
    "SELECT column_name, data_type, is_nullable FROM duckdb_columns() WHERE table_name = ? "
    "ORDER BY column_index",
    "SELECT constraint_type, constraint_column_names FROM duckdb_constraints() WHERE table_name = ? "
    "ORDER BY ALL",
    "SELECT index_name, is_unique FROM duckdb_indexes() WHERE table_name = ? ORDER BY ALL",
)


INDEXED = """SELECT column_name FROM duckdb_columns() WHERE table_name = $1
AND data_type IN ('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'VARCHAR')
AND (column_name IN (SELECT trim(expressions, '["]') FROM duckdb_indexes() WHERE table_name = $1)
OR column_name IN (SELECT constraint_column_names[1] FROM duckdb_constraints() WHERE table_name = $1
AND constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND len(constraint_column_names) = 1)) ORDER BY 1"""
"""Columns that have an index of their own, by which DuckDB looks for a value; of types whose values come back
as they are. By an index of several columns it looks for nothing."""
KEYS = 50
"""Of an index that are looked for: drawn by their hash."""


def open_store(folder: str) -> duckdb.DuckDBPyConnection:
    """One connection."""
    return duckdb.connect(str(Path(folder) / "main.db"), config=SETTINGS)


def state_of(store: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """A line per row, and per column, constraint and index."""
    state = {}
    for (table,) in store.execute(TABLES).fetchall():
        rows = store.execute(f'SELECT * FROM "{table}" ORDER BY ALL').fetchall()
        state[table] = "".join(f"{zlib.crc32(repr(row).encode()):08x}\n" for row in rows)
        defined = [row for query in DEFINED for row in store.execute(query, [table]).fetchall()]
        state[f"{table} definition"] = "".join(f"{row!r}\n" for row in defined)
    return state


def findings_of(store: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Indexes that find other rows than a scan does."""
    found = []
    for (table,) in store.execute(TABLES).fetchall():
        for (column,) in store.execute(INDEXED, [table]).fetchall():
            wrong = _wrong_keys(store, table, column)
            what = f"index on {column} of {table}: {wrong} keys have other rows than a scan shows"
            found += [{"invariant": 10, "what": what}] * bool(wrong)
    return found


def _wrong_keys(store: duckdb.DuckDBPyConnection, table: str, column: str) -> int:
    """How many of some."""
    name = '"' + column.replace('"', '""') + '"'
    counts = store.execute(
        f'SELECT {name}, count(*) FROM "{table}" WHERE {name} IS NOT NULL GROUP BY {name} '
        f"ORDER BY hash({name}) LIMIT {KEYS}"
    ).fetchall()
    asked = f'SELECT count(*) FROM "{table}" WHERE {name} = ?'
    return sum(store.execute(asked, [key]).fetchone() != (count,) for key, count in counts)


def run(folder: str, lines: Path) -> None:
    """Statement by statement."""
    store = open_store(folder)
    ready(state_of(store))
    for number, line in statements_of(lines).items():
        issue(number)
        for statement in parts_of(line):
            store.execute(statement)
        ack(number, state_of(store))


def recover(folder: str) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Raises Refused where DuckDB does not open its file, or not read it."""
    try:
        store = open_store(folder)
        return state_of(store), findings_of(store)
    except duckdb.Error as error:
        raise Refused(str(error).replace(folder, "DIR").splitlines()[0]) from error


def main(arguments: Sequence[str]) -> None:
    """One of the two commands."""
    if arguments[0] == "run":
        run(arguments[1], Path(arguments[2]))
    else:
        serve(recover)


if __name__ == "__main__":
    main(sys.argv[1:])
