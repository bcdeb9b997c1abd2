"""How long users wait for a find: of each planted bug the processor time until the default campaigns, as they
are shipped, raise the first alarm, by a rule or by a state, and until a state is broken; the medians of some
seeds, and their sums over all bugs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from tornpage.lab.mutant_build import MutantBuilder
from tornpage.lab.mutant_table import Mutant
from tornpage.lab.shipped import Order, SeedRow, ShippedRow, run_shipped
from tornpage.vocabulary.paths import Paths
from tornpage.workers.context import Progress

__all__ = ["FindRow", "FindTable", "measure_finds", "median", "sample"]

SAMPLE_MAX = 16


def sample(mutants: Sequence[Mutant]) -> list[Mutant]:
    """A few of all, by name, so that each mechanism has about its share."""
    return list(mutants[:: -(-len(mutants) // SAMPLE_MAX)])


Times = tuple[float | None, ...]
"""Seconds of processor time, per seed; None: the search was given up, or had come to its end."""


@dataclass(frozen=True, slots=True)
class FindRow:
    """alarms: until the first violation of any kind; states: until the first broken state. campaigns: that
    broke one. error: of the harness."""

    name: str
    alarms: Times
    states: Times
    campaigns: tuple[str, ...]
    error: str = ""


def median(times: Times) -> float | None:
    """None if half of the seeds or more found nothing."""
    middle = statistics.median_high(math.inf if one is None else one for one in times)
    return None if middle == math.inf else middle


@dataclass(frozen=True, slots=True)
class FindTable:
    """limit: seconds of processor time that one seed may take."""

    rows: tuple[FindRow, ...]
    limit: float

    def to_json(self) -> dict[str, Any]:
        """For --json. found: bugs of which the median seed found something; total_s: sum of those medians."""
        return {
            "mutants": len(self.rows),
            "limit_s": self.limit,
            "alarm": _sum([row.alarms for row in self.rows]),
            "state": _sum([row.states for row in self.rows]),
            "rows": [
                {
                    "name": row.name,
                    "alarm": {"median_s": median(row.alarms), "seconds": list(row.alarms)},
                    "state": {"median_s": median(row.states), "seconds": list(row.states)},
                    "campaigns": list(row.campaigns),
                    "error": row.error,
                }
                for row in self.rows
            ],
        }

    def table(self) -> Table:
        """For a terminal."""
        data = self.to_json()
        alarm, state = data["alarm"], data["state"]
        table = Table(
            title=f"{alarm['found']} of {len(self.rows)} planted bugs raised an alarm, in "
            f"{alarm['total_s']:,.1f} s of processor time together; {state['found']} broke a state, in "
            f"{state['total_s']:,.1f} s. A search ends after {self.limit:,.0f} s",
            title_justify="left",
        )
        table.add_column("mutant", overflow="fold")
        table.add_column("first alarm, s", justify="right")
        table.add_column("state, s", justify="right")
        table.add_column("state by seed")
        table.add_column("in")
        for row in self.rows:
            table.add_row(
                row.name,
                _text(median(row.alarms)),
                _text(median(row.states)),
                row.error or " ".join("-" if s is None else f"{s:.1f}" for s in row.states),
                ", ".join(row.campaigns),
            )
        return table


def _sum(times: list[Times]) -> dict[str, float]:
    medians = [middle for middle in map(median, times) if middle is not None]
    return {"found": len(medians), "total_s": round(sum(medians), 2)}


def _text(seconds: float | None) -> str:
    return "not found" if seconds is None else f"{seconds:.1f}"


def measure_finds(
    mutants: list[Mutant],
    seeds: int,
    limit: float,
    builder: MutantBuilder,
    paths: Paths,
    jobs: int,
    out: Path,
    progress: Progress,
    order: Order,
) -> FindTable:
    """Runs them with seeds 1 to `seeds`, or goes on with what is in `out`."""
    score = run_shipped(mutants, seeds, builder, paths, jobs, out, progress, limit, order)
    return FindTable(tuple(map(_row, score.rows)), limit)


def _row(shipped: ShippedRow) -> FindRow:
    states = [seed.by_state for seed in shipped.seeds]
    return FindRow(
        shipped.name,
        tuple(map(_first_alarm, shipped.seeds)),
        tuple(catch.cpu if catch else None for catch in states),
        tuple(sorted({catch.campaign for catch in states if catch})),
        "; ".join(sorted({seed.error for seed in shipped.seeds if seed.error})),
    )


def _first_alarm(seed: SeedRow) -> float | None:
    catches = [catch.cpu for catch in (seed.by_state, seed.by_rule) if catch]
    return min(catches, default=None)
