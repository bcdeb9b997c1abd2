"""Bugs in the store: findings with one root are one bug, from its first sighting on. The functions work on an
open connection of the store's; what changes something wants a transaction around it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, select

from tornpage.oracle.root import Root, roots_of
from tornpage.store import schema
from tornpage.store.origin import Origin
from tornpage.store.rows import DETAILS, SHRINK
from tornpage.vocabulary.codec import from_json
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Violation
from tornpage.vocabulary.notebook import Shown

__all__ = [
    "Bug",
    "BugStatus",
    "Change",
    "Novelty",
    "Reproducer",
    "Sighting",
    "Where",
    "assign_bugs",
    "lives_of",
    "load_bugs",
    "not_reproduced",
    "set_reproducer",
    "set_status",
    "sightings_of",
    "violation_rows",
    "widen",
]


class BugStatus(StrEnum):
    """How a bug stands: as runs find it, or as a person has marked it. NEW and BACK are news."""

    NEW = "new"
    """The run, or night, that found it is the last one that has seen it."""
    BACK = "back"
    """It was fixed or not reproduced, and the last run, or night, that has seen it was the first to do so."""
    OPEN = "open"
    """Seen in another run or night since."""
    NOT_REPRODUCED = "not-reproduced"
    """Its reproducer was played again and did not show it, and nothing has shown it since."""
    KNOWN = "known"
    FIXED = "fixed"
    IGNORED = "ignored"
    """Neither replayed nor told as a failure."""


MARKED = frozenset({BugStatus.KNOWN, BugStatus.FIXED, BugStatus.IGNORED})
"""What only a person says."""


class Novelty(StrEnum):
    """What a sighting was at its time."""

    NEW = "new"
    BACK = "back"
    """It was fixed, or not reproduced."""
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class Reproducer:
    """The smallest known way to see a bug: a trial, or the fault-free run of a script (trial None)."""

    run: int
    trial: int | None
    config: str

    @property
    def name(self) -> str:
        """As `tornpage replay` takes it, "" for a fault-free run."""
        return f"{self.run}.{self.trial}" if self.trial is not None else ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A bug in a run. started: of the run, ISO 8601; build: hash of the target's programs; count: trials,
    power-loss states and fault-free runs that show it."""

    bug: int
    run: int
    started: str
    build: str
    novelty: Novelty
    count: int


@dataclass(frozen=True, slots=True)
class Change:
    """A row of `life`: a status that a bug had, from then on. at: ISO 8601; build: hash of the target's
    programs; revision: of their sources; run, night: that it came from, None where somebody said so."""

    status: BugStatus
    reason: str
    at: str = ""
    build: str = ""
    revision: str = ""
    host: str = ""
    run: int | None = None
    night: int | None = None

    def is_of(self, other: Change) -> bool:
        """Of the same run, or of one night."""
        return self.run == other.run or (self.night is not None and self.night == other.night)


@dataclass(frozen=True, slots=True)
class Bug(Shown):
    """One cause. runs, count, builds: over all its sightings, of runs that are deleted too; life: each status
    that it has had, the newest last."""

    id: int
    target: str
    fingerprint: str
    title: str
    invariants: tuple[int, ...]
    status: BugStatus
    reason: str
    reproducer: Reproducer
    first: Sighting
    last: Sighting
    runs: int
    count: int
    builds: tuple[str, ...]
    life: tuple[Change, ...] = ()

    def cells(self) -> Mapping[str, object]:
        """For a notebook."""
        return {
            "bug": self.id,
            "status": self.status,
            "title": self.title,
            "target": self.target,
            "broken": ", ".join(f"I{number}" for number in self.invariants),
            "times": self.count,
            "runs": self.runs,
            "shown by": self.reproducer.name or f"the fault-free run of {self.reproducer.config}",
        }


@dataclass(frozen=True, slots=True)
class Where:
    """Where violations were found: a trial, or (trial None) a fault-free run, of a run; alike: how many
    crashes it stands for."""

    run: int
    trial: int | None
    config: str
    alike: int = 1


def assign_bugs(db: Connection, where: Where, violations: Sequence[Violation]) -> list[int]:
    """The bug of each violation of one trial or fault-free run, now recorded as seen there."""
    run = _load_run(db, where.run)
    roots = roots_of(violations)
    ids: dict[Root, int] = {}
    for root in dict.fromkeys(roots):
        invariants = {
            item.invariant for item, of in zip(violations, roots, strict=True) if of == root
        }
        bug, novelty = _find_or_add(db, run, root, where)
        widen(db, bug, invariants)
        seen = Sighting(bug, where.run, run.seen.at, run.seen.build, novelty, where.alike)
        _see(db, seen)
        ids[root] = bug
    return [ids[root] for root in roots]


@dataclass(frozen=True, slots=True)
class _Run:
    """What a bug must know of a run. seen: a change that comes from it, without its status."""

    target: str
    campaign: str
    seen: Change


def _load_run(db: Connection, run: int) -> _Run:
    table = schema.run
    query = select(table.c.target, table.c.campaign, table.c.origin, table.c.night)
    place, campaign, text, night = db.execute(query.where(table.c.id == run)).one()
    origin = from_json(Origin, text)
    seen = Change(
        BugStatus.OPEN,
        "",
        origin.started,
        origin.build,
        origin.revision,
        origin.host,
        run,
        night,
    )
    return _Run(origin.target or place, campaign, seen)


def violation_rows(
    key: Mapping[str, object], violations: Sequence[Violation], bugs: Sequence[int | None]
) -> list[dict[str, object]]:
    """As the tables of violations have them. key: what is before the position."""
    return [
        {
            **key,
            "position": position,
            "invariant": violation.invariant,
            "site": violation.site.value if violation.site else None,
            "path": violation.path,
            "what": violation.what,
            "source": violation.source.value,
            "bug": bug,
        }
        for position, (violation, bug) in enumerate(zip(violations, bugs, strict=True))
    ]


def _see(db: Connection, seen: Sighting) -> None:
    """Adds to the sighting of a bug in a run."""
    insert = schema.insert_into(db, schema.sighting).values(
        bug=seen.bug,
        run=seen.run,
        started=seen.started,
        build=seen.build,
        novelty=seen.novelty.value,
        count=seen.count,
    )
    together = schema.sighting.c.count + insert.excluded.count
    db.execute(
        insert.on_conflict_do_update(index_elements=["bug", "run"], set_={"count": together})
    )


def _find_or_add(db: Connection, run: _Run, root: Root, where: Where) -> tuple[int, Novelty]:
    table = schema.bug
    known = db.execute(
        select(table).where(table.c.target == run.target, table.c.fingerprint == root.fingerprint)
    ).one_or_none()
    if known is None:
        added = db.execute(
            table.insert().values(
                target=run.target,
                fingerprint=root.fingerprint,
                title=root.title,
                invariants="[]",
                run=where.run,
                trial=where.trial,
                config=where.config,
            )
        )
        assert added.inserted_primary_key is not None, "it is the row's id"
        bug = int(added.inserted_primary_key[0])
        set_status(db, bug, replace(run.seen, status=BugStatus.NEW))
        return bug, Novelty.NEW
    if _takes_over(db, known, run, where):
        set_reproducer(db, known.id, Reproducer(where.run, where.trial, where.config))
    return known.id, _meet(db, known, run)


def _meet(db: Connection, bug: Row[Any], run: _Run) -> Novelty:
    """A bug that there was is seen by a run: its status from now on."""
    status = BugStatus(bug.status)
    if status in (BugStatus.OPEN, BugStatus.KNOWN, BugStatus.IGNORED):
        return Novelty.AGAIN
    life = lives_of(db, bug.id).get(bug.id, [])
    last = life[-1] if life else Change(status, bug.reason)
    before = life[-2] if len(life) > 1 else replace(last, status=BugStatus.OPEN, reason="")
    if status in (BugStatus.NEW, BugStatus.BACK):
        if not last.is_of(run.seen) and run.campaign != SHRINK:
            set_status(db, bug.id, replace(run.seen, reason=last.reason))
        return Novelty.AGAIN
    if status is BugStatus.NOT_REPRODUCED and last.is_of(run.seen):
        # That one play of this night did not show it is no news of a bug that is still there.
        set_status(db, bug.id, replace(run.seen, status=before.status, reason=before.reason))
        return Novelty.AGAIN
    marked = last if status is BugStatus.FIXED else before
    was = f"run {last.run} did not show it any more"
    if marked.status in MARKED:
        was = f"it was {marked.status}" + (f": {marked.reason}" if marked.reason else "")
    reason = f"came back in run {run.seen.run}; {was}"
    set_status(db, bug.id, replace(run.seen, status=BugStatus.BACK, reason=reason))
    return Novelty.BACK


def _takes_over(db: Connection, bug: Row[Any], run: _Run, where: Where) -> bool:
    """Whether a bug is replayed by this sighting from now on: a trial goes before a fault-free run, which has
    no id; one that shows it before one that did not any more; and one of these programs before one of
    others, unless that was made small."""
    if where.trial is None or bug.run == where.run:
        return where.trial is not None and bug.trial is None
    if bug.trial is None or run.campaign in DETAILS:
        return bug.trial is None
    if bug.status == BugStatus.NOT_REPRODUCED:
        return True
    if not db.execute(select(schema.run.c.id).where(schema.run.c.id == bug.run)).first():
        return True
    old = _load_run(db, bug.run)
    return old.campaign != SHRINK and old.seen.build != run.seen.build


def not_reproduced(db: Connection, bug: int, run: int, note: str) -> None:
    """A play of its reproducer in this run did not show it; note: what is known besides, or ""."""
    table = schema.bug
    status = db.execute(select(table.c.status).where(table.c.id == bug)).scalar_one()
    if status not in (BugStatus.NOT_REPRODUCED, BugStatus.FIXED, BugStatus.IGNORED):
        seen = _load_run(db, run).seen
        set_status(db, bug, replace(seen, status=BugStatus.NOT_REPRODUCED, reason=note))


def widen(db: Connection, bug: int, invariants: Iterable[int]) -> None:
    """A bug has the invariants of all its findings."""
    table = schema.bug
    text = db.execute(select(table.c.invariants).where(table.c.id == bug)).scalar_one()
    together = sorted({*json.loads(text), *invariants})
    db.execute(table.update().where(table.c.id == bug).values(invariants=json.dumps(together)))


def set_reproducer(
    db: Connection, bug: int, reproducer: Reproducer, *where: ColumnElement[bool]
) -> None:
    """From now on the bug, where this holds of it, is replayed by this."""
    table = schema.bug
    db.execute(
        table.update()
        .where(table.c.id == bug, *where)
        .values(run=reproducer.run, trial=reproducer.trial, config=reproducer.config)
    )


def set_status(db: Connection, bug: int, change: Change) -> None:
    """How a bug stands from now on. ConfigError if there is no such bug."""
    table, life = schema.bug, schema.life
    told = {"status": change.status.value, "reason": change.reason}
    if not db.execute(table.update().where(table.c.id == bug).values(told)).rowcount:
        raise ConfigError(f"no bug {bug}")
    last = select(func.max(life.c.number)).where(life.c.bug == bug)
    number = 1 + (db.execute(last).scalar_one() or 0)
    db.execute(life.insert(), {**asdict(change), **told, "bug": bug, "number": number})


def lives_of(db: Connection, bug: int | None = None) -> dict[int, list[Change]]:
    """What each bug, or one of them, has been, the newest last."""
    table = schema.life
    query = select(table).order_by(table.c.bug, table.c.number)
    lives: dict[int, list[Change]] = {}
    for row in db.execute(query if bug is None else query.where(table.c.bug == bug)):
        values = {name: row._mapping[name] for name in Change.__slots__}
        change = Change(**{**values, "status": BugStatus(row.status)})
        lives.setdefault(row.bug, []).append(change)
    return lives


def load_bugs(db: Connection) -> list[Bug]:
    """All of them, by id."""
    seen: dict[int, list[Sighting]] = {}
    for sighting in sightings_of(db):
        seen.setdefault(sighting.bug, []).append(sighting)
    lives = lives_of(db)
    rows = db.execute(select(schema.bug).order_by(schema.bug.c.id))
    return [_bug(row, seen[row.id], lives.get(row.id, [])) for row in rows]


def sightings_of(db: Connection, *where: ColumnElement[bool]) -> list[Sighting]:
    """All that fit, in order of run."""
    table = schema.sighting
    rows = db.execute(select(table).where(*where).order_by(table.c.run, table.c.bug))
    return [
        Sighting(bug, run, started, build, Novelty(novelty), count)
        for bug, run, started, build, novelty, count in rows
    ]


def _bug(row: Row[Any], seen: list[Sighting], life: list[Change]) -> Bug:
    return Bug(
        id=row.id,
        target=row.target,
        fingerprint=row.fingerprint,
        title=row.title,
        invariants=tuple(json.loads(row.invariants)),
        status=BugStatus(row.status),
        reason=row.reason,
        reproducer=Reproducer(row.run, row.trial, row.config),
        first=seen[0],
        last=seen[-1],
        runs=len(seen),
        count=sum(sighting.count for sighting in seen),
        builds=tuple(dict.fromkeys(sighting.build for sighting in seen)),
        life=tuple(life),
    )
