"""The speeds of Tornpage itself, side by side in one run: `tornpage bench speed`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from tornpage.faults.scratch import scratch_folder
from tornpage.lab.crash_rates import cluster_rates, crash_rates, target_rates
from tornpage.lab.filled import PATTERN_TRIALS, fill_store, run_tornpage
from tornpage.lab.measured import Effort, Measured, Spent, spent
from tornpage.lab.owner_rates import owner_rates
from tornpage.lab.statements import run_statements
from tornpage.lab.write_costs import write_costs
from tornpage.vocabulary.paths import Paths

__all__ = ["SPEEDS", "measure_speed"]

DEADLINE_S = 3600
LOAD_ROWS = 100_000
REPORT_TRIALS = 100_000


def load_rates(paths: Paths, effort: Effort) -> Measured:
    """Index rows per second of processor time: a run with ADD INDEX less the run without it."""
    rows = effort.of(LOAD_ROWS)
    lines = [
        "create table t a:bigint b:char(64) c:char(16) primary a",
        f"insert_seq - t 1 {rows}",
        "purge all",
        "checkpoint full",
    ]
    add = "add index t ib(b) ic(c)"
    cells = []
    for logged in ("on", "off"):
        taken = [
            _run(paths, logged, [*lines, add]).cpu - _run(paths, logged, lines).cpu
            for _ in range(effort.rounds)
        ]
        cells.append((logged, 2 * rows / max(statistics.median(taken), 0.001)))
    columns = ("log_optimize_ddl", "rows per cpu s")
    return Measured("load", f"ADD INDEX of two indexes, {rows:,} rows each", columns, cells)


def _run(paths: Paths, logged: str, lines: Sequence[str]) -> Spent:
    options = {
        "buffer_pool_pages": "16384",
        "log_file_size": "256m",
        "log_optimize_ddl": logged,
    }
    with scratch_folder() as scratch, spent() as taken:
        run_statements(paths.build / "engine" / "engine", scratch / "db", options, lines)
    return taken


def report_times(paths: Paths, effort: Effort) -> Measured:
    """Seconds of `tornpage report` over a large run, from its start to its end."""
    trials = max(PATTERN_TRIALS, effort.of(REPORT_TRIALS))
    times = []
    with scratch_folder() as scratch:
        out = fill_store(paths, scratch, trials).folder
        for _ in range(effort.rounds):
            with spent() as taken:
                run_tornpage(("report", "--json", "--out", str(out)))
            times.append(taken)
    cells = [
        (
            f"{trials:,} trials",
            statistics.median(one.wall for one in times),
            statistics.median(one.cpu for one in times),
        )
    ]
    return Measured("report", "tornpage report", ("of", "median s", "cpu s"), cells)


SPEEDS: Mapping[str, Callable[[Paths, Effort], Measured]] = {
    "recorder": write_costs,
    "load": load_rates,
    "crashes": crash_rates,
    "targets": target_rates,
    "cluster": cluster_rates,
    "owner": owner_rates,
    "report": report_times,
}


def measure_speed(paths: Paths, effort: Effort, only: Sequence[str]) -> Iterator[Measured]:
    """The tables of these names, or all, in their order."""
    for name, table in SPEEDS.items():
        if not only or name in only:
            yield table(paths, effort)
