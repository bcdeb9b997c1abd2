"""The recoveries after a crash: which are played, in which order, and what is known when one fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from builders import make_spec
from fake_trace import FakeTrace

from tornpage.faults.aim import RecoveryAim
from tornpage.faults.process import ChildResult
from tornpage.faults.trace import Trace
from tornpage.live import recovered
from tornpage.live.recovered import NOTHING_TO_HIT, Recovered, recover_crash
from tornpage.live.stage import Stage
from tornpage.oracle.allowed import Allowed, allowed_after
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.promise import Promise
from tornpage.targets.target import Command, RecoveryAnswer
from tornpage.vocabulary.errors import ChildError, EndedError, MachineError
from tornpage.vocabulary.model import Action, Fault, FaultKind, Site

IN_THE_IMAGE = "file"
"""A recovery that is ended has removed it."""
KILL = Fault(FaultKind.WRITE, 1, Action.KILL)
STATE = {"rows": (1, 1, ())}
OK = RecoveryAnswer(True, state=STATE, recovered=True)
DIED = RecoveryAnswer(False, message="died by SIGSEGV")


class Played:
    """A target, and the commands of its recoveries: each gives the next answer. An error is raised."""

    capabilities: frozenset[str] = frozenset()
    name = "played"

    def __init__(self, answers: Sequence[RecoveryAnswer | Exception]) -> None:
        self.answers = list(answers)

    def run(self, _env: object) -> ChildResult:
        """A recovery that nobody records."""
        return self.next()

    def recover_command(self, data: Path, _options: object) -> Played:
        """This. An answer of the machine's is one on the image as it was."""
        self.data = data
        return self

    def parse_recovery(self, child: ChildResult) -> RecoveryAnswer:
        """What next() has told."""
        return cast(RecoveryAnswer, cast(Any, child).answer)

    def next(self) -> ChildResult:
        """Ends as the next answer says."""
        answer = self.answers.pop(0)
        if isinstance(answer, EndedError):
            (self.data / IN_THE_IMAGE).unlink()
        if isinstance(answer, Exception):
            raise answer
        return cast(ChildResult, Told(answer))


class Told:
    """How a recovery ended."""

    def __init__(self, answer: RecoveryAnswer) -> None:
        self.answer = answer
        self.timed_out = False

    def describe(self) -> str:
        """In words."""
        return self.answer.message


class PlayedStage(Stage):
    """Plays nothing. A fault fires unless the recovery comes to an answer that is its own."""

    def play(
        self, name: str, command: Command, faults: tuple[Fault, ...] = (), *, bare: bool = False  # noqa: ARG002
    ) -> tuple[ChildResult, Trace]:  # fmt: skip
        """With an empty recording, or one of a kill."""
        child = cast(Any, command).next()
        fake = FakeTrace()
        if faults and child.answer.message == "killed":
            fake.kill("f", 0, b"\1\0", bytes(1024), b"x" * 1024)
        self.trace_of(name).write_bytes(fake.data())
        return child, fake.trace()


KILLED = RecoveryAnswer(False, message="killed")
ALLOWED: Allowed = allowed_after(ObservedOracle({0: STATE, 1: {}}, [1]), 0, 0, Promise())


def play(
    tmp_path: Path,
    answers: Sequence[RecoveryAnswer | Exception],
    *recover: tuple[Fault, ...],
    aim: RecoveryAim | None = None,
) -> tuple[Recovered, Played]:
    """The recoveries of a plan."""
    target = Played(answers)
    spec = make_spec(3)
    spec = replace(spec, plan=replace(spec.plan, recover=recover))
    setting = type("S", (), {"page_size": 4096, "unit": 512})
    base = cast(Any, type("Base", (), {"setting": setting, "names": None}))
    stage = PlayedStage(spec, cast(Any, target), base, tmp_path)
    for folder in (stage.data, stage.image):
        folder.mkdir()
        (folder / IN_THE_IMAGE).touch()
    return recover_crash(stage, aim, None, ALLOWED), target


def test_one_that_nothing_disturbs_and_the_one_after_it(tmp_path: Path) -> None:
    """Two processes, the second without a recording."""
    found, target = play(tmp_path, [OK, OK])
    assert target.answers == []
    assert found.last is not None and found.again is not None
    assert (found.disturbed, found.fault_free, found.missed) == ((), None, False)


def test_a_disturbed_one_is_played_fault_free_before(tmp_path: Path) -> None:
    """Then with its faults, then without, then once more."""
    found, target = play(tmp_path, [OK, KILLED, KILLED, OK, OK], (KILL,), (KILL,))
    assert target.answers == [] and found.failure is None
    assert found.fault_free is not None and found.fault_free.answer is OK
    assert [one.killed for one in found.disturbed] == [True, True]
    assert found.counters() == {"nested_kills": 2}
    assert (tmp_path / "recover-2.trace").exists()


def test_a_crash_that_no_recovery_survives_is_disturbed_no_further(tmp_path: Path) -> None:
    """What the fault-free one came to is the last word, whatever one that is killed first would come to."""
    found, target = play(tmp_path, [DIED, KILLED, OK, OK], (KILL,))
    assert len(target.answers) == 3
    assert found.last is not None and found.last.answer is DIED
    assert (found.fault_free, found.disturbed, found.missed) == (None, (), False)


def test_one_that_ends_before_its_fault_is_the_last(tmp_path: Path) -> None:
    """It was to be disturbed and was not; what it came to is known."""
    found, target = play(tmp_path, [OK, DIED], (KILL,))
    assert target.answers == []
    assert found.missed and found.last is not None and found.last.answer is DIED


def test_nothing_to_hit_is_nothing_to_recover(tmp_path: Path) -> None:
    """No write of such a site was found in the fault-free recovery."""
    found, target = play(tmp_path, [OK], aim=RecoveryAim(Site.REDO, "none", 7))
    assert target.answers == []
    assert (found.plan.recover, found.last) == (NOTHING_TO_HIT, None)


@pytest.mark.parametrize(
    ("answers", "disturbed", "last"),
    [
        ([OK, KILLED, ChildError("no trace")], 1, False),
        ([OK, KILLED, OK, ChildError("no such program")], 1, True),
        ([OK, KILLED, RecoveryAnswer(True)], 1, False),
        ([ChildError("no trace")], 0, False),
    ],
)
def test_a_failure_of_the_harness_leaves_what_is_known(
    answers: list[RecoveryAnswer | Exception], disturbed: int, last: bool, tmp_path: Path
) -> None:
    """All that came before it; and the failure, for a trial that broke nothing until then."""
    found, _ = play(tmp_path, answers, (KILL,))
    assert (len(found.disturbed), found.last is not None) == (disturbed, last)
    assert isinstance(found.failure, ChildError)


def test_a_failure_of_the_machine_is_no_part_of_a_trial(tmp_path: Path) -> None:
    """It ends the run."""
    with pytest.raises(MachineError):
        play(tmp_path, [OK, KILLED, MachineError("no room")], (KILL,))


ENDED = EndedError("recover was ended from outside by SIGKILL")
SAYS_SO = RecoveryAnswer(False, refused=True, machine=True, message="no memory")


@pytest.mark.parametrize(
    ("answers", "plan"),
    [
        ([ENDED] * 3, ()),
        ([SAYS_SO] * 3, ()),
        ([OK, ENDED] * 3, ()),
        ([OK, KILLED, ENDED] * 3, ((KILL,),)),
    ],
)
def test_one_that_is_ended_each_time_ends_itself(
    answers: list[RecoveryAnswer | Exception],
    plan: tuple[tuple[Fault, ...], ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three times on the same image, by a machine that is short of nothing: that is what the crash came to,
    with what led there."""
    monkeypatch.setattr(recovered, "is_short", lambda _before: False)
    found, target = play(tmp_path, answers, *plan)
    assert target.answers == [] and found.last is not None
    assert not found.last.answer.ok and found.last.answer.message.startswith("3 times in a row")
    assert (len(found.disturbed), found.again, found.failure) == (len(plan), None, None)


@pytest.mark.parametrize(
    ("answers", "is_short"),
    [([ENDED] * 3, True), ([ENDED, OK, OK], False), ([ENDED] * 2 + [DIED], False)],
)
def test_one_that_may_have_been_ended_by_the_machine_says_nothing(
    answers: list[RecoveryAnswer | Exception],
    is_short: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was short of something, or what it did does not come again."""
    monkeypatch.setattr(recovered, "is_short", lambda _before: is_short)
    with pytest.raises(EndedError, match="ended from outside by SIGKILL"):
        play(tmp_path, answers)
