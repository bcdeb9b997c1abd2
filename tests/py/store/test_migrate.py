"""A store of an older version is brought up to date and keeps its history; a newer one is refused."""

from __future__ import annotations

import ast
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from builders import make_result, make_spec
from sqlalchemy import create_engine, inspect

from tornpage.store import file, migrate
from tornpage.store.bugs import Novelty, Reproducer
from tornpage.store.origin import Origin
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError, MachineError
from tornpage.vocabulary.model import Outcome

COLUMN = {"schema_version": "version", "alembic_version": "version_num"}


def old_store(path: Path, version: int) -> Path:
    """A file as that version wrote it."""
    text = (Path(__file__).parent / f"store_{version}.sql").read_text("utf-8")
    with sqlite3.connect(path) as db:
        db.executescript(text)
        kept = "schema_version" if version < 4 else "alembic_version"
        assert db.execute(f"select cast(min({COLUMN[kept]}) as int) from {kept}").fetchone() == (
            version,
        )
    return path


def columns_of(path: Path) -> set[tuple[str, ...]]:
    """Table or view, column, type, must not be null (a key never is), place in the key."""
    with sqlite3.connect(path) as db:
        names = [
            row[0] for row in db.execute("select name from sqlite_master where type != 'index'")
        ]
        return {
            (name, *map(str, (row[1], row[2], int(row[3] or row[5] > 0), row[5])))
            for name in names
            for row in db.execute(f"pragma table_info({name})")
        }


def test_a_store_of_version_1_keeps_its_history(tmp_path: Path) -> None:
    """What an older Tornpage wrote is brought up to date, contents of torn writes included."""
    path = tmp_path / "s.db"
    text = (Path(__file__).parent / "store_1.sql").read_text("utf-8")
    with sqlite3.connect(path) as db:
        db.executescript(text)
    for _ in range(2):
        with Store(path, write=False) as store:
            (run,) = store.runs()
            rows = [store.trial(run.id, row.number) for row in store.trials(run.id)]
            (census,) = store.censuses(run.id)
    assert (run.campaign, run.state, run.origin) == ("smoke", "finished", Origin())
    assert [row.result for row in rows] == [make_result(0), make_result(1, broken=5)]
    assert (census.config, census.crashed, census.hash) == ("a", True, "h")


def test_a_store_of_version_2_keeps_its_history(tmp_path: Path) -> None:
    """Runs, verdicts, censuses and explorations are what they were; contents too."""
    with Store(old_store(tmp_path / "s.db", 2), write=False) as store:
        first, second, lost = store.runs()
        rows = list(store.trials(second.id))
        censuses = [store.censuses(run.id)[0] for run in (first, second)]
        assert store.explorations(lost.id) == {"a": {"states": 5, "distinct": 4}}
    assert (first.state, first.origin.host, first.verdict, first.night) == (
        "finished",
        "host",
        "",
        None,
    )
    assert (lost.campaign, lost.target, lost.state) == ("powerloss", "sqlite", "running")
    assert [row.result.outcome for row in rows if row.result] == [
        Outcome.CLEAN,
        Outcome.VIOLATION,
        Outcome.UNSTABLE,
    ]
    assert [len(census.violations) for census in censuses] == [0, 1]
    assert censuses[0].counters == {"btr_splits": 2}


def test_violations_of_version_2_are_given_their_bugs(tmp_path: Path) -> None:
    """As if they had been found by this version: one bug of both runs, one of the second run's census."""
    with Store(old_store(tmp_path / "s.db", 2)) as store:
        rule, torn = sorted(store.bugs(), key=lambda bug: bug.fingerprint)
        assert (torn.fingerprint, rule.fingerprint) == ("state page torn", "rule dblwr_skip")
        assert (torn.runs, torn.count, torn.builds) == (2, 80, ("b1", "b2"))
        assert torn.first.started == "2026-11-01T01:00:00+00:00"
        assert torn.reproducer.name == "1.1"
        assert (rule.first.run, rule.reproducer) == (2, Reproducer(2, None, "a"))
        assert store.sightings(2)[torn.id].novelty is Novelty.AGAIN
        assert store.trial(2, 1).bugs == (torn.id,)
        assert store.trial(2, 2).bugs == (None,), "it is unstable"


def test_a_store_of_version_3_keeps_its_history(tmp_path: Path) -> None:
    """Its tables are those of today; only the version is kept elsewhere."""
    with Store(old_store(tmp_path / "s.db", 3), write=False) as store:
        (run,) = store.runs()
        rows = [store.trial(run.id, row.number) for row in store.trials(run.id)]
        (bug,) = store.bugs()
        (facts,) = store.overview()
    assert [row.result for row in rows] == [make_result(0), make_result(1, broken=5)]
    assert (run.night, run.seconds, run.verdict) == (1, 2.5, "violations")
    assert (bug.reproducer.name, bug.runs) == ("1.1", 1)
    assert (facts.crashes, facts.broken, facts.night) == (2, 1, 1)


def test_a_target_file_of_version_4_is_known_by_its_path_until_it_is_seen_again(
    tmp_path: Path,
) -> None:
    """The bug keeps its number and what was thought of it, and belongs to the target from then on, wherever
    its file lies; another target's finding of the same root does not."""
    place = "/home/ada/mydb/mydb.toml"
    with Store(old_store(tmp_path / "s.db", 4)) as store:
        (run,) = store.runs()
        assert (run.target, run.identity) == (place, place)
        assert (store.bug(1).target, store.bug(1).status) == (place, "known")
        for target, path, bug in (
            ("other@1", "/x.toml", 2),
            ("mydb@1", place, 1),
            ("mydb@1", "/b.toml", 1),
        ):
            again = store.begin_run("smoke", path, 1, 1, {}, Origin(target=target))
            store.start_trial(again.id, make_spec(0), "page0", "none")
            store.finish_trial(again.id, make_result(0, broken=5))
            assert store.trial(again.id, 0).bugs == (bug,)
        assert [bug.target for bug in store.bugs()] == ["mydb@1", "other@1"]
        assert (store.bug(1).status, store.bug(1).runs) == ("known", 3)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_an_old_store_has_the_columns_of_a_new_one(version: int, tmp_path: Path) -> None:
    """Tables and views, whatever way they came."""
    path = old_store(tmp_path / "old.db", version)
    for each in (path, tmp_path / "new.db"):
        with Store(each):
            pass
    assert columns_of(path) == columns_of(tmp_path / "new.db")


def constraints_of(path: Path) -> dict[str, Any]:
    """By table what may be in it: defaults, keys to other tables, unique and indexed columns, checks; and how
    its rows lie."""
    engine = create_engine(f"sqlite:///{path}")
    found = inspect(engine)
    with sqlite3.connect(path) as db:
        created = dict(db.execute("select name, sql from sqlite_master where type = 'table'"))
    try:
        return {
            name: {
                "defaults": {one["name"]: one["default"] for one in found.get_columns(name)},
                "keys": sorted(
                    (one["constrained_columns"], one["referred_table"], one["referred_columns"])
                    for one in found.get_foreign_keys(name)
                ),
                "unique": sorted(one["column_names"] for one in found.get_unique_constraints(name)),
                "indexed": sorted(
                    (str(one["name"]), one["column_names"]) for one in found.get_indexes(name)
                ),
                "checks": sorted(one["sqltext"] for one in found.get_check_constraints(name)),
                "rowid": "without rowid" not in created[name].lower(),
            }
            for name in found.get_table_names()
        }
    finally:
        engine.dispose()


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_an_old_store_has_the_constraints_of_a_new_one(version: int, tmp_path: Path) -> None:
    """What may be in a table does not depend on the way that it came."""
    path = old_store(tmp_path / "old.db", version)
    for each in (path, tmp_path / "new.db"):
        with Store(each):
            pass
    assert constraints_of(path) == constraints_of(tmp_path / "new.db")


def test_a_migration_knows_the_schema_of_its_own_day_only() -> None:
    """A table or a value that changes tomorrow changes no way that leads there: what a migration imports of
    the package knows no table, and no JSON."""
    allowed = {"tornpage.store.migrate", "tornpage.oracle.root", "tornpage.vocabulary.model"}
    for source in Path(migrate.MIGRATIONS).rglob("*.py"):
        tree = ast.parse(source.read_text("utf-8"))
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        ours = {name for name in imported if name and name.startswith("tornpage")}
        assert ours <= allowed, source.name


def test_an_old_store_is_read_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is brought up to date in memory; the file stays as it is."""
    path = old_store(tmp_path / "s.db", 2)
    before = path.read_bytes()
    monkeypatch.setattr(file.os, "access", lambda _path, mode: mode != os.W_OK)
    with Store(path, write=False) as store:
        assert len(store.bugs()) == 2
        with pytest.raises(MachineError, match="readonly"):
            store.fail_run(3)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["s.db"]


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    """A store of another version is neither read nor changed."""
    with Store(tmp_path / "s.db"):
        pass
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("update alembic_version set version_num = '99'")
    with pytest.raises(ConfigError, match="schema version 99"):
        Store(tmp_path / "s.db")


@pytest.mark.parametrize("write", [True, False])
def test_a_database_of_something_else_is_refused(write: bool, tmp_path: Path) -> None:
    """And not a byte of it changes."""
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as db:
        db.execute("create table customers (name text)")
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="something else: it has a table customers"):
        Store(path, write=write)
    assert path.read_bytes() == before
