"""The torn-page matrix adds up what explorations say, tells covered from not covered from impossible, and
shows all three."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builders import make_summary

from tornpage.reports.report import render_report
from tornpage.reports.summary import Summary
from tornpage.reports.torn_matrix import CellState, TornMatrix, torn_matrix
from tornpage.store.rows import Run
from tornpage.vocabulary.paths import data_folder

TEMPLATES = data_folder("reports")
MASKS = ("dropped", "interior", "prefix", "suffix")
FLUSHES = ("first_flush", "later_flush")

Counts = tuple[tuple[int, int], ...]
"""(writes, states) of each mask."""

NONE: Counts = ((0, 0),) * 4
PAGES: Counts = ((3, 9), (3, 0), (3, 2), (3, 4))
SLOTS: Counts = ((2, 5), (0, 0), (0, 0), (0, 0))


def explorer_says(**sites: tuple[Counts, Counts]) -> dict[str, Any]:
    """A summary of the explorer with these sites, by flush."""
    pages = {
        site: {
            flush: {
                mask: {"writes": writes, "states": states}
                for mask, (writes, states) in zip(MASKS, counts, strict=True)
            }
            for flush, counts in zip(FLUSHES, flushes, strict=True)
        }
        for site, flushes in sites.items()
    }
    return {
        "states": 20,
        "distinct": 10,
        "depth": 1,
        "states_per_s": 1.0,
        "crash_points": 4,
        "torn_pages": pages,
    }


def one_config() -> TornMatrix:
    """Pages that are only flushed once, slots of one sector, a site that is never written."""
    said = explorer_says(data_page=(PAGES, NONE), slot=(NONE, SLOTS), journal=(NONE, NONE))
    return torn_matrix({"log=on": said})


def test_three_states_of_a_cell() -> None:
    """Lost that way; written, but never lost that way; no such write, which no total counts."""
    matrix = one_config()
    states = {(c.site, c.flush, c.mask): c.state for c in matrix.cells}
    assert states["data_page", "first_flush", "prefix"] is CellState.COVERED
    assert states["data_page", "first_flush", "interior"] is CellState.NOT_COVERED
    assert states["data_page", "later_flush", "prefix"] is CellState.NO_SUCH_WRITE
    assert states["slot", "later_flush", "dropped"] is CellState.COVERED
    assert states["slot", "later_flush", "prefix"] is CellState.NO_SUCH_WRITE
    assert (matrix.covered, matrix.total, len(matrix.cells)) == (4, 5, 24)


def test_reasons_come_from_the_counts() -> None:
    """A write that is too short for a mask is told apart from no write at all."""
    matrix = one_config()
    reasons = {(c.site, c.flush, c.mask): matrix.reason(c) for c in matrix.cells if not c.writes}
    assert reasons["slot", "later_flush", "suffix"] == "no write has sectors enough"
    assert reasons["slot", "first_flush", "suffix"] == "never written"
    assert reasons["data_page", "later_flush", "dropped"] == "never written"
    assert matrix.rows_without_write == [
        ("data_page", "later_flush"),
        ("journal", "first_flush"),
        ("journal", "later_flush"),
        ("slot", "first_flush"),
    ]
    assert list(matrix.rows) == [("data_page", "first_flush"), ("slot", "later_flush")]


def test_seeds_and_depths_of_a_configuration_are_added() -> None:
    """What one exploration missed another may cover; configurations stay apart."""
    miss = explorer_says(data_page=(((3, 0),) * 4, NONE))
    hit = explorer_says(data_page=(((5, 1),) * 4, NONE))
    matrix = torn_matrix(
        {
            "log=on,page=4k seed=1,depth=1": miss,
            "log=on,page=4k seed=2,depth=2": hit,
            "log=off,page=4k seed=1,depth=1": miss,
        }
    )
    assert matrix.configs == ["log=off,page=4k", "log=on,page=4k"]
    added = [c for c in matrix.cells if c.config == "log=on,page=4k" and c.writes]
    assert {(c.writes, c.states) for c in added} == {(8, 1)}
    assert (matrix.covered, matrix.total) == (4, 8)
    assert {c.config for c in matrix.of(CellState.NOT_COVERED)} == {"log=off,page=4k"}


def test_no_exploration_no_matrix() -> None:
    """A kill campaign has none, nor has an exploration that did not count."""
    assert torn_matrix({}).cells == ()
    assert torn_matrix({"default": {"states": 3}}).total == 0


def summary_of(explored: dict[str, dict[str, Any]]) -> Summary:
    """The summary of a power-loss run."""
    run = Run(1, "powerloss", "engine", 1, 0, {}, "finished", 2.0)
    return make_summary(run, explored=explored)


def test_json_lists_every_cell_once() -> None:
    """Covered and not covered are the total, and with what cannot be they are all cells."""
    said = explorer_says(data_page=(PAGES, NONE), slot=(NONE, SLOTS))
    data = summary_of({"log=on": said, "log=off": said}).to_json(Path("s"), Path("r"))
    coverage = data["coverage"]
    assert coverage["covered"] + len(coverage["not_covered"]) == coverage["total"] == 10
    assert coverage["total"] + len(coverage["no_such_write"]) == len(coverage["cells"]) == 32
    assert {
        "site": "data_page",
        "flush": "first_flush",
        "mask": "interior",
        "config": "log=off",
    } in coverage["not_covered"]


def test_report_shows_the_matrix_and_its_gaps() -> None:
    """Headline, one cell per state with its number, and what was not exercised by name."""
    said = explorer_says(data_page=(PAGES, NONE), slot=(NONE, SLOTS))
    page = render_report(summary_of({"log=on": said}), TEMPLATES, {})
    assert "Torn pages: 4 of 5 kinds covered" in page
    assert (
        '<td class="cell clean" title="data_page, first flush, dropped, log=on: 9 states, 3' in page
    )
    assert '<td class="cell idle" title="data_page, first flush, interior, log=on: 0 states' in page
    assert 'slot, later flush, prefix, log=on: no write has sectors enough">–</td>' in page
    assert "<li>torn pages: data_page, first flush, log=on: no state has interior</li>" in page
    assert "no write of data_page (later flush), slot (first flush)</li>" in page
    assert "Torn pages" not in render_report(summary_of({}), TEMPLATES, {})
