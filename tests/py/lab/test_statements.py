"""Statements on the engine for measurements: what fails is told, and nothing waits for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.lab.statements import run_statements
from tornpage.vocabulary.errors import TargetError
from tornpage.vocabulary.paths import find_paths

ENGINE = find_paths().build / "engine" / "engine"
CREATE = "create table t a:bigint b:char(64) primary a"
INSERT = 'insert - t a=1 b="x"'


def test_a_statement_may_be_many(tmp_path: Path) -> None:
    """Each has the counters behind it; rows that a script shows disturb nothing."""
    lines = "\n".join([INSERT, "begin s", "select t a=1", "commit s"])
    steps = run_statements(ENGINE, tmp_path / "db", {}, [CREATE, lines, "purge all"])
    commits = [step.status["trx_commits"] for step in steps]
    assert len(steps) == 3
    assert commits[0] < commits[1]


def test_a_failure_is_an_error_unless_it_may_be(tmp_path: Path) -> None:
    """The engine goes on behind it, and so do the steps if it was to be expected."""
    statements = [CREATE, INSERT, INSERT, "purge all"]
    with pytest.raises(TargetError, match="line 5: table t: a row with this primary key exists"):
        run_statements(ENGINE, tmp_path / "one", {}, statements)
    steps = run_statements(ENGINE, tmp_path / "two", {}, statements, may_fail=True)
    assert len(steps) == len(statements)


def test_much_is_said_behind_a_failure(tmp_path: Path) -> None:
    """More than any pipe holds, on both sides of the engine."""
    statements = [CREATE, INSERT, INSERT, *(f'update - t a=1 set b="{n}"' for n in range(2000))]
    assert len(run_statements(ENGINE, tmp_path / "db", {}, statements, may_fail=True)) == 2003


@pytest.mark.parametrize(
    ("options", "statements", "message"),
    [
        ({}, ["no such statement"], "script line 1"),
        ({"page_size": "3k"}, [CREATE], "page_size"),
    ],
)
def test_an_engine_that_does_not_begin(
    tmp_path: Path, options: dict[str, str], statements: list[str], message: str
) -> None:
    """What it says is the error."""
    with pytest.raises(TargetError, match=message):
        run_statements(ENGINE, tmp_path / "db", options, statements, may_fail=True)
