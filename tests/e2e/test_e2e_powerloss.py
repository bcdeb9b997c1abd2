"""Power-loss campaigns: clean on the product engine, deterministic, and with a control that must fail."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from e2e_support import ONE_CONFIGURATION, Tornpage


def test_the_clean_engine_survives_every_state(tornpage: Tornpage) -> None:
    """Nothing is broken, with and without a second crash inside the recovery, and recovery did its work."""
    answer = tornpage("run", "powerloss", "--states", "400", "--scripts", "1")
    assert answer.code == 0, answer.text
    data = answer.data
    assert data["violations"] == 0 and data["scripts"] == 16
    assert data["states"] >= 6000
    assert data["depth"] == 2
    assert data["counters"]["dblwr_restored"] > 0
    assert data["counters"]["second_crash"] > 0
    run = ("--depth", "1", "--states", "50", "--scripts", "1")
    assert "second_crash" in tornpage("run", "powerloss", *run).data["claims_missed"]


def test_churn_is_clean(tornpage: Tornpage) -> None:
    """Trees that grow and shrink, long transactions, names that are used again."""
    short = ("--scripts", "1", "--fault-free", "1", "--option", "params.rounds=1")
    answer = tornpage("run", "churn", "--states", "60", *short)
    assert answer.code == 0, answer.text
    assert answer.data["violations"] == 0 and answer.data["fault_free"] == 1
    assert answer.data["counters"]["tables_dropped"] > 0


@pytest.mark.extended
def test_torn_page_matrix(tornpage: Tornpage) -> None:
    """The run says which kinds of loss its states had: of pages in a load on their first flush, of the log,
    of the doublewrite area; the sums add up, and the report shows them. Too few states leave gaps."""
    run = ("run", "powerloss", "--option", "log_write_through=off", "--depth", "1", "--states")
    answer = tornpage(*run, "2000", "--scripts", "2")
    coverage = answer.data["coverage"]
    cells = {(c["site"], c["flush"], c["mask"], c["config"]): c for c in coverage["cells"]}
    assert len(cells) == len(coverage["cells"])
    assert coverage["covered"] == sum(c["states"] > 0 for c in cells.values()) > 100
    assert coverage["total"] == sum(c["writes"] > 0 for c in cells.values())
    assert coverage["covered"] + len(coverage["not_covered"]) == coverage["total"]
    assert coverage["total"] + len(coverage["no_such_write"]) == len(cells)
    for site, flush in (
        ("index_load_page", "first_flush"),
        ("internal_page", "later_flush"),
        ("page0", "first_flush"),
        ("undo_page", "first_flush"),
        ("dict_page", "later_flush"),
        ("redo", "later_flush"),
        ("doublewrite", "later_flush"),
    ):
        assert cells[site, flush, "prefix", "log_optimize_ddl=on"]["states"] > 0, (site, flush)
    slot = cells["checkpoint_header", "later_flush", "prefix", "log_optimize_ddl=on"]
    assert slot["writes"] == 0
    page = Path(answer.data["report"]).read_text("utf-8")
    assert f"Torn pages: {coverage['covered']} of {coverage['total']} kinds covered" in page
    few = tornpage(*run, "60", "--scripts", "1").data["coverage"]
    assert len(few["not_covered"]) > len(coverage["not_covered"])


def test_states_do_not_depend_on_workers(tornpage: Tornpage, tmp_path: Path) -> None:
    """One worker and two give the same states, the same paths, the same hash."""
    small = ("--states", "60", "--depth", "2", "--scripts", "1", "--fault-free", "3")
    run = ("run", "powerloss", *small, "--jobs")
    one, two = (tornpage(*run, jobs, out=tmp_path / jobs) for jobs in ("1", "2"))
    assert one.data["trace_hash"] == two.data["trace_hash"]
    assert one.data["counters"] == two.data["counters"]
    assert one.data["coverage"] == two.data["coverage"]


@pytest.mark.extended
@pytest.mark.parametrize("campaign", ["linkbench", "tpcc"])
def test_without_doublewrite_the_published_workloads_find_it(
    tornpage: Tornpage, campaign: str
) -> None:
    """Torn pages and nothing else, in a few states of rows and transactions."""
    run = ("run", campaign, "--states", "40", "--scripts", "1", "--depth", "1")
    answer = tornpage(*run, "--fault-free", "0", "--option", "doublewrite=off")
    assert answer.code == 1, answer.text
    assert set(answer.data["by_invariant"]) == {"I5"}
    assert [bug["title"].partition(":")[0] for bug in answer.data["bugs"]] == ["page torn"]


def test_without_doublewrite_torn_pages_are_found_and_replay(
    tornpage: Tornpage, tmp_path: Path
) -> None:
    """The control: I5 only, and each finding replays from its line with the image kept."""
    torn = ("--option", "doublewrite=off")
    answer = tornpage("run", "powerloss", "--states", "100", *ONE_CONFIGURATION, *torn)
    assert answer.code == 1, answer.text
    assert set(answer.data["by_invariant"]) == {"I5"}
    with sqlite3.connect(tmp_path / "out" / "tornpage.db") as db:
        numbers = [row[0] for row in db.execute("select distinct trial from violation limit 3")]
    for number in numbers:
        again = tornpage("replay", f"1.{number}")
        assert again.code == 1, again.text
        assert again.data["same_verdict"]
        assert (Path(again.data["result"]["image"]) / "data" / "ibdata1").is_file()


def test_limits_belong_to_power_loss(tornpage: Tornpage) -> None:
    """--states and --depth are refused for a kill campaign instead of being ignored."""
    answer = tornpage("run", "smoke", "--depth", "2")
    assert answer.code == 2
    assert "no power-loss campaign" in answer.text
