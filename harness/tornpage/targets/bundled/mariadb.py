"""A MariaDB server and its only client: the commands of mariadb.toml and of the files that are based on it.

    python -m tornpage.targets.bundled.mariadb prepare DIR [OPTIONS]
    python -m tornpage.targets.bundled.mariadb run DIR LINES [OPTIONS]
    python -m tornpage.targets.bundled.mariadb recover [OPTIONS]

The state is what SQL shows: of each table its definition and a checksum per row, made by the server, in the
order of its columns. Recovery also has the server check its tables, counts each index against the clustered
one (I10), and asks whether the next number of a column that counts by itself is free. The server's pool and
log are the smallest there are, so that pages are written while statements run. A recovery begins in a child
of a server that stands by, where that can be done (standby.py).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tornpage_mark import Refused, ack, issue, ready, serve

from tornpage.targets.bundled.server import (
    Process,
    Server,
    ServerEnded,
    Watched,
    private_folder,
    private_of,
)
from tornpage.targets.bundled.standby import Standby
from tornpage.targets.bundled.statements import parts_of, statements_of

try:
    import pymysql
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}: pip install 'tornpage[mariadb]'") from error
from pymysql import MySQLError
from pymysql.connections import Connection

__all__ = [
    "DATABASE",
    "Connection",
    "MySQLError",
    "Setting",
    "connect",
    "execute",
    "main",
    "parser",
    "prepare",
    "served",
    "setting_of",
    "state_of",
    "with_fsyncs",
]

DATABASE = "t"
ANSWER_S = 60
COLUMN = re.compile(r"^  (`(?:[^`]|``)+`)", re.MULTILINE)
"""Its name, in a table's definition."""
BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32}
"""Of numbers by type; others have 64."""
ITSELF = f"WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME = '{{}}'"
CORRUPTED = 1712
"""Error of a statement on an index that the server has marked so."""
DELETE_MARKED = "info_bits=32"
"""What CHECK TABLE says of an index entry that nobody sees: purge may not have come to it yet."""
PURGE_S = 10.0
"""So long it may take to come, after a start."""
PURGE_POLL_S = 0.02
FSYNCS = ("once", "repeated", "folders")
"""What becomes of the fsyncs of a run: nothing; one that a write overlaps is repeated; and a rename has
one of its folders too."""
UNDO = {
    "system": (("innodb-undo-tablespaces=0",), ("innodb-undo-tablespaces=0",)),
    "truncated": (
        ("innodb-undo-tablespaces=2",),
        (
            "innodb-undo-tablespaces=2",
            "innodb-undo-log-truncate=ON",
            "innodb-max-undo-log-size=10M",
            "loose-innodb-purge-rseg-truncate-frequency=1",
        ),
    ),
}
"""Where undo logs are: variables of `prepare`, and of the others. Tablespaces that have grown beyond the
smallest bound are truncated as soon as purge has come to their end."""
GROWTH = Path(__file__).with_name("mariadb-undo.sql")
"""What makes them grow."""
MESSAGES = "errmsg.sys"
SHARES = ("english", ".", "mysql/english", "mariadb/english")
"""Where in a folder `share` the messages are."""
SMALL = (
    "--innodb-buffer-pool-size=6M",
    "--innodb-log-file-size=1M",
    "--innodb-data-file-path=ibdata1:1M:autoextend",
    "--innodb-autoextend-increment=1",
    "--innodb-temp-data-file-path=ibtmp1:1M:autoextend",
    "--loose-innodb-log-files-in-group=1",
    "--aria-log-file-size=8M",
    "--aria-pagecache-buffer-size=1M",
    "--key-buffer-size=64K",
    "--query-cache-size=0",
)
ALONE = (
    "--skip-networking",
    "--skip-log-bin",
    "--skip-grant-tables",
    "--innodb-use-native-aio=0",
    "--innodb-stats-persistent=0",
    "--loose-innodb-log-file-mmap=OFF",
    "--loose-performance-schema=OFF",
    "--loose-innodb-buffer-pool-dump-at-shutdown=OFF",
    "--loose-innodb-buffer-pool-load-at-startup=OFF",
    "--loose-innodb-strict-mode=ON",
    "--user=root",
)
"""io_uring and libaio are not seen by a recorder of calls. Statistics and dumps of the pool are written when
the server likes. A server that root starts stays root's, and comes to its files wherever they are."""


@dataclass(frozen=True, slots=True)
class Setting:
    """program: the words that start the server; variables: of the server, `innodb-doublewrite=off`;
    libraries: folders with its libraries; before: a library that is loaded before the recorder."""

    program: tuple[str, ...]
    variables: tuple[str, ...]
    libraries: str = ""
    before: str = ""

    def argv(self, data: Path, private: Path, socket: Path) -> list[str]:
        """The command line of a server on this data directory. socket: the folder of the socket, whose path
        has 107 bytes at most."""
        words = [*self.program, "--no-defaults", f"--datadir={data}", *SMALL, *ALONE]
        words += [f"--socket={socket}/s", f"--pid-file={private}/pid", f"--tmpdir={private}"]
        return words + [f"--{variable}" for variable in self.variables]

    def environment(self) -> dict[str, str]:
        """This process's own, so that what records this process records the server."""
        found = {"LD_LIBRARY_PATH": self.libraries} if self.libraries else {}
        if self.before:
            found["LD_PRELOAD"] = f"{self.before} {os.environ.get('LD_PRELOAD', '')}"
        return {**os.environ, **found}


@contextmanager
def served(
    setting: Setting, data: Path, standby: Standby | None = None
) -> Iterator[tuple[Connection[Any], Server]]:
    """A server on this data directory, and a connection to it; standby: it is a child of that one. Raises
    ServerEnded."""
    with private_folder(data) as private:
        said = private / "said"
        process: Process
        if standby is not None:
            process = standby.enter(data, private, said)
        else:
            # Its working folder is the data directory.
            argv = setting.argv(data, private, Path("..", private.name))
            process = Watched(argv, said, setting.environment())
        with Server(process, said) as server:
            connection = server.wait_until(lambda: connect(data))
            yield connection, server


def standby_of(setting: Setting) -> Standby | None:
    """A server that recoveries begin from, if this one can stand by and nothing records or disturbs them."""
    if "LD_PRELOAD" in os.environ:
        return None
    try:
        standby = Standby(
            lambda data, private: setting.argv(data, private, private), setting.environment()
        )
    except OSError:
        return None
    return standby if standby.stands else None


def connect(data: Path) -> Connection[Any] | None:
    """One more connection to the server on this data directory; None: it takes none yet."""
    private = private_of(data)
    if not (private / "s").exists():
        return None
    folder = os.open(private, os.O_PATH)
    try:
        return pymysql.connect(
            unix_socket=f"/proc/self/fd/{folder}/s",
            user="root",
            autocommit=True,
            read_timeout=ANSWER_S,
            ssl_disabled=True,
        )
    except pymysql.err.OperationalError:
        return None
    finally:
        os.close(folder)


def execute(connection: Connection[Any], statement: str) -> Sequence[tuple[Any, ...]]:
    """Rows of one statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() or ()


def tables_of(connection: Connection[Any]) -> list[str]:
    """By name."""
    return sorted(str(row[0]) for row in execute(connection, f"SHOW TABLES IN {DATABASE}"))


def state_of(connection: Connection[Any]) -> dict[str, str]:
    """What SQL shows of all tables: of their rows, not of an index that has all columns."""
    state = {}
    execute(connection, "SET SESSION group_concat_max_len = 4294967295")
    for table in tables_of(connection):
        name = f"{DATABASE}.{table}"
        definition = str(execute(connection, f"SHOW CREATE TABLE {name}")[0][1])
        columns = COLUMN.findall(definition)
        cells = ", ".join(f"QUOTE({column})" for column in columns)
        row = f"CONCAT(LOWER(LPAD(HEX(CRC32(CONCAT_WS(',', {cells}))), 8, '0')), '\\n')"
        rows = f"GROUP_CONCAT({row} ORDER BY {', '.join(columns)} SEPARATOR '')"
        (one,) = execute(connection, f"SELECT {rows}, COUNT(*) FROM {name} USE INDEX ()")
        state[table] = str(one[0] or "")
        if state[table].count("\n") != one[1]:
            raise ValueError(f"{name} is larger than a state can be: max_allowed_packet")
        state[f"{table} definition"] = re.sub(r" AUTO_INCREMENT=\d+", "", definition)
    return state


def findings_of(connection: Connection[Any]) -> list[dict[str, Any]]:
    """What the server's own check says, and indexes that differ from their table."""
    found = []
    purged_by = time.monotonic() + PURGE_S
    for table in tables_of(connection):
        name = f"{DATABASE}.{table}"
        for said in _checked(connection, name, purged_by):
            found.append({"invariant": 6, "what": f"CHECK TABLE {table}: {said}"})
        found += [
            {"invariant": 6, "what": f"table {table}: {said}"}
            for said in _used_up(connection, table)
        ]
        for index, columns in _indexes(connection, name).items():
            wrong = _wrong_with(connection, name, index, columns)
            found += [{"invariant": 10, "what": f"index {index} of {table} {wrong}"}] * bool(wrong)
    return found


def _used_up(connection: Connection[Any], table: str) -> list[str]:
    """The next number of a column that counts by itself, if a row has it already and there are larger
    ones."""
    columns = execute(connection, f"SHOW COLUMNS IN {DATABASE}.{table}")
    counting = {str(row[0]): str(row[1]) for row in columns if row[5] == "auto_increment"}
    found = []
    for column, kind in counting.items():
        asked = f"SELECT AUTO_INCREMENT FROM information_schema.TABLES {ITSELF.format(table)}"
        following = int(execute(connection, asked)[0][0])
        newest = execute(connection, f"SELECT MAX(`{column}`) FROM {DATABASE}.{table}")[0][0]
        if newest is not None and following <= int(newest) < _largest(kind):
            found.append(f"AUTO_INCREMENT is {following}, and {column} has {newest} already")
    return found


def _largest(kind: str) -> int:
    """Of the numbers of a column, by its type as SHOW COLUMNS has it."""
    bits = BITS.get(kind.partition("(")[0].split()[0], 64)
    return (1 << (bits if "unsigned" in kind else bits - 1)) - 1


def _checked(connection: Connection[Any], name: str, purged_by: float) -> list[str]:
    """What CHECK TABLE complains of. An entry that is marked as deleted is right until purge has come: it is
    looked for again, up to this time of the monotonic clock. What stays then is told if purge has nothing
    left to do; on a busy machine it may not have come yet."""
    while True:
        purged = _history(connection) == 0
        rows = execute(connection, f"CHECK TABLE {name} EXTENDED")
        said = [str(row[3]) for row in rows if row[2].lower() in ("error", "warning")]
        waits = [text for text in said if DELETE_MARKED in text]
        if not waits:
            return said
        if time.monotonic() >= purged_by:
            return said if purged else [text for text in said if text not in waits]
        time.sleep(PURGE_POLL_S)


def _history(connection: Connection[Any]) -> int:
    """Transactions whose undo log waits for purge."""
    status = str(execute(connection, "SHOW ENGINE INNODB STATUS")[0][2])
    return int(status.partition("History list length ")[2].split()[0])


def _indexes(connection: Connection[Any], name: str) -> dict[str, list[str]]:
    """Columns of each secondary index, and the primary key's behind them."""
    columns: dict[str, list[str]] = {}
    for row in execute(connection, f"SHOW INDEX FROM {name}"):
        columns.setdefault(str(row[2]), []).append(str(row[4]))
    primary = columns.pop("PRIMARY")
    return {index: own + primary for index, own in columns.items()}


def _wrong_with(connection: Connection[Any], name: str, index: str, columns: list[str]) -> str:
    """Of an index, or why it cannot be read. Raises MySQLError if the server has ended."""
    try:
        own = _sum_of(connection, name, index, columns)
    except MySQLError as error:
        if error.args[0] != CORRUPTED:
            raise
        return "is corrupted"
    table = _sum_of(connection, name, "PRIMARY", columns)
    return "" if own == table else "differs from its table"


def _sum_of(
    connection: Connection[Any], name: str, index: str, columns: list[str]
) -> tuple[Any, ...]:
    cells = ", ".join(f"QUOTE(`{column}`)" for column in columns)  # NULL is a word of its own
    entry = f"CRC32(CONCAT_WS(',', {cells}))"
    query = f"SELECT COUNT(*), SUM({entry}) FROM {name} FORCE INDEX (`{index}`)"
    return execute(connection, query)[0]


def prepare(setting: Setting, data: Path, make: Callable[[Connection[Any]], None]) -> None:
    """A new database with what is made in it, closed cleanly."""
    with served(setting, data) as (connection, server):
        execute(connection, f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        connection.select_db(DATABASE)
        make(connection)
        execute(connection, "SET GLOBAL innodb_fast_shutdown=0")
        execute(connection, "SHUTDOWN")
        server.process.wait()


def run(setting: Setting, data: Path, lines: Path, last: str = "") -> None:
    """Statement by statement, each acknowledged with the state behind it. last: one more."""
    with served(setting, data) as (connection, _server):
        connection.select_db(DATABASE)
        ready(state_of(connection))
        work = statements_of(lines)
        work |= {max(work, default=0) + 1: last} if last else {}
        for number, line in work.items():
            issue(number)
            _execute_all(connection, line)
            ack(number, state_of(connection))


def make_tables(connection: Connection[Any], files: Sequence[Path]) -> None:
    """Those of lists of statements."""
    for lines in files:
        for line in statements_of(lines).values():
            _execute_all(connection, line)


def _execute_all(connection: Connection[Any], line: str) -> None:
    for statement in parts_of(line):
        execute(connection, statement)


def recover(
    setting: Setting, data: Path, standby: Standby | None = None
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """State and findings. Raises Refused where the server does not start, or not show its tables."""
    try:
        with served(setting, data, standby) as (connection, _server):
            return state_of(connection), findings_of(connection)
    except (ServerEnded, MySQLError) as error:
        raise Refused(str(error)) from error


def parser(prog: str) -> argparse.ArgumentParser:
    """Of the words that every command takes."""
    found = argparse.ArgumentParser(prog=prog)
    found.add_argument("command", choices=("prepare", "run", "recover"))
    found.add_argument("places", nargs="*", type=Path, help="DIR, and a file of statements")
    found.add_argument("--program", default="mariadbd", help="what starts the server")
    found.add_argument("--libraries", default="", help="where its libraries are")
    found.add_argument("--share", default="", help="where its messages are")
    found.add_argument("--fsync", choices=FSYNCS, default="once", help="of a run")
    found.add_argument("--undo", choices=tuple(UNDO), default="system", help="where undo logs are")
    found.add_argument("--set", action="append", default=[], help="a variable of the server")
    return found


def setting_of(given: argparse.Namespace) -> Setting:
    """What these words say of the server."""
    undo = UNDO[given.undo][given.command != "prepare"]
    messages = messages_of(given.program, given.share)
    share = [f"lc-messages-dir={messages}"] if messages is not None else []
    return Setting((given.program,), (*undo, *share, *given.set), given.libraries)


def messages_of(program: str, share: str) -> Path | None:
    """The folder that has the file with a server's messages: below `share`, or beside the program, as a build
    or an unpacked package has it; None: the server knows."""
    beside = [*Path(program).parents][:2] if "/" in program else []
    shares = [Path(share)] if share else [folder / "share" for folder in beside]
    places = [place / below for place in shares for below in SHARES]
    return next((place for place in places if (place / MESSAGES).is_file()), None)


def _repeat_fsync(folder: Path, fsync: str) -> Path:
    """The library that repeats fsyncs, built in this folder for one of FSYNCS."""
    library = folder / "repeat_fsync.so"
    source = Path(__file__).with_name("repeat_fsync.c")
    folders = ["-DFOLDERS"] if fsync == "folders" else []
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", *folders, "-o", library, source, "-ldl"],
        check=True,
        env={"PATH": os.environ.get("PATH", os.defpath)},
    )
    return library


@contextmanager
def with_fsyncs(setting: Setting, fsync: str) -> Iterator[Setting]:
    """The same server, with one of FSYNCS."""
    with tempfile.TemporaryDirectory() as folder:
        if fsync != "once":
            setting = replace(setting, before=str(_repeat_fsync(Path(folder), fsync)))
        yield setting


def main(arguments: Sequence[str]) -> None:
    """One of the three commands."""
    words = parser("mariadb")
    words.add_argument("--last", default="", help="a statement after those of the file")
    given = words.parse_args(arguments)
    setting = setting_of(given)
    if given.command == "recover":
        standby = standby_of(setting)
        serve(lambda folder: recover(setting, Path(folder), standby))
        return
    data, lines = given.places
    try:
        if given.command == "prepare":
            growth = [GROWTH] if given.undo == "truncated" else []
            prepare(setting, data, lambda connection: make_tables(connection, [lines, *growth]))
        else:
            with with_fsyncs(setting, given.fsync) as setting:
                run(setting, data, lines, given.last)
    except (ServerEnded, MySQLError) as error:
        sys.exit(f"mariadb: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
