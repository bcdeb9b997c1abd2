"""What a store is opened on: nothing, a store of this schema, of another one, or something else."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

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
            db.execute("update version set schema = ?", (schema,))
        before = path.read_bytes()
        told = (
            rf"a store of schema {schema}, this Tornpage reads and writes schema 1: .* \(--store\)"
        )
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
def test_a_store_of_before_the_first_release_is_refused(write: bool, tmp_path: Path) -> None:
    """It kept its version in another table."""
    path = tmp_path / "s.db"
    with Store(path):
        pass
    with sqlite3.connect(path) as db:
        db.executescript("alter table version rename to alembic_version; drop view runs")
    with pytest.raises(ConfigError, match="a table alembic_version, and no version of a store"):
        Store(path, write=write)


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
