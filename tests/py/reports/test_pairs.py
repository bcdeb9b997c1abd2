"""Which kinds of statements a run has had together."""

from __future__ import annotations

from typing import Any

from builders import make_summary

from tornpage.reports.pairwise import Pairs, pairs_of
from tornpage.reports.verdict import looked_at
from tornpage.store.origin import Origin
from tornpage.store.rows import Run

RUN = Run(2, "mix", "engine", 1, 0, {"crash_model": "power_loss"}, "finished", 2.0, Origin())


def part(*statements: str) -> dict[str, Any]:
    """Of an exploration of a script with these."""
    by_model = {"log-cut": {"states": 3, "possible": 3}}
    told = {"states": 3, "distinct": 3, "depth": 1, "fs": "posix", "by_model": by_model}
    return {**told, "statements": list(statements)}


def test_pairs_are_counted_once() -> None:
    """Of two scripts together; the seed is no setting."""
    summary = make_summary(
        RUN,
        explored={
            "x=on seed=1,pool=48,depth=1": part("insert", "drop table", "add index"),
            "x=on seed=1001,pool=96,depth=1": part("insert", "add index"),
        },
    )
    pairs = pairs_of(summary)
    assert pairs == Pairs(kinds=3, pairs=3, settings=3 * 3 + 2)
    about = looked_at(summary)
    assert "3 statement kinds, 3 pairs of them, 11 pairs with a setting" in about.extent
    assert about.to_json()["pairs"] == {"kinds": 3, "pairs": 3, "settings": 11}


def test_of_statements_that_nobody_reads_nothing_is_said() -> None:
    """A target's own language is one kind; a run of before has no kinds."""
    explored = {"default seed=1": part("line"), "default seed=2": part()}
    del explored["default seed=2"]["statements"]
    summary = make_summary(RUN, explored=explored)
    assert pairs_of(summary) is None
    assert "pairs" not in looked_at(summary).to_json()
