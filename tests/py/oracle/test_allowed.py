"""What a crash may leave, by what is promised: the same for every kind of target."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tornpage.oracle.allowed import Allowed, allowed_after
from tornpage.oracle.backups import Backup
from tornpage.oracle.exports import Export
from tornpage.oracle.judgement import FoundBackup
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.oracle import Oracle
from tornpage.oracle.prefixes import prefixes_of
from tornpage.oracle.promise import Promise
from tornpage.oracle.state import State
from tornpage.workloads.parse import parse_script

DURABLE, CONSISTENT, START = Promise(), Promise(durable=False), Promise(False, False)


def state(number: int) -> State:
    """Any, by number."""
    return {"rows": (1, number, ())}


TABLE = "create table t a:bigint primary a\ninsert - t a=1\n"
STATES = {number: state(number) for number in range(5)}


def observed(finished: int, issued: int, promise: Promise, unknown: str = "") -> Allowed:
    """After a crash of a run of four commits."""
    return allowed_after(ObservedOracle(STATES, [1, 2, 3, 4]), finished, issued, promise, unknown)


def broken(allowed: Allowed, found: State) -> list[int]:
    """The invariants that a state breaks."""
    return [violation.invariant for violation in allowed.judge(found, {}).violations]


@pytest.mark.parametrize(
    ("promise", "wanted"),
    [
        (DURABLE, [[1], [1], [], [], [3], [2]]),
        (CONSISTENT, [[], [], [], [], [3], [2]]),
        (START, [[], [], [], [], [], []]),
    ],
)
def test_what_is_promised_is_what_is_judged(promise: Promise, wanted: list[list[int]]) -> None:
    """Two statements acknowledged and one in flight: what is missing, what was never issued, and what never
    was, each only where it is promised."""
    allowed = observed(2, 3, promise)
    assert [broken(allowed, state(number)) for number in (0, 1, 2, 3, 4, 99)] == wanted


def test_the_range_is_no_wider_than_it_must_be() -> None:
    """From the last acknowledged prefix to that of the statement in flight."""
    assert [(a.low, a.high) for a in (observed(2, 2, DURABLE), observed(2, 3, DURABLE))] == [
        (2, 2),
        (2, 3),
    ]
    relaxed = observed(2, 3, CONSISTENT)
    assert (relaxed.low, relaxed.high, relaxed.acknowledged) == (0, 3, 2)


def test_what_is_durable_for_another_reason_must_be_there() -> None:
    """A statement that syncs everything, where commits are not promised to be durable."""
    script = TABLE + TABLE.replace(" t ", " u ") + "insert - t a=3\n"
    oracle = Oracle(parse_script(script))
    durable = [step.prefix for step in oracle.steps if step.durable]
    assert durable == [1, 3], "a CREATE TABLE is durable by itself"
    lows = [allowed_after(oracle, line, line, CONSISTENT).low for line in range(6)]
    assert lows == [0, 1, 1, 3, 3, 3]
    assert allowed_after(oracle, 5, 5, CONSISTENT).acknowledged == 5


def test_a_state_that_may_be_the_unknown_one_is_undecided() -> None:
    """That of the statement under way is not known: no finding, and no pass."""
    allowed = observed(2, 3, DURABLE, "statement 3 was under way")
    verdict = allowed.judge(state(99), {})
    assert (verdict.violations, verdict.undecided) == ((), "statement 3 was under way")
    assert allowed.judge(state(2), {}).undecided == ""


def test_each_client_has_a_promise_of_its_own() -> None:
    """One client's acknowledged commit is missing, whatever the other has."""

    def part(client: str, number: int) -> State:
        return {client: (1, number, ())}

    told = {0: {**part("a", 0), **part("b", 0)}, 1: part("a", 1), 2: part("b", 2)}
    oracle = ObservedOracle(told, [1, 2], clients={1: "a", 2: "b"})
    lost = {**part("a", 0), **part("b", 2)}
    assert broken(allowed_after(oracle, 2, 2, DURABLE), lost) == [1]
    assert broken(allowed_after(oracle, 2, 2, CONSISTENT), lost) == []
    mixed = {**part("a", 7), **part("b", 2)}
    assert broken(allowed_after(oracle, 2, 2, CONSISTENT), mixed) == [2]
    assert broken(allowed_after(oracle, 2, 2, START), mixed) == []


def test_a_backup_is_judged_from_its_statement_on() -> None:
    """I28: one that is in flight may be there, and is judged if it is; one that was acknowledged must be; it
    equals the prefix of its end and no other."""
    script = TABLE + "start backup b\nfinish backup b\ninsert - t a=2\n"
    oracle = Oracle(parse_script(script))
    (prefix,) = oracle.backups
    right, wrong = oracle.states[prefix], oracle.states[0]
    for finished, issued, found, broken in (
        (3, 4, {}, []),
        (3, 4, {"b": FoundBackup(right)}, []),
        (3, 4, {"b": FoundBackup(wrong)}, [28]),
        (3, 4, {"b": FoundBackup(right, "page 3: list FREE")}, [28]),
        (4, 4, {"b": FoundBackup(right)}, []),
        (4, 5, {"b": FoundBackup(wrong)}, [28]),
    ):
        allowed = allowed_after(oracle, finished, issued, DURABLE)
        verdict = allowed.judge(oracle.states[allowed.low], found)
        assert [violation.invariant for violation in verdict.violations] == broken


def test_a_backup_is_judged_whatever_else_is_promised() -> None:
    """I28: one that cannot be prepared."""
    script = "start backup b\nfinish backup b\n"
    oracle = Oracle(parse_script(script))
    allowed = allowed_after(oracle, 2, 2, START)
    found = allowed.judge(oracle.states[-1], {"b": FoundBackup(None, "refused")})
    assert [violation.invariant for violation in found.violations] == [28]


def test_a_backup_that_was_acknowledged_must_be_there() -> None:
    """Also where its end is the last acknowledgement; one that is in flight may be there."""
    oracle = Oracle(parse_script("start backup b\nfinish backup b\n"))
    (prefix,) = oracle.backups
    acknowledged = allowed_after(oracle, 2, 2, DURABLE).judge(oracle.states[-1], {})
    assert [violation.invariant for violation in acknowledged.violations] == [28]
    flying = allowed_after(oracle, 1, 2, DURABLE)
    assert (flying.low, flying.high) == (prefix - 1, prefix)
    assert flying.judge(oracle.states[-1], {}).violations == ()
    wrong = flying.judge(oracle.states[-1], {"b": FoundBackup(None, "refused")})
    assert [violation.invariant for violation in wrong.violations] == [28]


def test_an_acknowledged_export_is_one_whatever_commits_may_be_lost() -> None:
    """Its file was fsynced, which a promise of no durability takes nothing from."""
    oracle = SimpleNamespace(exports={2: "t"})
    allowed = Allowed(cast(Any, oracle), 0, 2, 2, CONSISTENT)
    assert allowed.export() == Export("t", acked=True)


def test_the_explorer_is_told_of_backups_and_of_the_end() -> None:
    """Which one is finished by a prefix, and whether it must be there; and which prefix a clean end has."""
    for sure in (True, False):
        oracle = SimpleNamespace(
            states=[{}, {}],
            commit_lines=[0, 1],
            exports={},
            backups={1: Backup("b", sure)},
            end=1,
        )
        told = [json.loads(line) for line in prefixes_of(cast(Any, oracle)).splitlines()]
        assert [line.get("backup") for line in told] == [None, "b"]
        assert told[1]["sure"] is sure
        assert [line.get("end") for line in told] == [None, True]
