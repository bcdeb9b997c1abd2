"""The result database. All SQL of the package is in this folder.

A trial's row is written before the trial starts and completed when its verdict is known, each in a
transaction of its own: whenever the harness dies, every finished verdict is in the database. A verdict that
is stored is never replaced. A run has one owner at a time, who holds its lock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, func, select

from tornpage.store import schema
from tornpage.store.below import found_path, kept_path
from tornpage.store.bugs import Where, assign_bugs, violation_rows
from tornpage.store.memory import MemoryStore
from tornpage.store.origin import Origin
from tornpage.store.place import Place
from tornpage.store.rows import DETAILS, GoldenRunRow, Run, TrialRow
from tornpage.store.sql import next_id
from tornpage.store.trials import (
    HAS_VERDICT,
    add_violations,
    begin_trial,
    end_trial,
    load_page,
    with_contents,
)
from tornpage.vocabulary.cause import Explained
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Site, Source, TrialResult, TrialSpec, Violation

__all__ = ["Store", "next_run"]

_RUNS = schema.run
_TRIALS = schema.trial
_SET_SECONDS = (
    _RUNS.update().where(_RUNS.c.id == bindparam("of_run")).values(seconds=bindparam("total"))
)
Fits = Callable[[Origin], bool]


def _any(_origin: Origin) -> bool:
    return True


class Store(MemoryStore):
    """One open store. Not shared between processes: workers hand their results to the owner."""

    def __init__(self, place: Path | Place, *, create: bool = True, write: bool = True) -> None:
        """As Database."""
        super().__init__(place, create=create, write=write)
        self._seconds: dict[int, float] = {}  # of the runs that it owns

    # -- runs -----------------------------------------------------------------------------------

    def begin_run(
        self,
        campaign: str,
        target: str,
        seed: int,
        trials: int,
        settings: dict[str, Any],
        origin: Origin | None = None,
        night: int | None = None,
    ) -> Run:
        """Adds a run in state running, owned by this store until it is closed. settings: their order counts,
        since the scripts of a campaign are numbered by it."""
        values = {
            "campaign": campaign,
            "target": kept_path(target, self.place.folder),
            "seed": seed,
            "trials": trials,
            "settings": json.dumps(settings),  # in their order, which numbers and names the scripts
            "state": "running",
            "verdict": "",
            "seconds": 0.0,
            "origin": to_json(origin or Origin()),
            "night": night,
        }
        number: int | None = None

        def begin(db: Connection) -> int:
            nonlocal number
            self.place.exclude(db)
            if number is None:
                number = next_run(db)
            self._lock(db, f"run {number}")
            insert = schema.insert_into(db, _RUNS).values(id=number, **values)
            db.execute(insert.on_conflict_do_nothing())
            return number

        return self.run(self.write(begin))

    def resume_run(self, campaign: str, target: str, fits: Fits = _any) -> Run:
        """The newest interrupted run of a campaign whose origin fits, now owned by this store; not one of a
        night. ConfigError: there is none, or its owner lives."""
        for found in reversed(self.interrupted(campaign, target, fits)):
            return self.own_run(found.id)
        raise ConfigError(f"{self.name}: no interrupted run of {campaign} to resume")

    def own_run(self, run: int) -> Run:
        """A run, owned by this store from now on. ConfigError if its owner lives."""
        self._own(f"run {run}")
        return self.run(run)  # as its last owner left it

    def finish_run(self, run: int, trials: int | None = None, explorations: int = 0) -> Run:
        """The run is finished if so many trials have a verdict (None = all that were planned) and so many
        explorations a result; else it stays to be resumed. Returns it as it is now."""
        done = select(func.count()).where(_TRIALS.c.run == run, HAS_VERDICT).scalar_subquery()
        of = schema.exploration.c.run == run
        explored = select(func.count()).where(of).scalar_subquery()
        wanted = _RUNS.c.trials if trials is None else trials
        self._change(run, {"state": "finished"}, done >= wanted, explored >= explorations)
        return self.run(run)

    def stop_run(self, run: int) -> Run:
        """Its time was up: what it has is all that it will have. Returns it as it is now."""
        self._change(run, {"state": "stopped"}, _RUNS.c.state == "running")
        return self.run(run)

    def set_verdict(self, run: int, verdict: str) -> None:
        """What the run came to."""
        self._change(run, {"verdict": verdict})

    def set_target(self, run: int, target: str) -> None:
        """Where its target is found from now on."""
        self._change(run, {"target": kept_path(target, self.place.folder)})

    def fail_run(self, run: int) -> None:
        """It cannot go on: --resume and --go-on pass it by."""
        is_over = (_RUNS.c.state != "running") & (_RUNS.c.verdict != "")
        self._change(run, {"state": "failed"}, ~is_over)

    def add_seconds(self, run: int, seconds: float) -> None:
        """Adds time spent on trials, so that the rate of a resumed run is right."""
        values = self._spent(run, seconds)
        self.write(lambda db: db.execute(_SET_SECONDS, values))

    def _spent(self, run: int, seconds: float) -> dict[str, object]:
        """What is to be stored then: the sum, so that twice is the same as once."""
        if run not in self._seconds:
            self._seconds[run] = self.run(run).seconds
        self._seconds[run] += seconds
        return {"of_run": run, "total": self._seconds[run]}

    def run(self, run: int) -> Run:
        """ConfigError if there is no such run."""
        for found in self._runs(_RUNS.c.id == run):
            return found
        raise ConfigError(f"{self.name}: no run {run}")

    def latest_run(self) -> Run:
        """The newest run, of a campaign if there is one: DETAILS come after them. ConfigError if the store is
        empty."""
        runs = self.runs()
        named = [run for run in runs if run.campaign not in DETAILS]
        for found in reversed(named or runs):
            return found
        raise ConfigError(f"{self.name}: no run in this store; `tornpage run smoke` makes one")

    def runs(self) -> list[Run]:
        """All of them, the oldest first."""
        return self._runs()

    def has_unfinished(self, campaign: str, target: str, fits: Fits = _any) -> bool:
        """Whether there is an interrupted run of a campaign whose origin fits."""
        return bool(self.interrupted(campaign, target, fits))

    def interrupted(self, campaign: str, target: str, fits: Fits = _any) -> list[Run]:
        """Those of a campaign, by its name, that may go on and whose origin fits; not of a night."""
        found = self._runs(
            _RUNS.c.night.is_(None),
            _RUNS.c.campaign == campaign,
            _RUNS.c.target == kept_path(target, self.place.folder),
        )
        return [run for run in found if not run.is_over and fits(run.origin)]

    def _runs(self, *where: ColumnElement[bool]) -> list[Run]:
        query = select(_RUNS).where(*where).order_by(_RUNS.c.id)
        folder = self.place.folder
        return self.read(lambda db: [_run(row, folder) for row in db.execute(query)])

    def _change(self, run: int, values: Mapping[str, object], *where: ColumnElement[bool]) -> None:
        """The same twice is the same as once."""
        change = _RUNS.update().where(_RUNS.c.id == run, *where).values(**values)
        self.write(lambda db: db.execute(change))

    def delete_run(self, run: int) -> None:
        """Forgets a run with all that belongs to it. ConfigError if its owner lives."""
        what = f"run {run}"
        if what in self._locks:
            raise ConfigError(f"{what} has a running owner: this one")

        def delete(db: Connection) -> None:
            for table in reversed(schema.OF_RUN):
                db.execute(table.delete().where(table.c.run == run))
            db.execute(_RUNS.delete().where(_RUNS.c.id == run))

        self._own(what)
        try:
            self.write(delete)
        finally:
            self._locks.pop(what)()

    def compact(self) -> None:
        """Gives the space of deleted rows back to the file system."""
        self._apart(self.place.compact)

    # -- golden runs and explorations --------------------------------------------------------------

    def put_golden_run(self, run: int, golden_run: GoldenRunRow) -> None:
        """Records a fault-free run. The same again on resumption changes nothing; ConfigError for another
        one: the verdicts of the run belong to the first."""
        rows = schema.golden_run
        key = {"run": run, "config": golden_run.config}

        def put(db: Connection) -> str:
            insert = schema.insert_into(db, rows).values(
                **key,
                crashed=int(golden_run.crashed),
                hash=golden_run.hash,
                events=golden_run.events,
                writes=golden_run.writes,
                counters=to_json(golden_run.counters),
            )
            if db.execute(insert.on_conflict_do_nothing()).rowcount and golden_run.violations:
                self.place.exclude(db)
                bugs = assign_bugs(db, Where(run, None, golden_run.config), golden_run.violations)
                told = violation_rows(key, golden_run.violations, bugs)
                db.execute(schema.golden_run_violation.insert(), told)
            query = select(rows.c.hash).where(rows.c.run == run, rows.c.config == golden_run.config)
            return str(db.execute(query).scalar_one())

        stored = self.write(put)
        if stored != golden_run.hash:
            raise ConfigError(
                f"run {run}: the fault-free run of {golden_run.config} has the trace hash {golden_run.hash},"
                f" and had {stored} when the run began"
            )

    def golden_runs(self, run: int) -> list[GoldenRunRow]:
        """The fault-free runs of a run, in order of config."""
        rows, violations = schema.golden_run, schema.golden_run_violation
        query = select(rows).where(rows.c.run == run)
        of = select(violations).where(violations.c.run == run).order_by(violations.c.position)
        found, told = self.read(
            lambda db: (
                [(row, json.loads(row.counters)) for row in db.execute(query)],
                db.execute(of).all(),
            )
        )
        broken: dict[str, list[Row[Any]]] = {}
        for row in told:
            broken.setdefault(row.config, []).append(row)
        return [
            GoldenRunRow(
                config=row.config,
                crashed=bool(row.crashed),
                hash=row.hash,
                events=row.events,
                writes=row.writes,
                violations=tuple(_violation(one) for one in broken.get(row.config, ())),
                counters=counters,
                bugs=tuple(one.bug for one in broken.get(row.config, ())),
            )
            for row, counters in sorted(found, key=lambda pair: pair[0].config)
        ]

    def put_exploration(self, run: int, config: str, summary: Mapping[str, Any]) -> None:
        """A configuration has been explored."""
        text = json.dumps(dict(summary), sort_keys=True)

        def put(db: Connection) -> None:
            insert = schema.insert_into(db, schema.exploration)
            insert = insert.values(run=run, config=config, summary=text)
            db.execute(insert.on_conflict_do_nothing())

        self.write(put)

    def explorations(self, run: int) -> dict[str, dict[str, Any]]:
        """What the explorer said of each explored configuration of a run."""
        rows = schema.exploration
        query = select(rows.c.config, rows.c.summary).where(rows.c.run == run)
        return self.read(
            lambda db: {of: json.loads(text) for of, text in sorted(map(tuple, db.execute(query)))}
        )

    # -- trials ---------------------------------------------------------------------------------

    def start_trial(self, run: int, spec: TrialSpec, site: str, mask: str) -> None:
        """Writes the row of a trial that is about to start (again, after an interruption); one that has a
        verdict stays as it is."""
        folder = self.place.folder
        self.write(lambda db: begin_trial(db, folder, run, spec, site, mask))

    def finish_trial(self, run: int, result: TrialResult, seconds: float = 0) -> None:
        """Completes a trial's row with its verdict, unless it has one. seconds: as of add_seconds()."""
        spent = self._spent(run, seconds) if seconds else None

        def finish(db: Connection) -> None:
            if spent is not None:
                db.execute(_SET_SECONDS, spent)
            if end_trial(db, self.place.folder, run, result) and result.violations:
                self.place.exclude(db)
                add_violations(db, run, result)

        self.write(finish)

    def finished_numbers(self, run: int) -> set[int]:
        """Trials with a verdict; those the harness itself failed at are tried again."""
        query = select(_TRIALS.c.number).where(_TRIALS.c.run == run, HAS_VERDICT)
        return set(self.read(lambda db: db.execute(query).scalars().all()))

    def trials(self, run: int) -> Iterator[TrialRow]:
        """All trials of a run, in order of number, without the contents of torn writes: trial() has them."""
        later = _TRIALS.c.number >= 0
        load = partial(load_page, folder=self.place.folder, run=run)
        while page := self.read(partial(load, where=later)):
            yield from page
            later = _TRIALS.c.number > page[-1].number

    def trial(self, run: int, number: int) -> TrialRow:
        """The whole row. ConfigError if there is no such trial."""

        def load(db: Connection) -> list[TrialRow]:
            found = load_page(db, self.place.folder, run, _TRIALS.c.number == number)
            return [with_contents(db, row) for row in found]

        for row in self.read(load):
            return row
        raise ConfigError(f"{self.name}: no trial {run}.{number}")

    # -- explanations -----------------------------------------------------------------------------

    def put_explanation(self, trial: str, found: Explained) -> None:
        """In place of an older one. trial: its ID, or that of a run without a fault; it is there."""
        run, _, name = trial.partition(".")
        text = to_json(found)

        def put(db: Connection) -> None:
            insert = schema.insert_into(db, schema.explanation)
            insert = insert.values(run=int(run), name=name, found=text)
            again = insert.on_conflict_do_update(
                index_elements=["run", "name"], set_={"found": insert.excluded.found}
            )
            db.execute(again)

        self.write(put)

    def explanations(self, run: int) -> dict[str, Explained]:
        """What was found of the findings of a run, by their IDs."""
        rows = schema.explanation
        query = select(rows.c.name, rows.c.found).where(rows.c.run == run).order_by(rows.c.name)
        return self.read(
            lambda db: {
                f"{run}.{name}": from_json(Explained, text)
                for name, text in map(tuple, db.execute(query))
            }
        )


def next_run(db: Connection) -> int:
    """A number that no deleted run had, so that the sightings and lives of bugs stay true."""
    return next_id(db, _RUNS.c.id, schema.sighting.c.run, schema.life.c.run)


def _run(row: Row[Any], folder: Path | None) -> Run:
    return Run(
        row.id,
        row.campaign,
        found_path(row.target, folder),
        row.seed,
        row.trials,
        json.loads(row.settings),
        row.state,
        row.seconds,
        from_json(Origin, row.origin),
        row.verdict,
        row.night,
    )


def _violation(row: Row[Any]) -> Violation:
    site = Site(row.site) if row.site else None
    return Violation(row.invariant, row.what, site, row.path, Source(row.source))
