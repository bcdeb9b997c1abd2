"""The tables of the documents that Tornpage grew from (MDEV-19747, MDEV-19738, WL#7277 and others, see
FEATURES.md), measured again on the bundled engine, and on MariaDB beside it where it is installed.

Their table: a BIGINT primary key `a`, `b` to `h` CHAR(255) without values; indexes on b, c, d, e(10), f(4),
g(5), h(5); pages of 4k, a pool of 64 MB. Bytes and counts are the same each time; what the documents give for
100,000 rows is brought down to the number of rows. Seconds depend on the machine: only their ratios compare.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tornpage.lab.compression import compression
from tornpage.lab.rig import ENGINE_CREATE, INDEXES, LARGE, ROWS, SMALL, TEN_TIMES, Bench, Size
from tornpage.reports.compared import Figure, FigureTable
from tornpage.vocabulary.errors import ConfigError, TargetError

__all__ = ["ROWS", "TABLES", "measure"]


def _seconds(
    bench: Bench, size: Size, published: Mapping[tuple[str, bool], tuple[float, float]]
) -> list[Figure]:
    figures = []
    server = bench.server_alters(size)
    for (log_format, optimize), (add, force) in published.items():
        ours = bench.alters(size, log_format, optimize)
        name = _setting(log_format, optimize)
        beside = server if log_format == "10.5" else None
        times = (beside.add.seconds, beside.force.seconds) if beside else (None, None)
        limits = [owed / bench.rate for owed in ours.owed(unlogged=optimize)]
        figures.append(Figure(f"ADD INDEX, {name}", add, ours.add.seconds, times[0], limits[0]))
        figures.append(Figure(f"FORCE, {name}", force, ours.force.seconds, times[1], limits[1]))
    return figures


def _setting(log_format: str, optimize: bool) -> str:
    return f"{log_format}, log_optimize_ddl={'on' if optimize else 'off'}"


def small_log(bench: Bench) -> FigureTable:
    """Without redo for contents the flush costs; with it, a log that is too small does."""
    published = {("10.4", True): (3.94, 3.25), ("10.4", False): (7.10, 13.49)}
    return FigureTable(
        1, f"seconds with a log of {SMALL.log_file}", "s", _seconds(bench, SMALL, published)
    )


def large_log(bench: Bench) -> FigureTable:
    """A log that is large enough."""
    published = {
        ("10.4", True): (3.84, 3.21),
        ("10.4", False): (2.94, 3.44),
        ("10.5", False): (2.73, 3.45),
    }
    return FigureTable(
        2, f"seconds with a log of {LARGE.log_file}", "s", _seconds(bench, LARGE, published)
    )


def ten_times_the_rows(bench: Bench) -> FigureTable:
    """A table that the pool has room for."""
    published = {
        ("10.4", True): (76.9, 45.5),
        ("10.4", False): (39.7, 43.9),
        ("10.5", False): (49.1, 44.7),
    }
    title = f"seconds with {TEN_TIMES.times} times the rows, a log of {TEN_TIMES.log_file}"
    return FigureTable(4, title, "s", _seconds(bench, TEN_TIMES, published))


def redo_bytes(bench: Bench) -> FigureTable:
    """What a row costs in the log."""
    seeds = {
        ("10.4", True): (197.240744, 3.512609, 1.419512),
        ("10.4", False): (197.250640, 25.724276, 219.959416),
        ("10.5", False): (198.351963, 28.557329, 220.527231),
    }
    figures = []
    for (log_format, optimize), documented in seeds.items():
        ours = bench.alters(LARGE, log_format, optimize).redo()
        server = bench.server_alters(LARGE) if log_format == "10.5" else None
        beside = server.redo() if server else (None, None, None)
        name = _setting(log_format, optimize)
        for what, seed, mine, other in zip(
            ("set-up", "ADD INDEX", "FORCE"), documented, ours, beside, strict=True
        ):
            figures.append(Figure(f"{what}, {name}", bench.scaled(seed), mine, other))
    return FigureTable(3, "redo", "MB", figures)


def copy_or_inplace(bench: Bench) -> FigureTable:
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
    return FigureTable(
        5,
        "FORCE by INPLACE and COPY, 10.5",
        "MB",
        [*logs, *times],
    )


def first_flush(bench: Bench) -> FigureTable:
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
    return FigureTable(6, "writes of FLUSH TABLES", "writes", figures)


def sort_memory(bench: Bench) -> FigureTable:
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
            {"log_file_size": LARGE.log_file, "sort_buffer_size": "1m"},
            [create, f"insert_seq - t 1 {rows}", "purge all", f"add index t {indexes}"],
        )
        held = steps[-1].status["sort_bytes_max"] / 1e6
        figures.append(Figure(f"{n} indexes, of sort_buffer_size 1 MB", documented / 64, held))
    return FigureTable(
        7, "peak memory of merge sorts, as multiples of sort_buffer_size", "MB", figures
    )


def flush_and_pool(bench: Bench) -> FigureTable:
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
    return FigureTable(8, "dirty pages visited by the flush before the commit", "pages", figures)


def progress(bench: Bench) -> FigureTable:
    """What the server tells of an ALTER that goes on beside changes of its table. Its log gets blocks enough
    for the documents' share of it."""
    rows, changed = bench.rows * 3 // 2, 2003
    step = max(1, rows // 40)
    steps = bench.engine(
        {
            "log_file_size": LARGE.log_file,
            "online_alter_log_max_size": "960k",
            "sort_buffer_size": "192k",
        },
        [
            "create table t a:bigint b:char(90) c:bigint primary a",
            f"insert_seq - t 1 {rows}",
            "add index t ib(b)",
            "start rebuild t lock=none",
            f"step index t 50 {step}",
            *(f'update - t a={a} set b="changed"' for a in range(1, changed + 1)),
            "finish index t",
        ],
    )
    status = steps[-2].status
    figures = [
        Figure("rows in the log of row changes", 2003, status["onlineddl_rowlog_rows"]),
        Figure("% of that log used", 23, status["onlineddl_rowlog_pct_used"] / 100),
        Figure("% done", 56.77, status["onlineddl_pct_progress"] / 100),
    ]
    return FigureTable(9, f"an ALTER of {rows:,} rows that goes on", "rows, %", figures)


TABLES: Mapping[int, Callable[[Bench], FigureTable]] = {
    1: small_log,
    2: large_log,
    3: redo_bytes,
    4: ten_times_the_rows,
    5: copy_or_inplace,
    6: first_flush,
    7: sort_memory,
    8: flush_and_pool,
    9: progress,
    10: compression,
}
"""By their number in the list of the documents' tables."""


def measure(
    engine: Path, rows: int, only: Sequence[int], folder: Path, server: Path | None
) -> Iterator[FigureTable]:
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
