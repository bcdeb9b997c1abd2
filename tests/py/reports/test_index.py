"""The page over all runs: each is a row that links its report, and trends are drawn from two runs on."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

from builders import make_bug

from tornpage.reports.charts import bar_chart, line_chart
from tornpage.reports.index import IndexedRun, render_index
from tornpage.store.bugs import BugStatus
from tornpage.store.memory import RunFacts
from tornpage.vocabulary.paths import data_folder

TEMPLATES = data_folder("reports")


def run_of(number: int, verdict: str = "clean", crashes: int = 10, news: int = 0) -> IndexedRun:
    """A run of 20 seconds that saw two bugs more than are news."""
    started = f"2026-11-{number:02}T02:00:00+00:00"
    counts = (crashes, 0, 0, news + 2, news)
    facts = RunFacts(
        number, started, "smoke", "engine", 1, "finished", verdict, *counts, 20.0, None
    )
    return IndexedRun(facts, f"report-{number}.html")


def test_only_clean_is_green_and_only_bugs_are_red() -> None:
    """What has no verdict is neither, and says how it stands."""
    colours = {
        run_of(1, verdict).colour
        for verdict in ("unsure", "nothing exercised", "claims missed", "")
    }
    assert colours == {"idle"}
    assert (run_of(1).colour, run_of(1, "violations").colour) == ("clean", "violation")
    page = render_index([run_of(1, "")], [], {}, TEMPLATES)
    assert '<td class="cell idle">finished</td>' in page


def test_runs_and_bugs_have_rows_and_links() -> None:
    """The newest run first; a bug leads to the report that tells of it."""
    runs = [run_of(1), run_of(2, crashes=300, news=1)]
    bug = make_bug(3, "a page is torn")
    known = replace(make_bug(4, "known <one>"), status=BugStatus.KNOWN, reason="see below")
    page = render_index(runs, [known, bug], {3: "bug-3.html"}, TEMPLATES)
    assert page.index('<a href="report-2.html">2<') < page.index('<a href="report-1.html">1<')
    assert 'href="bug-3.html"' in page
    assert page.index("a page is torn") < page.index("known &lt;one&gt;")
    assert "see below" in page and "2026-11-02 02:00" in page and "15.0" in page
    assert page.count("<script") == page.count("<script>") == 1
    assert page == render_index(runs, [known, bug], {3: "bug-3.html"}, TEMPLATES)


def test_one_run_has_no_trend() -> None:
    """Nor has an empty store."""
    assert "<svg" not in render_index([run_of(1)], [], {}, TEMPLATES)
    assert "None." in render_index([], [], {}, TEMPLATES)


def test_thousands_of_runs_stay_small() -> None:
    """The newest are listed and drawn, the others counted."""
    runs = [IndexedRun(replace(run_of(1).run, id=n), f"report-{n}.html") for n in range(1, 3001)]
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
