"""Plays a stored trial again, on the programs that there are now, and says what became of its finding. What
was kept of a target whose runs differ is asked first; a new run is an answer by itself.

A kill is played from its plan and the script, a run without a fault from the script. A power-loss state is a
number of one recording; where the programs write otherwise now, or the number shows nothing any more, the
script is explored again for a state with the same fingerprint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.campaigns.fault_free import play_script
from tornpage.campaigns.kept_verdict import KeptAnswer, ask_kept
from tornpage.evidence.evidence import keep_evidence
from tornpage.faults.scratch import scratch_folder
from tornpage.live.recording import Recording, recorded_run
from tornpage.live.trial import run_trial
from tornpage.oracle.fingerprint import fingerprint_of
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

__all__ = ["Replay", "play_trial", "replay_trial"]

SEARCH_STATES = 5000
SEARCH_S = 60.0
"""How far a script is explored for a state that its number does not find any more."""


@dataclass(frozen=True, slots=True)
class Replay:
    """kept: what the kept evidence says now. spec, result: of what shows the finding, that or the new run,
    else of the new run; same: its verdict is the stored one's, to the byte; note: what a person should know
    of the answer, "" if nothing; fresh: of the new run, in words, where something was kept."""

    answer: Answer
    spec: TrialSpec
    result: TrialResult
    same: bool
    note: str = ""
    kept: tuple[KeptAnswer, ...] = ()
    fresh: str = ""


def replay_trial(row: TrialRow, paths: Paths, images: Path) -> Replay:
    """Asks what was kept of a trial, and runs it again, with a golden run of its own. Its image is kept below
    `images`."""
    target = make_target(row.spec.target, paths.build)
    finding = row.result if row.result is not None and row.result.violations else None
    with scratch_folder(target.on_shm) as scratch:
        kept = ask_kept(row.spec, finding, target, scratch) if finding is not None else ()
        spec, result, note = _play(row, target, scratch, images)
        shown = tuple(violation for one in kept for violation in one.violations)
        decides = result.outcome is Outcome.VIOLATION or not shown or _repeats(row, target, scratch)
    same = row.result is None or _verdict(result) == _verdict(row.result)
    if result.outcome is Outcome.VIOLATION:
        if _paths(row.result) and not _paths(result) & _paths(row.result):
            note = "another finding than the stored one"
        return Replay(Answer.REPRODUCED, spec, result, same, note, kept, "broken")
    fresh = f"not met: {note or result.reason}".removesuffix(": ")
    if not decides and finding is not None:
        again = replace(finding, violations=shown, reason=shown[0].what)
        note = (
            "what was kept shows it; a new run does not, but no run of this target equals another"
        )
        return Replay(Answer.REPRODUCED, row.spec, again, False, note, kept, fresh)
    if result.outcome is Outcome.CLEAN:
        note = _why_clean(kept, target, note) if finding is not None else note
        return Replay(Answer.NOT_REPRODUCED, spec, result, same, note, kept, fresh)
    return Replay(Answer.NOT_PLAYED, spec, result, same, result.reason, kept, fresh)


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


def play_trial(spec: TrialSpec, target: Target, scratch: Path, images: Path) -> TrialResult:
    """Plays what the plan says: a power-loss state of a new recording, faults, or nothing. Where there is a
    crashed image, it is kept below `images` with the way of its crash."""
    plan = spec.plan
    if plan.loss:
        with recorded_run(spec, target, scratch) as recording:
            return _play_state(spec, target, recording, scratch, images)
    if plan.crashes:
        result = run_trial(spec, target, scratch, images)
        keep_evidence(spec, result, target, scratch)
        return result
    return play_script(spec, target, scratch, images)


def _play(
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
    found = _search(row, target, recording)
    if found:
        spec = replace(row.spec, plan=loss_plan(found))
        result = _state(spec, target, recording, scratch, images)
        return spec, result, f"found as state {found}"
    result = TrialResult(row.number, Outcome.CLEAN, trace_hash=recording.trace_hash)
    return row.spec, result, f"no state of up to {SEARCH_STATES} of its models shows it"


def _search(row: TrialRow, target: Target, recording: Recording) -> str:
    """The first state with a finding of the stored one's fingerprint, "" if there is none."""
    levels = row.spec.plan.loss.split("/")
    models = tuple(dict.fromkeys(level.split(".")[1] for level in levels))
    limits = Limits(models=models, depth=len(levels), states=SEARCH_STATES, budget_s=SEARCH_S)
    wanted = _paths(row.result)
    for state, violations in explore(row.spec, target, recording, limits).broken.items():
        if wanted & {_path_of(violation) for violation in violations}:
            return state
    return ""


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
    return {_path_of(violation) for violation in result.violations} if result else set()


def _path_of(violation: Violation) -> tuple[int, str]:
    """Without the site: the same crash of another build may follow another write."""
    return violation.invariant, fingerprint_of(violation, "").path


def _verdict(result: TrialResult) -> tuple[object, ...]:
    broken = sorted({violation.invariant for violation in result.violations})
    return (result.outcome, broken, result.digest, result.trace_hash)
