"""From version 2 to 3: nights; bugs, which are found in the violations that are there. Those of censuses,
JSON in a column until then, have a table of their own.

What a bug is, is told by the root of today: one that is found here must be that of findings to come.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alembic import op
from sqlalchemy import Connection, text

from tornpage.oracle.root import Root, roots_of
from tornpage.store.migrate import statements
from tornpage.vocabulary.model import Source, Violation

revision = "3"
down_revision = "2"

_NOT_THE_TARGET = {"campaign", "explorer", "harness", "judge", "launcher", "preload", "python"}
"""Programs of an origin; the others are the build of the target."""

_RUNS = text("select id, target, origin from run order by id")
_CENSUSES = text("select config, violations from census where run = :run order by config")
_BROKEN = text(
    "select number, config, result from trial where run = :run and outcome = 'violation'"
    " order by number"
)
_ADD_CENSUS_VIOLATION = text(
    "insert into census_violation"
    " (run, config, position, invariant, site, path, what, source, bug)"
    " values (:run, :config, :position, :invariant, :site, :path, :what, :source, :bug)"
)
_SET_BUG = text(
    "update violation set bug = :bug where run = :run and trial = :trial and position = :position"
)
_BUG = text("select id from bug where target = :target and fingerprint = :fingerprint")
_KNOWN = text("select invariants, trial from bug where id = :bug")
_ADD_BUG = text(
    "insert into bug (target, fingerprint, title, invariants, run, trial, config)"
    " values (:target, :fingerprint, :title, '[]', :run, :trial, :config)"
)
_WIDEN = text("update bug set invariants = :invariants where id = :bug")
_REPRODUCE = text("update bug set run = :run, trial = :trial, config = :config where id = :bug")
_SEE = text(
    "insert into sighting (bug, run, started, build, novelty, count)"
    " values (:bug, :run, :started, :build, :novelty, :count)"
    " on conflict (bug, run) do update set count = count + excluded.count"
)


@dataclass(frozen=True, slots=True)
class _Where:
    """An undisturbed run (trial None), or a trial."""

    run: int
    trial: int | None
    config: str

    def values(self) -> dict[str, Any]:
        return {"run": self.run, "trial": self.trial, "config": self.config}


@dataclass(frozen=True, slots=True)
class _Run:
    """A run, and what its sightings say of it."""

    number: int
    target: str
    started: str
    build: str

    def see(self, db: Connection, where: _Where, broken: Sequence[Any], count: int) -> list[int]:
        """The bug of each violation, now recorded as seen there."""
        roots = roots_of([_violation(one) for one in broken])
        ids = {}
        for root in dict.fromkeys(roots):
            of_root = {
                int(one["invariant"]) for one, of in zip(broken, roots, strict=True) if of == root
            }
            bug, novelty = self._find_or_add(db, root, where)
            _widen(db, bug, of_root, where)
            seen = {"started": self.started, "build": self.build, "novelty": novelty}
            db.execute(_SEE, {"bug": bug, "run": self.number, "count": count, **seen})
            ids[root] = bug
        return [ids[root] for root in roots]

    def _find_or_add(self, db: Connection, root: Root, where: _Where) -> tuple[int, str]:
        name = {"target": self.target, "fingerprint": root.fingerprint}
        known = db.execute(_BUG, name).one_or_none()
        if known is not None:
            return known.id, "again"
        db.execute(_ADD_BUG, {**name, "title": root.title, **where.values()})
        return db.execute(_BUG, name).one().id, "new"


def upgrade() -> None:
    """Tables first; the runs in their order, since the first one to see a bug found it."""
    for statement in statements(Path(__file__).with_name("from_2.sql").read_text("utf-8")):
        op.execute(text(statement))
    db = op.get_bind()
    for number, target, written in db.execute(_RUNS).all():
        origin = json.loads(written)
        run = _Run(number, target, origin.get("started", ""), _build(origin.get("programs", {})))
        _assign_of_censuses(db, run)
        _assign_of_trials(db, run)
    op.drop_column("census", "violations")


def _assign_of_censuses(db: Connection, run: _Run) -> None:
    for config, written in db.execute(_CENSUSES, {"run": run.number}).all():
        broken = json.loads(written)
        bugs = run.see(db, _Where(run.number, None, config), broken, 1)
        for position, (one, bug) in enumerate(zip(broken, bugs, strict=True)):
            row = {"run": run.number, "config": config, "position": position, "bug": bug}
            db.execute(_ADD_CENSUS_VIOLATION, {**_told(one), **row})


def _assign_of_trials(db: Connection, run: _Run) -> None:
    for number, config, written in db.execute(_BROKEN, {"run": run.number}).all():
        result = json.loads(written)
        where = _Where(run.number, number, config)
        bugs = run.see(db, where, result["violations"], result.get("alike", 1))
        for position, bug in enumerate(bugs):
            row = {"run": run.number, "trial": number, "position": position, "bug": bug}
            db.execute(_SET_BUG, row)


def _widen(db: Connection, bug: int, invariants: set[int], where: _Where) -> None:
    """A bug has the invariants of all its findings; a trial, which has an id, is the better reproducer."""
    known, trial = db.execute(_KNOWN, {"bug": bug}).one()
    together = sorted({*json.loads(known), *invariants})
    db.execute(_WIDEN, {"bug": bug, "invariants": json.dumps(together)})
    if trial is None and where.trial is not None:
        db.execute(_REPRODUCE, {"bug": bug, **where.values()})


def _build(programs: Mapping[str, str]) -> str:
    return "+".join(programs[name] for name in sorted(programs) if name not in _NOT_THE_TARGET)


def _told(one: Mapping[str, Any]) -> dict[str, Any]:
    """A violation as its row has it."""
    found = {"site": None, "path": "", "source": "state", **one}
    return {name: found[name] for name in ("invariant", "site", "path", "what", "source")}


def _violation(one: Mapping[str, Any]) -> Violation:
    """What its root depends on."""
    return Violation(one["invariant"], one["what"], source=Source(one.get("source", "state")))
