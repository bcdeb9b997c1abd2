"""The versions of the store's schema: a new store is made, an older one brought up to date, a newer one
refused. Each in one transaction: a store is there whole or not at all.

May import: bugs, codec, errors, model.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from importlib import resources
from pathlib import Path

from tornpage.store.bugs import Where, assign_bugs
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Outcome, TrialResult, Violation

__all__ = ["SCHEMA_VERSION", "prepare", "version_of"]

SCHEMA_VERSION = 3


def version_of(db: sqlite3.Connection) -> int | None:
    """None: no store yet, or one that was not made to its end."""
    if db.execute("select count(*) from sqlite_master").fetchone()[0] == 0:
        return None
    found = db.execute("select version from schema_version").fetchone()
    return int(found[0]) if found is not None else None


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """Makes the tables of a new store, or brings those of an older one up to date, in one transaction."""
    if version_of(db) == SCHEMA_VERSION:
        return
    db.execute("begin exclusive")
    try:
        version = version_of(db)  # another process may have been first
        if version is None:
            _script(db, "schema.sql")
        elif version > SCHEMA_VERSION:
            raise ConfigError(
                f"{path}: schema version {version}, this Tornpage writes {SCHEMA_VERSION}; "
                "choose another --out"
            )
        else:
            for old in range(version, SCHEMA_VERSION):
                _script(db, f"from_{old}.sql")
                _CONTENTS[old](db)
        _script(db, "views.sql")
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        db.close()
        raise


def _script(db: sqlite3.Connection, name: str) -> None:
    """Runs the statements of a file. executescript() would commit before the first one."""
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""


def _move_contents(db: sqlite3.Connection) -> None:
    """Version 1 kept the contents of torn writes in the JSON of the results."""
    rows = db.execute(
        "select run, number, result from trial where json_extract(result, '$.torn.new') != ''"
    ).fetchall()
    for run, number, text in rows:
        result = from_json(TrialResult, text)
        assert result.torn is not None, "the query says so"
        db.execute(
            "insert into contents values (?, ?, ?, ?)",
            (run, number, result.torn.old, result.torn.new),
        )
        bare = replace(result, torn=replace(result.torn, old=b"", new=b""))
        db.execute(
            "update trial set result = ? where run = ? and number = ?", (to_json(bare), run, number)
        )


def _assign_bugs(db: sqlite3.Connection) -> None:
    """Version 2 knew no bugs, and kept the violations of censuses as JSON."""
    for (run,) in db.execute("select id from run order by id").fetchall():
        _assign_of_censuses(db, run)
        _assign_of_trials(db, run)
    db.execute("alter table census drop column violations")


def _assign_of_censuses(db: sqlite3.Connection, run: int) -> None:
    rows = db.execute(
        "select config, violations from census where run = ? order by config", (run,)
    ).fetchall()
    for config, text in rows:
        violations = from_json(tuple[Violation, ...], text)
        bugs = assign_bugs(db, Where(run, None, config), violations)
        for position, (item, bug) in enumerate(zip(violations, bugs, strict=True)):
            site = item.site.value if item.site else None
            db.execute(
                "insert into census_violation values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(run, config, position, item.invariant, site),
                    *(item.path, item.what, item.source.value, bug),
                ),
            )


def _assign_of_trials(db: sqlite3.Connection, run: int) -> None:
    rows = db.execute(
        "select number, config, result from trial where run = ? and outcome = ? order by number",
        (run, Outcome.VIOLATION.value),
    ).fetchall()
    for number, config, text in rows:
        result = from_json(TrialResult, text)
        where = Where(run, number, config, result.alike)
        for position, bug in enumerate(assign_bugs(db, where, result.violations)):
            db.execute(
                "update violation set bug = ? where run = ? and trial = ? and position = ?",
                (bug, run, number, position),
            )


_CONTENTS = {1: _move_contents, 2: _assign_bugs}
"""What SQL alone cannot do, by the version that it starts from; after its from_N.sql."""
