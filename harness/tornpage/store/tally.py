"""Runs in numbers, of many at once: for lists and trends. store.py is its only user.

May import: bugs, model.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field

from tornpage.store.bugs import Novelty
from tornpage.vocabulary.model import Outcome

__all__ = ["Tally", "tallies_of"]


@dataclass(slots=True)
class Tally:
    """One run. trials: by outcome, power-loss states that broke nothing not among them; states: that
    were explored; bugs: seen in it, by what they were then."""

    trials: Counter[Outcome] = field(default_factory=Counter)
    states: int = 0
    bugs: Counter[Novelty] = field(default_factory=Counter)

    @property
    def crashes(self) -> int:
        """Judged: states of a power-loss campaign, trials of any other."""
        return self.states or self.trials.total()


def tallies_of(db: sqlite3.Connection) -> dict[int, Tally]:
    """By run, of all runs of the store."""
    found = {run: Tally() for (run,) in db.execute("select id from run")}
    for run, outcome, count in db.execute(
        "select run, outcome, count(*) from trial where outcome is not null group by 1, 2"
    ):
        found[run].trials[Outcome(outcome)] = count
    for run, states in db.execute(
        "select run, sum(json_extract(summary, '$.states')) from exploration group by 1"
    ):
        found[run].states = int(states)
    for run, novelty, count in db.execute(
        "select run, novelty, count(*) from sighting where run in (select id from run) group by 1, 2"
    ):
        found[run].bugs[Novelty(novelty)] = count
    return found
