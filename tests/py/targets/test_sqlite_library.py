"""The state that the targets sqlite-*.toml tell: what is not in it may be lost unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.targets.bundled.sqlite_library import Connection, recover, state_of

LIBRARY = "libsqlite3.so.0"


def state_after(folder: Path, *statements: str) -> dict[str, str]:
    """Of a database in a new folder."""
    folder.mkdir()
    connection = Connection(LIBRARY, str(folder))
    for statement in ("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)", *statements):
        connection.ask(statement)
    return state_of(connection)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("'', ''", "NULL, ''"),
        ("NULL, ''", "'NULL', ''"),
        ("1, 2", "'1', 2"),
        ("'a b', 'c'", "'a', 'b c'"),
        ("'a', 'b'", "x'61', 'b'"),
    ],
)
def test_other_values_are_another_state(one: str, other: str, tmp_path: Path) -> None:
    """Of another type too, though a shell prints them alike."""
    insert = "INSERT INTO t VALUES (1, {})".format
    states = [
        state_after(tmp_path / name, insert(values)) for name, values in (("1", one), ("2", other))
    ]
    assert states[0] != states[1]


@pytest.mark.parametrize(
    "statement",
    ["CREATE INDEX ta ON t (a)", "ALTER TABLE t ADD COLUMN c", "CREATE VIEW v AS SELECT 1"],
)
def test_what_is_defined_is_of_the_state(statement: str, tmp_path: Path) -> None:
    """An acknowledged definition may not be lost, though it changes no row."""
    assert state_after(tmp_path / "1", statement) != state_after(tmp_path / "2")


def test_recovery_finds_what_the_run_has_told(tmp_path: Path) -> None:
    """Whatever order an index would give."""
    rows = ("INSERT INTO t VALUES (2, 1, 'b'), (1, 2, 'a')", "CREATE INDEX tba ON t (b, a, id)")
    told = state_after(tmp_path / "1", *rows)
    assert recover(LIBRARY, str(tmp_path / "1")) == (told, [])
    assert told["table t"] == "1 2 'a'\n2 1 'b'\n"


def test_names_may_be_words_of_the_language(tmp_path: Path) -> None:
    """And have blanks and quotes."""
    made = 'CREATE TABLE "order by" ("group" INTEGER, "a ""b""" TEXT)'
    told = state_after(tmp_path / "1", made, "INSERT INTO \"order by\" VALUES (1, 'x')")
    assert told["table order by"] == "1 'x'\n"
