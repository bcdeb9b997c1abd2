"""Trials in the store: the statements that each of them needs, built once, and pages of rows. The functions
work in a transaction of the caller's. Their `folder` is that of the store, see below.py.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, and_, bindparam, or_, select

from tornpage.store import schema
from tornpage.store.below import found_path, kept_path, with_image
from tornpage.store.bugs import Where, assign_bugs, violation_rows
from tornpage.store.rows import TrialRow
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec

__all__ = [
    "HAS_VERDICT",
    "add_violations",
    "begin_trial",
    "end_trial",
    "load_page",
    "with_contents",
]

PAGE = 500
"""Trials that are read at a time."""
_TRIALS = schema.trial
HAS_VERDICT = and_(_TRIALS.c.outcome.is_not(None), _TRIALS.c.outcome != Outcome.HARNESS_ERROR.value)
_HAS_NONE = or_(_TRIALS.c.outcome.is_(None), _TRIALS.c.outcome == Outcome.HARNESS_ERROR.value)
_THIS = and_(_TRIALS.c.run == bindparam("of_run"), _TRIALS.c.number == bindparam("of_number"))
_FINISH = (
    _TRIALS.update()
    .where(_THIS, _HAS_NONE)
    .values(outcome=bindparam("came_to"), result=bindparam("with_result"))
)
_CONFIG = select(_TRIALS.c.config).where(_THIS)
_ADD_CONTENTS = schema.contents.insert()
_ADD_VIOLATION = schema.violation.insert()
_TOLD = ("spec", "config", "site", "mask")


@functools.cache
def _start(dialect: str) -> schema.Insert:
    insert = schema.inserts_of(dialect)(_TRIALS)
    fresh = {name: insert.excluded[name] for name in _TOLD}
    return insert.on_conflict_do_update(
        index_elements=["run", "number"],
        set_={**fresh, "outcome": None, "result": None},
        where=_HAS_NONE,
    )


def begin_trial(
    db: Connection, folder: Path | None, run: int, spec: TrialSpec, site: str, mask: str
) -> None:
    """The row of a trial that is about to start (again, after an interruption); one that has a verdict stays
    as it is."""
    kept = replace(spec, target=kept_path(spec.target, folder))
    told = {"spec": to_json(kept), "config": spec.config, "site": site, "mask": mask}
    db.execute(_start(db.dialect.name), {"run": run, "number": spec.number, **told})


def end_trial(db: Connection, folder: Path | None, run: int, result: TrialResult) -> bool:
    """The verdict, unless there is one already, and the contents; whether it was written."""
    torn = result.torn
    bare = replace(result, torn=replace(torn, old=b"", new=b"")) if torn else result
    bare = with_image(bare, partial(kept_path, folder=folder))
    this = {"of_run": run, "of_number": result.number}
    came = {"came_to": result.outcome.value, "with_result": to_json(bare)}
    if not db.execute(_FINISH, {**this, **came}).rowcount:
        return False
    if torn is not None and torn.new:
        db.execute(
            _ADD_CONTENTS,
            {"run": run, "number": result.number, "old": torn.old, "new": torn.new},
        )
    return True


def add_violations(db: Connection, run: int, result: TrialResult) -> None:
    """What a trial broke, with the bugs that it is of; an unstable one is of none."""
    bugs: Sequence[int | None] = [None] * len(result.violations)
    if result.outcome is not Outcome.UNSTABLE:
        config = db.execute(_CONFIG, {"of_run": run, "of_number": result.number}).scalar_one()
        where = Where(run, result.number, config, result.alike)
        bugs = assign_bugs(db, where, result.violations)
    name = {"run": run, "trial": result.number}
    db.execute(_ADD_VIOLATION, violation_rows(name, result.violations, bugs))


def load_page(
    db: Connection, folder: Path | None, run: int, where: ColumnElement[bool]
) -> list[TrialRow]:
    """At most PAGE trials of a run in order of number, with their bugs, without contents of torn writes."""
    query = select(_TRIALS).where(_TRIALS.c.run == run, where).order_by(_TRIALS.c.number)
    rows = db.execute(query.limit(PAGE)).all()
    if not rows:
        return []
    broken = schema.violation
    told = (
        select(broken.c.trial, broken.c.bug)
        .where(broken.c.run == run, broken.c.trial.between(rows[0].number, rows[-1].number))
        .order_by(broken.c.trial, broken.c.position)
    )
    bugs: dict[int, list[int | None]] = {}
    for trial, bug in db.execute(told):
        bugs.setdefault(trial, []).append(bug)
    return [
        TrialRow(
            run,
            row.number,
            _spec(row.spec, folder),
            row.site,
            row.mask,
            _result(row.result, folder) if row.result else None,
            tuple(bugs.get(row.number, ())),
        )
        for row in rows
    ]


def _spec(text: str, folder: Path | None) -> TrialSpec:
    spec = from_json(TrialSpec, text)
    return replace(spec, target=found_path(spec.target, folder))


def _result(text: str, folder: Path | None) -> TrialResult:
    return with_image(from_json(TrialResult, text), partial(found_path, folder=folder))


def with_contents(db: Connection, row: TrialRow) -> TrialRow:
    """The row with the contents of its torn write, where they are kept."""
    if row.result is None or row.result.torn is None:
        return row
    kept = schema.contents
    query = select(kept).where(kept.c.run == row.run, kept.c.number == row.number)
    found = db.execute(query).one_or_none()
    if found is None:
        return row
    torn = replace(row.result.torn, old=found.old, new=found.new)
    return replace(row, result=replace(row.result, torn=torn))
