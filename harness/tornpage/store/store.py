"""The result store: SQLite in WAL mode. All SQL of the package is here and in the .sql files.

A trial's row is written before the trial starts and completed when its verdict is known, each in a
transaction of its own: whenever the harness dies, every finished verdict is on disk. A verdict that is stored
is never replaced. A run has one owner at a time, who holds its lock (runlock.py).

May import: bugs, codec, errors, memory, model, origin, runlock.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tornpage.store.bugs import Where, assign_bugs
from tornpage.store.memory import MemoryStore
from tornpage.store.origin import Origin
from tornpage.store.runlock import RunLock
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError, MachineError
from tornpage.vocabulary.model import Outcome, Site, Source, TrialResult, TrialSpec, Violation

__all__ = ["CensusRow", "Run", "Store", "TrialRow"]

_VERDICT = f"outcome is not null and outcome != '{Outcome.HARNESS_ERROR.value}'"
_NEXT_RUN = (
    "(select 1 + max(coalesce((select max(id) from run), 0),"
    " coalesce((select max(run) from sighting), 0)))"
)
"""A number that no deleted run had, so that the sightings of bugs stay true."""
_INTERRUPTED = "where state = 'running' and night is null and campaign = ? and target = ?"
_VIOLATION = "position, invariant, site, path, what, source, bug"
_OF_RUN = ("replay", "violation", "census_violation", "contents", "trial", "exploration", "census")
"""Tables with rows that go with their run."""
_RUN = "id, campaign, target, seed, trials, settings, state, verdict, seconds, origin, night"


@dataclass(frozen=True, slots=True)
class Run:
    """A row of `run`; settings is the JSON object of the campaign; night: that it is a part of."""

    id: int
    campaign: str
    target: str
    seed: int
    trials: int
    settings: dict[str, Any]
    state: str
    seconds: float
    origin: Origin = field(default_factory=Origin)
    verdict: str = ""
    night: int | None = None


@dataclass(frozen=True, slots=True)
class CensusRow:
    """A row of `census`: an undisturbed run. crashed: its script gets trials or is explored; bugs: of each
    violation, as the store has assigned them."""

    config: str
    crashed: bool
    hash: str
    events: int
    writes: int
    violations: tuple[Violation, ...]
    counters: Mapping[str, int]
    bugs: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial as it stands in the store; result is None while it runs or was interrupted. bugs: of each
    violation, None where the trial is unstable."""

    run: int
    number: int
    spec: TrialSpec
    site: str
    mask: str
    result: TrialResult | None
    bugs: tuple[int | None, ...] = field(default=(), compare=False)


class Store(MemoryStore):
    """One open store. Not shared between processes: workers hand their results to the owner."""

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
        """Adds a run in state running, owned by this store until it is closed."""
        with self._transaction():
            cursor = self._db.execute(
                f"insert into run ({_RUN})"
                f" values ({_NEXT_RUN}, ?, ?, ?, ?, ?, 'running', '', 0, ?, ?)",
                (
                    campaign,
                    target,
                    seed,
                    trials,
                    json.dumps(settings, sort_keys=True),
                    to_json(origin or Origin()),
                    night,
                ),
            )
            run = int(cursor.lastrowid or 0)
            self._lock(f"run {run}")
        return self.run(run)

    def resume_run(self, campaign: str, target: str) -> Run:
        """The newest interrupted run of a campaign, now owned by this store; not one of a night. ConfigError:
        there is none, or its owner lives."""
        for found in self._runs(f"{_INTERRUPTED} order by id desc limit 1", (campaign, target)):
            return self.own_run(found.id)
        raise ConfigError(f"{self.path}: no interrupted run of {campaign} to resume")

    def own_run(self, run: int) -> Run:
        """A run, owned by this store from now on. ConfigError if its owner lives."""
        self._lock(f"run {run}")
        return self.run(run)  # as its last owner left it

    def finish_run(self, run: int, trials: int | None = None, explorations: int = 0) -> Run:
        """The run is finished if so many trials have a verdict (None = all that were planned) and so many
        explorations a result; else it stays to be resumed. Returns it as it is now."""
        with self._transaction():
            self._db.execute(
                "update run set state = 'finished' where id = :run"
                f" and (select count(*) from trial where run = :run and {_VERDICT})"
                " >= coalesce(:trials, trials)"
                " and (select count(*) from exploration where run = :run) >= :explorations",
                {"run": run, "trials": trials, "explorations": explorations},
            )
        return self.run(run)

    def stop_run(self, run: int) -> Run:
        """Its time was up: what it has is all that it will have. Returns it as it is now."""
        with self._transaction():
            self._db.execute(
                "update run set state = 'stopped' where id = ? and state = 'running'", (run,)
            )
        return self.run(run)

    def set_verdict(self, run: int, verdict: str) -> None:
        """What the run came to."""
        with self._transaction():
            self._db.execute("update run set verdict = ? where id = ?", (verdict, run))

    def fail_run(self, run: int) -> None:
        """It cannot go on: --resume and --go-on pass it by."""
        with self._transaction():
            self._db.execute(
                "update run set state = 'failed' where id = ? and state = 'running'", (run,)
            )

    def add_seconds(self, run: int, seconds: float) -> None:
        """Adds time spent on trials, so that the rate of a resumed run is right."""
        with self._transaction():
            self._db.execute("update run set seconds = seconds + ? where id = ?", (seconds, run))

    def run(self, run: int) -> Run:
        """ConfigError if there is no such run."""
        if run < 1 << 63:
            for found in self._runs("where id = ?", (run,)):
                return found
        raise ConfigError(f"{self.path}: no run {run}")

    def latest_run(self) -> Run:
        """The newest run, of a campaign if there is one: those of `tornpage shrink`, and of findings played
        again, are but details of it. ConfigError if the store is empty."""
        for found in self._runs("order by campaign in ('shrink', 'replay'), id desc limit 1", ()):
            return found
        raise ConfigError(f"{self.path}: no run in this store; `tornpage run smoke` makes one")

    def runs(self) -> list[Run]:
        """All of them, the oldest first."""
        return list(self._runs("order by id", ()))

    def has_unfinished(self, campaign: str, target: str) -> bool:
        """Whether there is an interrupted run of a campaign."""
        return next(self._runs(_INTERRUPTED, (campaign, target)), None) is not None

    def _runs(self, where: str, values: Sequence[object]) -> Iterator[Run]:
        for row in self._db.execute(f"select {_RUN} from run {where}", values):
            (
                number,
                campaign,
                target,
                seed,
                trials,
                settings,
                state,
                verdict,
                seconds,
                origin,
                night,
            ) = row
            yield Run(
                number,
                campaign,
                target,
                seed,
                trials,
                json.loads(settings),
                state,
                seconds,
                from_json(Origin, origin),
                verdict,
                night,
            )

    def delete_run(self, run: int) -> None:
        """Forgets a run with all that belongs to it. ConfigError if its owner lives."""
        lock = RunLock(self.path.with_name(f"run-{run}.lock"), f"run {run}")
        try:
            with self._transaction():
                for table in _OF_RUN:
                    self._db.execute(f"delete from {table} where run = ?", (run,))
                self._db.execute("delete from run where id = ?", (run,))
        finally:
            lock.release()

    def compact(self) -> None:
        """Gives the space of deleted rows back to the file system."""
        try:
            self._db.execute("vacuum")
            self._db.execute("pragma wal_checkpoint(truncate)")
        except sqlite3.OperationalError as error:
            raise MachineError(f"{self.path}: {error}") from error

    # -- censuses and explorations --------------------------------------------------------------

    def put_census(self, run: int, census: CensusRow) -> None:
        """Records an undisturbed run. The same again on resumption changes nothing; ConfigError for another
        one: the verdicts of the run belong to the first."""
        with self._transaction():
            fresh = self._db.execute(
                "insert or ignore into census values (?, ?, ?, ?, ?, ?, ?)",
                (
                    run,
                    census.config,
                    census.crashed,
                    census.hash,
                    census.events,
                    census.writes,
                    to_json(census.counters),
                ),
            ).rowcount
            if fresh:
                bugs = assign_bugs(self._db, Where(run, None, census.config), census.violations)
                self._db.executemany(
                    "insert into census_violation values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    _violation_rows((run, census.config), census.violations, bugs),
                )
            stored = self._db.execute(
                "select hash from census where run = ? and config = ?", (run, census.config)
            ).fetchone()[0]
        if stored != census.hash:
            raise ConfigError(
                f"run {run}: the undisturbed run of {census.config} has the trace hash {census.hash},"
                f" and had {stored} when the run began"
            )

    def censuses(self, run: int) -> list[CensusRow]:
        """The undisturbed runs of a run, in order of config."""
        broken: dict[str, list[tuple[Violation, int]]] = {}
        rows = self._db.execute(
            f"select config, {_VIOLATION} from census_violation where run = ?"
            " order by config, position",
            (run,),
        )
        for config, *rest in rows:
            broken.setdefault(config, []).append(_violation(rest))
        rows = self._db.execute(
            "select config, crashed, hash, events, writes, counters from census"
            " where run = ? order by config",
            (run,),
        )
        return [
            CensusRow(
                config=config,
                crashed=bool(crashed),
                hash=value,
                events=events,
                writes=writes,
                violations=tuple(violation for violation, _bug in broken.get(config, ())),
                counters=json.loads(counters),
                bugs=tuple(bug for _violation, bug in broken.get(config, ())),
            )
            for config, crashed, value, events, writes, counters in rows
        ]

    def put_exploration(self, run: int, config: str, summary: Mapping[str, Any]) -> None:
        """A configuration has been explored."""
        with self._transaction():
            self._db.execute(
                "insert or ignore into exploration values (?, ?, ?)",
                (run, config, json.dumps(dict(summary), sort_keys=True)),
            )

    def explorations(self, run: int) -> dict[str, dict[str, Any]]:
        """What the explorer said of each explored configuration of a run."""
        rows = self._db.execute(
            "select config, summary from exploration where run = ? order by config", (run,)
        )
        return {config: json.loads(summary) for config, summary in rows}

    # -- trials ---------------------------------------------------------------------------------

    def start_trial(self, run: int, spec: TrialSpec, site: str, mask: str) -> None:
        """Writes the row of a trial that is about to start (again, after an interruption); one that has a
        verdict stays as it is."""
        with self._transaction():
            self._db.execute(
                "insert into trial (run, number, spec, config, site, mask) values (?, ?, ?, ?, ?, ?)"
                " on conflict do update set spec = excluded.spec, config = excluded.config,"
                " site = excluded.site, mask = excluded.mask, outcome = null, result = null"
                f" where not ({_VERDICT})",
                (run, spec.number, to_json(spec), spec.config, site, mask),
            )

    def finish_trial(self, run: int, result: TrialResult) -> None:
        """Completes a trial's row with its verdict, unless it has one."""
        torn = result.torn
        if torn is not None:
            result = replace(result, torn=replace(torn, old=b"", new=b""))
        with self._transaction():
            changed = self._db.execute(
                "update trial set outcome = ?, result = ? where run = ? and number = ?"
                f" and not ({_VERDICT})",
                (result.outcome.value, to_json(result), run, result.number),
            ).rowcount
            if not changed:
                return
            if torn is not None and torn.new:
                self._db.execute(
                    "insert into contents values (?, ?, ?, ?)",
                    (run, result.number, torn.old, torn.new),
                )
            bugs: Sequence[int | None] = [None] * len(result.violations)
            if result.outcome is not Outcome.UNSTABLE:
                config = self._db.execute(
                    "select config from trial where run = ? and number = ?", (run, result.number)
                ).fetchone()[0]
                where = Where(run, result.number, config, result.alike)
                bugs = assign_bugs(self._db, where, result.violations)
            self._db.executemany(
                "insert into violation values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                _violation_rows((run, result.number), result.violations, bugs),
            )

    def finished_numbers(self, run: int) -> set[int]:
        """Trials with a verdict; those the harness itself failed at are tried again."""
        rows = self._db.execute(f"select number from trial where run = ? and {_VERDICT}", (run,))
        return {row[0] for row in rows}

    def trials(self, run: int) -> Iterator[TrialRow]:
        """All trials of a run, in order of number."""
        return self._trials("where trial.run = ? order by trial.number", (run,))

    def trial(self, run: int, number: int) -> TrialRow:
        """ConfigError if there is no such trial."""
        if max(run, number) < 1 << 63:
            for found in self._trials("where trial.run = ? and trial.number = ?", (run, number)):
                return found
        raise ConfigError(f"{self.path}: no trial {run}.{number}")

    def _trials(self, where: str, values: Sequence[object]) -> Iterator[TrialRow]:
        rows = self._db.execute(
            "select trial.run, trial.number, spec, site, mask, result, old, new from trial"
            f" left join contents using (run, number) {where}",
            values,
        )
        for run, number, spec, site, mask, text, old, new in rows:
            result = from_json(TrialResult, text) if text else None
            if result is not None and result.torn is not None and new is not None:
                result = replace(result, torn=replace(result.torn, old=old, new=new))
            bugs = self._bugs_of(run, number) if result and result.violations else ()
            yield TrialRow(run, number, from_json(TrialSpec, spec), site, mask, result, bugs)

    def _bugs_of(self, run: int, trial: int) -> tuple[int | None, ...]:
        rows = self._db.execute(
            "select bug from violation where run = ? and trial = ? order by position", (run, trial)
        )
        return tuple(row[0] for row in rows)


def _violation_rows(
    key: tuple[object, ...], violations: Sequence[Violation], bugs: Sequence[int | None]
) -> list[tuple[object, ...]]:
    """As the tables of violations have them."""
    return [
        (
            *key,
            position,
            violation.invariant,
            violation.site.value if violation.site else None,
            violation.path,
            violation.what,
            violation.source.value,
            bug,
        )
        for position, (violation, bug) in enumerate(zip(violations, bugs, strict=True))
    ]


def _violation(row: Sequence[Any]) -> tuple[Violation, int]:
    """A row of _VIOLATION, and its bug."""
    _position, invariant, site, path, what, source, bug = row
    return Violation(invariant, what, Site(site) if site else None, path, Source(source)), bug
