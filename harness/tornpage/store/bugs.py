"""Bugs in the store: findings with one root are one bug, from its first sighting on. The functions work on an
open connection of the store's; what changes something wants a transaction around it.

May import: codec, errors, model, origin, root.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tornpage.oracle.root import Root, roots_of
from tornpage.store.origin import Origin
from tornpage.vocabulary.codec import from_json
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Violation

__all__ = [
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
]


class BugStatus(StrEnum):
    """What a person, or a night, thinks of a bug."""

    NEW = "new"
    """Nobody has looked at it yet; or it came back after it was fixed."""
    KNOWN = "known"
    FIXED = "fixed"
    IGNORED = "ignored"
    """Neither replayed nor told as a failure."""


class Novelty(StrEnum):
    """What a sighting was at its time."""

    NEW = "new"
    BACK = "back"
    """It had been fixed."""
    AGAIN = "again"


@dataclass(frozen=True, slots=True)
class Reproducer:
    """The smallest known way to see a bug: a trial, or the undisturbed run of a script (trial None)."""

    run: int
    trial: int | None
    config: str

    @property
    def name(self) -> str:
        """As `tornpage replay` takes it, "" for an undisturbed run."""
        return f"{self.run}.{self.trial}" if self.trial is not None else ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A bug in a run. started: of the run, ISO 8601; build: hash of the target's programs; count: trials,
    power-loss states and undisturbed runs that show it."""

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
    """Where violations were found: a trial, or (trial None) an undisturbed run, of a run; alike: how many
    crashes it stands for."""

    run: int
    trial: int | None
    config: str
    alike: int = 1


def assign_bugs(db: sqlite3.Connection, where: Where, violations: Sequence[Violation]) -> list[int]:
    """The bug of each violation of one trial or undisturbed run, now recorded as seen there."""
    target, text = db.execute(
        "select target, origin from run where id = ?", (where.run,)
    ).fetchone()
    origin = from_json(Origin, text)
    roots = roots_of(violations)
    ids: dict[Root, int] = {}
    for root in dict.fromkeys(roots):
        invariants = {
            item.invariant for item, of in zip(violations, roots, strict=True) if of == root
        }
        bug, novelty = _find_or_add(db, target, root, where)
        _widen(db, bug, invariants, where)
        db.execute(
            "insert into sighting values (?, ?, ?, ?, ?, ?)"
            " on conflict do update set count = count + excluded.count",
            (
                bug,
                where.run,
                origin.started,
                origin.build,
                novelty.value,
                where.alike,
            ),
        )
        ids[root] = bug
    return [ids[root] for root in roots]


def _find_or_add(
    db: sqlite3.Connection, target: str, root: Root, where: Where
) -> tuple[int, Novelty]:
    known = db.execute(
        "select id, status, reason from bug where target = ? and fingerprint = ?",
        (target, root.fingerprint),
    ).fetchone()
    if known is None:
        cursor = db.execute(
            "insert into bug (target, fingerprint, title, invariants, run, trial, config)"
            " values (?, ?, ?, '[]', ?, ?, ?)",
            (target, root.fingerprint, root.title, where.run, where.trial, where.config),
        )
        return int(cursor.lastrowid or 0), Novelty.NEW
    bug, status, reason = known
    if status != BugStatus.FIXED:
        return bug, Novelty.AGAIN
    mark_bug(db, bug, BugStatus.NEW, f"came back in run {where.run}; it was fixed: {reason}")
    return bug, Novelty.BACK


def _widen(db: sqlite3.Connection, bug: int, invariants: set[int], where: Where) -> None:
    """A bug has the invariants of all its findings; a trial, which has an id, is the better reproducer."""
    text, trial = db.execute("select invariants, trial from bug where id = ?", (bug,)).fetchone()
    together = sorted({*json.loads(text), *invariants})
    db.execute("update bug set invariants = ? where id = ?", (json.dumps(together), bug))
    if trial is None and where.trial is not None:
        set_reproducer(db, bug, Reproducer(where.run, where.trial, where.config))


def set_reproducer(db: sqlite3.Connection, bug: int, reproducer: Reproducer) -> None:
    """From now on the bug is replayed by this."""
    db.execute(
        "update bug set run = ?, trial = ?, config = ? where id = ?",
        (reproducer.run, reproducer.trial, reproducer.config, bug),
    )


def mark_bug(db: sqlite3.Connection, bug: int, status: BugStatus, reason: str) -> None:
    """ConfigError if there is no such bug."""
    changed = db.execute(
        "update bug set status = ?, reason = ? where id = ?", (status.value, reason, bug)
    ).rowcount
    if not changed:
        raise ConfigError(f"no bug {bug}")


def load_bugs(db: sqlite3.Connection) -> list[Bug]:
    """All of them, by id."""
    seen: dict[int, list[Sighting]] = {}
    for sighting in sightings_of(db):
        seen.setdefault(sighting.bug, []).append(sighting)
    rows = db.execute(
        "select id, target, fingerprint, title, invariants, status, reason, run, trial, config"
        " from bug order by id"
    )
    return [_bug(row, seen[row[0]]) for row in rows]


def sightings_of(
    db: sqlite3.Connection, where: str = "", values: Sequence[object] = ()
) -> list[Sighting]:
    """All that fit the clause, in order of run."""
    rows = db.execute(
        f"select bug, run, started, build, novelty, count from sighting {where} order by run, bug",
        values,
    )
    return [
        Sighting(bug, run, started, build, Novelty(novelty), count)
        for bug, run, started, build, novelty, count in rows
    ]


def _bug(row: tuple[Any, ...], seen: list[Sighting]) -> Bug:
    bug, target, fingerprint, title, invariants, status, reason, run, trial, config = row
    return Bug(
        id=bug,
        target=target,
        fingerprint=fingerprint,
        title=title,
        invariants=tuple(json.loads(invariants)),
        status=BugStatus(status),
        reason=reason,
        reproducer=Reproducer(run, trial, config),
        first=seen[0],
        last=seen[-1],
        runs=len(seen),
        count=sum(sighting.count for sighting in seen),
        builds=tuple(dict.fromkeys(sighting.build for sighting in seen)),
    )
