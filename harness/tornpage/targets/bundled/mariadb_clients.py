"""A MariaDB server and many clients at once: the commands of mariadb-10.11-clients.toml.

    python -m tornpage.targets.bundled.mariadb_clients prepare DIR --clients N [OPTIONS]
    python -m tornpage.targets.bundled.mariadb_clients run DIR --clients N --commits M [OPTIONS]

Each client has a table of its own and one connection, and changes some rows of its table per commit. Which
rows, and to what, follows from its number and the number of the commit: so it knows the state before the
commit, and tells it. Recovery is that of mariadb.py. The server's own threads write pages as they like, and
several clients keep them busy with it.
"""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tornpage_mark import ack, issue, ready, tell

from tornpage.targets.bundled.mariadb import (
    DATABASE,
    Connection,
    MySQLError,
    Setting,
    connect,
    execute,
    parser,
    prepare,
    served,
    setting_of,
    state_of,
    with_fsyncs,
)
from tornpage.targets.bundled.server import ServerEnded

__all__ = ["main"]

ROWS = 120
"""Of a client's table."""
ROWS_CHANGED = 4
"""By a commit: neighbours. Few pages are changed by much log: the smallest log is full again and again."""
TEXT_BYTES = 800

Row = tuple[int, int, str]


def table_of(number: int) -> str:
    """The table of a client, whose name in the marks it is too."""
    return f"c{number}"


def row_of(number: int, key: int, changed: int) -> Row:
    """What a client's row is once the commit of this number has changed it; 0: at the start."""
    a = zlib.crc32(f"{number} {key} {changed}".encode())
    return key, a, f"{a:08x}" * (TEXT_BYTES // 8)


def shown(rows: dict[int, Row]) -> str:
    """As state_of() tells a table."""
    cells = (",".join(f"'{cell}'" for cell in rows[key]) for key in sorted(rows))
    return "".join(f"{zlib.crc32(row.encode()):08x}\n" for row in cells)


def make_tables(connection: Connection[Any], clients: int) -> None:
    """One for each client."""
    for number in range(1, clients + 1):
        name = table_of(number)
        execute(
            connection,
            f"CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, a BIGINT NOT NULL, "
            f"b VARCHAR({TEXT_BYTES}) NOT NULL, KEY (a)) ENGINE=InnoDB",
        )
        rows = [row_of(number, key, 0) for key in range(1, ROWS + 1)]
        execute(connection, f"INSERT INTO {name} VALUES " + ", ".join(map(str, rows)))


def work(new: Callable[[], Connection[Any]], number: int, clients: int, commits: int) -> None:
    """One client, to its last commit. Numbers of statements are those of no other client."""
    connection = new()
    name = table_of(number)
    draw = random.Random(number)
    rows = {key: row_of(number, key, 0) for key in range(1, ROWS + 1)}
    for commit in range(commits):
        statement = commit * clients + number
        first = draw.randrange(1, ROWS + 2 - ROWS_CHANGED)
        changed = [row_of(number, key, statement) for key in range(first, first + ROWS_CHANGED)]
        rows |= {row[0]: row for row in changed}
        tell(statement, {name: shown(rows)})
        issue(statement, name)
        execute(connection, f"REPLACE INTO {name} VALUES " + ", ".join(map(str, changed)))
        ack(statement, client=name)


def run(setting: Setting, data: Path, clients: int, commits: int) -> None:
    """All clients at once."""
    with served(setting, data) as (connection, server):
        connection.select_db(DATABASE)
        ready(state_of(connection))

        def new() -> Connection[Any]:
            found = server.wait_until(lambda: connect(data))
            found.select_db(DATABASE)
            return found

        with ThreadPoolExecutor(clients) as threads:
            done = [
                threads.submit(work, new, number, clients, commits)
                for number in range(1, clients + 1)
            ]
            for one in done:
                one.result()


def main(arguments: Sequence[str]) -> None:
    """Prepare or run."""
    words = parser("mariadb_clients")
    words.add_argument("--clients", type=int, required=True, help="how many, each with its table")
    words.add_argument("--commits", type=int, default=0, help="of each client")
    given = words.parse_args(arguments)
    setting = setting_of(given)
    (data,) = given.places
    try:
        if given.command == "prepare":
            prepare(setting, data, lambda connection: make_tables(connection, given.clients))
        else:
            with with_fsyncs(setting, given.fsync) as setting:
                run(setting, data, given.clients, given.commits)
    except (ServerEnded, MySQLError) as error:
        sys.exit(f"mariadb: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
