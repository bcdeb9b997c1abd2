"""The result store: SQLite in WAL mode. All SQL of the package is here and in the .sql files.

A trial's row is written before the trial starts and completed when its verdict is known, each in a
transaction of its own: whenever the harness dies, every finished verdict is on disk. A verdict that is stored
is never replaced. A run has one owner at a time, who holds its lock (runlock.py).

May import: codec, errors, migrate, model, runlock.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from tornpage.store.migrate import SCHEMA_VERSION, prepare, version_of
from tornpage.store.runlock import RunLock
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError, MachineError
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec, Violation

__all__ = ["CensusRow", "Origin", "Run", "Store", "TrialRow"]

BUSY_S = 60.0
"""How long a transaction waits for another process's."""
_VERDICT = f"outcome is not null and outcome != '{Outcome.HARNESS_ERROR.value}'"
_VIOLATIONS = tuple[Violation, ...]
_RUN = "id, campaign, target, seed, trials, settings, state, seconds, origin"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run comes from. programs: name -> hash of what makes its verdicts (engine, preload, harness,
    ...); a run goes on with the same ones only."""

    started: str = ""
    host: str = ""
    version: str = ""
    command: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """A row of `run`; settings is the JSON object of the campaign."""

    id: int
    campaign: str
    target: str
    seed: int
    trials: int
    settings: dict[str, Any]
    state: str
    seconds: float
    origin: Origin = Origin()


@dataclass(frozen=True, slots=True)
class CensusRow:
    """A row of `census`: an undisturbed run. crashed: its script gets trials or is explored."""

    config: str
    crashed: bool
    hash: str
    events: int
    writes: int
    violations: tuple[Violation, ...]
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial as it stands in the store; result is None while it runs or was interrupted."""

    run: int
    number: int
    spec: TrialSpec
    site: str
    mask: str
    result: TrialResult | None


class Store:
    """One open store. Not shared between processes: workers hand their results to the owner."""

    def __init__(self, path: Path, *, create: bool = True, write: bool = True) -> None:
        """Opens `path`, creating it if asked; write False: changes nothing but to bring an older version up
        to date. ConfigError: absent, no store, or a newer version."""
        self.path = path
        self._locks: dict[int, RunLock] = {}
        if not (create and write) and not path.exists():
            raise ConfigError(f"{path}: no result store here; `tornpage run` makes one")
        try:
            if write:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._db = self._open(write)
        except OSError as error:
            raise ConfigError(f"{error.filename or path}: {error.strerror}") from error
        except sqlite3.OperationalError as error:
            raise ConfigError(f"{path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise ConfigError(f"{path}: not a result store of Tornpage ({error})") from error

    def _open(self, write: bool) -> sqlite3.Connection:
        if not write:
            db = self._connect("mode=ro")
            version = version_of(db)
            if version == SCHEMA_VERSION:
                return db
            db.close()
        db = self._connect("mode=rwc")
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        prepare(db, self.path)
        if write:
            return db
        db.close()
        return self._connect("mode=ro")

    def _connect(self, mode: str) -> sqlite3.Connection:
        """A folder that cannot be written has no place for the shared memory of WAL."""
        if mode == "mode=ro" and not os.access(self.path.parent, os.W_OK):
            mode += "&immutable=1"
        uri = f"file:{quote(str(self.path.absolute()))}?{mode}"
        return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()
        for lock in self._locks.values():
            lock.release()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing. MachineError where the disk is full."""
        try:
            if self._db.in_transaction:  # a signal ended the last one in its middle
                self._db.execute("rollback")
            self._db.execute("begin immediate")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise
            self._db.execute("commit")
        except sqlite3.OperationalError as error:
            raise MachineError(f"{self.path}: {error}") from error

    # -- runs -----------------------------------------------------------------------------------

    def begin_run(
        self,
        campaign: str,
        target: str,
        seed: int,
        trials: int,
        settings: dict[str, Any],
        origin: Origin | None = None,
    ) -> Run:
        """Adds a run in state running, owned by this store until it is closed. settings: their order counts,
        since the scripts of a campaign are numbered by it."""
        with self._transaction():
            cursor = self._db.execute(
                "insert into run (campaign, target, seed, trials, settings, state, seconds, origin)"
                " values (?, ?, ?, ?, ?, 'running', 0, ?)",
                (
                    campaign,
                    target,
                    seed,
                    trials,
                    json.dumps(settings),  # in their order, which numbers and names the scripts
                    to_json(origin or Origin()),
                ),
            )
            run = int(cursor.lastrowid or 0)
            self._lock(run)
        return self.run(run)

    def resume_run(self, campaign: str, target: str) -> Run:
        """The newest interrupted run of a campaign, now owned by this store. ConfigError: there is none, or
        its owner lives."""
        for found in self._runs(
            "where state = 'running' and campaign = ? and target = ? order by id desc limit 1",
            (campaign, target),
        ):
            self._lock(found.id)
            return self.run(found.id)  # as its last owner left it
        raise ConfigError(f"{self.path}: no interrupted run of {campaign} to resume")

    def _lock(self, run: int) -> None:
        if run in self._locks:
            return
        path = self.path.with_name(f"run-{run}.lock")
        self._locks[run] = RunLock(path, f"run {run}")

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
        """The newest run, of a campaign if there is one: those of `tornpage shrink` are but details of it.
        ConfigError if the store is empty."""
        for found in self._runs("order by campaign = 'shrink', id desc limit 1", ()):
            return found
        raise ConfigError(f"{self.path}: no run in this store; `tornpage run smoke` makes one")

    def runs(self) -> list[Run]:
        """All of them, the oldest first."""
        return list(self._runs("order by id", ()))

    def has_unfinished(self, campaign: str, target: str) -> bool:
        """Whether there is an interrupted run of a campaign."""
        found = self._runs(
            "where state = 'running' and campaign = ? and target = ?", (campaign, target)
        )
        return next(found, None) is not None

    def _runs(self, where: str, values: Sequence[object]) -> Iterator[Run]:
        for row in self._db.execute(f"select {_RUN} from run {where}", values):
            settings, origin = json.loads(row[5]), from_json(Origin, row[8])
            yield Run(row[0], row[1], row[2], row[3], row[4], settings, row[6], row[7], origin)

    def delete_run(self, run: int) -> None:
        """Forgets a run with all that belongs to it. ConfigError if its owner lives."""
        lock = RunLock(self.path.with_name(f"run-{run}.lock"), f"run {run}")
        try:
            with self._transaction():
                for table in ("violation", "contents", "trial", "exploration", "census"):
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
            self._db.execute(
                "insert or ignore into census values (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    run,
                    census.config,
                    census.crashed,
                    census.hash,
                    census.events,
                    census.writes,
                    to_json(census.violations),
                    to_json(census.counters),
                ),
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
        rows = self._db.execute(
            "select config, crashed, hash, events, writes, violations, counters from census"
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
                violations=from_json(_VIOLATIONS, violations),
                counters=json.loads(counters),
            )
            for config, crashed, value, events, writes, violations, counters in rows
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
            self._db.executemany(
                "insert into violation values (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        run,
                        result.number,
                        position,
                        violation.invariant,
                        violation.site.value if violation.site else None,
                        violation.path,
                        violation.what,
                        violation.source.value,
                    )
                    for position, violation in enumerate(result.violations)
                ],
            )

    def finished_numbers(self, run: int) -> set[int]:
        """Trials with a verdict; those the harness itself failed at are tried again."""
        rows = self._db.execute(f"select number from trial where run = ? and {_VERDICT}", (run,))
        return {row[0] for row in rows}

    def trials(self, run: int) -> Iterator[TrialRow]:
        """All trials of a run, in order of number, without the contents of torn writes: trial() has them."""
        return self._trials("where run = ? order by number", (run,))

    def trial(self, run: int, number: int) -> TrialRow:
        """The whole row. ConfigError if there is no such trial."""
        if max(run, number) < 1 << 63:
            for found in self._trials("where run = ? and number = ?", (run, number)):
                return self._with_contents(found)
        raise ConfigError(f"{self.path}: no trial {run}.{number}")

    def _trials(self, where: str, values: Sequence[object]) -> Iterator[TrialRow]:
        rows = self._db.execute(
            f"select run, number, spec, site, mask, result from trial {where}", values
        )
        for run, number, spec, site, mask, text in rows:
            result = from_json(TrialResult, text) if text else None
            yield TrialRow(run, number, from_json(TrialSpec, spec), site, mask, result)

    def _with_contents(self, row: TrialRow) -> TrialRow:
        if row.result is None or row.result.torn is None:
            return row
        query = "select old, new from contents where run = ? and number = ?"
        for old, new in self._db.execute(query, (row.run, row.number)):
            torn = replace(row.result.torn, old=old, new=new)
            return replace(row, result=replace(row.result, torn=torn))
        return row
