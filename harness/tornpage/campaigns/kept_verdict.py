"""What the kept evidence of a finding says under the programs that there are now: the crashed image is
recovered again, a state of a kept recording is made and recovered again, the rules are asked again. A new
run is another matter: those of a server differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tornpage.faults.image import copy_image, empty_place, remove_image
from tornpage.live.crash import RunVerdict
from tornpage.live.fault_free import judge_run
from tornpage.live.kept import (
    RECORDINGS,
    KeptCrash,
    kept_recording,
    load_crash,
    load_recording,
)
from tornpage.live.recovered import Recovered, Recovery, insisted
from tornpage.live.verdict import judge_trial
from tornpage.powerloss.explorer import replay_state
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import ChildError, EndedError
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec, Violation

__all__ = ["KeptAnswer", "ask_kept"]


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """of: what was asked, in words; violations: what it breaks; unasked: why it could not be asked, "" if it
    was."""

    of: str
    violations: tuple[Violation, ...] = ()
    unasked: str = ""

    def __str__(self) -> str:
        """In a line."""
        broken = sorted({violation.invariant for violation in self.violations})
        names = ", ".join(f"I{number}" for number in broken)
        return f"{self.of}: {self.unasked or (f'broken, {names}' if names else 'clean')}"


def ask_kept(
    spec: TrialSpec, result: TrialResult, target: Target, scratch: Path
) -> tuple[KeptAnswer, ...]:
    """All that was kept of a finding; none if nothing was, or its image is gone. scratch: for recoveries."""
    image = result.image
    if image is None or not image.is_dir():
        return ()
    answers = []
    recording, crash = load_recording(image), load_crash(image)
    if crash is not None:
        answers.append(_ask_image(spec, result, crash, target, scratch))
    if recording is not None:
        answers.append(_ask_state(spec, image, target, scratch))
    if (image / RECORDINGS[0][1]).is_dir():
        answers.append(KeptAnswer("the kept recording", _ask_rules(spec, image, target)))
    return tuple(answers)


def _ask_state(spec: TrialSpec, image: Path, target: Target, scratch: Path) -> KeptAnswer:
    of = "the kept recording, crashed there again"
    try:
        with kept_recording(image, scratch) as recording:
            again = replay_state(spec, target, recording, scratch / "kept-state")
    except (ChildError, FileExistsError) as error:
        return KeptAnswer(of, unasked=f"not asked: {error}")
    finally:
        remove_image(scratch / "kept-state")
    return KeptAnswer(of, again.violations)


def _ask_image(
    spec: TrialSpec, result: TrialResult, crash: KeptCrash, target: Target, scratch: Path
) -> KeptAnswer:
    of = "the kept image, recovered again"
    if any(spec.plan.recover):
        return KeptAnswer(of, unasked="not asked: the crash was in its recovery")
    assert result.image is not None, "the caller has looked"
    kept = result.image / "data"
    data = crash.at or scratch / "kept-image"
    try:
        with empty_place(data):
            found = insisted(lambda _: _recovered(spec, target, kept, data))
            remove_image(data)
    except FileExistsError as error:
        return KeptAnswer(of, unasked=f"not asked: {error}")
    run = RunVerdict((), crash.allowed, crash.before_first)
    site = None if spec.plan.loss else result.site
    judged = judge_trial(run, found, site, ruled=False, whole=False)
    unheard = judged.outcome is Outcome.NOT_EXERCISED
    return KeptAnswer(of, judged.violations, f"not asked: {judged.unheard}" if unheard else "")


def _recovered(spec: TrialSpec, target: Target, kept: Path, data: Path) -> Recovered:
    """The image, twice."""
    remove_image(data)
    copy_image(kept, data)
    try:
        last, again = (_recover(spec, target, data) for _ in range(2))
    except EndedError as error:
        return Recovered(spec.plan, failure=error)
    return Recovered(spec.plan, last=last, again=again if last.answer.ok else None)


def _recover(spec: TrialSpec, target: Target, data: Path) -> Recovery:
    child = target.recover_command(data, spec.options).run({})
    return Recovery(child, target.parse_recovery(child))


def _ask_rules(spec: TrialSpec, image: Path, target: Target) -> tuple[Violation, ...]:
    """What the run and the first recovery break by their bytes."""
    setting = target.judge_setting(spec.options)
    there = [(image / trace, image / found) for trace, found in RECORDINGS]
    both = [one for one in there if one[0].is_file() and one[1].is_dir()][:2]
    judged = [judge_run(target, trace, setting, found, live=True) for trace, found in both]
    return tuple(finding.violation for one in judged for finding in one.findings)
