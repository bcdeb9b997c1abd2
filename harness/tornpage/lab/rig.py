"""What the tables of seeds.py are measured with: the documents' table on the bundled engine and on MariaDB,
each on a new database below one folder. What several tables need is run once.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tornpage.lab.statements import (
    Server,
    Step,
    run_statements,
    running_server,
    sync_rate,
    write_rate,
)

__all__ = [
    "ENGINE_CREATE",
    "INDEXES",
    "LARGE",
    "PAGE_SIZE",
    "ROWS",
    "SMALL",
    "TEN_TIMES",
    "Alters",
    "Bench",
    "Size",
]

ROWS = 100_000
"""Of the documents' table."""
PAGE_SIZE = 4096
POOL_PAGES = 16_384
INDEXES = "ib(b) ic(c) id(d) ie(e:10) i4(f:4) ig(g:5) ih(h:5)"
COLUMNS = "bcdefgh"
ENGINE_CREATE = f"create table t a:bigint {' '.join(f'{c}:char(255)' for c in COLUMNS)} primary a"
_SERVER_COLUMNS = ", ".join(f"{c} char(255) not null default ''" for c in COLUMNS)
SERVER_CREATE = (
    f"create table t (a bigint primary key, {_SERVER_COLUMNS}) engine=innodb charset=latin1"
)
SERVER_ADD = (
    "alter table t add index(b), add index(c), add index(d), add index(e(10)), add index(f(4)),"
    " add index(g(5)), add index(h(5)), algorithm=inplace"
)


@dataclass(frozen=True, slots=True)
class Size:
    """log_file: of the redo log, as an option; times: the rows that are measured."""

    log_file: str
    pool_pages: int = POOL_PAGES
    times: int = 1


SMALL = Size("10m")
LARGE = Size("512m")
TEN_TIMES = Size("1g", 262_144, 10)


@dataclass(frozen=True, slots=True)
class Alters:
    """Set-up, ADD INDEX and FORCE."""

    setup: Step
    add: Step
    force: Step

    def redo(self) -> tuple[float, float, float]:
        """MB that each of them logged."""
        ends = [step.status["lsn"] / 1e6 for step in (self.setup, self.add, self.force)]
        return ends[0], ends[1] - ends[0], ends[2] - ends[1]

    def owed(self, unlogged: bool) -> tuple[float, float]:
        """Bytes that had to be written before ADD INDEX and FORCE ended: the log, and what it lacks."""
        steps = (self.setup, self.add, self.force)
        log = [step.status["os_log_written"] for step in steps]
        home = [
            (step.status["data_writes"] - step.status["dblwr_writes"]) * PAGE_SIZE for step in steps
        ]
        add, force = (
            float(log[n] - log[n - 1] + (home[n] - home[n - 1] if unlogged else 0)) for n in (1, 2)
        )
        return add, force


class Bench:
    """Measures on one engine with so many rows; what several tables need is run once."""

    def __init__(self, engine: Path, rows: int, scratch: Path, server: Path | None) -> None:
        self._engine = engine
        self._scratch = scratch
        self._server = server
        self.rows = rows
        self.has_server = server is not None

    def scaled(self, value: float) -> float:
        """A figure for ROWS rows, for the rows that are measured."""
        return value * self.rows / ROWS

    @cached_property
    def rate(self) -> float:
        """Bytes per second that the disk takes one after the other."""
        return write_rate(self._scratch)

    @cached_property
    def sync_rate(self) -> float:
        """Blocks of a log per second, each durable before the next."""
        return sync_rate(self._scratch)

    @contextmanager
    def database(
        self, options: Mapping[str, str], statements: Sequence[str], may_fail: bool = False
    ) -> Iterator[tuple[Path, list[Step]]]:
        """Statements on a new database of the engine, and its folder, which is removed afterwards."""
        data = Path(tempfile.mkdtemp(dir=self._scratch)) / "db"
        wanted = {"page_size": "4k", "buffer_pool_pages": str(POOL_PAGES), **options}
        try:
            yield data, run_statements(self._engine, data, wanted, statements, may_fail)
        finally:
            shutil.rmtree(data.parent)

    def engine(self, options: Mapping[str, str], statements: Sequence[str]) -> list[Step]:
        """The same, when nobody asks for its files."""
        with self.database(options, statements) as (_, steps):
            return steps

    @contextmanager
    def server(self, options: Mapping[str, str]) -> Iterator[Server | None]:
        """A new server of MariaDB, if there is one, which makes the log of each commit durable."""
        if self._server is None:
            yield None
            return
        usual = {"innodb-flush-log-at-trx-commit": "1", "innodb-stats-persistent": "0"}
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        try:
            with running_server(self._server, folder, {**usual, **options}) as server:
                yield server
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def filled(self, times: int = 1) -> list[str]:
        """The table with its rows, purged."""
        return [ENGINE_CREATE, f"insert_seq - t 1 {self.rows * times}", "purge all"]

    def alters(self, size: Size, log_format: str, optimize: bool) -> Alters:
        """ADD INDEX and FORCE on the engine."""
        key = (size, log_format, optimize)
        if key not in self._alters:
            options = {
                "buffer_pool_pages": str(size.pool_pages),
                "log_file_size": size.log_file,
                "log_format": log_format,
                "log_optimize_ddl": "on" if optimize else "off",
            }
            statements = [*self.filled(size.times), f"add index t {INDEXES}", "rebuild table t"]
            steps = [
                Step(step.seconds, {**step.status, "lsn": step.status["lsn_current"]})
                for step in self.engine(options, statements)
            ]
            self._alters[key] = Alters(*steps[2:])
        return self._alters[key]

    @cached_property
    def _alters(self) -> dict[tuple[Size, str, bool], Alters]:
        return {}

    def server_alters(self, size: Size) -> Alters | None:
        """The same on MariaDB, whose log is the later format; None without a server."""
        if size not in self._server_alters:
            options = {
                "innodb-page-size": "4k",
                "innodb-buffer-pool-size": str(size.pool_pages * PAGE_SIZE),
                "innodb-log-file-size": size.log_file,
            }
            insert = f"insert into t (a) select seq from seq_1_to_{self.rows * size.times}"
            with self.server(options) as server:
                if server is None:
                    return None
                steps = server.run(
                    [f"{SERVER_CREATE}; {insert}", SERVER_ADD, "alter table t force"]
                )
            self._server_alters[size] = Alters(
                *(
                    Step(s.seconds, {**s.status, "lsn": s.status["innodb_lsn_current"]})
                    for s in steps
                )
            )
        return self._server_alters[size]

    @cached_property
    def _server_alters(self) -> dict[Size, Alters]:
        return {}
