"""The tables of the documents that Tornpage grew from (MDEV-19747, MDEV-19738, WL#7277 and others, see
FEATURES.md), measured again on the bundled engine, and on MariaDB beside it where it is installed.

Their table: a BIGINT primary key `a`, `b` to `h` CHAR(255) without values; indexes on b, c, d, e(10), f(4),
g(5), h(5); pages of 4k, a pool of 64 MB. Bytes and counts are the same each time; what the documents give for
100,000 rows is brought down to the number of rows. Seconds depend on the machine: only their ratios compare.

May import: errors, statements.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tornpage.lab.statements import Step, run_statements, running_server
from tornpage.vocabulary.errors import ConfigError, TargetError

__all__ = ["ROWS", "TABLES", "Figure", "SeedTable", "measure"]

ROWS = 100_000
"""Of the documents' table."""
PAGE_SIZE = 4096
POOL_PAGES = 16_384
SMALL_LOG = "10m"
LARGE_LOG = "512m"
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
class Figure:
    """A row of a table. seed: what the documents say for the number of rows that is measured, None where they
    say nothing that can be brought down to it; server: MariaDB's here, None without one."""

    what: str
    seed: float | None
    ours: float
    server: float | None = None


@dataclass(frozen=True, slots=True)
class SeedTable:
    """number: in the order of docs/FEATURES.md's sources; unit: "s", "MB", "writes", "pages"."""

    number: int
    title: str
    unit: str
    figures: Sequence[Figure]

    def to_json(self) -> dict[str, Any]:
        """An item of `tables` in --json."""
        return {
            "number": self.number,
            "title": self.title,
            "unit": self.unit,
            "rows": [
                {"what": one.what, "seed": one.seed, "ours": one.ours, "server": one.server}
                for one in self.figures
            ],
        }


@dataclass(frozen=True, slots=True)
class _Alters:
    """Set-up, ADD INDEX and FORCE."""

    setup: Step
    add: Step
    force: Step

    def redo(self) -> tuple[float, float, float]:
        """MB that each of them logged."""
        ends = [step.status["lsn"] / 1e6 for step in (self.setup, self.add, self.force)]
        return ends[0], ends[1] - ends[0], ends[2] - ends[1]


class Bench:
    """Measures on one engine with so many rows; what several tables need is run once."""

    def __init__(self, engine: Path, rows: int, scratch: Path, server: Path | None) -> None:
        self._engine = engine
        self._scratch = scratch
        self._server = server
        self.rows = rows

    def scaled(self, value: float) -> float:
        """A figure for ROWS rows, for the rows that are measured."""
        return value * self.rows / ROWS

    def engine(self, options: Mapping[str, str], statements: Sequence[str]) -> list[Step]:
        """Statements on a new database of the engine."""
        data = Path(tempfile.mkdtemp(dir=self._scratch)) / "db"
        wanted = {"page_size": "4k", "buffer_pool_pages": str(POOL_PAGES), **options}
        try:
            return run_statements(self._engine, data, wanted, statements)
        finally:
            shutil.rmtree(data.parent)

    def filled(self) -> list[str]:
        """The table with its rows, purged."""
        return [ENGINE_CREATE, f"insert_seq - t 1 {self.rows}", "purge all"]

    def alters(self, log_file_size: str, log_format: str, optimize: bool) -> _Alters:
        """ADD INDEX and FORCE on the engine."""
        key = (log_file_size, log_format, optimize)
        if key not in self._alters:
            options = {
                "log_file_size": log_file_size,
                "log_format": log_format,
                "log_optimize_ddl": "on" if optimize else "off",
            }
            statements = [*self.filled(), f"add index t {INDEXES}", "rebuild table t"]
            steps = [
                Step(step.seconds, {**step.status, "lsn": step.status["lsn_current"]})
                for step in self.engine(options, statements)
            ]
            self._alters[key] = _Alters(*steps[2:])
        return self._alters[key]

    @cached_property
    def _alters(self) -> dict[tuple[str, str, bool], _Alters]:
        return {}

    def server_alters(self, log_file_size: str) -> _Alters | None:
        """The same on MariaDB, whose log is the later format; None without a server."""
        if self._server is None:
            return None
        if log_file_size not in self._server_alters:
            options = {
                "innodb-page-size": "4k",
                "innodb-buffer-pool-size": str(POOL_PAGES * PAGE_SIZE),
                "innodb-log-file-size": log_file_size,
                "innodb-flush-log-at-trx-commit": "1",
                "innodb-stats-persistent": "0",
            }
            insert = f"insert into t (a) select seq from seq_1_to_{self.rows}"
            folder = Path(tempfile.mkdtemp(dir=self._scratch))
            try:
                with running_server(self._server, folder, options) as server:
                    steps = server.run(
                        [f"{SERVER_CREATE}; {insert}", SERVER_ADD, "alter table t force"]
                    )
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            self._server_alters[log_file_size] = _Alters(
                *(
                    Step(s.seconds, {**s.status, "lsn": s.status["innodb_lsn_current"]})
                    for s in steps
                )
            )
        return self._server_alters[log_file_size]

    @cached_property
    def _server_alters(self) -> dict[str, _Alters]:
        return {}


def _seconds(
    bench: Bench, log_file_size: str, seeds: Mapping[tuple[str, bool], tuple[float, float]]
) -> Iterator[Figure]:
    server = bench.server_alters(log_file_size)
    for (log_format, optimize), (add, force) in seeds.items():
        ours = bench.alters(log_file_size, log_format, optimize)
        name = f"{log_format}, log_optimize_ddl={'on' if optimize else 'off'}"
        beside = server if log_format == "10.5" else None
        times = (beside.add.seconds, beside.force.seconds) if beside else (None, None)
        yield Figure(f"ADD INDEX, {name}", add, ours.add.seconds, times[0])
        yield Figure(f"FORCE, {name}", force, ours.force.seconds, times[1])


def small_log(bench: Bench) -> SeedTable:
    """Without redo for contents the flush costs; with it, a log that is too small does."""
    seeds = {("10.4", True): (3.94, 3.25), ("10.4", False): (7.10, 13.49)}
    figures = list(_seconds(bench, SMALL_LOG, seeds))
    return SeedTable(1, f"seconds with a log of {SMALL_LOG}", "s", figures)


def large_log(bench: Bench) -> SeedTable:
    """A log that is large enough."""
    seeds = {
        ("10.4", True): (3.84, 3.21),
        ("10.4", False): (2.94, 3.44),
        ("10.5", False): (2.73, 3.45),
    }
    figures = list(_seconds(bench, LARGE_LOG, seeds))
    return SeedTable(2, f"seconds with a log of {LARGE_LOG}", "s", figures)


def redo_bytes(bench: Bench) -> SeedTable:
    """What a row costs in the log."""
    seeds = {
        ("10.4", True): (197.240744, 3.512609, 1.419512),
        ("10.4", False): (197.250640, 25.724276, 219.959416),
        ("10.5", False): (198.351963, 28.557329, 220.527231),
    }
    figures = []
    for (log_format, optimize), documented in seeds.items():
        ours = bench.alters(LARGE_LOG, log_format, optimize).redo()
        server = bench.server_alters(LARGE_LOG) if log_format == "10.5" else None
        beside = server.redo() if server else (None, None, None)
        name = f"{log_format}, log_optimize_ddl={'on' if optimize else 'off'}"
        for what, seed, mine, other in zip(
            ("set-up", "ADD INDEX", "FORCE"), documented, ours, beside, strict=True
        ):
            figures.append(Figure(f"{what}, {name}", bench.scaled(seed), mine, other))
    return SeedTable(3, "redo", "MB", figures)


def copy_or_inplace(bench: Bench) -> SeedTable:
    """FORCE in place and by copying: about the same log, half as much time again."""
    times, logs = [], []
    for algorithm, seconds, redo in (("inplace", 44.7, 2198.868733), ("copy", 65.5, 2088.222581)):
        steps = bench.engine(
            {"log_file_size": "1g", "log_format": "10.5"},
            [*bench.filled(), f"add index t {INDEXES}", f"rebuild table t algorithm={algorithm}"],
        )
        mine = (steps[-1].status["lsn_current"] - steps[-2].status["lsn_current"]) / 1e6
        times.append(
            Figure(
                f"{algorithm}, seconds (published: of 1,000,000 rows)", seconds, steps[-1].seconds
            )
        )
        logs.append(Figure(f"{algorithm}, redo", bench.scaled(redo / 10), mine))
    return SeedTable(
        5,
        "FORCE by INPLACE and COPY, 10.5",
        "MB",
        [*logs, *times],
    )


def first_flush(bench: Bench) -> SeedTable:
    """Writes of FLUSH TABLES after 1,000 rows: each page is new, and written twice unless that is skipped."""
    figures = []
    for name, options, documented in (
        ("each page doublewritten", {"log_optimize_ddl": "on"}, (1017.0, 508.0)),
        ("first write skips (MDEV-19738)", {"log_optimize_ddl": "off"}, (509.0, 0.0)),
        ("doublewrite off", {"doublewrite": "off"}, (509.0, 0.0)),
    ):
        rows = ["insert_seq - t 1 1000", "purge all", "flush table t"]
        _, _, before, after = bench.engine(
            {"log_file_size": "64m", **options}, [ENGINE_CREATE, *rows]
        )
        for what, counter, seed in (
            ("data_writes", "data_writes", documented[0]),
            ("dblwr_writes", "dblwr_writes", documented[1]),
        ):
            grown = after.status[counter] - before.status[counter]
            figures.append(Figure(f"{what}, {name}", seed, grown))
    return SeedTable(6, "writes of FLUSH TABLES", "writes", figures)


def sort_memory(bench: Bench) -> SeedTable:
    """Memory of the sorts of one statement; the documents saw 0.4, 2.7 and 11 GB where the manual promised
    three buffers of 64 MB."""
    figures = []
    columns = [f"c{i}" for i in range(16)]
    keys = [*columns, *(f"{one},{two}" for one, two in itertools.pairwise([*columns, columns[0]]))]
    create = f"create table t a:bigint {' '.join(f'{c}:char(32)' for c in columns)} primary a"
    for n, documented in ((1, 400.0), (8, 2700.0), (32, 11_000.0)):
        indexes = " ".join(f"i{i}({key})" for i, key in enumerate(keys[:n]))
        rows = max(bench.rows // 4, 100)
        steps = bench.engine(
            {"log_file_size": LARGE_LOG, "sort_buffer_size": "1m"},
            [create, f"insert_seq - t 1 {rows}", "purge all", f"add index t {indexes}"],
        )
        held = steps[-1].status["sort_bytes_max"] / 1e6
        figures.append(Figure(f"{n} indexes, of sort_buffer_size 1 MB", documented / 64, held))
    return SeedTable(
        7, "peak memory of merge sorts, as multiples of sort_buffer_size", "MB", figures
    )


def flush_and_pool(bench: Bench) -> SeedTable:
    """Dirty pages that the flush at the end of an ADD INDEX looks at, with pools full of another table's: the
    documents tell of four hours."""
    figures = []
    for times in (1, 16):
        pool = 1024 * times
        steps = bench.engine(
            {"log_file_size": "1g", "buffer_pool_pages": str(pool), "log_optimize_ddl": "on"},
            [
                ENGINE_CREATE,
                "insert_seq - t 1 500",
                "purge all",
                "checkpoint full",
                ENGINE_CREATE.replace("table t ", "table other "),
                f"insert_seq - other 1 {pool // 2}",
                "add index t ib(b)",
            ],
        )
        visited = steps[-1].status["flush_list_visited"] - steps[-2].status["flush_list_visited"]
        figures.append(Figure(f"pool of {pool} pages", None, visited))
    return SeedTable(8, "dirty pages visited by the flush before the commit", "pages", figures)


TABLES: Mapping[int, Callable[[Bench], SeedTable]] = {
    1: small_log,
    2: large_log,
    3: redo_bytes,
    5: copy_or_inplace,
    6: first_flush,
    7: sort_memory,
    8: flush_and_pool,
}
"""By their number in the list of the documents' tables. 4 is 2 with ten times the rows."""


def measure(
    engine: Path, rows: int, only: Sequence[int], folder: Path, server: Path | None
) -> Iterator[SeedTable]:
    """The tables of these numbers, or all. folder: where both keep their data, on the same disk; server: the
    program of MariaDB. ConfigError: folder is on /dev/shm, where MariaDB maps its log and writes nothing."""
    if not engine.is_file():
        raise TargetError(f"{engine}: no such program: run make build")
    if server is not None and folder.resolve().is_relative_to("/dev/shm"):
        raise ConfigError(
            f"--dir {folder}: on /dev/shm MariaDB maps its log; choose another folder"
        )
    with tempfile.TemporaryDirectory(prefix="tornpage-bench-", dir=folder) as scratch:
        Path(scratch).chmod(0o755)  # a server that root starts is another user
        bench = Bench(engine, rows, Path(scratch), server)
        for number in only or TABLES:
            yield TABLES[number](bench)
