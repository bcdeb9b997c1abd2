"""A store is made in a transaction of the caller's: it is there whole or not at all. One of another schema is
refused, and so is a database of something else."""

from __future__ import annotations

import sqlite3
from importlib import resources

from sqlalchemy import Connection, inspect, select

from tornpage.store.schema import TABLES, VERSION, version
from tornpage.vocabulary.errors import ConfigError

__all__ = ["create_store", "has_store"]

OLD_VERSIONS = frozenset({"alembic_version", "schema_version"})
"""Tables in which stores of before 0.1.0 had their version; other programs have such tables too."""
OLD = frozenset({"run", "trial"})
"""Tables of each of those stores."""


def has_store(db: Connection, name: str) -> bool:
    """Whether a store has been made here. name: of the store, for messages. ConfigError: one of another
    schema, or a database of something else, which is not added to."""
    tables = {*inspect(db).get_table_names()}
    if not tables:
        return False
    schema = _schema_of(db) if version.name in tables else None
    if schema == VERSION and TABLES.tables.keys() <= tables:
        return True
    if schema not in (None, VERSION):
        raise ConfigError(
            f"{name}: a store of schema {schema}, this Tornpage reads and writes schema {VERSION}: use the "
            "Tornpage that made it, or another place (--store)"
        )
    if tables >= OLD and tables & OLD_VERSIONS:
        raise ConfigError(
            f"{name}: a store of before 0.1.0, which no Tornpage reads any more; choose another place "
            "(--store)"
        )
    raise ConfigError(
        f"{name}: a database of something else: it has a table {min(tables)}; choose another place (--store)"
    )


def _schema_of(db: Connection) -> int | None:
    """What the table of the version says, None if that is no table of ours."""
    columns = [column["name"] for column in inspect(db).get_columns(version.name)]
    if columns != [column.name for column in version.columns]:
        return None
    found = db.execute(select(version)).scalars().all()
    return found[0] if len(found) == 1 else None


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
