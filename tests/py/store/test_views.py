"""The views answer what docs/STORE.md says, on a store with one of each."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

import pytest
from filled_store import PAGE, QUERIES, fill

from tornpage.store.questions import QUESTIONS
from tornpage.store.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Of filled_store.py."""
    path = tmp_path_factory.mktemp("store") / "tornpage.db"
    with Store(path) as store:
        fill(store)
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
    table = PAGE.split("| view |")[1].split("```")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.M)) == views


def test_every_question_is_documented_and_answers(store: sqlite3.Connection) -> None:
    """What `tornpage serve` asks with a number in it."""
    table = PAGE.split("| question |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.M) == [one.name for one in QUESTIONS]
    numbers = {"old": 1, "new": 2, "bug": 1, "run": 1}
    for one in QUESTIONS:
        assert store.execute(one.sql, numbers).fetchall(), one.name
    (compare,) = [one.sql for one in QUESTIONS if one.name == "compare"]
    changes = {
        (old, new): [row["change"] for row in store.execute(compare, {"old": old, "new": new})]
        for old, new in ((1, 2), (1, 99), (99, 1))
    }
    assert changes[1, 99] == ["gone", "gone"] and changes[99, 1] == ["new", "new"]
    assert "still there" in changes[1, 2]


def test_a_computed_column_is_compared_as_a_number(store: sqlite3.Connection) -> None:
    """Also with the text of a filter, as that of a page is."""
    for view, column in (
        ("runs", "bugs"),
        ("runs", "crashes"),
        ("bugs", "runs"),
        ("nights", "news"),
    ):
        (value,) = store.execute(f"select {column} from {view}").fetchone()
        query = f"select count(*) from {view} where {column} = ?"
        assert store.execute(query, (str(value),)).fetchone()[0] >= 1, (view, column)


def test_runs_count_crashes_and_news(store: sqlite3.Connection) -> None:
    """Trials with a verdict in one, states in the other."""
    kills, losses = store.execute("select * from runs order by id")
    assert (kills["crashes"], kills["broken"], kills["bugs"], kills["news"]) == (3, 1, 2, 2)
    assert (losses["crashes"], losses["broken"], losses["bugs"], losses["news"]) == (500, 40, 2, 1)
    assert (kills["verdict"], kills["started"][:10], losses["night"]) == (
        "violations",
        "2026-11-21",
        1,
    )


def test_findings_are_of_trials_and_of_fault_free_runs(store: sqlite3.Connection) -> None:
    """Each with its bug; only a trial has a number that can be replayed."""
    found = store.execute("select run, trial, site, bug, alike from findings order by run, trial")
    assert [tuple(row) for row in found] == [
        (1, None, "run", 1, 1),
        (1, "1.1", "page0", 2, 1),
        (2, None, "run", 1, 1),
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
