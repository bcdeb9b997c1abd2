"""The disturbed run of a trial: what is wrong with it whatever recovery makes of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import make_spec
from fake_trace import FakeTrace

from tornpage.faults.process import ChildResult
from tornpage.faults.trace import Op
from tornpage.live import trial
from tornpage.live.crash import Crash, RunVerdict, judge_crash, judge_unfired
from tornpage.live.hit import Hit
from tornpage.live.journal import read_journal
from tornpage.live.recovered import Recovered
from tornpage.live.stage import Stage
from tornpage.oracle.allowed import allowed_after
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.oracle import Oracle
from tornpage.oracle.promise import Promise
from tornpage.oracle.rules import Finding
from tornpage.targets.target import Capability
from tornpage.vocabulary.errors import ChildError
from tornpage.vocabulary.model import FaultPlan, Outcome, Source, Violation
from tornpage.workloads.parse import parse_script


def child(code: int | None = 0, signal: int = 0, *, timed_out: bool = False) -> ChildResult:
    """A run that ended so."""
    return ChildResult(code, signal, timed_out, 1.0, 0, 0, b"", b"")


@pytest.mark.parametrize(
    ("ended", "deterministic", "word"),
    [
        (child(), True, ""),
        (child(None, 11), True, "failed before its fault: died by SIGSEGV"),
        (child(1), True, "failed before its fault: exit code 1"),
        (child(2), True, ""),
        (child(None, 11), False, ""),
        (child(None, 9, timed_out=True), False, "the run hung"),
    ],
)
def test_a_run_whose_fault_did_not_fire_did_what_the_golden_run_did(
    ended: ChildResult, deterministic: bool, word: str
) -> None:
    """Nothing was done to it. One that dies all the same, or hangs, is a finding; a usage error is ours."""
    crash = Crash((ended,), FakeTrace().trace(), bare=False, differed=False, hit=None)
    found = judge_unfired(crash, deterministic=deterministic)
    assert [one.what for one in found] == [one.what for one in found if word and word in one.what]
    assert bool(found) is bool(word)
    assert all((one.invariant, one.source) == (0, Source.RUN) for one in found)


@pytest.mark.parametrize(
    ("marks", "wrong", "found"),
    [
        (("fail n=2 err=DB_TEMP_FILE_FAILED", "issue n=3", "ack n=3"), "", ()),
        (("fail n=2 err=DB_TEMP_FILE_FAILED", "issue n=3"), "", ()),
        (
            ("fail n=2 err=DB_TEMP_FILE_FAILED", "issue n=3", "fail n=3 err=DB_ERROR"),
            "line 3",
            (),
        ),
        (("ack n=2", "issue n=3", "ack n=3"), "", ("ib",)),
        ((), "", ("ib",)),
    ],
)
def test_what_is_answered_behind_a_failure_decides_what_may_be_found(
    marks: tuple[str, ...], wrong: str, found: tuple[str, ...], tmp_path: Path
) -> None:
    """A build that failed alone has left no index, and may have none made; every other answer is that of the
    model. found: the index is allowed."""
    fake = FakeTrace().marks("issue n=1", "ack n=1", "issue n=2")
    recording = fake.record(Op.FAULT, length=512).marks(*marks).trace()
    (event,) = [one for one in recording.events() if one.kind == Op.FAULT]
    crash = Crash((child(),), recording, bare=False, differed=False, hit=None)
    text = "create table t a:bigint b:char(4) primary a\nadd index t ib(b)\ninsert - t a=2\n"
    base = SimpleNamespace(
        oracle=Oracle(parse_script(text)),
        trace=SimpleNamespace(begins_with=lambda _: True),
        setting=None,
        found=tmp_path,
    )
    target = SimpleNamespace(
        capabilities=frozenset({Capability.DETERMINISTIC}), promise=lambda _: Promise()
    )
    stage = Stage(make_spec(3), cast(Any, target), cast(Any, base), tmp_path)
    run = judge_crash(stage, crash, Hit(event, None, None))
    assert [wrong in one.what for one in run.violations] == [True] * bool(wrong)
    newest = run.allowed.oracle.states[run.allowed.high]
    assert tuple(index[0] for index in newest["t"][2]) == found


@pytest.mark.parametrize(
    ("differed", "timed_out", "wanted"),
    [
        (False, False, ["early"]),
        (True, False, ["early", "differs from the golden run"]),
        (False, True, ["early", "the run hung"]),
    ],
)
def test_what_is_wrong_with_a_killed_run(
    differed: bool, timed_out: bool, wanted: list[str], tmp_path: Path
) -> None:
    """What the rules said of the golden run up to the kill, and of nothing behind it; that it is another run;
    that it did not end."""
    fake = FakeTrace().marks("issue n=1", "ack n=1", "issue n=2")
    recording = fake.kill("f", 0, b"\1\0", bytes(1024), b"x" * 1024).trace()
    (event,) = recording.events(kinds=(Op.KILL,))
    broken = {number: Violation(4, f"{number}", source=Source.RULE) for number in ("early", "late")}
    base = SimpleNamespace(
        oracle=Oracle(parse_script("create table t a:bigint primary a\ninsert - t a=2\n")),
        trace=SimpleNamespace(begins_with=lambda _: True),
        findings=(
            Finding(event.seq - 1, broken["early"]),
            Finding(event.seq + 1, broken["late"]),
        ),
        journal=read_journal(recording),
    )
    target = SimpleNamespace(
        capabilities=frozenset({Capability.DETERMINISTIC}), promise=lambda _: Promise()
    )
    stage = Stage(make_spec(3), cast(Any, target), cast(Any, base), tmp_path)
    ended = child(None, 9, timed_out=timed_out)
    crash = Crash((ended,), recording, bare=False, differed=differed, hit=Hit(event, None, None))
    found = judge_crash(stage, crash, Hit(event, None, None)).violations
    assert all(word in one.what for one, word in zip(found, wanted, strict=True))


@pytest.mark.parametrize("broken", [False, True])
def test_a_failure_behind_a_finding_does_not_hide_it(
    broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run differs from the golden run, and then its recovery cannot be played: the finding stands.
    Without one there is no verdict."""
    recording = FakeTrace().kill("f", 0, b"\1\0", bytes(1024), b"x" * 1024).trace()
    (event,) = [one for one in recording.events() if one.length == 1024]
    crash = Crash(
        (child(None, 9),), recording, bare=False, differed=True, hit=Hit(event, None, None)
    )
    oracle = ObservedOracle({0: {}, 1: {"t": (1, 1, ())}}, [1])
    differs = Violation(
        0, "the run differs from the golden run before the fault", source=Source.RUN
    )
    run = RunVerdict(
        (differs,) if broken else (), allowed_after(oracle, 0, 0, Promise()), before_first=False
    )
    found = Recovered(FaultPlan(), failure=ChildError("no trace of the recover"))
    monkeypatch.setattr(trial, "make_crash", lambda _stage: crash)
    monkeypatch.setattr(trial, "judge_crash", lambda *_: run)
    monkeypatch.setattr(trial, "copy_image", lambda *_: None)
    monkeypatch.setattr(trial, "recover_crash", lambda *_: found)
    target = cast(Any, type("Nothing", (), {"capabilities": frozenset()}))
    stage = Stage(make_spec(3), target, cast(Any, None), tmp_path)
    if not broken:
        with pytest.raises(ChildError, match="no trace of the recover"):
            trial._play_on(stage, None)
        return
    result = trial._play_on(stage, None).result()
    assert (result.outcome, result.violations) == (Outcome.VIOLATION, (differs,))
