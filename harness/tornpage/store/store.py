"""The result store: SQLite in WAL mode. All SQL of the package is here and in schema.sql.

A trial's row is written before the trial starts and completed when its verdict is known, each in a
transaction of its own: whenever the harness dies, every finished verdict is on disk.

May import: codec, errors, model.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec, Violation

__all__ = ["SCHEMA_VERSION", "CensusRow", "Run", "Store", "TrialRow"]

SCHEMA_VERSION = 2


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

    def __init__(self, path: Path, *, create: bool = True) -> None:
        """Opens `path`, creating it if asked. ConfigError: absent, no store, or another version."""
        if not create and not path.exists():
            raise ConfigError(f"{path}: no result store here; `tornpage run` makes one")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.execute("pragma journal_mode = wal")
            self._db.execute("pragma synchronous = normal")
            self._prepare()
        except sqlite3.DatabaseError as error:
            raise ConfigError(f"{path}: not a result store of Tornpage ({error})") from error

    def _prepare(self) -> None:
        tables = self._db.execute("select count(*) from sqlite_master").fetchone()[0]
        if tables == 0:
            schema = resources.files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
            self._db.executescript(f"begin; {schema}; commit;")
            self._db.execute("insert into schema_version values (?)", (SCHEMA_VERSION,))
        version = self._db.execute("select version from schema_version").fetchone()
        if version is None or version[0] != SCHEMA_VERSION:
            raise ConfigError(
                f"{self.path}: schema version {version and version[0]}, this Tornpage writes "
                f"{SCHEMA_VERSION}; choose another --out"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def begin_run(
        self, campaign: str, target: str, seed: int, trials: int, settings: dict[str, Any]
    ) -> Run:
        """Adds a run in state running."""
        cursor = self._db.execute(
            "insert into run (campaign, target, seed, trials, settings, state, seconds)"
            " values (?, ?, ?, ?, ?, 'running', 0)",
            (campaign, target, seed, trials, json.dumps(settings, sort_keys=True)),
        )
        return self.run(int(cursor.lastrowid or 0))

    def finish_run(self, run: int) -> None:
        """All trials have a verdict."""
        self._db.execute("update run set state = 'finished' where id = ?", (run,))

    def add_seconds(self, run: int, seconds: float) -> None:
        """Adds time spent on trials, so that the rate of a resumed run is right."""
        self._db.execute("update run set seconds = seconds + ? where id = ?", (seconds, run))

    def run(self, run: int) -> Run:
        """ConfigError if there is no such run."""
        for found in self._runs("where id = ?", (run,)):
            return found
        raise ConfigError(f"{self.path}: no run {run}")

    def latest_run(self) -> Run:
        """The newest run, of a campaign if there is one: those of `tornpage shrink` are but details of it.
        ConfigError if the store is empty."""
        for found in self._runs("order by campaign = 'shrink', id desc limit 1", ()):
            return found
        raise ConfigError(f"{self.path}: no run in this store; `tornpage run smoke` makes one")

    def unfinished_run(self, campaign: str, target: str) -> Run:
        """The newest interrupted run of a campaign; ConfigError if there is none."""
        for found in self._runs(
            "where state = 'running' and campaign = ? and target = ? order by id desc limit 1",
            (campaign, target),
        ):
            return found
        raise ConfigError(f"{self.path}: no interrupted run of {campaign} to resume")

    def has_unfinished(self, campaign: str, target: str) -> bool:
        """Whether there is an interrupted run of a campaign."""
        found = self._runs(
            "where state = 'running' and campaign = ? and target = ?", (campaign, target)
        )
        return next(found, None) is not None

    def _runs(self, where: str, values: Sequence[object]) -> Iterator[Run]:
        rows = self._db.execute(
            f"select id, campaign, target, seed, trials, settings, state, seconds from run {where}",
            values,
        )
        for row in rows:
            yield Run(row[0], row[1], row[2], row[3], row[4], json.loads(row[5]), row[6], row[7])

    def put_census(self, run: int, census: CensusRow) -> None:
        """Records an undisturbed run; the same again on resumption changes nothing."""
        with self._db:
            self._db.execute("begin")
            self._db.execute(
                "insert or replace into census values (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    run,
                    census.config,
                    census.crashed,
                    census.hash,
                    census.events,
                    census.writes,
                    json.dumps(to_json(list(census.violations))),
                    json.dumps(dict(census.counters), sort_keys=True),
                ),
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
                violations=tuple(from_json(Violation, item) for item in json.loads(violations)),
                counters=json.loads(counters),
            )
            for config, crashed, value, events, writes, violations, counters in rows
        ]

    def put_exploration(self, run: int, config: str, summary: Mapping[str, Any]) -> None:
        """A configuration has been explored."""
        self._db.execute(
            "insert or replace into exploration values (?, ?, ?)",
            (run, config, json.dumps(dict(summary), sort_keys=True)),
        )

    def explorations(self, run: int) -> dict[str, dict[str, Any]]:
        """What the explorer said of each explored configuration of a run."""
        rows = self._db.execute(
            "select config, summary from exploration where run = ? order by config", (run,)
        )
        return {config: json.loads(summary) for config, summary in rows}

    def start_trial(self, run: int, spec: TrialSpec, site: str, mask: str) -> None:
        """Writes the row of a trial that is about to start (again, after an interruption)."""
        self._db.execute(
            "insert or replace into trial (run, number, spec, config, site, mask)"
            " values (?, ?, ?, ?, ?, ?)",
            (run, spec.number, json.dumps(to_json(spec)), spec.config, site, mask),
        )

    def finish_trial(self, run: int, result: TrialResult) -> None:
        """Completes a trial's row with its verdict."""
        with self._db:
            self._db.execute("begin")
            self._db.execute(
                "update trial set outcome = ?, result = ? where run = ? and number = ?",
                (result.outcome.value, json.dumps(to_json(result)), run, result.number),
            )
            self._db.executemany(
                "insert or replace into violation values (?, ?, ?, ?, ?, ?, ?, ?)",
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
        rows = self._db.execute(
            "select number from trial where run = ? and outcome is not null and outcome != ?",
            (run, Outcome.HARNESS_ERROR.value),
        )
        return {row[0] for row in rows}

    def trials(self, run: int) -> Iterator[TrialRow]:
        """All trials of a run, in order of number."""
        return self._trials("where run = ? order by number", (run,))

    def trial(self, run: int, number: int) -> TrialRow:
        """ConfigError if there is no such trial."""
        for found in self._trials("where run = ? and number = ?", (run, number)):
            return found
        raise ConfigError(f"{self.path}: no trial {run}.{number}")

    def _trials(self, where: str, values: Sequence[object]) -> Iterator[TrialRow]:
        rows = self._db.execute(
            f"select run, number, spec, site, mask, result from trial {where}", values
        )
        for run, number, spec, site, mask, result in rows:
            yield TrialRow(
                run,
                number,
                from_json(TrialSpec, json.loads(spec)),
                site,
                mask,
                from_json(TrialResult, json.loads(result)) if result else None,
            )
