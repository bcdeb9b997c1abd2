"""Statements that failed I/O has ended while the target lives on: what they changed, and what follows."""

from __future__ import annotations

import pytest

from tornpage.live.fault_free import judge_answers
from tornpage.oracle.allowed import allowed_after
from tornpage.oracle.answers import ANY_ERROR
from tornpage.oracle.oracle import Oracle
from tornpage.oracle.promise import Promise
from tornpage.workloads.parse import parse_script

TABLE = "create table t a:bigint b:char(4) primary a\ninsert - t a=1\n"
FULL = "DB_TEMP_FILE_FAILED"


def _oracle(text: str) -> Oracle:
    return Oracle(parse_script(TABLE + text))


def _wrong(oracle: Oracle, errors: dict[int, str]) -> list[str]:
    return [violation.what for violation in judge_answers(oracle.steps, errors)]


@pytest.mark.parametrize(
    "statement",
    ["add index t ib(b)", "rebuild table t", "change primary t b", "drop column t b"],
)
def test_a_statement_that_was_given_up_has_changed_nothing(statement: str) -> None:
    """The state before it stands, with what the statements behind it do to that."""
    oracle = _oracle(f"{statement}\ninsert - t a=2\n").behind({3: FULL}, 1)
    without = _oracle("insert - t a=2\n")
    assert oracle.states[-1] == without.states[-1]
    assert [step.error for step in oracle.steps] == ["", "", FULL, ""]
    found = allowed_after(oracle, 3, 3, Promise()).judge(without.states[2], {})
    assert not found.violations
    assert _wrong(oracle, {3: FULL}) == []


def test_what_came_before_keeps_its_error() -> None:
    """Only behind a statement that was given up a refusal may have any name."""
    text = "drop index t ib\nadd index t ib(b)\ndrop index t ic\n"
    oracle = _oracle(text).behind({4: FULL}, 1)
    assert [step.error for step in oracle.steps[2:]] == ["DB_NOT_FOUND", FULL, ANY_ERROR]
    assert len(_wrong(oracle, {3: "DB_ERROR", 4: FULL, 5: "DB_ERROR"})) == 1
    assert len(_wrong(oracle, {3: "DB_NOT_FOUND", 4: "DB_ERROR", 5: "DB_ERROR"})) == 1


def test_a_build_that_was_given_up_is_over() -> None:
    """Its further steps find none, and the table is free."""
    steps = "start index t ib(b) lock=none\ninsert - t a=2\nfinish index t\nfinish index t\n"
    oracle = _oracle(steps + "add index t ib(b)\n").behind({5: FULL}, 1)
    assert [step.error for step in oracle.steps] == ["", "", "", "", FULL, ANY_ERROR, ""]
    assert [index[0] for index in oracle.states[-1]["t"][2]] == ["ib"]
    assert _wrong(oracle, {5: FULL, 6: "DB_NOT_FOUND"}) == []
    assert _wrong(oracle, {5: FULL}) == ["line 6 ended with success, the model says an error"]


def test_what_does_not_fit_the_table_is_refused() -> None:
    """Statements that were written for the table that it was to become."""
    oracle = _oracle("add column t c:bigint\ninsert - t a=2 c=5\ninsert - t a=3\n").behind(
        {3: FULL}, 1
    )
    assert [step.error for step in oracle.steps[2:]] == [FULL, ANY_ERROR, ""]
    assert oracle.states[-1]["t"][0] == 2


def test_one_failure_explains_one_statement() -> None:
    """The second one that says so is held against the model, and so is each without a failure."""
    text = "add index t ib(b)\nadd index t ic(b)\n"
    errors = {3: FULL, 4: FULL}
    oracle = _oracle(text)
    assert oracle.behind(errors, 0) is oracle
    assert len(_wrong(oracle.behind(errors, 0), errors)) == 2
    assert _wrong(oracle.behind(errors, 1), errors) == [
        f"line 4 ended with {FULL}, the model says success"
    ]
    assert _wrong(oracle.behind(errors, 2), errors) == []


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("insert - t a=2", FULL),
        ("insert - t a=2", "DB_BACKUP_ABORTED"),
        ("add index t ib(b)", "DB_DUPLICATE_KEY"),
        ("add index t ib(b)", "DB_BACKUP_ABORTED"),
        ("start backup b", FULL),
    ],
)
def test_no_other_error_is_one_of_failed_io(statement: str, error: str) -> None:
    """A change of a row does not fail because a log of changes does."""
    oracle = _oracle(statement + "\n")
    assert oracle.behind({3: error}, 1) is oracle
    assert _wrong(oracle, {3: error}) == [f"line 3 ended with {error}, the model says success"]


def test_a_backup_that_was_given_up_need_not_be_there() -> None:
    """And another one can begin."""
    text = "start backup b lock=shared\nstep backup b 1\nfinish backup b\nstart backup c\n"
    oracle = _oracle(text).behind({4: "DB_BACKUP_ABORTED"}, 1)
    assert not oracle.backups
    assert [step.error for step in oracle.steps[2:]] == ["", "DB_BACKUP_ABORTED", ANY_ERROR, ""]


@pytest.mark.parametrize(("lock", "sure"), [("none", False), ("shared", True)])
def test_only_a_backup_without_a_lock_may_be_given_up(lock: str, sure: bool) -> None:
    """Its end says so; under a lock files can be copied again, and that end is wrong."""
    oracle = _oracle(f"start backup b lock={lock}\nstep backup b 1\nfinish backup b\n")
    told = "line 5 ended with DB_BACKUP_ABORTED, the model says success"
    assert _wrong(oracle, {5: "DB_BACKUP_ABORTED"}) == ([told] if sure else [])
    assert _wrong(oracle, {}) == []
    assert len(_wrong(oracle, {5: "DB_ERROR"})) == 1
