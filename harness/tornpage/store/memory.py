"""What the store remembers from run to run: bugs, what became of them when they were played again, nights,
and the overview of all runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, column, select, table

from tornpage.store import schema
from tornpage.store.below import found_path
from tornpage.store.bugs import (
    Bug,
    BugStatus,
    Change,
    Reproducer,
    Sighting,
    load_bugs,
    not_reproduced,
    set_reproducer,
    set_status,
    sightings_of,
)
from tornpage.store.database import Database
from tornpage.store.origin import Origin
from tornpage.store.sql import next_id
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.notebook import Shown

__all__ = ["CLAIMS_MISSED", "NOTHING", "Answer", "MemoryStore", "Night", "Replayed", "RunFacts"]

NOTHING = "nothing exercised"
CLAIMS_MISSED = "claims missed"
"""Verdicts of runs that say nothing, and less than their campaign claims."""


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
class RunFacts(Shown):
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

    def cells(self) -> Mapping[str, object]:
        """For a notebook."""
        names = ("id", "started", "campaign", "target", "seed", "state", "verdict", "crashes")
        return {name: getattr(self, name) for name in (*names, "broken", "bugs", "seconds")}


class MemoryStore(Database):
    """The part of a store that outlives its runs."""

    def overview(self) -> list[RunFacts]:
        """All runs, the oldest first."""
        names = RunFacts.__slots__
        query = select(table("runs", *(column(name) for name in names))).order_by(column("id"))
        facts = [RunFacts(*row) for row in self.read(lambda db: db.execute(query).all())]
        return [replace(one, target=found_path(one.target, self.place.folder)) for one in facts]

    # -- bugs -----------------------------------------------------------------------------------

    def bugs(self, run: int | None = None) -> list[Bug]:
        """All bugs, or those that were seen in a run, by id."""
        if run is None:
            return self.read(load_bugs)
        return [bug for bug, _sighting in self.bugs_of(run).values()]

    def bug(self, bug: int) -> Bug:
        """ConfigError if there is no such bug."""
        for found in self.bugs():
            if found.id == bug:
                return found
        raise ConfigError(f"{self.name}: no bug {bug}")

    def sightings(self, run: int) -> dict[int, Sighting]:
        """The bugs of a run, by id; also of one that has been deleted."""
        found = self.read(lambda db: sightings_of(db, schema.sighting.c.run == run))
        return {sighting.bug: sighting for sighting in found}

    def sightings_of(self, bug: int) -> list[Sighting]:
        """Of a bug, the oldest first."""
        return self.read(lambda db: sightings_of(db, schema.sighting.c.bug == bug))

    def bugs_of(self, run: int) -> dict[int, tuple[Bug, Sighting]]:
        """The bugs of a run by id, each as it is now and as it was seen there."""
        seen = self.sightings(run)
        return {bug.id: (bug, seen[bug.id]) for bug in self.read(load_bugs) if bug.id in seen}

    def mark_bug(
        self, bug: int, status: BugStatus, reason: str = "", *, at: str = "", host: str = ""
    ) -> Bug:
        """What somebody thinks of a bug from now on, and why: "" = for the reason that it had; when (ISO
        8601) and where this was said. ConfigError if there is no such bug."""
        change = Change(status, reason or self.bug(bug).reason, at, host=host)
        self.write(lambda db: set_status(db, bug, change))
        return self.bug(bug)

    def set_reproducer(self, bug: int, reproducer: Reproducer) -> None:
        """From now on the bug is replayed by this."""
        self.write(lambda db: set_reproducer(db, bug, reproducer))

    def reproducing_runs(self) -> set[int]:
        """The runs that hold the reproducer of a bug that is not ignored."""
        bugs = schema.bug
        query = select(bugs.c.run).where(bugs.c.status != BugStatus.IGNORED.value)
        return set(self.read(lambda db: db.execute(query).scalars().all()))

    def put_replay(self, replayed: Replayed) -> None:
        """What became of a bug when it was played again."""

        def put(db: Connection) -> None:
            insert = schema.insert_into(db, schema.replay).values(
                run=replayed.run,
                bug=replayed.bug,
                answer=replayed.answer.value,
                note=replayed.note,
            )
            is_new = db.execute(insert.on_conflict_do_nothing()).rowcount
            if is_new and replayed.answer is Answer.NOT_REPRODUCED:
                not_reproduced(db, replayed.bug, replayed.run, replayed.note)

        self.write(put)

    def replays(self, run: int | None = None, bug: int | None = None) -> list[Replayed]:
        """In a run, or of a bug, the oldest first."""
        rows = schema.replay
        query = select(rows).order_by(rows.c.run, rows.c.bug)
        if run is not None:
            query = query.where(rows.c.run == run)
        if bug is not None:
            query = query.where(rows.c.bug == bug)
        found = self.read(lambda db: db.execute(query).all())
        return [Replayed(row[0], row[1], Answer(row[2]), row[3]) for row in found]

    # -- nights ---------------------------------------------------------------------------------

    def begin_night(self, plan: Mapping[str, Any], origin: Origin) -> Night:
        """Adds a night in state running, owned by this store until it is closed."""
        nights = schema.night
        number: int | None = None

        def begin(db: Connection) -> int:
            nonlocal number
            self.place.exclude(db)
            if number is None:
                number = next_id(db, nights.c.id)
            self._lock(db, f"night {number}")
            insert = schema.insert_into(db, nights).values(
                id=number,
                plan=json.dumps(dict(plan)),
                state="running",
                seconds=0.0,
                origin=to_json(origin),
            )
            db.execute(insert.on_conflict_do_nothing())
            return number

        return self.night(self.write(begin))

    def interrupted_nights(self) -> list[Night]:
        """The newest first."""
        nights = schema.night
        query = select(nights).where(nights.c.state == "running").order_by(nights.c.id.desc())
        return self.read(lambda db: [_night(row) for row in db.execute(query)])

    def own_night(self, night: int) -> Night:
        """A night, owned by this store from now on. ConfigError if its owner lives."""
        self._own(f"night {night}")
        return self.night(night)

    def end_night(self, night: int, state: str) -> Night:
        """It is finished, or failed: nothing is added to it any more. Returns it as it is now."""
        rows = schema.night
        change = rows.update().where(rows.c.id == night).values(state=state)
        self.write(lambda db: db.execute(change))
        return self.night(night)

    def nights(self) -> list[Night]:
        """All of them, by number."""
        query = select(schema.night).order_by(schema.night.c.id)
        return [_night(row) for row in self.read(lambda db: db.execute(query).all())]

    def add_night_seconds(self, night: int, seconds: float) -> None:
        """Adds time spent."""
        rows = schema.night
        total = self.night(night).seconds + seconds
        change = rows.update().where(rows.c.id == night).values(seconds=total)
        self.write(lambda db: db.execute(change))

    def night(self, night: int) -> Night:
        """ConfigError if there is no such night."""
        query = select(schema.night).where(schema.night.c.id == night)
        found = self.read(lambda db: [_night(row) for row in db.execute(query)])
        if not found:
            raise ConfigError(f"{self.name}: no night {night}")
        return found[0]


def _night(row: Row[Any]) -> Night:
    plan = json.loads(row.plan)
    return Night(row.id, plan, row.state, row.seconds, from_json(Origin, row.origin))
