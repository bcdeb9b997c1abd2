"""A fault-free run that fails, or breaks something, is run again before anything is said of the target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from builders import make_spec
from fake_trace import FakeTrace

from tornpage.live import fault_free, golden_run
from tornpage.live.fault_free import FaultFreeRun, judge_fault_free, run_fault_free
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.errors import FailedRunError, GoldenRunError, MachineError
from tornpage.vocabulary.model import Source, Violation

HUNG = FailedRunError("fault-free run of c failed: hung: killed after 60.0 s")
RULE = Violation(22, "dblwr: no fsync", source=Source.RULE)


def run(*violations: Violation) -> FaultFreeRun:
    """One that came to its end."""
    nothing = cast(Any, None)
    return FaultFreeRun(nothing, nothing, nothing, nothing, "h", nothing, (), violations)


def target(*capabilities: Capability) -> Target:
    """Nothing of it is asked."""
    return cast(Target, type("Asked", (), {"capabilities": frozenset(capabilities)}))


SAME = target(Capability.DETERMINISTIC)
OTHER = target(Capability.OBSERVED)


def play(
    monkeypatch: pytest.MonkeyPatch, answers: list[FaultFreeRun | Exception], of: Target = SAME
) -> FaultFreeRun:
    """The run, whose plays end so; all of them are asked for."""

    def once(*_arguments: object, **_named: object) -> FaultFreeRun:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(fault_free, "_run_once", once)
    try:
        return run_fault_free(make_spec(3), of, Path("/nowhere"))
    finally:
        assert answers == []


def test_what_comes_again_is_what_it_came_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure, or a violation, twice the same. A run that is right is played once."""
    assert play(monkeypatch, [run()]).violations == ()
    assert play(monkeypatch, [run(RULE), run(RULE)]).violations == (RULE,)
    with pytest.raises(FailedRunError, match="hung"):
        play(monkeypatch, [HUNG, HUNG])


@pytest.mark.parametrize(
    "answers",
    [
        [HUNG, run()],
        [HUNG, run(RULE)],
        [run(RULE), run()],
        [run(RULE), run(replace(RULE, invariant=5))],
    ],
)
def test_what_does_not_come_again_is_the_machines(
    answers: list[FaultFreeRun | Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a finding nor a pass: the run ends, and can go on. It tells what the first play came to."""
    with pytest.raises(MachineError, match=r"unstable: .*(hung|no fsync)"):
        play(monkeypatch, answers)


def test_a_recording_of_a_run_that_no_other_equals_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server's run broke by its bytes need not come again."""
    assert play(monkeypatch, [run(RULE)], OTHER).violations == (RULE,)


def test_a_set_up_that_is_wrong_is_not_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing of the target."""
    with pytest.raises(GoldenRunError, match="no such file"):
        play(monkeypatch, [GoldenRunError("no such file")])


def test_a_row_tells_what_came_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A target that hangs each time is a violation of its fault-free run."""

    def once(*_arguments: object, **_named: object) -> FaultFreeRun:
        raise HUNG

    monkeypatch.setattr(fault_free, "_run_once", once)
    row = judge_fault_free(make_spec(3), SAME, tmp_path / "run")
    assert [(one.invariant, one.source) for one in row.violations] == [(0, Source.RUN)]


def test_the_second_run_of_a_golden_run_is_judged_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is made for the names of files, and for the states that runs agree on, of a target that need not do
    the same again; what is wrong with it is a finding like any other. Names that were there before are not
    drawn."""
    trace = FakeTrace().write("new", 0, 512).write("log", 0, 512).trace()
    other = FakeTrace().write("newer", 0, 512).write("log", 0, 512).trace()
    first, second = replace(run(), trace=trace), replace(run(RULE), trace=other)
    monkeypatch.setattr(golden_run, "run_fault_free", lambda *_: second)
    work = tmp_path / "work"
    (work / "found").mkdir(parents=True)
    names, again = golden_run._compare(make_spec(3), OTHER, first, work)
    assert (names.stable, again.violations) == ({"log"}, (RULE,))
    for name in ("new", "log"):
        (work / "found" / name).touch()
    names, again = golden_run._compare(make_spec(3), OTHER, first, work)
    assert (names.aim("new"), again.violations) == ("new", (RULE,))
