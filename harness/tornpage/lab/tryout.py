"""Campaigns on the programs of a planted bug, one trial after the other, and what counts as a catch."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.lab.measured import processor_seconds
from tornpage.live.fault_free import failed_run, judge_fault_free
from tornpage.live.golden_run import take_golden_run
from tornpage.live.recording import recorded_run
from tornpage.live.trial import run_aimed
from tornpage.plans.campaign import Campaign, fault_free_spec
from tornpage.plans.drawing import cells_of, draw_trial
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import Scope, explore, loss_plan
from tornpage.targets.registry import DEFAULT_TARGET
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import FailedRunError
from tornpage.vocabulary.model import Source, TrialResult, TrialSpec, Violation

__all__ = ["Catch", "Catches", "Tried", "lose_power", "try_fault_free", "try_live"]


@dataclass(frozen=True, slots=True)
class Tried:
    """One judged thing. model: golden run, or the crash model; count: trials or states that it adds to those
    of its model; result: of a trial."""

    model: str
    count: int
    spec: TrialSpec
    violations: tuple[Violation, ...] = ()
    result: TrialResult | None = None


@dataclass(frozen=True, slots=True)
class Catch:
    """A violation that gives a bug away. model: golden run, or a crash model; tries: trials or states of that
    model up to it (rounded up to an exploration); seconds: since the start."""

    invariant: int
    source: Source
    campaign: str
    model: str
    tries: int
    seconds: float
    cpu: float
    what: str
    replay: str


class Catches:
    """The first catch by state and the first in any other way, while things are tried.

    tried: how many of each model; broken: all invariants that were.
    """

    def __init__(
        self, keep: Callable[[Tried, Violation], str], rules: Collection[int] | None = None
    ) -> None:
        """keep: called for a catch, returns the line that repeats it. rules: invariants by which a rule may
        catch, None = all; a broken state counts whatever it breaks."""
        self.by_state: Catch | None = None
        self.by_rule: Catch | None = None
        self.tried: dict[str, int] = {}
        self.broken: set[int] = set()
        self._keep = keep
        self._rules = rules
        self._start = time.monotonic()
        self._cpu = processor_seconds()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return round(time.monotonic() - self._start, 2)

    @property
    def cpu(self) -> float:
        """Seconds of processor time since the start, of this process and of all that it has started."""
        return round(processor_seconds() - self._cpu, 2)

    def is_over(self, limit: float) -> bool:
        """Whether so many seconds of processor time are spent; without a limit nobody looks."""
        return limit < math.inf and self.cpu > limit

    def add(self, tried: Tried) -> bool:
        """Counts what was tried, notes what it caught. Returns whether there is a catch by state by now."""
        self.tried[tried.model] = self.tried.get(tried.model, 0) + tried.count
        for violation in tried.violations:
            self.broken.add(violation.invariant)
            if violation.source is Source.STATE:
                self.by_state = self.by_state or self._catch(tried, violation)
            elif self._rules is None or violation.invariant in self._rules:
                self.by_rule = self.by_rule or self._catch(tried, violation)
        return self.by_state is not None

    def _catch(self, tried: Tried, violation: Violation) -> Catch:
        return Catch(
            invariant=violation.invariant,
            source=violation.source,
            campaign=tried.spec.campaign,
            model=tried.model,
            tries=self.tried[tried.model],
            seconds=self.seconds,
            cpu=self.cpu,
            what=violation.what,
            replay=self._keep(tried, violation),
        )


def try_live(
    campaign: Campaign, target: Target, scratch: Path, model: str, trials: int
) -> Iterator[Tried]:
    """A golden run of each script, then trials under the preload."""
    golden_runs = {}
    for config in campaign.scripted():
        spec = fault_free_spec(campaign, DEFAULT_TARGET, config)
        try:
            golden_run = golden_runs[config.label] = take_golden_run(spec, target, scratch)
            violations = golden_run.violations
        except FailedRunError as error:
            violations = failed_run(config.label, True, error).violations
        yield Tried("golden_run", 1, spec, violations)
    if trials == 0 or not golden_runs:
        return
    cells = cells_of(campaign, golden_runs)
    images = scratch / "images"
    for number in range(trials):
        draw = draw_trial(campaign, DEFAULT_TARGET, cells, number)
        spec, result = run_aimed(draw.spec, draw.aim, target, scratch, images)
        yield Tried(model, 1, spec, result.violations, replace(result, image=None))
        shutil.rmtree(images, ignore_errors=True)


def try_fault_free(campaign: Campaign, target: Target, scratch: Path) -> Iterator[Tried]:
    """The scripts that nothing happens to."""
    for config in campaign.only_fault_free():
        spec = fault_free_spec(campaign, DEFAULT_TARGET, config)
        run = judge_fault_free(spec, target, scratch / "alone")
        yield Tried("golden_run", 1, spec, run.violations)


def lose_power(
    parts: Iterable[tuple[TrialSpec, Limits, Scope]], target: Target, scratch: Path, model: str
) -> Iterator[Tried]:
    """Explorations of recorded runs, and the recordings themselves."""
    for spec, limits, scope in parts:
        try:
            with recorded_run(spec, target, scratch) as recording:
                found = explore(spec, target, recording, limits, scope)
        except FailedRunError as error:
            yield Tried("golden_run", 1, spec, failed_run(spec.config, True, error).violations)
            continue
        yield Tried("golden_run", 1, spec, recording.violations)
        yield Tried(model, int(found.summary["states"]), spec)
        for state, violations in sorted(found.broken.items()):
            yield Tried(model, 0, replace(spec, plan=loss_plan(state)), violations)
