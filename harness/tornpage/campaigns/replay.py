"""Plays a stored trial again, on the programs that there are now, and says what became of its finding. What
was kept of a target whose runs differ is asked first; a new run is an answer by itself.

A kill is played from its plan and the script, a run without a fault from the script. A power-loss state is a
number of one recording; where the programs write otherwise now, or the number shows nothing any more, the
script is explored again for a state with the same fingerprint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from tornpage.campaigns.fault_free import play_script
from tornpage.campaigns.kept_verdict import KeptAnswer, ask_kept
from tornpage.evidence.evidence import keep_evidence
from tornpage.faults.scratch import scratch_folder
from tornpage.live.kept import kept_recording
from tornpage.live.recording import Recording, recorded_run
from tornpage.live.trial import run_trial
from tornpage.live.verdict import once_each
from tornpage.oracle.fingerprint import kind_of
from tornpage.plans.limits import Limits
from tornpage.powerloss.evidence import keep_loss_evidence
from tornpage.powerloss.explorer import explore, loss_plan, replay_state
from tornpage.store.memory import Answer
from tornpage.store.rows import TrialRow
from tornpage.targets.registry import make_target
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.errors import ChildError
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec, Violation
from tornpage.vocabulary.paths import Paths

__all__ = ["Asked", "Replay", "play_trial", "replay_trial"]

OTHER = "another finding than the stored one"
SEARCH_STATES = 5000
SEARCH_S = 60.0
"""How far a script is explored for a state that its number does not find any more."""
LATE = f"no state shows it of those that {SEARCH_S:.0f} seconds were enough for, which were not all"
"""What a slow machine leaves open: it is not fixed for that."""


class Asked(StrEnum):
    """What a replay asks."""

    ALL = "all"
    KEPT = "kept"
    """What was kept, and nothing else."""
    RUN = "run"
    """New runs, and nothing else."""


@dataclass(frozen=True, slots=True)
class Replay:
    """kept: what the kept evidence says now. spec, result: of what shows the finding, that or the new run,
    else of the new run; same: its verdict is the stored one's, to the byte; note: what a person should know
    of the answer, "" if nothing; fresh: of the new run, in words, "" where there was none; other: what is
    shown is another finding than the stored one."""

    answer: Answer
    spec: TrialSpec
    result: TrialResult
    same: bool
    note: str = ""
    kept: tuple[KeptAnswer, ...] = ()
    fresh: str = ""
    other: bool = False


def replay_trial(
    row: TrialRow,
    paths: Paths,
    images: Path,
    asked: Asked = Asked.ALL,
    tries: int = 1,
    *,
    stacks: bool,
) -> Replay:
    """Asks what was kept of a trial, and runs it again, with a golden run of its own. Its image is kept below
    `images`. tries: new runs at most, until one shows the finding; stacks: with the call stacks of its
    operations."""
    row = replace(row, spec=replace(row.spec, stacks=stacks))
    target = make_target(row.spec.target, paths.build)
    finding = row.result if row.result is not None and row.result.violations else None
    with scratch_folder(target.on_shm) as scratch:
        kept: tuple[KeptAnswer, ...] = ()
        if finding is not None and asked is not Asked.RUN:
            kept = ask_kept(row.spec, finding, target, scratch)
        if asked is Asked.KEPT:
            return _by_kept(row, finding, kept)
        spec, result, note = _play(row, target, scratch, images, tries)
        shown = _shown(kept)
        decides = result.outcome is Outcome.VIOLATION or not shown or _repeats(row, target, scratch)
    same = row.result is None or _verdict(result) == _verdict(row.result)
    if result.outcome is Outcome.VIOLATION:
        other = _is_other(row.result, result)
        note = OTHER if other else note
        return Replay(Answer.REPRODUCED, spec, result, same, note, kept, "broken", other)
    times = f"not met in {tries} {'try' if tries == 1 else 'tries'}"
    fresh = f"{times}: {note or result.reason}".removesuffix(": ")
    if not decides and finding is not None:
        again = _with(finding, shown)
        note = (
            "what was kept shows it; a new run does not, but no run of this target equals another"
        )
        other = _is_other(finding, again)
        return Replay(Answer.REPRODUCED, row.spec, again, False, note, kept, fresh, other)
    if result.outcome is Outcome.CLEAN:
        note = _why_clean(kept, target, note) if finding is not None else note
        return Replay(Answer.NOT_REPRODUCED, spec, result, same, note, kept, fresh)
    return Replay(Answer.NOT_PLAYED, spec, result, same, result.reason, kept, fresh)


def _by_kept(row: TrialRow, finding: TrialResult | None, kept: tuple[KeptAnswer, ...]) -> Replay:
    """What was kept alone decides: "fixed?" takes all of it."""
    result = finding or TrialResult(row.number, Outcome.NOT_EXERCISED)
    shown = _shown(kept)
    if shown:
        again = _with(result, shown)
        other = _is_other(finding, again)
        note = OTHER if other else ""
        return Replay(Answer.REPRODUCED, row.spec, again, False, note, kept, other=other)
    unasked = [one.unasked for one in kept if one.unasked]
    if unasked or not kept:
        note = unasked[0] if unasked else "nothing was kept of it that can be asked"
        return Replay(Answer.NOT_PLAYED, row.spec, result, False, note, kept)
    clean = TrialResult(row.number, Outcome.CLEAN, trace_hash=result.trace_hash)
    return Replay(Answer.NOT_REPRODUCED, row.spec, clean, False, "fixed?", kept)


def _shown(kept: Sequence[KeptAnswer]) -> tuple[Violation, ...]:
    return tuple(violation for one in kept for violation in one.violations)


def _with(finding: TrialResult, shown: tuple[Violation, ...]) -> TrialResult:
    """The finding as it shows now."""
    return replace(
        finding, outcome=Outcome.VIOLATION, violations=once_each(shown), reason=shown[0].what
    )


def _is_other(stored: TrialResult | None, result: TrialResult) -> bool:
    return bool(_paths(stored)) and not _paths(result) & _paths(stored)


def _repeats(row: TrialRow, target: Target, scratch: Path) -> bool:
    """Whether runs are equal: then a new one says what became of the programs, and what an older one has
    written says nothing of them."""
    hashes = set()
    for _ in range(2):
        with recorded_run(row.spec, target, scratch) as recording:
            hashes.add(recording.trace_hash)
    return len(hashes) == 1


def _why_clean(kept: Sequence[KeptAnswer], target: Target, note: str) -> str:
    """ "fixed?" is said only where what was seen before was asked again, or is done again."""
    if any(one.violations for one in kept):
        return f"fixed? the runs of this target are equal, and write otherwise than then: {note}"
    all_asked = bool(kept) and not any(one.unasked for one in kept)
    if Capability.DETERMINISTIC in target.capabilities or all_asked:
        return f"fixed? {note}".strip()
    missing = "not all that was kept could be asked" if kept else "nothing was kept"
    return f"no run of this target need equal another, and {missing}"


def play_trial(
    spec: TrialSpec, target: Target, scratch: Path, images: Path, kept: Path | None = None
) -> TrialResult:
    """Plays what the plan says: a power-loss state of a new recording, or of the one that is kept beside the
    image `kept`; faults; or nothing. Where there is a crashed image, it is kept below `images` with the way
    of its crash."""
    plan = spec.plan
    if plan.loss:
        old = kept_recording(kept, scratch) if kept is not None else None
        with old or recorded_run(spec, target, scratch) as recording:
            return _play_state(spec, target, recording, scratch, images)
    if plan.crashes:
        result = run_trial(spec, target, scratch, images)
        keep_evidence(spec, result, target, scratch)
        return result
    return play_script(spec, target, scratch, images)


def _play(
    row: TrialRow, target: Target, scratch: Path, images: Path, tries: int
) -> tuple[TrialSpec, TrialResult, str]:
    """Until it is broken."""
    for _ in range(tries):
        spec, result, note = _play_once(row, target, scratch, images)
        if result.outcome is Outcome.VIOLATION:
            break
    return spec, result, note


def _play_once(
    row: TrialRow, target: Target, scratch: Path, images: Path
) -> tuple[TrialSpec, TrialResult, str]:
    if row.spec.plan.loss:
        with recorded_run(row.spec, target, scratch) as recording:
            return _replay_loss(row, target, recording, scratch, images)
    return row.spec, play_trial(row.spec, target, scratch, images), ""


def _replay_loss(
    row: TrialRow, target: Target, recording: Recording, scratch: Path, images: Path
) -> tuple[TrialSpec, TrialResult, str]:
    known = row.result is None or row.result.trace_hash == recording.trace_hash
    if known:
        result = _state(row.spec, target, recording, scratch, images)
        if result.outcome is Outcome.VIOLATION or not _paths(row.result):
            return row.spec, result, ""
    found, looked = _search(row, target, recording)
    if found:
        spec = replace(row.spec, plan=loss_plan(found))
        result = _state(spec, target, recording, scratch, images)
        return spec, result, f"found as state {found}"
    if not looked and Capability.DETERMINISTIC in target.capabilities:
        result = TrialResult(row.number, Outcome.NOT_EXERCISED, LATE)
        return row.spec, replace(result, trace_hash=recording.trace_hash), ""
    result = TrialResult(row.number, Outcome.CLEAN, trace_hash=recording.trace_hash)
    note = f"no state of up to {SEARCH_STATES} of its models shows it" if looked else LATE
    return row.spec, result, note


def _search(row: TrialRow, target: Target, recording: Recording) -> tuple[str, bool]:
    """The first state with a finding of the stored one's fingerprint, "" if there is none; and whether there
    was time for all."""
    levels = row.spec.plan.loss.split("/")
    models = tuple(dict.fromkeys(level.split(".")[1] for level in levels))
    limits = Limits(models=models, depth=len(levels), states=SEARCH_STATES, budget_s=SEARCH_S)
    wanted = _paths(row.result)
    explored = explore(row.spec, target, recording, limits)
    for state, violations in explored.broken.items():
        if wanted & {kind_of(violation) for violation in violations}:
            return state, True
    return "", bool(explored.summary["complete"])


def _state(
    spec: TrialSpec, target: Target, recording: Recording, scratch: Path, images: Path
) -> TrialResult:
    """The number may be of no state of this recording."""
    try:
        return _play_state(spec, target, recording, scratch, images)
    except ChildError as error:
        return TrialResult(spec.number, Outcome.NOT_EXERCISED, str(error))


def _play_state(
    spec: TrialSpec, target: Target, recording: Recording, scratch: Path, images: Path
) -> TrialResult:
    result = replay_state(spec, target, recording, images / str(spec.number))
    keep_loss_evidence(spec, result, target, recording, scratch)
    return result


def _paths(result: TrialResult | None) -> set[tuple[int, str]]:
    return {kind_of(violation) for violation in result.violations} if result else set()


def _verdict(result: TrialResult) -> tuple[object, ...]:
    broken = sorted({violation.invariant for violation in result.violations})
    return (result.outcome, broken, result.digest, result.trace_hash)
