"""The oracle's ALTER TABLE of several clauses: all by one prefix, or a failure, and nothing changes."""

from __future__ import annotations

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.oracle.state import State
from tornpage.workloads.parse import parse_script

TABLE = """create table t a:bigint b:char(4) c:bigint null d:bigint primary a
add index t ib(b) ic(c)
insert - t a=1 b="x" c=7
insert - t a=2 b="y" c=7
"""


def _oracle(text: str) -> Oracle:
    return Oracle(parse_script(TABLE + text))


def _errors(text: str) -> list[str]:
    return [step.error for step in _oracle(text).steps[4:]]


def _last(text: str) -> State:
    return _oracle(text).states[-1]


@pytest.mark.parametrize(
    ("clauses", "alone"),
    [
        (
            "add index ib(e) and drop index ib and rename column b e",
            "drop index t ib\nrename column t b e\nadd index t ib(e)\n",
        ),
        (
            "rename index ic id and drop index ib and add unique index ic(a)",
            "drop index t ib\nrename index t ic id\nadd unique index t ic(a)\n",
        ),
        (
            'drop column c and drop index ic and add column c:char(2) default="z" after=f'
            " and rename column d f and add index ic(c)",
            "drop index t ic\ndrop column t c\nrename column t d f\n"
            'add column t c:char(2) default="z" after=f\nadd index t ic(c)\n',
        ),
        ("force and rename index ib ix", "rebuild table t\nrename index t ib ix\n"),
    ],
)
def test_clauses_do_together_what_they_do_alone(clauses: str, alone: str) -> None:
    """In one prefix, in whatever order they are written; in steps, too, with rows that change meanwhile."""
    together = _oracle(f"alter table t {clauses}\n")
    assert [step.error for step in together.steps[4:]] == [""]
    assert together.states[-1] == _last(alone)
    row = 'insert - t a=3 b="z"\n'
    stepped = f"start alter t {clauses} lock=none\n{row}step index t\nfinish index t\n"
    assert _errors(stepped) == [""] * 4
    assert _last(stepped) == _last(row + alone)
    backwards = " and ".join(reversed(clauses.split(" and ")))
    assert _last(f"alter table t {backwards}\n") == together.states[-1]


@pytest.mark.parametrize(
    ("clauses", "error"),
    [
        ("drop index ib and drop index ib", "DB_UNSUPPORTED"),
        ("drop index ib and rename index ib x", "DB_UNSUPPORTED"),
        ("add index x(b) and rename index ib x", "DB_UNSUPPORTED"),
        ("rename column b x and rename column c b", "DB_UNSUPPORTED"),
        ("rename column c b and rename column b x", "DB_UNSUPPORTED"),
        ("drop index ib and force algorithm=nocopy", "DB_UNSUPPORTED"),
        ("drop index ib and rename column b x algorithm=instant", "DB_UNSUPPORTED"),
        ("drop index ib and add index x(b) algorithm=copy lock=none", "DB_UNSUPPORTED"),
        ("drop index x and rename column b e", "DB_NOT_FOUND"),
        ("rename column b e and rename column x f", "DB_NOT_FOUND"),
        ("rename column b c and drop index ib", "DB_ALREADY_EXISTS"),
        ("drop index ib and drop column c", "DB_ERROR"),
        ("drop index ib and add unique index uc(c)", "DB_DUPLICATE_KEY"),
        ("force and rename column b e and add unique index uc(c)", "DB_DUPLICATE_KEY"),
    ],
)
def test_a_clause_that_fails_fails_all(clauses: str, error: str) -> None:
    """Nothing has changed."""
    oracle = _oracle(f"alter table t {clauses}\nscan t ib\n")
    assert [step.error for step in oracle.steps[4:]] == [error, ""]
    assert oracle.states[-1] == _last("")


def test_it_is_a_build() -> None:
    """Until it ends the table is locked as the statement says; an abort leaves it as it was; without a new
    index no change is too much."""
    use = "insert - t a=3\ndelete - t a=3\n"
    shared = (
        f"start alter t drop index ib and rename column c e\n{use}scan t ib\nabort index t\n{use}"
    )
    assert _errors(shared) == ["", "DB_TABLE_LOCKED", "DB_TABLE_LOCKED", "", "", "", ""]
    assert _last(shared) == _last("")
    exclusive = "start alter t drop index ib and rename column c e lock=exclusive\nscan t ib\n"
    assert _errors(exclusive) == ["", "DB_TABLE_LOCKED"]
    begun = "begin T\ninsert T t a=3\nalter table t drop index ib and rename column c e\n"
    assert _errors(begun) == ["", "", "DB_TABLE_LOCKED"]
    flood = "start alter t drop index ib and rename column c e lock=none\ninsert_seq - t 10 3000\n"
    few = Oracle(parse_script(TABLE + flood + "finish index t\n"), {"sort_buffer_size": "64k"})
    assert few.steps[-1].error == ""
