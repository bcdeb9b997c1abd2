"""Runs from one store into another, whatever databases they are in: each in one transaction, with its bugs,
its night and all that was found. What is there already stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select, tuple_
from sqlalchemy import Table as SqlTable

from tornpage.store import schema
from tornpage.store.below import found_path, kept_path, with_paths
from tornpage.store.bugs import Bug, set_reproducer, set_status, widen
from tornpage.store.sql import next_id
from tornpage.store.store import Store, next_run

__all__ = ["Copied", "copy_runs"]

PAGE = 500
"""Rows that are carried at a time."""
_SAME = ("campaign", "target", "seed", "settings", "origin")
"""Two runs of the same of these are one: the origin has machine, time and programs."""


@dataclass(slots=True)
class Copied:
    """What came of it. runs: number there by number here; there: were there before, likewise; running: not
    copied, since they have no end yet."""

    runs: dict[int, int] = field(default_factory=dict)
    there: dict[int, int] = field(default_factory=dict)
    running: list[int] = field(default_factory=list)


def copy_runs(source: Store, target: Store) -> Copied:
    """Every run that has come to an end, the oldest first. Sightings of deleted runs stay behind."""
    copied = Copied()
    added: set[int] = set()
    for row in source.read(_runs):
        if row.state == "running":
            copied.running.append(row.id)
            continue
        copy = _RunCopy(source, target, row)
        number, is_new = target.write(copy.write)
        (copied.runs if is_new else copied.there)[row.id] = number
        added |= copy.added
    numbers = {**copied.there, **copied.runs}
    for bug in source.bugs():
        if bug.id in added:
            target.write(partial(_complete, bug=bug, runs=numbers))
    return copied


class _RunCopy:
    """One run on its way. added: bugs, by their number here, that were new there."""

    def __init__(self, source: Store, target: Store, row: Row[Any]) -> None:
        self._source = source
        self._target = target
        self._row = row
        self.added: set[int] = set()

    def write(self, db: Connection) -> tuple[int, bool]:
        """Number of the run there, and whether it is new."""
        self._target.place.exclude(db)
        run = self._there(self._row._asdict())
        known = _find(db, schema.run, run, _SAME)
        if known is not None:
            return known, False
        number = max(self._row.id, next_run(db))
        values = {**run, "id": number, "night": self._night(db)}
        db.execute(schema.run.insert(), values)
        bugs = self._bugs(db, number)
        for table in (*schema.OF_RUN, schema.sighting):
            for rows in self._pages(table):
                there = [
                    {**self._there(row), "run": number, **_bug_there(row, bugs)}
                    for row in rows
                    if row.get("bug") is None or row["bug"] in bugs
                ]
                if there:
                    db.execute(table.insert(), there)
        return number, True

    def _there(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row of any table with its paths as they are stored there."""
        here, there = self._source.place.folder, self._target.place.folder
        return with_paths(row, lambda path: kept_path(found_path(path, here), there))

    def _night(self, db: Connection) -> int | None:
        if self._row.night is None:
            return None
        nights = schema.night
        here = select(nights).where(nights.c.id == self._row.night)
        row = self._source.read(lambda of: of.execute(here).one())
        known = _find(db, nights, row._asdict(), ("plan", "origin"))
        if known is not None:
            return known
        number = max(int(row.id), next_id(db, nights.c.id))
        db.execute(nights.insert(), {**row._mapping, "id": number})
        return number

    def _bugs(self, db: Connection, run: int) -> dict[int, int]:
        """Numbers there of the bugs of the run. A new one is reproduced by this run until the others are
        there; one that was only played again, and that no run there has seen, is not told."""
        bugs, seen, played = schema.bug, schema.sighting, schema.replay
        of = select(seen.c.bug).where(seen.c.run == self._row.id)
        again = select(played.c.bug).where(played.c.run == self._row.id)
        query = select(bugs, bugs.c.id.in_(of).label("seen")).order_by(bugs.c.id)
        query = query.where(bugs.c.id.in_(of) | bugs.c.id.in_(again))
        numbers = {}
        for row in self._source.read(lambda here: here.execute(query).all()):
            known = _find(db, bugs, row._asdict(), ("target", "fingerprint"))
            if known is None and not row.seen:
                continue
            if known is None:
                known = self._add_bug(db, row, run)
            else:
                widen(db, known, json.loads(row.invariants))
            numbers[row.id] = known
        return numbers

    def _add_bug(self, db: Connection, row: Row[Any], run: int) -> int:
        self.added.add(row.id)
        values = {name: value for name, value in row._mapping.items() if name != "seen"}
        number = max(int(row.id), next_id(db, schema.bug.c.id))
        if row.run != self._row.id:
            values |= self._first_finding(row.id)
        db.execute(schema.bug.insert(), {**values, "id": number, "run": run})
        return number

    def _first_finding(self, bug: int) -> dict[str, Any]:
        """Of a bug in the run: a trial, or where none shows it a fault-free run."""
        broken, trials, quiet = schema.violation, schema.trial, schema.golden_run_violation
        found = (
            select(trials.c.number.label("trial"), trials.c.config)
            .join(broken, (broken.c.run == trials.c.run) & (broken.c.trial == trials.c.number))
            .where(broken.c.run == self._row.id, broken.c.bug == bug)
            .order_by(trials.c.number)
            .limit(1)
        )
        fault_free = select(quiet.c.config).where(quiet.c.run == self._row.id, quiet.c.bug == bug)
        row = self._source.read(lambda db: db.execute(found).first())
        if row is not None:
            return dict(row._mapping)
        config = self._source.read(lambda db: db.execute(fault_free).scalars().first())
        return {"trial": None, "config": config or ""}

    def _pages(self, table: SqlTable) -> Iterator[list[dict[str, Any]]]:
        key = [column for column in table.primary_key.columns if column.name != "run"]
        later: ColumnElement[bool] = table.c.run == self._row.id
        of = later
        while rows := self._source.read(partial(_page, table=table, where=later, key=key)):
            yield [dict(row._mapping) for row in rows]
            last = [rows[-1]._mapping[column.name] for column in key]
            later = of & (tuple_(*key) > tuple_(*last))


def _runs(db: Connection) -> list[Row[Any]]:
    return list(db.execute(select(schema.run).order_by(schema.run.c.id)))


def _page(
    db: Connection, table: SqlTable, where: ColumnElement[bool], key: list[Any]
) -> list[Row[Any]]:
    return list(db.execute(select(table).where(where).order_by(*key).limit(PAGE)))


def _bug_there(row: dict[str, Any], bugs: dict[int, int]) -> dict[str, int | None]:
    return {"bug": bugs.get(row["bug"])} if "bug" in row else {}


def _find(
    db: Connection, table: SqlTable, row: Mapping[str, Any], same: tuple[str, ...]
) -> int | None:
    """Id of a row of the table that has the same of these columns."""
    alike = [table.c[name] == row[name] for name in same]
    return db.execute(select(table.c.id).where(*alike)).scalars().first()


def _complete(db: Connection, bug: Bug, runs: dict[int, int]) -> None:
    """A bug that is new there has the source's life, and its reproducer where the run of that is there too.
    runs: number there by number here."""
    bugs, best = schema.bug, bug.reproducer
    query = select(bugs.c.id).where(
        bugs.c.target == bug.target, bugs.c.fingerprint == bug.fingerprint
    )
    number = db.execute(query).scalar_one()
    for change in bug.life:
        run = runs.get(change.run) if change.run is not None else None
        night = select(schema.run.c.night).where(schema.run.c.id == run)
        set_status(db, number, replace(change, run=run, night=db.execute(night).scalar()))
    if best.run in runs:
        set_reproducer(db, number, replace(best, run=runs[best.run]))
