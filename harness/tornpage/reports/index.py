"""The page over all runs of a store: a row per run, the bugs, and trends from run to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tornpage.reports.charts import Chart, bar_chart, line_chart
from tornpage.reports.page import render_page
from tornpage.store.bugs import Bug, BugStatus
from tornpage.store.memory import RunFacts

__all__ = ["IndexedRun", "render_index"]

RUNS_MAX = 500
CHARTED_MAX = 40
"""Runs in the table, and in a chart: the newest."""
BUGS_MAX = 200


@dataclass(frozen=True, slots=True)
class IndexedRun:
    """A run in numbers. report: name of its page beside the index, "" if there is none."""

    run: RunFacts
    report: str

    @property
    def colour(self) -> str:
        """Of its verdict: clean, violation, or idle where there is none that holds."""
        return {"clean": "clean", "violations": "violation"}.get(self.run.verdict, "idle")

    @property
    def per_s(self) -> float:
        """Crashes judged per second of its own time."""
        return self.run.crashes / self.run.seconds if self.run.seconds > 0 else 0.0


def render_index(
    runs: Sequence[IndexedRun], bugs: Sequence[Bug], told: Mapping[int, str], templates: Path
) -> str:
    """The page as text. runs: the oldest first; told: by bug its page."""
    newest = list(reversed(runs))[:RUNS_MAX]
    order = list(BugStatus)
    by_status = sorted(bugs, key=lambda bug: (order.index(bug.status), -bug.last.run, bug.id))
    return render_page(
        templates,
        "index.html.j2",
        runs=newest,
        runs_more=len(runs) - len(newest),
        bugs=by_status[:BUGS_MAX],
        bugs_more=max(0, len(bugs) - BUGS_MAX),
        told=told,
        charts=_charts(runs[-CHARTED_MAX:]),
    )


def _charts(runs: Sequence[IndexedRun]) -> list[Chart]:
    """Trends want two runs."""
    if len(runs) < 2:
        return []
    labels = [f"run {one.run.id}" for one in runs]
    links = [one.report for one in runs]
    seen: Mapping[str, list[float]] = {
        "new or back": [one.run.news for one in runs],
        "seen before": [one.run.bugs - one.run.news for one in runs],
    }
    names = list(dict.fromkeys(one.run.campaign for one in runs))
    return [
        bar_chart("Bugs per run", seen, labels, links),
        line_chart("Crashes judged per run", _by_campaign(runs, names, "crashes"), labels, links),
        line_chart("Crashes judged per second", _by_campaign(runs, names, "per_s"), labels, links),
    ]


def _by_campaign(
    runs: Sequence[IndexedRun], names: Sequence[str], what: str
) -> dict[str, list[float | None]]:
    """One line per campaign: runs of different campaigns are not of one size."""
    return {
        name: [
            (one.run.crashes if what == "crashes" else one.per_s)
            if one.run.campaign == name
            else None
            for one in runs
        ]
        for name in names
    }
