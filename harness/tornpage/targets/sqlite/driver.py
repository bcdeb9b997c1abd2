"""Runs a workload script on a SQLite database: the program that the preload records and disturbs.

    python -m tornpage.targets.sqlite.driver DIR SCRIPT --journal-mode=wal|delete --synchronous=... ...

One connection to DIR/main.db, so one transaction at a time: while one is open, only its own changes, reads
and its end may follow. The whole script is held against that before anything is executed. BIGINT and CHAR
become INTEGER and TEXT (schema); texts must be printable ASCII.

`checkpoint` and `flush log` are PRAGMA wal_checkpoint, which syncs the log before it copies (TRUNCATE for
`checkpoint full`); purge, clean, flush table, set and status have no counterpart and are acknowledged
without doing anything. DDL of several indexes is one transaction.

Markers go to the preload's tp_trace_mark: `issue n=LINE trx=NAME`, `ack n=LINE`, `fail n=LINE err=DB_NAME`.
SQLite's random numbers (log salts, journal checksums) are seeded: one script gives one sequence of I/O.

Output and exit codes are those of `engine run --json`: 0 ok, 2 usage or script error, 4 a fatal error.
"""

from __future__ import annotations

import _sqlite3
import argparse
import ctypes
import json
import os
import socket
import sqlite3
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tornpage.targets.sqlite.schema import (
    check_name,
    create_index_sql,
    create_table_sql,
    quote,
)
from tornpage.vocabulary.errors import TornpageError, WorkloadError
from tornpage.workloads.parse import parse_script
from tornpage.workloads.script import AUTOCOMMIT, Script, Statement, Value, Verb

__all__ = ["DATABASE", "Driver", "check_script", "main"]

DATABASE = "main.db"

EXIT_USAGE = 2
EXIT_FATAL = 4
PRNG_SEED = 28
"""SQLITE_TESTCTRL_PRNG_SEED"""
SEED = 20

_ROWS = {Verb.INSERT, Verb.INSERT_SEQ, Verb.UPDATE, Verb.DELETE}
_READS = {Verb.SELECT, Verb.SCAN}
_SKIPPED = {Verb.PURGE, Verb.CLEAN, Verb.AT, Verb.FLUSH_TABLE, Verb.SET_OPTIMIZE, Verb.STATUS}

_STEPPED = {
    Verb.START_INDEX,
    Verb.START_REBUILD,
    Verb.STEP_INDEX,
    Verb.FINISH_INDEX,
    Verb.ABORT_INDEX,
    Verb.START_BACKUP,
    Verb.STEP_BACKUP,
    Verb.FINISH_BACKUP,
    Verb.ABORT_BACKUP,
}

Mark = Callable[[str], None]


class _Failed(Exception):
    """The statement failed and changed nothing; the argument is the DB_ name."""


def check_script(script: Script) -> None:
    """Raises WorkloadError for a script that one SQLite connection cannot run."""
    open_trx = ""
    for statement in script.statements:
        problem = _problem(statement, open_trx)
        if problem:
            raise WorkloadError(f"script line {statement.line}: {problem}")
        if statement.verb is Verb.BEGIN:
            open_trx = statement.trx
        elif statement.verb in (Verb.COMMIT, Verb.ROLLBACK):
            open_trx = ""


def _problem(statement: Statement, open_trx: str) -> str:
    verb = statement.verb
    if verb in _STEPPED:
        return "SQLite builds in one statement"
    if verb is Verb.REBUILD_TABLE:
        return "SQLite rebuilds all tables or none"
    if verb not in _EXECUTE:
        return f"SQLite has no {verb}"
    if statement.algorithm or statement.lock:
        return "SQLite has one way to alter a table"
    of_trx = verb in (Verb.COMMIT, Verb.ROLLBACK) or verb in _ROWS
    if open_trx and not (verb in _READS or verb in _SKIPPED):
        if not of_trx or statement.trx != open_trx:
            return f"SQLite has one writer, and transaction {open_trx} is open"
    elif not open_trx and of_trx and statement.trx != AUTOCOMMIT:
        return f"transaction {statement.trx} is not open"
    if any(column.varying or column.nullable for column in statement.columns):
        return "SQLite's tables have no VARCHAR here, and no NULL"
    names = [statement.table] if statement.table else []
    names += [column.name for column in statement.columns]
    named = (Verb.RENAME_TABLE, Verb.DROP_INDEX, Verb.RENAME_COLUMN)
    names += [name for name in (statement.name, statement.to) if name and verb in named]
    for index in statement.indexes:
        names += [index.name, *(column for column, _ in index.columns)]
    try:
        for name in names:
            check_name(name)
    except WorkloadError as error:
        return str(error)
    for value in [*(statement.values or {}).values(), *(statement.key or {}).values()]:
        if isinstance(value, bytes) and not all(0x20 <= byte < 0x7F for byte in value):
            return f"{value!r} is not printable ASCII"
    return ""


def _bind(value: Value) -> int | str | None:
    return value.rstrip(b" ").decode("ascii") if isinstance(value, bytes) else value


class Driver:
    """Executes checked statements on an open connection (isolation_level None)."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """db: stays the caller's."""
        self._db = db

    def execute(self, statement: Statement) -> str:
        """Executes one statement: "" or the DB_ name of the error, which changed nothing.

        Raises sqlite3.Error for anything that a script does not provoke.
        """
        try:
            _EXECUTE[statement.verb](self, statement)
        except _Failed as failure:
            return str(failure)
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorname not in (
                "SQLITE_CONSTRAINT_PRIMARYKEY",
                "SQLITE_CONSTRAINT_ROWID",
                "SQLITE_CONSTRAINT_UNIQUE",
            ):
                raise
            return "DB_DUPLICATE_KEY"
        return ""

    # -- data definition ------------------------------------------------------------------------

    def _exists(self, table: str) -> bool:
        query = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
        return bool(self._db.execute(query, (table,)).fetchall())

    def _need(self, table: str) -> None:
        if not self._exists(table):
            raise _Failed("DB_NOT_FOUND")

    def _indexes(self, table: str) -> dict[str, str]:
        """SQL name of each index of a table by its name in the script."""
        query = "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?"
        names = [str(row[0]) for row in self._db.execute(query, (table,)).fetchall()]
        return {name.partition("@")[0]: name for name in names if "@" in name}

    def _create_table(self, statement: Statement) -> None:
        if self._exists(statement.table):
            raise _Failed("DB_ALREADY_EXISTS")
        self._db.execute(create_table_sql(statement))

    def _drop_table(self, statement: Statement) -> None:
        self._need(statement.table)
        self._db.execute(f"DROP TABLE {quote(statement.table)}")

    def _rename_table(self, statement: Statement) -> None:
        self._need(statement.table)
        if self._exists(statement.name):
            raise _Failed("DB_ALREADY_EXISTS")
        self._db.execute(f"ALTER TABLE {quote(statement.table)} RENAME TO {quote(statement.name)}")

    def _add_index(self, statement: Statement) -> None:
        self._need(statement.table)
        names = [index.name for index in statement.indexes]
        if len(set(names)) < len(names) or set(names) & set(self._indexes(statement.table)):
            raise _Failed("DB_ALREADY_EXISTS")
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for index in statement.indexes:
                self._db.execute(create_index_sql(statement.table, index, statement.line))
        except sqlite3.IntegrityError:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _drop_index(self, statement: Statement) -> None:
        self._need(statement.table)
        sql_name = self._indexes(statement.table).get(statement.name)
        if sql_name is None:
            raise _Failed("DB_NOT_FOUND")
        self._db.execute(f"DROP INDEX {quote(sql_name)}")

    def _rename_column(self, statement: Statement) -> None:
        self._need(statement.table)
        info = self._db.execute(f"PRAGMA table_info({quote(statement.table)})").fetchall()
        names = [str(row[1]) for row in info]
        if statement.name not in names:
            raise _Failed("DB_NOT_FOUND")
        if statement.to in names:
            raise _Failed("DB_ALREADY_EXISTS")
        old, new = quote(statement.name), quote(statement.to)
        self._db.execute(f"ALTER TABLE {quote(statement.table)} RENAME COLUMN {old} TO {new}")

    # -- transactions and rows ------------------------------------------------------------------

    def _begin(self, _: Statement) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def _commit(self, _: Statement) -> None:
        self._db.execute("COMMIT")

    def _rollback(self, _: Statement) -> None:
        self._db.execute("ROLLBACK")

    def _primary(self, table: str) -> list[tuple[str, str]]:
        """Name and declared type of each primary key column."""
        info = self._db.execute(f"PRAGMA table_info({quote(table)})").fetchall()
        return [(str(row[1]), str(row[2])) for row in info if row[5]]

    def _insert(self, statement: Statement) -> None:
        self._need(statement.table)
        values = dict(statement.values or {})
        for name, declared in self._primary(statement.table):
            if declared == "INTEGER":
                values.setdefault(name, 0)  # a rowid that is left out would be chosen by SQLite
        columns = ", ".join(quote(name) for name in values)
        marks = ", ".join("?" * len(values))
        self._db.execute(
            f"INSERT INTO {quote(statement.table)}({columns}) VALUES({marks})",
            [_bind(value) for value in values.values()],
        )

    def _insert_seq(self, statement: Statement) -> None:
        self._need(statement.table)
        ((key, _),) = self._primary(statement.table)
        self._db.execute(
            f"INSERT INTO {quote(statement.table)}({quote(key)}) "
            "WITH RECURSIVE seq(v) AS (VALUES(?) UNION ALL SELECT v + 1 FROM seq WHERE v < ?) "
            "SELECT v FROM seq",
            statement.bounds,
        )

    def _update(self, statement: Statement) -> None:
        self._need(statement.table)
        values = statement.values or {}
        assignments = ", ".join(f"{quote(name)} = ?" for name in values)
        where, keys = _where(statement.key or {})
        self._change_one(
            f"UPDATE {quote(statement.table)} SET {assignments} WHERE {where}",
            [*(_bind(value) for value in values.values()), *keys],
        )

    def _delete(self, statement: Statement) -> None:
        self._need(statement.table)
        where, keys = _where(statement.key or {})
        self._change_one(f"DELETE FROM {quote(statement.table)} WHERE {where}", keys)

    def _change_one(self, sql: str, values: list[int | str | None]) -> None:
        if self._db.execute(sql, values).rowcount == 0:
            raise _Failed("DB_RECORD_NOT_FOUND")

    def _select(self, statement: Statement) -> None:
        self._need(statement.table)
        where, keys = _where(statement.key or {})
        sql = f"SELECT * FROM {quote(statement.table)} WHERE {where}"
        if not self._db.execute(sql, keys).fetchall():
            raise _Failed("DB_RECORD_NOT_FOUND")

    def _scan(self, statement: Statement) -> None:
        self._need(statement.table)
        if statement.name and statement.name not in self._indexes(statement.table):
            raise _Failed("DB_NOT_FOUND")
        self._db.execute(f"SELECT count(*) FROM {quote(statement.table)}").fetchall()

    def _checkpoint(self, statement: Statement) -> None:
        mode = "TRUNCATE" if statement.full else "PASSIVE"
        self._db.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()

    def _skip(self, _: Statement) -> None:
        """Has no counterpart in SQLite."""


_EXECUTE: dict[Verb, Callable[[Driver, Statement], None]] = {
    Verb.CREATE_TABLE: Driver._create_table,
    Verb.DROP_TABLE: Driver._drop_table,
    Verb.RENAME_TABLE: Driver._rename_table,
    Verb.ADD_INDEX: Driver._add_index,
    Verb.DROP_INDEX: Driver._drop_index,
    Verb.RENAME_COLUMN: Driver._rename_column,
    Verb.BEGIN: Driver._begin,
    Verb.COMMIT: Driver._commit,
    Verb.ROLLBACK: Driver._rollback,
    Verb.INSERT: Driver._insert,
    Verb.INSERT_SEQ: Driver._insert_seq,
    Verb.UPDATE: Driver._update,
    Verb.DELETE: Driver._delete,
    Verb.SELECT: Driver._select,
    Verb.SCAN: Driver._scan,
    Verb.CHECKPOINT: Driver._checkpoint,
    Verb.FLUSH_LOG: Driver._checkpoint,
    **dict.fromkeys(_SKIPPED, Driver._skip),
}


def _where(key: Mapping[str, Value]) -> tuple[str, list[int | str | None]]:
    return " AND ".join(f"{quote(name)} = ?" for name in key), [_bind(v) for v in key.values()]


# -- the program --------------------------------------------------------------------------------


def _seed_random_numbers() -> None:
    """Without this the bytes written differ from run to run, and no trial equals its golden run."""
    file = getattr(_sqlite3, "__file__", None)
    if file is None:
        raise TornpageError("this Python's _sqlite3 is no shared module: SQLite cannot be seeded")
    library = ctypes.CDLL(file)
    library.sqlite3_test_control(PRNG_SEED, ctypes.c_int(SEED), None)


def _mark_by_socket(name: str, text: str) -> None:
    with socket.socket(socket.AF_UNIX) as recorder:
        recorder.connect(f"\0{name}")
        recorder.sendall(text.encode("ascii") + b"\n")
        if recorder.recv(len(b"ok\n")) != b"ok\n":
            raise ConnectionError("the recorder is gone")


def _marker() -> Mark:
    """The socket of a recorder, or tp_trace_mark of the preload, or nothing when nobody records."""
    if name := os.environ.get("TORNPAGE_CONTROL"):
        return partial(_mark_by_socket, name)
    try:
        function = ctypes.CDLL(None).tp_trace_mark
    except AttributeError:
        return lambda _: None
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    function.restype = None

    def mark(text: str) -> None:
        data = text.encode("ascii")
        function(data, len(data))

    return mark


def _open(arguments: argparse.Namespace) -> sqlite3.Connection:
    arguments.directory.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(arguments.directory / DATABASE, isolation_level=None)
    db.execute(f"PRAGMA page_size = {arguments.page_size}")
    if arguments.cache_size:
        db.execute(f"PRAGMA cache_size = {arguments.cache_size}")
    db.execute(f"PRAGMA synchronous = {arguments.synchronous}")
    mode = db.execute(f"PRAGMA journal_mode = {arguments.journal_mode}").fetchall()[0][0]
    if mode != arguments.journal_mode:
        raise sqlite3.OperationalError(f"journal_mode is {mode}, not {arguments.journal_mode}")
    db.execute(f"PRAGMA wal_autocheckpoint = {arguments.wal_autocheckpoint}").fetchall()
    return db


def _run(db: sqlite3.Connection, script: Script, mark: Mark) -> list[dict[str, int | str]]:
    driver = Driver(db)
    failed: list[dict[str, int | str]] = []
    for statement in script.statements:
        mark(f"issue n={statement.line} trx={statement.trx or AUTOCOMMIT}")
        error = driver.execute(statement)
        if error:
            mark(f"fail n={statement.line} err={error}")
            failed.append({"line": statement.line, "error": error, "message": error})
        else:
            mark(f"ack n={statement.line}")
    if db.in_transaction:
        db.execute("ROLLBACK")
    return failed


def _parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sqlite_driver", allow_abbrev=False)
    parser.add_argument("directory", type=Path)
    parser.add_argument("script", type=Path)
    parser.add_argument("--journal-mode", required=True)
    parser.add_argument("--synchronous", required=True)
    parser.add_argument("--page-size", type=int, required=True)
    parser.add_argument("--cache-size", type=int, required=True, help="0: SQLite's own choice")
    parser.add_argument("--wal-autocheckpoint", type=int, required=True)
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """The program; argv without its name. Returns the exit code."""
    arguments = _parse_arguments(argv)
    try:
        script = parse_script(arguments.script.read_text("ascii"))
        check_script(script)
        _seed_random_numbers()
    except (TornpageError, OSError, UnicodeDecodeError) as error:
        print(f"sqlite_driver: {error}", file=sys.stderr)
        return EXIT_USAGE
    try:
        db = _open(arguments)
        failed = _run(db, script, _marker())
        pages = db.execute("PRAGMA page_count").fetchall()[0][0]
        db.close()
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
        print(f"sqlite_driver: {name}: {error}", file=sys.stderr)
        return EXIT_FATAL
    status = {"page_size": arguments.page_size, "pages": pages}
    answer = {"ok": True, "statements": len(script.statements), "failed": failed, "status": status}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
