"""How long users wait for a find: of each planted bug the processor time until the default campaigns, as they
are shipped, find it by state; the median of some seeds, and the sum over all bugs.

May import: crew, mutant_build, mutant_table, paths, shipped.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from tornpage.campaigns.crew import Progress
from tornpage.lab.mutant_build import MutantBuilder
from tornpage.lab.mutant_table import Mutant
from tornpage.lab.shipped import ShippedRow, run_shipped
from tornpage.vocabulary.paths import Paths

__all__ = ["FindRow", "FindTable", "measure_finds", "sample"]

SAMPLE_STEP = 16


def sample(mutants: Sequence[Mutant]) -> list[Mutant]:
    """A few of all, by name, so that each mechanism has about its share."""
    return list(mutants[::SAMPLE_STEP])


@dataclass(frozen=True, slots=True)
class FindRow:
    """seconds: of processor time until the find by state, per seed; None: the search was given up, or had
    come to its end. error: of the harness."""

    name: str
    seconds: tuple[float | None, ...]
    campaigns: tuple[str, ...]
    error: str = ""

    @property
    def median(self) -> float | None:
        """Over the seeds; None if half of them or more found nothing."""
        middle = statistics.median_high(math.inf if one is None else one for one in self.seconds)
        return None if middle == math.inf else middle


@dataclass(frozen=True, slots=True)
class FindTable:
    """limit: seconds of processor time that one seed may take."""

    rows: tuple[FindRow, ...]
    limit: float

    @property
    def total(self) -> float:
        """Sum of the medians."""
        return sum(row.median or 0.0 for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "mutants": len(self.rows),
            "found": sum(row.median is not None for row in self.rows),
            "total_s": round(self.total, 2),
            "limit_s": self.limit,
            "rows": [
                {
                    "name": row.name,
                    "median_s": row.median,
                    "seconds": list(row.seconds),
                    "campaigns": list(row.campaigns),
                    "error": row.error,
                }
                for row in self.rows
            ],
        }

    def table(self) -> Table:
        """For a terminal."""
        found = sum(row.median is not None for row in self.rows)
        table = Table(
            title=f"{found} of {len(self.rows)} planted bugs found by state, in {self.total:,.1f} s of "
            f"processor time together; a search ends after {self.limit:,.0f} s",
            title_justify="left",
        )
        table.add_column("mutant", overflow="fold")
        table.add_column("median s", justify="right")
        table.add_column("each seed")
        table.add_column("found by")
        for row in self.rows:
            table.add_row(
                row.name,
                "not found" if row.median is None else f"{row.median:.1f}",
                row.error or " ".join("-" if s is None else f"{s:.1f}" for s in row.seconds),
                ", ".join(row.campaigns),
            )
        return table


def measure_finds(
    mutants: list[Mutant],
    seeds: int,
    limit: float,
    builder: MutantBuilder,
    paths: Paths,
    jobs: int,
    out: Path,
    progress: Progress,
) -> FindTable:
    """Runs them with seeds 1 to `seeds`, or goes on with what is in `out`."""
    score = run_shipped(mutants, seeds, builder, paths, jobs, out, progress, limit)
    return FindTable(tuple(map(_row, score.rows)), limit)


def _row(shipped: ShippedRow) -> FindRow:
    catches = [seed.by_state for seed in shipped.seeds]
    return FindRow(
        shipped.name,
        tuple(catch.cpu if catch else None for catch in catches),
        tuple(sorted({catch.campaign for catch in catches if catch})),
        "; ".join(sorted({seed.error for seed in shipped.seeds if seed.error})),
    )
