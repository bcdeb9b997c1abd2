"""The oracle's ADD COLUMN with ALGORITHM=INSTANT: what a rebuild would give, or a refusal."""

from __future__ import annotations

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.workloads.parse import parse_script

TABLE = """create table t a:bigint b:char(4) null primary a
create table f a:bigint b:char(4) primary a
insert - t a=1 b="x"
insert - f a=1 b="x"
"""


def _oracle(text: str) -> Oracle:
    return Oracle(parse_script(TABLE + text))


def _errors(text: str) -> list[str]:
    return [step.error for step in _oracle(text).steps[4:]]


@pytest.mark.parametrize(
    "column", ["c:bigint null", 'c:char(9) default="y"', 'c:varchar(90) default="z"*40']
)
def test_rows_are_those_of_a_rebuild(column: str) -> None:
    """Old and new ones, by either of the promises that no table is copied."""
    later = "insert - t a=2\nupdate - t a=1 set b=null\ndelete - t a=2\n"
    rebuilt = _oracle(f"add column t {column}\n{later}").states[-1]
    for way in ("instant", "nocopy"):
        oracle = _oracle(f"add column t {column} algorithm={way}\n{later}")
        assert {step.error for step in oracle.steps} == {""}
        assert oracle.states[-1] == rebuilt


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("add column f c:bigint algorithm=instant", "DB_UNSUPPORTED"),
        ("add column t c:bigint first algorithm=instant", "DB_UNSUPPORTED"),
        ("add column t c:bigint after=a algorithm=nocopy", "DB_UNSUPPORTED"),
        ('add column t c:varchar(90) default="z"*41 algorithm=instant', "DB_UNSUPPORTED"),
        ("start add column t c:bigint algorithm=instant", "DB_UNSUPPORTED"),
        ("alter table t add column c:bigint and force algorithm=instant", "DB_UNSUPPORTED"),
        ("add column t b:bigint algorithm=instant", "DB_ALREADY_EXISTS"),
        ("add column x c:bigint first algorithm=instant", "DB_NOT_FOUND"),
    ],
)
def test_what_is_refused(statement: str, error: str) -> None:
    """Nothing has changed, and what a table cannot have comes behind what there is no table for."""
    oracle = _oracle(statement + "\n")
    assert [step.error for step in oracle.steps[4:]] == [error]
    assert oracle.states[-1] == _oracle("").states[-1]


def test_a_table_that_is_changed_is_locked() -> None:
    """Before anything else is looked at."""
    text = "begin T\nupdate T t a=1 set b=null\nadd column t c:bigint first algorithm=instant\n"
    assert _errors(text)[-1] == "DB_TABLE_LOCKED"
