"""The versions of the store's schema: a new store is made, an older one brought up to date by Alembic, a
newer one refused. In a transaction of the caller's: a store is there whole or not at all.
"""

from __future__ import annotations

import sqlite3
from importlib import resources
from pathlib import Path

from sqlalchemy import Connection, inspect, select, text

from tornpage.store.schema import TABLES, VERSION, version
from tornpage.vocabulary.errors import ConfigError

__all__ = ["prepare", "require_ours", "version_of"]

FIRST = 1
"""Versions before 4 kept their number in a table of their own."""
OLD_TABLE = "schema_version"
MIGRATIONS = Path(__file__).parent / "migrations"


def version_of(db: Connection) -> str | None:
    """None: no store yet, or one that was not made to its end."""
    tables = inspect(db)
    if tables.has_table(version.name):
        return db.execute(select(version)).scalar_one_or_none()
    if tables.has_table(OLD_TABLE):
        found = db.execute(text(f"select version from {OLD_TABLE}")).scalar_one_or_none()
        return None if found is None else str(found)
    return None


def prepare(db: Connection, name: str) -> None:
    """Makes the tables of a new store, or brings those of an older one up to date. name: of the store, for
    messages."""
    found = version_of(db)  # another process may have been first
    if found is None:
        require_ours(db, name)
        TABLES.create_all(db)
        db.execute(version.insert().values(version_num=VERSION))
    elif not found.isdecimal() or int(found) > int(VERSION):
        raise ConfigError(
            f"{name}: schema version {found}, this Tornpage writes {VERSION}; choose another place"
        )
    elif found != VERSION:
        _upgrade(db, int(found))
    if db.dialect.name == "postgresql":
        db.exec_driver_sql(_text("postgresql.sql"))
    for statement in statements(_text("views.sql")):
        db.exec_driver_sql(statement)


def require_ours(db: Connection, name: str) -> None:
    """ConfigError if a database without a version is one of something else, which is not added to."""
    others = sorted({*inspect(db).get_table_names()} - {*TABLES.tables, OLD_TABLE})
    if others:
        raise ConfigError(
            f"{name}: a database of something else: it has a table {others[0]}; choose another place"
        )


def _upgrade(db: Connection, found: int) -> None:
    """By Alembic, which is not needed otherwise."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = db
    known = inspect(db).has_table(version.name)
    if not known and found > FIRST:
        command.stamp(config, str(found))
    command.upgrade(config, "head")


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def statements(script: str) -> list[str]:
    """Those of a file of SQL, one by one: a driver's own way with several may commit in between."""
    found = []
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found
