"""The page over all runs: each is a row that links its report, and trends are drawn from two runs on."""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from builders import make_bug

from tornpage.reports.charts import bar_chart, line_chart
from tornpage.reports.index import IndexedRun, render_index
from tornpage.store.bugs import BugStatus, Novelty
from tornpage.store.store import Origin, Run
from tornpage.store.tally import Tally
from tornpage.vocabulary.model import Outcome
from tornpage.vocabulary.paths import data_folder

TEMPLATES = data_folder("reports")


def run_of(
    number: int, *, state: str = "finished", new: int = 0, again: int = 0, **trials: int
) -> IndexedRun:
    """A run of 20 seconds that saw so many bugs."""
    origin = Origin(started=f"2026-11-{number:02}T02:00:00+00:00")
    run = Run(number, "smoke", "engine", 1, 2, {}, state, 20.0, origin)
    outcomes = Counter({Outcome(name): count for name, count in trials.items()})
    tally = Tally(outcomes, 0, Counter({Novelty.NEW: new, Novelty.AGAIN: again}))
    return IndexedRun(run, tally, f"report-{number}.html")


@pytest.mark.parametrize(
    ("one", "state"),
    [
        (run_of(1, clean=5), "clean"),
        (run_of(1, clean=5, again=1), "violation"),
        (run_of(1, clean=5, harness_error=1), "idle"),
        (run_of(1, clean=5, unstable=1), "idle"),
        (run_of(1, clean=5, state="failed"), "idle"),
        (run_of(1), "idle"),
    ],
)
def test_only_a_whole_run_is_clean(one: IndexedRun, state: str) -> None:
    """One with bugs is red; one without a verdict of every crash is neither."""
    assert one.state == state


def test_runs_and_bugs_have_rows_and_links() -> None:
    """The newest run first; a bug leads to the report that tells of it."""
    runs = [run_of(1, clean=10), run_of(2, clean=300, new=1, again=2)]
    bug = make_bug(3, "a page is torn")
    known = replace(make_bug(4, "known <one>"), status=BugStatus.KNOWN, reason="see below")
    page = render_index(runs, [known, bug], {3: "report-1.html"}, TEMPLATES)
    assert page.index('<a href="report-2.html">2<') < page.index('<a href="report-1.html">1<')
    assert 'href="report-1.html#bug-3"' in page
    assert page.index("a page is torn") < page.index("known &lt;one&gt;")
    assert "see below" in page and "2026-11-02 02:00" in page and "15.0" in page
    assert "<script" not in page
    assert page == render_index(runs, [known, bug], {3: "report-1.html"}, TEMPLATES)


def test_one_run_has_no_trend() -> None:
    """Nor has an empty store."""
    assert "<svg" not in render_index([run_of(1, clean=1)], [], {}, TEMPLATES)
    assert "None." in render_index([], [], {}, TEMPLATES)


def test_thousands_of_runs_stay_small() -> None:
    """The newest are listed and drawn, the others counted."""
    runs = [
        replace(run_of(1, clean=5), run=replace(run_of(1).run, id=n), report=f"report-{n}.html")
        for n in range(1, 3001)
    ]
    page = render_index(runs, [], {}, TEMPLATES)
    assert len(page) < 400_000
    assert "and 2,500 older" in page


def test_charts_are_plain_elements_in_the_colours_of_the_page() -> None:
    """No script, no reference to another file, links to the runs, and the same twice."""
    series = {"new": [1, 0, 2], "again": [0, 3, 1]}
    charts = [
        make("Bugs", series, ["1", "2", "3"], ["report-1.html", "", "report-3.html"])
        for make in (bar_chart, bar_chart, line_chart)
    ]
    assert charts[0] == charts[1]
    for chart in charts:
        ElementTree.fromstring(chart.svg)
        assert "var(--chart-1)" in chart.svg and "var(--chart-2)" in chart.svg
        assert "<script" not in chart.svg and "<!--" not in chart.svg
        links = set(re.findall(r'href="([^"]+)"', chart.svg))
        assert links == {"report-1.html", "report-3.html"}


def test_the_command_line_does_not_load_what_draws() -> None:
    """Drawing costs what a call that draws nothing should not pay."""
    import subprocess

    code = "import sys, tornpage.cli.main; sys.exit('pygal' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
