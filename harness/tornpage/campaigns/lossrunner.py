"""Runs a power-loss campaign: per script a recorded run, then the explorer over its crash states. Each
broken state becomes a trial of the store, so that show, replay and report treat it like any other.

May import: campaign, census, crew, errors, evidence, images, model, paths, powerloss, registry, store,
target, workers.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.campaigns.campaign import Campaign, Config, undisturbed_spec
from tornpage.campaigns.census import failed_run
from tornpage.campaigns.crew import Crew
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
from tornpage.campaigns.workers import confirmed
from tornpage.store.store import CensusRow, Run, Store
from tornpage.targets.registry import make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import FailedRunError
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec, Violation
from tornpage.vocabulary.paths import Paths, require_floor

__all__ = [
    "check_parts",
    "confirmed_state",
    "loss_limits",
    "loss_parts",
    "run_losses",
]

STATES_MAX = 10_000
"""Numbers set aside for the broken states of one configuration: far more than there are fingerprints."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One exploration of the campaign."""

    spec: TrialSpec
    limits: Limits
    target: Target
    scratch: Path
    images: Path
    tell: Callable[[str], None]


def run_losses(
    store: Store,
    run: Run,
    campaign: Campaign,
    crew: Crew,
    scratch: Path,
) -> int:
    """Makes every exploration that the store has no result of yet, until the time is up. Returns how many
    there must be: the others are of scripts that the target fails undisturbed."""
    target = make_target(run.target, crew.paths.build)
    done = store.explorations(run.id)
    parts = loss_parts(campaign)
    failed = 0
    for position, (config, depth) in enumerate(parts):
        if crew.is_late():
            break
        if config.label in done:
            continue
        clock = time.monotonic()
        spec = undisturbed_spec(campaign, run.target, config)
        limits = loss_limits(campaign, depth, crew.jobs)
        images = crew.out / "images" / str(run.id)
        part = _Part(spec, limits, target, scratch, images, crew.progress.note)
        broken = _explore_config(store, run, part, position)
        store.add_seconds(run.id, time.monotonic() - clock)
        failed += broken is None
        crew.progress.advance(broken is not False)
    return len(parts) - failed


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
    return Limits(tuple(limits.models), limits.states, limits.budget_s, depth, jobs)


def _explore_config(store: Store, run: Run, part: _Part, position: int) -> bool | None:
    """Whether anything broke; None: the target fails undisturbed."""
    try:
        with recorded_run(part.spec, part.target, part.scratch) as recording:
            return _explore_recording(store, run, part, position, recording)
    except FailedRunError as error:
        store.put_census(run.id, failed_run(part.spec.config, True, error))
        return None


def _explore_recording(
    store: Store, run: Run, part: _Part, position: int, recording: Recording
) -> bool:
    found = explore(part.spec, part.target, recording, part.limits, part.tell)
    store.put_census(
        run.id,
        CensusRow(
            config=part.spec.config,
            crashed=True,
            hash=recording.trace_hash,
            events=recording.events,
            writes=0,
            violations=recording.violations,
            counters=recording.counters,
        ),
    )
    kept = KeptImages.of(store, run)
    done = store.finished_numbers(run.id)
    for number, state in enumerate(sorted(found.broken), position * STATES_MAX):
        if number in done:
            continue
        spec = replace(
            part.spec,
            number=number,
            plan=loss_plan(state),
        )
        site = found.broken[state][0].site
        store.start_trial(run.id, spec, site.value if site else "", state)
        again = replay_state(spec, part.target, recording, part.images / str(spec.number))
        result = confirmed_state(found.broken[state], again)
        result = replace(result, alike=found.alike[state])
        require_floor(part.scratch)
        result = kept.only_new(site.value if site else "", result)
        keep_loss_evidence(spec, result, part.target, recording, part.scratch)
        store.finish_trial(run.id, result)
    store.put_exploration(run.id, part.spec.config, found.summary)
    return bool(found.broken or recording.violations)


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
