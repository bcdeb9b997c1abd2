"""A store is made in a transaction of the caller's: it is there whole or not at all. One of an older schema
gets what it lacks in the same way. Any other schema is refused, and so is a database of something else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path

from sqlalchemy import Connection, inspect, select

from tornpage.store.below import name_from_folder
from tornpage.store.schema import TABLES, VERSION, explanation, version
from tornpage.vocabulary.errors import ConfigError

__all__ = ["create_store", "schema_there"]

OLD_VERSIONS = frozenset({"alembic_version", "schema_version"})
"""Tables in which stores of before 0.1.0 had their version; other programs have such tables too."""
OLD = frozenset({"run", "trial"})
"""Tables of each of those stores."""


def _to_4(db: Connection, _folder: Path | None) -> None:
    """Explanations are kept."""
    explanation.create(db)
    db.exec_driver_sql(_view("explanations"))


_STEPS: Mapping[int, Callable[[Connection, Path | None], None]] = {3: _to_4, 4: name_from_folder}
"""By the schema that it leads away from, to the next one."""


def schema_there(db: Connection, name: str) -> int | None:
    """The schema of the store that has been made here: ours, or one that leads to it; None: no store.
    name: of the store, for messages. ConfigError: one of another schema, or a database of something else,
    which is not added to."""
    tables = {*inspect(db).get_table_names()}
    if not tables:
        return None
    schema = _schema_of(db) if version.name in tables else None
    if schema == VERSION and TABLES.tables.keys() <= tables:
        return schema
    if schema in _STEPS and tables >= OLD:
        return schema
    if schema not in (None, VERSION, *_STEPS):
        raise ConfigError(
            f"{name}: a store of schema {schema}, this Tornpage reads and writes schema {VERSION}: use the "
            "Tornpage that made it, or another place (--store)"
        )
    if tables >= OLD and tables & OLD_VERSIONS:
        raise ConfigError(
            f"{name}: a store from before 0.1.0, which Tornpage no longer reads; choose another place "
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


def create_store(db: Connection, name: str, folder: Path | None) -> None:
    """Makes tables and views, or those that an older store lacks, unless another process was first.
    folder: of the store, as Place has it. ConfigError as schema_there()."""
    there = schema_there(db, name)
    if there is not None:
        for schema in range(there, VERSION):
            _STEPS[schema](db, folder)
        db.execute(version.update().values(schema=VERSION))
        return
    TABLES.create_all(db)
    db.execute(version.insert().values(schema=VERSION))
    if db.dialect.name == "postgresql":
        db.exec_driver_sql(_text("postgresql.sql"))
    for statement in _statements(_text("views.sql")):
        db.exec_driver_sql(statement)


def _view(name: str) -> str:
    """The statement that makes it."""
    made = (one for one in _statements(_text("views.sql")) if f"create view {name} as" in one)
    return next(made)


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
