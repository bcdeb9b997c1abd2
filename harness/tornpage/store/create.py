"""A store is made in a transaction of the caller's: it is there whole or not at all. One of another schema is
refused, and so is a database of something else."""

from __future__ import annotations

import sqlite3
from importlib import resources

from sqlalchemy import Connection, inspect, select

from tornpage.store.schema import TABLES, VERSION, version
from tornpage.vocabulary.errors import ConfigError

__all__ = ["create_store", "has_store"]


def has_store(db: Connection, name: str) -> bool:
    """Whether a store has been made here. name: of the store, for messages. ConfigError: one of another
    schema, or a database of something else, which is not added to."""
    tables = inspect(db).get_table_names()
    if version.name in tables:
        found = db.execute(select(version)).scalar_one_or_none()
        if found == VERSION:
            return True
        raise ConfigError(
            f"{name}: a store of schema {found}, this Tornpage reads and writes schema {VERSION}: use the "
            "Tornpage that made it, or another place (--store)"
        )
    if tables:
        raise ConfigError(
            f"{name}: a database of something else: it has a table {min(tables)}, and no version of a store "
            "(nor had those before 0.1.0); choose another place (--store)"
        )
    return False


def create_store(db: Connection, name: str) -> None:
    """Makes tables and views, unless another process was first. ConfigError as has_store()."""
    if has_store(db, name):
        return
    TABLES.create_all(db)
    db.execute(version.insert().values(schema=VERSION))
    if db.dialect.name == "postgresql":
        db.exec_driver_sql(_text("postgresql.sql"))
    for statement in _statements(_text("views.sql")):
        db.exec_driver_sql(statement)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _statements(script: str) -> list[str]:
    """Those of a file of SQL, one by one: a driver's own way with several may commit in between."""
    found = []
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found
