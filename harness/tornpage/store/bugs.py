"""Bugs in the store: findings with one root are one bug, from its first sighting on. The functions work on an
open connection of the store's; what changes something wants a transaction around it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, or_, select

from tornpage.oracle.root import Root, roots_of
from tornpage.store import schema
from tornpage.store.origin import Origin
from tornpage.vocabulary.codec import from_json
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Violation

__all__ = [
    "NOT_SHOWN",
    "SHOWN",
    "Bug",
    "BugStatus",
    "Novelty",
    "Reproducer",
    "Sighting",
    "Where",
    "assign_bugs",
    "load_bugs",
    "mark_bug",
    "set_reproducer",
    "sightings_of",
    "violation_rows",
    "widen",
]


SHOWN, NOT_SHOWN = "reproduced", "not reproduced"
"""What became of a bug that was played again, where it could be (memory.Answer)."""


class BugStatus(StrEnum):
    """What a person, or a night, thinks of a bug."""

    NEW = "new"
    """Nobody has looked at it yet; or it came back."""
    KNOWN = "known"
    FIXED = "fixed"
    IGNORED = "ignored"
    """Neither replayed nor told as a failure."""


class Novelty(StrEnum):
    """What a sighting was at its time."""

    NEW = "new"
    BACK = "back"
    """It had been fixed, or played again it did not show, and nothing has shown it since."""
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
class Bug:
    """One cause. runs, count, builds: over all its sightings, of runs that are deleted too."""

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
    table = schema.run
    place, text = db.execute(
        select(table.c.target, table.c.origin).where(table.c.id == where.run)
    ).one()
    origin = from_json(Origin, text)
    target = origin.target or place
    roots = roots_of(violations)
    ids: dict[Root, int] = {}
    for root in dict.fromkeys(roots):
        invariants = {
            item.invariant for item, of in zip(violations, roots, strict=True) if of == root
        }
        bug, novelty = _find_or_add(db, target, root, where)
        widen(db, bug, invariants)
        _prefer_trial(db, bug, where)
        _see(db, Sighting(bug, where.run, origin.started, origin.build, novelty, where.alike))
        ids[root] = bug
    return [ids[root] for root in roots]


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


def _find_or_add(db: Connection, target: str, root: Root, where: Where) -> tuple[int, Novelty]:
    table = schema.bug
    known = db.execute(
        select(table.c.id, table.c.status, table.c.reason).where(
            table.c.target == target, table.c.fingerprint == root.fingerprint
        )
    ).one_or_none()
    if known is None:
        added = db.execute(
            table.insert().values(
                target=target,
                fingerprint=root.fingerprint,
                title=root.title,
                invariants="[]",
                run=where.run,
                trial=where.trial,
                config=where.config,
            )
        )
        assert added.inserted_primary_key is not None, "it is the row's id"
        return int(added.inserted_primary_key[0]), Novelty.NEW
    bug, status, reason = known
    gone = _gone_in(db, bug, where.run)
    if status == BugStatus.IGNORED or (status != BugStatus.FIXED and gone is None):
        return bug, Novelty.AGAIN
    was = f"it was {status}" if status != BugStatus.NEW else f"run {gone} did not show it any more"
    reason = f"came back in run {where.run}; {was}" + (f": {reason}" if reason else "")
    mark_bug(db, bug, BugStatus.NEW, reason)
    return bug, Novelty.BACK


def _gone_in(db: Connection, bug: int, run: int) -> int | None:
    """The run before this one that played the bug again and did not see it, if nothing has shown it since.
    What was played in the night of this run does not count: that one play did not show it is no news of a
    bug that is still there."""
    played, runs = schema.replay, schema.run
    night = db.execute(select(runs.c.night).where(runs.c.id == run)).scalar_one()
    before = [] if night is None else [or_(runs.c.night.is_(None), runs.c.night != night)]
    last = db.execute(
        select(played.c.run, played.c.answer)
        .join(runs, runs.c.id == played.c.run)
        .where(
            played.c.bug == bug,
            played.c.run < run,
            played.c.answer.in_((SHOWN, NOT_SHOWN)),
            *before,
        )
        .order_by(played.c.run.desc())
        .limit(1)
    ).one_or_none()
    if last is None or last.answer != NOT_SHOWN:
        return None
    seen = schema.sighting.c
    since = select(seen.run).where(seen.bug == bug, seen.run >= last.run).limit(1)
    return None if db.execute(since).first() else int(last.run)


def widen(db: Connection, bug: int, invariants: Iterable[int]) -> None:
    """A bug has the invariants of all its findings."""
    table = schema.bug
    text = db.execute(select(table.c.invariants).where(table.c.id == bug)).scalar_one()
    together = sorted({*json.loads(text), *invariants})
    db.execute(table.update().where(table.c.id == bug).values(invariants=json.dumps(together)))


def _prefer_trial(db: Connection, bug: int, where: Where) -> None:
    """To a fault-free run, which has no id, as what reproduces the bug."""
    if where.trial is not None:
        best = Reproducer(where.run, where.trial, where.config)
        set_reproducer(db, bug, best, schema.bug.c.trial.is_(None))


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


def mark_bug(db: Connection, bug: int, status: BugStatus, reason: str) -> None:
    """ConfigError if there is no such bug."""
    table = schema.bug
    changed = db.execute(
        table.update().where(table.c.id == bug).values(status=status.value, reason=reason)
    ).rowcount
    if not changed:
        raise ConfigError(f"no bug {bug}")


def load_bugs(db: Connection) -> list[Bug]:
    """All of them, by id."""
    seen: dict[int, list[Sighting]] = {}
    for sighting in sightings_of(db):
        seen.setdefault(sighting.bug, []).append(sighting)
    rows = db.execute(select(schema.bug).order_by(schema.bug.c.id))
    return [_bug(row, seen[row.id]) for row in rows]


def sightings_of(db: Connection, *where: ColumnElement[bool]) -> list[Sighting]:
    """All that fit, in order of run."""
    table = schema.sighting
    rows = db.execute(select(table).where(*where).order_by(table.c.run, table.c.bug))
    return [
        Sighting(bug, run, started, build, Novelty(novelty), count)
        for bug, run, started, build, novelty, count in rows
    ]


def _bug(row: Row[Any], seen: list[Sighting]) -> Bug:
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
    )
