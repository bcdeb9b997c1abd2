"""Runs a power-loss campaign: per script a recorded run, then the explorer over its crash states. Each
broken state becomes a trial of the store, so that show, replay and report treat it like any other.

May import: campaign, census, crew, errors, evidence, images, model, paths, powerloss, registry, rows,
store, target, workers.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tornpage.campaigns.campaign import Campaign, Config, undisturbed_spec
from tornpage.campaigns.census import failed_run
from tornpage.campaigns.crew import Crew, Pending
from tornpage.campaigns.evidence import keep_loss_evidence
from tornpage.campaigns.images import KeptImages
from tornpage.campaigns.powerloss import (
    Limits,
    Recording,
    explore,
    loss_plan,
    recorded_run,
    replay_state,
)
from tornpage.campaigns.workers import confirmed, machine_errors
from tornpage.store.rows import CensusRow, Run
from tornpage.store.store import Store
from tornpage.targets.registry import make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import FailedRunError
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec, Violation
from tornpage.vocabulary.paths import Paths, require_floor

__all__ = [
    "Broken",
    "Explored",
    "Part",
    "check_parts",
    "confirmed_state",
    "explore_part",
    "loss_limits",
    "loss_parts",
    "run_losses",
]

STATES_MAX = 10_000
"""Numbers set aside for the broken states of one configuration: far more than there are fingerprints."""


@dataclass(frozen=True, slots=True)
class Part:
    """One exploration of the campaign: what is needed to make it. first: number of its first broken state;
    known: numbers of states that the store has a verdict of; images: where crashed images are kept."""

    spec: TrialSpec
    limits: Limits
    first: int
    known: frozenset[int]
    paths: Paths
    scratch: Path
    images: Path


@dataclass(frozen=True, slots=True)
class Broken:
    """A state that broke something, and what it came to when it was played again."""

    spec: TrialSpec
    site: str
    state: str
    result: TrialResult


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration came to. census: of its recorded run; summary: what the explorer said, None if the
    target fails that run; broken: those that are not known yet, by their numbers."""

    census: CensusRow
    summary: Mapping[str, Any] | None
    broken: tuple[Broken, ...]
    any_broken: bool


def run_losses(
    store: Store,
    run: Run,
    campaign: Campaign,
    crew: Crew,
    scratch: Path,
) -> int:
    """Makes every exploration that the store has no result of yet, until the time is up. Returns how many
    there must be: the others are of scripts that the target fails undisturbed.

    Here one follows the other, each on all workers; the workers of a cluster take one each, and the results
    are stored in the order of the campaign.
    """
    done = store.explorations(run.id)
    parts = loss_parts(campaign)
    jobs = crew.jobs if crew.cluster is None else 1
    window = 1 if crew.cluster is None else crew.cluster.size + 1
    kept = KeptImages.of(store, run)
    waiting: deque[Pending[Explored]] = deque()
    failed = 0
    clock = time.monotonic()

    def collect() -> None:
        nonlocal failed, clock
        explored = waiting.popleft().result()
        _keep(store, run, explored, kept)
        now = time.monotonic()
        store.add_seconds(run.id, now - clock)
        clock = now
        failed += explored.summary is None
        crew.progress.advance(explored.any_broken)

    for position, (config, depth) in enumerate(parts):
        if crew.is_late():
            break
        if config.label in done:
            continue
        part = Part(
            spec=undisturbed_spec(campaign, run.target, config),
            limits=loss_limits(campaign, depth, jobs),
            first=position * STATES_MAX,
            known=frozenset(store.finished_numbers(run.id)),
            paths=crew.paths,
            scratch=scratch,
            images=crew.out / "images" / str(run.id),
        )
        here = _Here(part, crew.progress.note)
        waiting.append(crew.cluster.hand(explore_part, part) if crew.cluster else here)
        while len(waiting) >= window:
            collect()
    while waiting:
        collect()
    return len(parts) - failed


class _Here:
    """An exploration that is made when its result is asked for."""

    def __init__(self, part: Part, tell: Callable[[str], None]) -> None:
        self._part = part
        self._tell = tell

    def done(self) -> bool:
        """Not before it is asked for."""
        return False

    def result(self) -> Explored:
        """Makes it."""
        return explore_part(self._part, self._tell)


def loss_parts(campaign: Campaign) -> list[tuple[Config, int]]:
    """Script and depth of every exploration. Where there are several, the label tells the depth too."""
    assert campaign.explore is not None, "the campaign's model says so"
    depths = campaign.explore.parts()
    scripts = campaign.scripted()
    configs = len(scripts) // len(depths)
    found = []
    for number, script in enumerate(scripts):
        depth = depths[number // configs]
        label = f"{script.label},depth={depth}" if len(depths) > 1 else script.label
        found.append((replace(script, label=label), depth))
    return found


def loss_limits(campaign: Campaign, depth: int, jobs: int) -> Limits:
    """How far the campaign explores one configuration at this depth."""
    limits = campaign.explore
    assert limits is not None, "the campaign's model says so"
    return Limits(tuple(limits.models), limits.states, limits.budget_s, depth, jobs, aim=limits.aim)


def explore_part(part: Part, tell: Callable[[str], None] | None = None) -> Explored:
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
    part: Part, target: Target, recording: Recording, tell: Callable[[str], None] | None
) -> Explored:
    found = explore(part.spec, target, recording, part.limits, tell)
    census = CensusRow(
        config=part.spec.config,
        crashed=True,
        hash=recording.trace_hash,
        events=recording.events,
        writes=0,
        violations=recording.violations,
        counters=recording.counters,
    )
    broken = []
    kept = KeptImages()
    for number, state in enumerate(sorted(found.broken), part.first):
        if number in part.known:
            continue
        spec = replace(part.spec, number=number, plan=loss_plan(state))
        site = found.broken[state][0].site
        again = replay_state(spec, target, recording, part.images / str(spec.number))
        result = confirmed_state(found.broken[state], again)
        result = replace(result, alike=found.alike[state])
        require_floor(part.scratch)
        result = kept.only_new(site.value if site else "", result)
        keep_loss_evidence(spec, result, target, recording, part.scratch)
        broken.append(Broken(spec, site.value if site else "", state, result))
    any_broken = bool(found.broken or recording.violations)
    return Explored(census, found.summary, tuple(broken), any_broken)


def _keep(store: Store, run: Run, explored: Explored, kept: KeptImages) -> None:
    """Stores what an exploration came to, at last that it is done."""
    store.put_census(run.id, explored.census)
    for one in explored.broken:
        store.start_trial(run.id, one.spec, one.site, one.state)
        store.finish_trial(run.id, kept.only_new(one.site, one.result))
    if explored.summary is not None:
        store.put_exploration(run.id, explored.census.config, explored.summary)


def confirmed_state(named: tuple[Violation, ...], again: TrialResult) -> TrialResult:
    """The result of a state, or unstable. named: what the explorer names it for, which is no more than the
    findings whose first state it is. again: the state played again, with all that it broke."""
    known = {violation.invariant for violation in named}
    seen = tuple(violation for violation in again.violations if violation.invariant in known)
    first = replace(again, outcome=Outcome.VIOLATION, violations=named)
    return confirmed(first, replace(again, violations=seen))


def check_parts(campaign: Campaign, target: str, paths: Paths, scratch: Path) -> None:
    """Raises CensusError or ConfigError if the first run of the campaign cannot even be recorded."""
    config, _depth = loss_parts(campaign)[0]
    with contextlib.suppress(FailedRunError):  # a verdict, which is found again
        spec = undisturbed_spec(campaign, target, config)
        with recorded_run(spec, make_target(target, paths.build), scratch):
            pass
