"""The verdict on a trial, of values alone: which of all that was seen is a finding, and what is no pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tornpage.faults.process import ChildResult
from tornpage.live import verdict
from tornpage.live.crash import RunVerdict
from tornpage.live.recovered import NOTHING_TO_HIT, Recovered, Recovery
from tornpage.live.verdict import Judged, judge_trial
from tornpage.oracle.allowed import Allowed, StateVerdict, allowed_after
from tornpage.oracle.judgement import FoundBackup
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.promise import Promise
from tornpage.oracle.state import State
from tornpage.targets.engine.stale_log import PlantedBlock
from tornpage.targets.target import RecoveryAnswer
from tornpage.vocabulary.errors import DeafError
from tornpage.vocabulary.model import (
    Action,
    Fault,
    FaultKind,
    FaultPlan,
    Outcome,
    Site,
    Source,
    Violation,
)
from tornpage.workers.canaries import Canary, require_hearing, value_canaries

KILL = Fault(FaultKind.WRITE, 1, Action.KILL)
ERROR = Fault(FaultKind.WRITE, 1, Action.ERROR, error="EIO")
RULE = Violation(22, "dblwr: no fsync", source=Source.RULE)
SCAN = Violation(11, "page 3: list FREE")


def state(number: int) -> State:
    """Any, by number."""
    return {"rows": (1, number, ())}


def child(*, timed_out: bool = False) -> ChildResult:
    """A process that ended."""
    return ChildResult(0, 0, timed_out, 1.0, 0, 0, b"", b"")


def answer(number: int = 2, *findings: Violation, **values: object) -> RecoveryAnswer:
    """A recovery that came to this state."""
    good = RecoveryAnswer(True, state=state(number), findings=findings, recovered=True)
    return replace(good, **values)  # type: ignore[arg-type]


def recovery(told: RecoveryAnswer, *faults: Fault, **values: object) -> Recovery:
    """One recovery."""
    return replace(Recovery(child(), told, faults), **values)  # type: ignore[arg-type]


REFUSED = RecoveryAnswer(False, refused=True, message="no")
DIED = RecoveryAnswer(False, message="died by SIGSEGV")
PROMISES = {"durable": Promise(), "start": Promise(False, False)}


def run(
    promise: Promise = PROMISES["durable"], *violations: Violation, issued: int = 3
) -> RunVerdict:
    """A crash with two statements acknowledged and one in flight, of four."""
    oracle = ObservedOracle({number: state(number) for number in range(5)}, [1, 2, 3, 4])
    return RunVerdict(violations, allowed_after(oracle, 2, 3, promise), issued == 0)


def recovered(told: RecoveryAnswer | None = None, **values: object) -> Recovered:
    """A recovery and the one after it, which came to the same."""
    last = recovery(told or answer())
    again = replace(last) if last.answer.ok else None
    return replace(Recovered(FaultPlan(), last=last, again=again), **values)  # type: ignore[arg-type]


def judged(
    found: Recovered, crash: RunVerdict | None = None, *, ruled: bool = True, whole: bool = False
) -> Judged:
    """Of a kill at a page."""
    return judge_trial(crash or run(), found, Site.DATA_PAGE, ruled=ruled, whole=whole)


def broken(found: Judged) -> list[int]:
    """The invariants, in order."""
    return [violation.invariant for violation in found.violations]


def test_only_a_recovery_to_an_allowed_state_is_clean() -> None:
    """What the crash may leave; all else is a violation by its invariant."""
    for number, wanted in ((2, []), (3, []), (1, [1]), (4, [3]), (9, [2])):
        found = judged(recovered(answer(number)))
        assert broken(found) == wanted
        assert found.outcome is (Outcome.VIOLATION if wanted else Outcome.CLEAN)


def test_whatever_speaks_is_heard() -> None:
    """The run, the rules on each recovery, the scanner, the exported table: each once, in their order."""
    of_run = Violation(0, "the run hung", source=Source.RUN)
    exported = Violation(28, "t1.ibd: page 4: zero")
    found = recovered(
        answer(2, SCAN),
        disturbed=(recovery(DIED, KILL, rules=(RULE,), killed=True),),
        exported=(True, (exported,)),
        fault_free=recovery(answer(2, SCAN)),
    )
    assert found.last is not None
    found = replace(found, last=replace(found.last, rules=(RULE,)))
    assert judged(found, run(PROMISES["durable"], of_run)).violations == (
        of_run,
        RULE,
        SCAN,
        exported,
    )


def test_what_was_shown_once_is_shown_ever_after() -> None:
    """I17: a state that the crash allowed, and that is not the one which an earlier recovery has shown: the
    one that nothing disturbed, one that went on after a failed write, or the first of two."""
    earlier = [
        {"fault_free": recovery(answer(3))},
        {"disturbed": (recovery(answer(3), ERROR, rules=(replace(RULE, invariant=23),)),)},
        {"again": recovery(answer(3))},
    ]
    for values in earlier:
        assert 17 in broken(judged(recovered(**values)))
    assert broken(judged(recovered(fault_free=recovery(answer(2))))) == []


@pytest.mark.parametrize("which", ["fault_free", "again"])
def test_backups_are_shown_too(which: str) -> None:
    """What one recovery made of them the other must."""
    backups: Mapping[str, FoundBackup] = {"b": FoundBackup(state(1))}
    found = recovered(**{which: recovery(answer(2, backups=backups))})
    assert broken(judged(found)) == [17]


def test_a_second_recovery_must_find_nothing_new() -> None:
    """It fails, or leaves damage that the first did not: I17. What both find is told once."""
    assert broken(judged(recovered(again=recovery(DIED)))) == [17]
    assert broken(judged(recovered(again=recovery(answer(2, SCAN))))) == [17]
    both = recovered(answer(2, SCAN))
    assert broken(judged(both)) == [SCAN.invariant]
    more = replace(both, again=recovery(answer(2, SCAN, replace(SCAN, what="page 4: list FREE"))))
    assert broken(judged(more)) == [SCAN.invariant, 17]


def test_where_no_state_is_promised_none_is_judged() -> None:
    """But recovery must succeed, find nothing itself, and come to the same when it is played again."""
    start = run(PROMISES["start"])
    assert broken(judged(recovered(answer(99)), start)) == []
    assert broken(judged(recovered(fault_free=recovery(answer(3))), start)) == []
    assert broken(judged(recovered(answer(99, SCAN)), start)) == [11]
    assert broken(judged(recovered(again=recovery(answer(3))), start)) == [17]
    assert broken(judged(recovered(DIED), start)) == [30]


def test_a_recovery_that_was_missed_is_judged_like_any() -> None:
    """It ended before its fault: vacuous, unless what it came to is wrong."""
    found = judged(recovered(missed=True))
    assert (found.outcome, found.reason) == (
        Outcome.VACUOUS,
        "recovery 1 ended before its fault: exit code 0",
    )
    assert broken(judged(recovered(DIED, missed=True))) == [30]
    assert broken(judged(recovered(answer(1), missed=True))) == [1]


def test_what_says_nothing_is_no_pass() -> None:
    """A write that was left whole, no recovery, an unknown state, nothing to hit. A violation counts."""
    idle = answer(recovered=False)
    unknown = replace(run(), allowed=replace(run().allowed, unknown="statement 3 was under way"))
    whole = recovered(disturbed=(recovery(DIED, KILL, killed=True, whole=True),))
    unhit = Recovered(FaultPlan(recover=NOTHING_TO_HIT))
    for found, outcome, word in (
        (judged(recovered(), whole=True), Outcome.NOT_EXERCISED, "whole write"),
        (judged(whole), Outcome.NOT_EXERCISED, "whole write"),
        (judged(recovered(answer(99)), unknown), Outcome.NOT_EXERCISED, "under way"),
        (judged(recovered(idle)), Outcome.VACUOUS, "no recovery ran"),
        (judged(recovered(idle), whole=True), Outcome.VACUOUS, "no recovery ran"),
        (judged(unhit), Outcome.NOT_EXERCISED, "no write of this site"),
    ):
        assert found.outcome is outcome and word in found.reason
    assert broken(judged(recovered(answer(1)), whole=True)) == [1]
    assert broken(judged(unhit, run(PROMISES["durable"], RULE))) == [22]


@pytest.mark.parametrize(
    ("one", "ruled", "wanted"),
    [
        (recovery(answer(), ERROR), True, [23]),
        (recovery(answer(), replace(ERROR, kind=FaultKind.RENAME)), True, [23]),
        (recovery(answer(), replace(ERROR, kind=FaultKind.UNLINK)), True, []),
        (recovery(answer(), replace(ERROR, kind=FaultKind.READ)), True, []),
        (recovery(answer(), ERROR), False, []),
        (recovery(answer(), ERROR, rules=(replace(RULE, invariant=23),)), True, [23]),
        (recovery(DIED, ERROR), True, [30]),
        (recovery(REFUSED, ERROR), True, []),
        (recovery(replace(REFUSED, refused=False, stopped=True), ERROR), True, []),
        (recovery(DIED, KILL, killed=True), True, []),
        (recovery(DIED, ERROR, KILL, killed=True), True, []),
        (Recovery(child(timed_out=True), DIED, (ERROR,)), True, [30]),
    ],
)
def test_a_recovery_whose_write_failed_must_stop_and_say_so(
    one: Recovery, ruled: bool, wanted: list[int]
) -> None:
    """Success breaks I23, an end without a clear message and a hang I30; a killed one says nothing."""
    assert broken(judged(recovered(disturbed=(one,)), ruled=ruled)) == wanted


FAILED = {"b": FoundBackup(None, "refused: DB_IO_ERROR")}
RIGHT = {"b": FoundBackup(state(1))}


@pytest.mark.parametrize(("told", "wanted"), [(FAILED, []), (RIGHT, [23]), ({}, [23, 17])])
def test_a_prepare_whose_operation_failed_may_fail_alone(
    told: Mapping[str, FoundBackup], wanted: list[int]
) -> None:
    """If it says so: the database beside it recovers, and the next prepare succeeds."""
    first = recovery(answer(backups=told), ERROR, fired=True)
    assert broken(judged(recovered(answer(backups=RIGHT), disturbed=(first,)))) == wanted


def test_a_backup_that_nobody_made_fail_is_missed() -> None:
    """Of a recovery that was killed, or played without a fault."""
    first = recovery(answer(backups=FAILED))
    assert broken(judged(recovered(answer(backups=RIGHT), fault_free=first))) == [17]


def test_a_refusal_blames_what_it_names() -> None:
    """Its own word, else the page that was hit; a crash is I30, a planted block I21; before the first
    statement there need be no database."""
    block = PlantedBlock(4096, b"")
    torn = replace(REFUSED, breaks=27)
    empty = replace(REFUSED, no_database=True)
    for found, wanted in (
        (judged(recovered(REFUSED)), [5]),
        (judged(recovered(torn)), [27]),
        (judged(recovered(DIED)), [30]),
        (judged(recovered(REFUSED, stale=block)), [5]),
        (judged(recovered(REFUSED, stale=block, blamed=True)), [21]),
        (judged(recovered(empty), run(issued=0)), []),
        (judged(recovered(empty)), [5]),
        (judged(recovered(REFUSED), run(issued=0)), [5]),
    ):
        assert broken(found) == wanted
    refused = judge_trial(run(), recovered(REFUSED), Site.REDO, ruled=True, whole=False)
    assert broken(refused) == [30]


def test_what_a_failure_of_the_harness_leaves_is_judged() -> None:
    """The rules' findings of a recovery before it stand."""
    one = recovery(DIED, KILL, rules=(RULE,), killed=True)
    assert broken(judged(Recovered(FaultPlan(), disturbed=(one,)))) == [22]
    assert Path(PlantedBlock(0, b"").file).name == "ib_logfile0"


def test_every_canary_is_condemned() -> None:
    """Each that the promise condemns; one that is not makes the judge deaf, by its name."""
    crash = run()
    names = {name: {c.name for c in tried_with(promise)} for name, promise in PROMISES.items()}
    assert names["durable"] == {"never_issued", "lost_commit", "second_answer", "refusal"}
    assert names["start"] == {"second_answer", "refusal"}
    canaries = tuple(value_canaries(crash.allowed, recovered()))
    assert all(canary.condemned for canary in canaries)
    require_hearing(canaries)
    deaf = replace(canaries[0], condemned=False)
    with pytest.raises(
        DeafError, match=r"^the judge is deaf: never_issued \(I3\) is not condemned"
    ):
        require_hearing((*canaries[1:], deaf))


def tried_with(promise: Promise) -> tuple[Canary, ...]:
    """Under this promise, of recoveries that came to the last state."""
    return tuple(value_canaries(run(promise).allowed, recovered()))


def test_a_run_that_changes_nothing_has_few_canaries() -> None:
    """Its first state is right at its end."""
    same = ObservedOracle({0: state(2), 1: state(2)}, [1])
    allowed = allowed_after(same, 1, 1, Promise())
    assert [canary.name for canary in value_canaries(allowed, recovered())] == ["refusal"]


@pytest.mark.parametrize(("name", "low", "high"), [("lost_commit", -1, 0), ("never_issued", 0, 1)])
def test_a_judge_that_is_one_commit_too_lenient_is_deaf(
    name: str, low: int, high: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One acknowledged commit may be missing, or one may be there that was never issued."""
    honest = Allowed.judge

    def lenient(allowed: Allowed, *found: Any) -> StateVerdict:
        return honest(
            replace(allowed, low=max(allowed.low + low, 0), high=allowed.high + high), *found
        )

    monkeypatch.setattr(Allowed, "judge", lenient)
    found = {c.name: c.condemned for c in value_canaries(run().allowed, recovered())}
    assert [one for one, condemned in found.items() if not condemned] == [name]


@pytest.mark.parametrize("name", ["lost_commit", "second_answer"])
def test_a_deaf_judge_of_kills_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes any state for right, and one that has no memory of the first recovery."""
    if name == "lost_commit":
        monkeypatch.setattr(Allowed, "judge", lambda *_: StateVerdict())
    else:
        monkeypatch.setattr(verdict, "_judge_shown", lambda *_, **__: ())
    found = {c.name: c.condemned for c in value_canaries(run().allowed, recovered())}
    assert not found[name] and found["refusal"]
