"""Any SQLite library with the C interface, loaded by its path or name: the commands of sqlite-*.toml.

    python -m tornpage.targets.bundled.sqlite_library run LIBRARY DIR LINES [PRAGMA=VALUE ...]
    python -m tornpage.targets.bundled.sqlite_library recover LIBRARY

The state is what is defined, and of every table its rows, each value with its type. Recovery also does PRAGMA
integrity_check (I6).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path

from tornpage_mark import Refused, ack, issue, ready

from tornpage.targets.bundled.library import main
from tornpage.targets.bundled.statements import parts_of, statements_of

__all__ = ["recover", "run"]

OK = 0
CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_char_p),
    ctypes.POINTER(ctypes.c_char_p),
)
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1"
DEFINED = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2"
CHECKPOINT_PAGES = 30
"""The log starts again often."""


class SqliteError(Exception):
    """What the library says."""


class Connection:
    """One, to DIR/main.db."""

    def __init__(self, library: str, folder: str) -> None:
        """Raises SqliteError."""
        ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)  # which old builds do not name
        self._library = ctypes.CDLL(library)
        self._library.sqlite3_errmsg.restype = ctypes.c_char_p
        self._handle = ctypes.c_void_p()
        path = str(Path(folder) / "main.db").encode()
        if self._library.sqlite3_open(path, ctypes.byref(self._handle)) != OK:
            raise SqliteError("the database does not open")

    def ask(self, statement: str) -> list[tuple[str, ...]]:
        """Rows of texts. Raises SqliteError."""
        rows: list[tuple[str, ...]] = []

        def keep(_context: object, count: int, values: Sequence[bytes], _names: object) -> int:
            rows.append(tuple((values[i] or b"NULL").decode() for i in range(count)))
            return 0

        code = self._library.sqlite3_exec(
            self._handle, statement.encode(), CALLBACK(keep), None, None
        )
        if code != OK:
            raise SqliteError(self._library.sqlite3_errmsg(self._handle).decode())
        return rows


def state_of(connection: Connection) -> dict[str, str]:
    """A line per table and index, and per row: '' is not NULL, 1 not '1'. No index has a say in it."""
    state = {"definitions": _lines(connection.ask(DEFINED))}
    for (table,) in connection.ask(TABLES):
        name = _quoted(table)
        columns = [row[1] for row in connection.ask(f"PRAGMA table_info({name})")]
        values = ", ".join(f"quote({_quoted(column)})" for column in columns)
        places = ", ".join(str(place + 1) for place in range(len(columns)))
        rows = connection.ask(f"SELECT {values} FROM {name} NOT INDEXED ORDER BY {places}")
        state[f"table {table}"] = _lines(rows)
    return state


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _lines(rows: Sequence[Sequence[str]]) -> str:
    return "".join(" ".join(row) + "\n" for row in rows)


def run(library: str, folder: str, lines: str, *pragmas: str) -> None:
    """Statement by statement. pragmas: NAME=VALUE, in the order in which they are set."""
    connection = Connection(library, folder)
    for pragma in pragmas:
        connection.ask(f"PRAGMA {pragma}")
    connection.ask(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    ready(state_of(connection))
    for number, line in statements_of(Path(lines)).items():
        issue(number)
        for statement in parts_of(line):
            connection.ask(statement)
        ack(number, state_of(connection))


def recover(library: str, folder: str) -> tuple[dict[str, str], list[str]]:
    """Raises Refused where the database cannot be read."""
    try:
        connection = Connection(library, folder)
        state = state_of(connection)
        told = [row[0] for row in connection.ask("PRAGMA integrity_check")]
    except SqliteError as error:
        raise Refused(str(error)) from error
    return state, [] if told == ["ok"] else told


if __name__ == "__main__":
    main(sys.argv[1:], run, recover)
