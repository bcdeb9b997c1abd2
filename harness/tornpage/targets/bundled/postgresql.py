"""A single-user PostgreSQL backend and its only client: the commands of postgresql.toml.

    python -m tornpage.targets.bundled.postgresql prepare DIR --program BIN
    python -m tornpage.targets.bundled.postgresql run DIR LINES --program BIN [--set NAME=VALUE]
    python -m tornpage.targets.bundled.postgresql recover --program BIN [--set NAME=VALUE]

The backend reads a statement per line and prints rows as a debugger would. The state is of each table a hash
of its rows, by a scan, and what its columns and indexes are. Recovery also asks amcheck whether each B-tree
index is sound and has every row (I10).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tornpage_mark import Refused, ack, issue, ready, serve

from tornpage.targets.bundled.server import ServerEnded, as_user, give_away
from tornpage.targets.bundled.statements import parts_of, statements_of

__all__ = ["main"]

SETTINGS = (
    "shared_buffers=256kB",
    "wal_level=minimal",
    "max_wal_senders=0",
    "autovacuum=off",
    "wal_buffers=32kB",
    "min_wal_size=2MB",
    "max_wal_size=4MB",
    "huge_pages=off",
    "exit_on_error=on",
    "dynamic_shared_memory_type=mmap",
)
CELL = re.compile(r'^\t \d+: \S+ = "(.*)"\t\(typeid = ', re.MULTILINE)
ERROR = re.compile(r"(ERROR|FATAL|PANIC):")
END = "end of the answer"
TABLES = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
)
ROWS = "SELECT count(*) || ' rows ' || coalesce(md5(string_agg(x::text, ',' ORDER BY x::text)), '') FROM {} x"
DEFINED = (
    "SELECT (SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull, "
    "', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = '{0}'::regclass AND attnum > 0 "
    "AND NOT attisdropped) || coalesce((SELECT string_agg('; ' || pg_get_indexdef(indexrelid), '' "
    "ORDER BY indexrelid::regclass::text) FROM pg_index WHERE indrelid = '{0}'::regclass), '')"
)
CHECK = (
    "SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_index ON indexrelid = c.oid "
    "JOIN pg_am a ON a.oid = relam WHERE amname = 'btree' AND relpersistence <> 't' AND indisvalid"
)
LOCK_SHARED_MEMORY = 6
"""Line of postmaster.pid, from 0, that ends with the id of a segment which survives its processes."""


class Backend:
    """The process, and what was said to it."""

    def __init__(self, process: subprocess.Popen[str], said: IO[bytes]) -> None:
        """said: file with what it says of itself; not beside the folder, where all see it that recover theirs
        under the same path."""
        self.process = process
        self.said = said

    def ask(self, statement: str) -> list[str]:
        """The cells of all rows. Raises ServerEnded with its reason."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None, "both are pipes"
        with suppress(BrokenPipeError):
            stdin.write(f"{statement}\nSELECT '{END}' AS x\n")
            stdin.flush()
        answer = ""
        for line in stdout:
            if f'"{END}"' in line:
                stdout.readline()  # the rule below the row
                return CELL.findall(answer)
            answer += line
        self.process.wait()
        self.said.seek(0)
        raise ServerEnded(_reason(self.said.read().decode("utf-8", "replace")))


@contextmanager
def backend(programs: Path, data: Path, settings: Sequence[str]) -> Iterator[Backend]:
    """On this cluster, as a user without rights, killed in the end."""
    _give(data)
    words = [*as_user(), str(programs / "postgres"), "--single", "-D", str(data)]
    words += [f"-c{setting}" for setting in (*SETTINGS, *settings)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [*words, "postgres"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=said, text=True,
        )  # fmt: skip
        try:
            yield Backend(process, said)
        finally:
            process.kill()
            process.communicate()
            _remove_shared_memory(data)


def _give(data: Path) -> None:
    """The folder to the user of the backend, which starts in its own only."""
    give_away(data)
    _unrecorded(["chmod", "0700", str(data)])


def _unrecorded(command: list[str]) -> str:
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    return done.stdout


def _call(program: Path, *arguments: str, said: str = "") -> None:
    words = [*as_user(), str(program), *arguments]
    done = subprocess.run(words, input=said, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise ServerEnded(f"{program.name}: {_reason(done.stderr)}")


def _reason(said: str) -> str:
    """The last error, or else the last line."""
    words = said.splitlines()
    errors = [line[at.start() :] for line in words if (at := ERROR.search(line))]
    return (errors or words or ["it said nothing"])[-1]


def _remove_shared_memory(data: Path) -> None:
    lines = _unrecorded(["cat", str(data / "postmaster.pid")]).splitlines()
    words = lines[LOCK_SHARED_MEMORY].split() if len(lines) > LOCK_SHARED_MEMORY else []
    if len(words) == 2:
        _unrecorded(["ipcrm", "--shmem-id", words[1]])


def state_of(server: Backend) -> dict[str, str]:
    """Of each table by a scan of it, and by the catalogue."""
    state = {}
    for table in sorted(server.ask(TABLES)):
        state[table] = server.ask(ROWS.format(table))[0]
        state[f"{table} definition"] = server.ask(DEFINED.format(table))[0]
    return state


def broken_index(server: Backend) -> list[dict[str, Any]]:
    """A finding, of the first one that the server reports or cannot read; the server has ended then."""
    try:
        server.ask(CHECK)
    except ServerEnded as error:
        return [{"invariant": 10, "what": str(error)}]
    return []


def prepare(programs: Path, data: Path) -> None:
    """A new cluster with checksums on its pages, as small as it can be, and amcheck."""
    _give(data)
    words = ["-D", str(data), "-U", "postgres", "-A", "trust", "-k", "-N", "--no-locale"]
    _call(programs / "initdb", *words, "-E", "UTF8", "--wal-segsize=1")
    words = ["--single", "-D", str(data), "-cexit_on_error=on", "postgres"]
    _call(programs / "postgres", *words, said="CREATE EXTENSION amcheck\n")
    shutil.rmtree(data / "pg_stat_tmp", ignore_errors=True)
    (data / "pg_stat_tmp").mkdir()


def run(programs: Path, data: Path, lines: Path, settings: Sequence[str]) -> None:
    """Statement by statement."""
    with backend(programs, data, settings) as server:
        ready(state_of(server))
        for number, line in statements_of(lines).items():
            issue(number)
            for statement in parts_of(line):
                server.ask(statement)
            ack(number, state_of(server))


def recover(
    programs: Path, data: Path, settings: Sequence[str]
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Raises Refused where the backend does not start, or not answer."""
    try:
        with backend(programs, data, settings) as server:
            return state_of(server), broken_index(server)
    except ServerEnded as error:
        raise Refused(str(error)) from error


def main(arguments: Sequence[str]) -> None:
    """One of the three commands."""
    parser = argparse.ArgumentParser(prog="postgresql")
    parser.add_argument("command", choices=("prepare", "run", "recover"))
    parser.add_argument("places", nargs="*", type=Path, help="DIR and a file of statements")
    parser.add_argument("--program", type=Path, required=True, help="folder with its programs")
    parser.add_argument("--set", action="append", default=[], help="a setting of the server")
    given = parser.parse_args(arguments)
    if given.command == "recover":
        serve(lambda folder: recover(given.program, Path(folder), given.set))
        return
    try:
        if given.command == "prepare":
            prepare(given.program, *given.places)
        else:
            run(given.program, given.places[0], given.places[1], given.set)
    except ServerEnded as error:
        sys.exit(f"postgresql: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
