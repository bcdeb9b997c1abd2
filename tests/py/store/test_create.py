"""What a store is opened on: nothing, a store of this schema, of another one, or something else."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

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
    with pytest.raises(ConfigError, match=r"a store of before 0\.1\.0, which no Tornpage reads"):
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
    with pytest.raises(ConfigError, match="no result store here; `tornpage run` makes one"):
        Store(path, create=create, write=write)
    assert path.read_bytes() == b""
    with Store(path) as store:
        assert store.runs() == []
