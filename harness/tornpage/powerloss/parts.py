"""One exploration of a power-loss campaign: a recorded run, the explorer over its crash states, and each kind
of broken state played again. Nothing of it knows a store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from tornpage.evidence.images import KeptImages
from tornpage.live.fault_free import failed_run
from tornpage.live.recording import Recording, recorded_run
from tornpage.plans.limits import Limits
from tornpage.powerloss.evidence import keep_loss_evidence
from tornpage.powerloss.explorer import Exploration, Scope, explore, loss_plan, replay_state
from tornpage.powerloss.watching import Tell
from tornpage.store.rows import GoldenRunRow
from tornpage.targets.registry import make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import FailedRunError, MachineError
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec, Violation
from tornpage.vocabulary.paths import Paths, require_floor
from tornpage.workers.pool import confirmed, machine_errors, not_confirmed, said

__all__ = [
    "Broken",
    "Explored",
    "Found",
    "Part",
    "confirmed_state",
    "explore_part",
    "first_look",
    "found_states",
    "play_found",
    "recorded_golden_run",
    "with_statements",
]


@dataclass(frozen=True, slots=True)
class Part:
    """One exploration of the campaign: what is needed to make it. first: number of its first broken state;
    known: numbers of states that the store has a verdict of; images: where crashed images are kept."""

    spec: TrialSpec
    limits: Limits
    scope: Scope
    first: int
    known: frozenset[int]
    paths: Paths
    scratch: Path
    images: Path

    @property
    def progress(self) -> Path:
        """What tells how far it is, where a worker makes it that shares the scratch folder."""
        return self.scratch / f"progress-{self.first}"


@dataclass(frozen=True, slots=True)
class Found:
    """A state that the explorer names for what it broke. alike: how many states broke just the same at such a
    site."""

    spec: TrialSpec
    violations: tuple[Violation, ...]
    alike: int

    @property
    def site(self) -> str:
        """Of the write that the crash point follows; "": there is none."""
        site = self.violations[0].site
        return site.value if site else ""


@dataclass(frozen=True, slots=True)
class Broken:
    """A state that broke something, and what it came to when it was played again."""

    spec: TrialSpec
    site: str
    state: str
    result: TrialResult

    def with_results(self, change: Callable[[TrialResult], TrialResult]) -> Self:
        """See context.WithResults."""
        return replace(self, result=change(self.result))


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration came to. golden_run: of its recorded run; summary: what the explorer said, None if
    the target fails that run; broken: those that are not known yet, by their numbers."""

    golden_run: GoldenRunRow
    summary: Mapping[str, Any] | None
    broken: tuple[Broken, ...]
    any_broken: bool

    def with_results(self, change: Callable[[TrialResult], TrialResult]) -> Self:
        """See context.WithResults."""
        return replace(self, broken=tuple(one.with_results(change) for one in self.broken))

    def broken_by_site(self) -> Mapping[str, int]:
        """How many states broke something, by the site of the write that their crash point follows."""
        found = Counter[str]()
        for one in self.broken:
            if one.result.outcome is Outcome.VIOLATION:
                found[one.site] += one.result.alike
        return found


def first_look(part: Part) -> bool:
    """Whether anything shows in its recorded run or in its states, of which nothing is kept."""
    with machine_errors():
        require_floor(part.scratch)
        target = make_target(part.spec.target, part.paths.build)
        try:
            with recorded_run(part.spec, target, part.scratch) as recording:
                found = explore(part.spec, target, recording, part.limits, part.scope)
                return bool(found.broken or recording.violations)
        except FailedRunError:
            return True


def explore_part(part: Part, tell: Tell | None = None) -> Explored:
    """Records the run, explores it, and plays each kind of broken state again. Writes to no store. tell:
    hears how far it is."""
    with machine_errors():
        require_floor(part.scratch)
        target = make_target(part.spec.target, part.paths.build)
        try:
            with recorded_run(part.spec, target, part.scratch) as recording:
                return _explore_recording(part, target, recording, tell)
        except FailedRunError as error:
            return Explored(failed_run(part.spec.config, True, error), None, (), True)


def _explore_recording(
    part: Part, target: Target, recording: Recording, tell: Tell | None
) -> Explored:
    found = explore(part.spec, target, recording, part.limits, part.scope, tell, part.progress)
    golden_run = recorded_golden_run(part.spec, recording)
    broken = []
    kept = KeptImages()
    for one in found_states(part, found):
        played = play_found(one, target, recording, part.images)
        result = kept.only_new(played.site, played.result)
        keep_loss_evidence(one.spec, result, target, recording, part.scratch)
        broken.append(replace(played, result=result))
    any_broken = bool(found.broken or recording.violations)
    summary = with_statements(found.summary, recording.statements)
    return Explored(golden_run, summary, tuple(broken), any_broken)


def with_statements(summary: Mapping[str, Any], kinds: Sequence[str]) -> dict[str, Any]:
    """What the explorer said, and the kinds of the statements that it was said of."""
    return {**summary, "statements": list(kinds)}


def recorded_golden_run(spec: TrialSpec, recording: Recording) -> GoldenRunRow:
    """The row of the recorded run."""
    return GoldenRunRow(
        config=spec.config,
        crashed=True,
        hash=recording.trace_hash,
        events=recording.events,
        writes=0,
        violations=recording.violations,
        counters=recording.counters,
    )


def found_states(part: Part, found: Exploration) -> list[Found]:
    """The broken states that are not known yet, with their numbers."""
    numbered = list(enumerate(sorted(found.broken), part.first))
    return [
        Found(
            replace(part.spec, number=number, plan=loss_plan(state)),
            found.broken[state],
            found.alike[state],
        )
        for number, state in numbered
        if number not in part.known
    ]


def play_found(found: Found, target: Target, recording: Recording, images: Path) -> Broken:
    """Plays it again; its files stay in a folder of its number."""
    image = images / str(found.spec.number)
    try:
        again = replay_state(found.spec, target, recording, image)
        result = confirmed_state(found.violations, again)
    except MachineError:
        raise
    except Exception as error:
        result = not_confirmed(named_state(found, recording, image), said(error))
    require_floor(recording.trace.parent)
    result = replace(result, alike=found.alike)
    return Broken(found.spec, found.site, found.spec.plan.loss, result)


def named_state(found: Found, recording: Recording, image: Path) -> TrialResult:
    """What the explorer alone has said of a state. image: its folder, if it got as far as that."""
    return TrialResult(
        number=found.spec.number,
        outcome=Outcome.VIOLATION,
        reason=found.violations[0].what,
        violations=found.violations,
        site=found.violations[0].site,
        mask=found.spec.plan.loss,
        trace_hash=recording.trace_hash,
        image=image.resolve() if (image / "data").is_dir() else None,
    )


def confirmed_state(named: tuple[Violation, ...], again: TrialResult) -> TrialResult:
    """The result of a state, or unstable. named: what the explorer names it for, which is no more than the
    findings whose first state it is. again: the state played again, with all that it broke."""
    known = {violation.invariant for violation in named}
    seen = tuple(violation for violation in again.violations if violation.invariant in known)
    first = replace(again, outcome=Outcome.VIOLATION, violations=named)
    return confirmed(first, replace(again, violations=seen))
