"""Runs in numbers."""

from __future__ import annotations

from pathlib import Path

from builders import make_result, make_spec

from tornpage.store.bugs import Novelty
from tornpage.store.store import Store
from tornpage.store.tally import Tally
from tornpage.vocabulary.model import Outcome


def test_a_run_is_counted_by_outcome_states_and_bugs(tmp_path: Path) -> None:
    """An open trial counts as none; explored states stand for the crashes of their run; a bug is new once."""
    with Store(tmp_path / "s.db") as store:
        for _ in range(2):
            run = store.begin_run("smoke", "engine", 1, 4, {}).id
            for number, broken in enumerate((None, None, 5, 5)):
                store.start_trial(run, make_spec(number), "page0", "none")
                store.finish_trial(run, make_result(number, broken=broken))
            store.start_trial(run, make_spec(4), "page0", "none")
        loss = store.begin_run("powerloss", "engine", 1, 0, {}).id
        store.put_exploration(loss, "a", {"states": 40})
        store.put_exploration(loss, "b", {"states": 2})
        empty = store.begin_run("smoke", "engine", 1, 4, {}).id
        tallies = store.tallies()
    outcomes = {Outcome.CLEAN: 2, Outcome.VIOLATION: 2}
    assert [dict(tallies[n].trials) for n in (1, 2)] == [outcomes, outcomes]
    assert [dict(tallies[n].bugs) for n in (1, 2)] == [{Novelty.NEW: 1}, {Novelty.AGAIN: 1}]
    assert (tallies[1].crashes, tallies[loss].crashes) == (4, 42)
    assert tallies[empty] == Tally()
