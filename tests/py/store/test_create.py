"""What a store is opened on: nothing, a store of this schema, of another one, or something else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_result, make_spec
from filled_store import EXPLAINED, fill

from tornpage.store.schema import VERSION
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError


@pytest.mark.parametrize("write", [True, False])
def test_another_schema_is_refused(write: bool, tmp_path: Path) -> None:
    """An older or a newer one alike: told what to do, and not a byte of it changes."""
    path = tmp_path / "s.db"
    for schema in (0, 99):
        with Store(path):
            pass
        with sqlite3.connect(path) as db:
            db.execute("update tornpage_version set schema = ?", (schema,))
        before = path.read_bytes()
        told = rf"a store of schema {schema}, this Tornpage reads and writes schema {VERSION}: .* \(--store\)"
        with pytest.raises(ConfigError, match=told):
            Store(path, write=write)
        assert path.read_bytes() == before
        path.unlink()


def make_schema_3(path: Path) -> None:
    """A store of today is one of schema 3 without what came later."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "drop view explanations; drop table explanation; update tornpage_version set schema = 3"
        )


def make_schema_4(path: Path) -> None:
    """What lies in the folder of a store of schema 4 has absolute paths."""
    with sqlite3.connect(path) as db:
        db.execute(
            "update trial set result = replace(result, '\"images', ?), spec = replace(spec, '\"images', ?)",
            (f'"{path.parent}/images', f'"{path.parent}/images'),
        )
        db.execute("update run set target = ? || target", (f"{path.parent}/",))
        db.execute("update tornpage_version set schema = 4")


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_store_of_schema_4_names_its_images_from_its_folder(
    is_moved: bool, tmp_path: Path
) -> None:
    """Also where the folder was moved before; what lies elsewhere keeps its path."""
    folder = tmp_path / "out"
    path = folder / "s.db"
    images = folder / "images" / "1"
    (images / "0" / "target").mkdir(parents=True)
    targets = (str(images / "0" / "target" / "kv.toml"), str(tmp_path / "own.toml"))
    (images / "0" / "target" / "kv.toml").touch()
    kept = (images / "0", tmp_path / "apart")
    with Store(path) as store:
        run = store.begin_run("import", targets[0], 1, 2, {}).id
        for number, (target, image) in enumerate(zip(targets, kept, strict=True)):
            store.start_trial(run, replace(make_spec(number), target=target), "page0", "none")
            store.finish_trial(run, replace(make_result(number, broken=5), image=image))
    with sqlite3.connect(path) as db:
        new = db.execute("select target, image, spec from runs, trial, trials").fetchall()
    make_schema_4(path)
    with sqlite3.connect(path) as db:
        old = db.execute("select image from trials order by number").fetchall()
    assert old == [(str(image),) for image in kept]
    if is_moved:
        folder = folder.rename(tmp_path / "moved")
        path = folder / "s.db"
    with Store(path, create=False) as store:
        rows = list(store.trials(run))
        there = folder / "images" / "1" / "0"
        assert [row.result and row.result.image for row in rows] == [there, kept[1]]
        assert [row.spec.target for row in rows] == [f"{there}/target/kv.toml", targets[1]]
        assert store.run(run).target == rows[0].spec.target
    with sqlite3.connect(path) as db:
        assert db.execute("select target, image, spec from runs, trial, trials").fetchall() == new


def tables_of(path: Path) -> list[tuple[str, str]]:
    """Tables and views, as they were made."""
    with sqlite3.connect(path) as db:
        return db.execute("select name, sql from sqlite_master order by name").fetchall()


@pytest.mark.parametrize("write", [True, False])
def test_a_store_of_schema_3_gets_what_it_lacks(write: bool, tmp_path: Path) -> None:
    """It keeps its runs, and is then what a new one is; one open of any kind is enough."""
    path, fresh = tmp_path / "s.db", tmp_path / "fresh.db"
    for place in (path, fresh):
        with Store(place) as store:
            fill(store)
    make_schema_3(path)
    assert tables_of(path) != tables_of(fresh)
    with Store(path, create=False, write=write) as store:
        assert len(store.runs()) == 2 and store.explanations(1) == {}
        assert len(store.bugs()) == 2
    assert tables_of(path) == tables_of(fresh)
    with Store(path, create=False) as store:
        store.put_explanation("1.1", EXPLAINED)
        assert store.explanations(1) == {"1.1": EXPLAINED}


def test_a_store_of_schema_3_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of somebody else's: it stays as it is, and the message says what to do."""
    path = tmp_path / "s.db"
    with Store(path):
        pass
    make_schema_3(path)
    before = path.read_bytes()
    monkeypatch.setattr("tornpage.store.file.os.access", lambda *_: False)
    with pytest.raises(ConfigError, match=r"a store of schema 3, which is upgraded to .*: copy it"):
        Store(path, write=False)
    assert path.read_bytes() == before


def test_a_step_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails in its middle leaves the store as it was, for the next try."""
    path = tmp_path / "s.db"
    with Store(path):
        pass
    make_schema_3(path)
    before = tables_of(path)
    with monkeypatch.context() as broken:
        broken.setattr("tornpage.store.create._view", lambda _name: "no statement")
        with pytest.raises(ConfigError, match="syntax error"):
            Store(path)
    assert tables_of(path) == before
    with Store(path, write=False) as store:
        assert store.explanations(1) == {}


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


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("table", ["version", "tornpage_version"])
@pytest.mark.parametrize(
    "rows",
    [
        f"create table {{}}(schema int); insert into {{}} values ({VERSION})",
        f"create table {{}}(schema int); insert into {{}} values ({VERSION}), ({VERSION})",
        "create table {}(version_num text); insert into {} values ('a1')",
        "create table {}(schema int)",
    ],
)
def test_a_table_of_versions_alone_makes_no_store(
    rows: str, table: str, write: bool, tmp_path: Path
) -> None:
    """Of whatever form it is, and even if it is called as ours."""
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as db:
        db.executescript(rows.format(table, table))
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=f"something else: it has a table {table};"):
        Store(path, write=write)
    assert path.read_bytes() == before


def test_a_store_has_one_version(tmp_path: Path) -> None:
    """A second row, or none, makes it one that nobody can read."""
    for rows in ("insert into tornpage_version values (1)", "delete from tornpage_version"):
        path = tmp_path / "s.db"
        with Store(path):
            pass
        with sqlite3.connect(path) as db:
            db.execute(rows)
        with pytest.raises(ConfigError, match="a database of something else"):
            Store(path)
        path.unlink()


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("table", ["alembic_version", "schema_version"])
def test_a_store_of_before_the_first_release_is_refused(
    table: str, write: bool, tmp_path: Path
) -> None:
    """It kept its version in another table, as other programs do, which are told apart."""
    path, other = tmp_path / "s.db", tmp_path / "app.db"
    with Store(path):
        pass
    with sqlite3.connect(path) as db:
        db.executescript(f"alter table tornpage_version rename to {table}; drop view runs")
    with pytest.raises(
        ConfigError, match=r"a store from before 0\.1\.0, which Tornpage no longer reads"
    ):
        Store(path, write=write)
    with sqlite3.connect(other) as db:
        db.executescript(f"create table {table} (version_num text)")
    with pytest.raises(ConfigError, match=f"something else: it has a table {table};"):
        Store(other, write=write)


@pytest.mark.parametrize(("create", "write"), [(False, True), (True, False), (False, False)])
def test_an_empty_file_is_no_store_unless_one_may_be_made(
    create: bool, write: bool, tmp_path: Path
) -> None:
    """It stays empty; whoever may create makes a store of it."""
    path = tmp_path / "s.db"
    path.touch()
    with pytest.raises(ConfigError, match="no result database here; `tornpage run` makes one"):
        Store(path, create=create, write=write)
    assert path.read_bytes() == b""
    with Store(path) as store:
        assert store.runs() == []
