"""What the store remembers from run to run: bugs, what became of them when they were played again, nights,
and the overview of all runs.

May import: bugs, codec, database, errors, origin.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tornpage.store.bugs import (
    Bug,
    BugStatus,
    Reproducer,
    Sighting,
    load_bugs,
    mark_bug,
    set_reproducer,
    sightings_of,
)
from tornpage.store.database import Database
from tornpage.store.origin import Origin
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError

__all__ = ["Answer", "MemoryStore", "Night", "Replayed", "RunFacts"]


class Answer(StrEnum):
    """What became of a finding that was played again."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_PLAYED = "cannot be played"


@dataclass(frozen=True, slots=True)
class Replayed:
    """A row of `replay`: a bug's reproducer, played again in a run."""

    run: int
    bug: int
    answer: Answer
    note: str


@dataclass(frozen=True, slots=True)
class Night:
    """A row of `night`; plan is a JSON object of who plans it."""

    id: int
    plan: dict[str, Any]
    state: str
    seconds: float
    origin: Origin


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A row of the view `runs` (views.sql)."""

    id: int
    started: str | None
    campaign: str
    target: str
    seed: int
    state: str
    verdict: str
    crashes: int
    broken: int
    unsure: int
    bugs: int
    news: int
    seconds: float
    night: int | None


class MemoryStore(Database):
    """The part of a store that outlives its runs."""

    def overview(self) -> list[RunFacts]:
        """All runs, the oldest first."""
        columns = ", ".join(RunFacts.__slots__)
        return [
            RunFacts(*row) for row in self._db.execute(f"select {columns} from runs order by id")
        ]

    # -- bugs -----------------------------------------------------------------------------------

    def bugs(self, run: int | None = None) -> list[Bug]:
        """All bugs, or those that were seen in a run, by id."""
        seen = None if run is None else self.sightings(run).keys()
        return [bug for bug in load_bugs(self._db) if seen is None or bug.id in seen]

    def bug(self, bug: int) -> Bug:
        """ConfigError if there is no such bug."""
        for found in self.bugs():
            if found.id == bug:
                return found
        raise ConfigError(f"{self.path}: no bug {bug}")

    def sightings(self, run: int) -> dict[int, Sighting]:
        """The bugs of a run, by id; also of one that has been deleted."""
        return {found.bug: found for found in sightings_of(self._db, "where run = ?", (run,))}

    def sightings_of(self, bug: int) -> list[Sighting]:
        """Of a bug, the oldest first."""
        return sightings_of(self._db, "where bug = ?", (bug,))

    def bugs_of(self, run: int) -> dict[int, tuple[Bug, Sighting]]:
        """The bugs of a run by id, each as it is now and as it was seen there."""
        seen = self.sightings(run)
        return {bug.id: (bug, seen[bug.id]) for bug in load_bugs(self._db) if bug.id in seen}

    def mark_bug(self, bug: int, status: BugStatus, reason: str) -> Bug:
        """What is thought of a bug from now on, and why. ConfigError if there is no such bug."""
        with self._transaction():
            mark_bug(self._db, bug, status, reason)
        return self.bug(bug)

    def set_reproducer(self, bug: int, reproducer: Reproducer) -> None:
        """From now on the bug is replayed by this."""
        with self._transaction():
            set_reproducer(self._db, bug, reproducer)

    def reproducing_runs(self) -> set[int]:
        """The runs that hold the reproducer of a bug that is not ignored."""
        rows = self._db.execute("select run from bug where status != ?", (BugStatus.IGNORED.value,))
        return {row[0] for row in rows}

    def put_replay(self, replayed: Replayed) -> None:
        """What became of a bug when it was played again."""
        with self._transaction():
            self._db.execute(
                "insert or ignore into replay values (?, ?, ?, ?)",
                (replayed.run, replayed.bug, replayed.answer.value, replayed.note),
            )

    def replays(self, run: int | None = None, bug: int | None = None) -> list[Replayed]:
        """In a run, or of a bug, the oldest first."""
        rows = self._db.execute(
            "select run, bug, answer, note from replay"
            " where run = coalesce(?, run) and bug = coalesce(?, bug) order by run, bug",
            (run, bug),
        )
        return [Replayed(row[0], row[1], Answer(row[2]), row[3]) for row in rows]

    # -- nights ---------------------------------------------------------------------------------

    def begin_night(self, plan: Mapping[str, Any], origin: Origin) -> Night:
        """Adds a night in state running, owned by this store until it is closed."""
        with self._transaction():
            cursor = self._db.execute(
                "insert into night (plan, state, seconds, origin) values (?, 'running', 0, ?)",
                (json.dumps(dict(plan)), to_json(origin)),
            )
            night = int(cursor.lastrowid or 0)
            self._lock(f"night {night}")
        return self.night(night)

    def resume_night(self) -> Night | None:
        """The newest interrupted night, now owned by this store; None if there is none. ConfigError if its
        owner lives."""
        found = self._db.execute(
            "select id from night where state = 'running' order by id desc limit 1"
        ).fetchone()
        if found is None:
            return None
        self._lock(f"night {found[0]}")
        return self.night(found[0])

    def end_night(self, night: int, state: str) -> Night:
        """It is finished, or failed: nothing is added to it any more. Returns it as it is now."""
        with self._transaction():
            self._db.execute("update night set state = ? where id = ?", (state, night))
        return self.night(night)

    def add_night_seconds(self, night: int, seconds: float) -> None:
        """Adds time spent."""
        with self._transaction():
            self._db.execute(
                "update night set seconds = seconds + ? where id = ?", (seconds, night)
            )

    def night(self, night: int) -> Night:
        """ConfigError if there is no such night."""
        row = self._db.execute(
            "select id, plan, state, seconds, origin from night where id = ?", (night,)
        ).fetchone()
        if row is None:
            raise ConfigError(f"{self.path}: no night {night}")
        return Night(row[0], json.loads(row[1]), row[2], row[3], from_json(Origin, row[4]))
