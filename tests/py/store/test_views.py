"""The views answer what docs/STORE.md says, on a store with one of each."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import replace

import pytest
from builders import make_result, make_spec

from tornpage.store.memory import Answer, Replayed
from tornpage.store.origin import Origin
from tornpage.store.rows import CensusRow
from tornpage.store.store import Store
from tornpage.vocabulary.model import FaultPlan, Outcome, Source, Violation
from tornpage.vocabulary.paths import ROOT

TEXT = (ROOT / "docs" / "STORE.md").read_text("utf-8")
QUERIES = [
    query.strip()
    for block in re.findall(r"^```sql\n(.*?)^```", TEXT, re.M | re.S)
    for query in block.split("\n\n")
]
RULE = Violation(13, "dblwr_skip: page 0:1 goes home without a copy", source=Source.RULE)
TORN = {
    "page0": {
        "first_flush": {"prefix": {"writes": 2, "states": 0}, "dropped": {"writes": 2, "states": 1}}
    }
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A run of kills, a power-loss run of a night, and a bug that was played again."""
    path = tmp_path_factory.mktemp("store") / "tornpage.db"
    origin = Origin("2026-11-21T19:00:00+00:00", programs={"engine": "b1"})
    with Store(path) as store:
        kills = store.begin_run("smoke", "engine", 1, 3, {"name": "smoke"}, origin).id
        store.put_census(kills, CensusRow("a seed=1", True, "h", 9, 5, (RULE,), {"btr_splits": 2}))
        results = [
            make_result(0),
            replace(make_result(1, broken=5), alike=1, seconds={"total": 0.5}),
            make_result(2, Outcome.NOT_EXERCISED),
        ]
        for site, result in zip(("page0", "page0", "redo"), results, strict=True):
            store.start_trial(kills, make_spec(result.number), site, "none")
            store.finish_trial(kills, result)
        store.set_verdict(store.finish_run(kills).id, "violations")
        night = store.begin_night({"seed": 9}, origin).id
        losses = store.begin_run("powerloss", "engine", 7, 0, {}, origin, night).id
        spec = replace(make_spec(0), plan=FaultPlan(loss="17.one-torn.3"))
        store.start_trial(losses, spec, "page0", "17.one-torn.3")
        store.finish_trial(losses, replace(make_result(0, broken=5), alike=40))
        said = {"states": 500, "paths": {"dblwr_restored": 3}, "torn_pages": TORN}
        store.put_exploration(losses, "a", said)
        store.add_seconds(losses, 2.0)
        store.put_replay(Replayed(losses, 1, Answer.REPRODUCED, ""))
        store.end_night(night, "finished")
    with sqlite3.connect(path) as db:
        db.row_factory = sqlite3.Row
        yield db


def test_there_are_examples() -> None:
    """One for each view at least."""
    assert len(QUERIES) >= 9


@pytest.mark.parametrize("query", QUERIES)
def test_every_example_answers(query: str, store: sqlite3.Connection) -> None:
    """No example of the document is of a column that is not there, and none asks in vain."""
    assert store.execute(query).fetchall(), query


def test_every_view_is_documented_and_no_other(store: sqlite3.Connection) -> None:
    """The table of the document is the list of views."""
    views = {row[0] for row in store.execute("select name from sqlite_master where type = 'view'")}
    table = TEXT.split("| view |")[1].split("```")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.M)) == views


def test_runs_count_crashes_and_news(store: sqlite3.Connection) -> None:
    """Trials with a verdict in one, states in the other."""
    kills, losses = store.execute("select * from runs order by id")
    assert (kills["crashes"], kills["broken"], kills["bugs"], kills["news"]) == (3, 1, 2, 2)
    assert (losses["crashes"], losses["broken"], losses["bugs"], losses["news"]) == (500, 40, 1, 0)
    assert (kills["verdict"], kills["started"][:10], losses["night"]) == (
        "violations",
        "2026-11-21",
        1,
    )


def test_findings_are_of_trials_and_of_undisturbed_runs(store: sqlite3.Connection) -> None:
    """Each with its bug; only a trial has a number that can be replayed."""
    found = store.execute("select run, trial, site, bug, alike from findings order by run, trial")
    assert [tuple(row) for row in found] == [
        (1, None, "run", 1, 1),
        (1, "1.1", "page0", 2, 1),
        (2, "2.0", "page0", 2, 40),
    ]


def test_cells_are_of_kills_and_coverage_of_power_loss(store: sqlite3.Connection) -> None:
    """Seeds of one configuration are added up; states of a power loss are no kills."""
    cells = store.execute("select run, config, site, clean, broken, idle from cells order by site")
    assert [tuple(row) for row in cells] == [
        (1, "log_optimize_ddl=on", "page0", 1, 1, 0),
        (1, "log_optimize_ddl=on", "redo", 0, 0, 1),
    ]
    masks = store.execute("select mask, writes, states from coverage where run = 2 order by mask")
    assert [tuple(row) for row in masks] == [("dropped", 2, 1), ("prefix", 2, 0)]
