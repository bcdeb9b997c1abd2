"""Runs a power-loss campaign: per configuration a recorded run, then the explorer over its crash states. Each
broken state becomes a trial of the store, so that show, replay and report treat it like any other.

May import: campaign, model, paths, powerloss, store, targets.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.campaign import Campaign, Config
from tornpage.model import FaultPlan, Outcome, TrialResult, TrialSpec
from tornpage.paths import Paths
from tornpage.powerloss import Limits, Recording, explore, record_run, replay_state
from tornpage.store import Run, Store
from tornpage.target import Target
from tornpage.targets import make_target

__all__ = ["replay_loss", "run_losses"]

STATES_MAX = 10_000
"""Numbers set aside for the broken states of one configuration: far more than there are fingerprints."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One configuration of the campaign and its place in it."""

    spec: TrialSpec
    target: Target
    scratch: Path
    images: Path


def run_losses(
    store: Store,
    run: Run,
    campaign: Campaign,
    paths: Paths,
    jobs: int,
    scratch: Path,
    out: Path,
    advance: Callable[[bool], None],
) -> None:
    """Explores every configuration that the store has no result of yet; `advance` is called after each."""
    target = make_target(run.target, paths.build)
    done = store.explorations(run.id)
    for position, config in enumerate(campaign.configs()):
        if config.label in done:
            continue
        clock = time.monotonic()
        spec = _spec(campaign, run.target, config)
        part = _Part(spec, target, scratch, out / "images" / str(run.id))
        broken = _explore_config(store, run, campaign, part, jobs, position)
        store.add_seconds(run.id, time.monotonic() - clock)
        advance(broken)


def replay_loss(spec: TrialSpec, target: Target, scratch: Path, images: Path) -> TrialResult:
    """Runs one broken state again; its image is kept below `images`."""
    recording = record_run(spec, target, scratch)
    return _replay(spec, target, recording, scratch, images)


def _explore_config(
    store: Store, run: Run, campaign: Campaign, part: _Part, jobs: int, position: int
) -> bool:
    limits = campaign.explore
    assert limits is not None, "the campaign's model says so"
    recording = record_run(part.spec, part.target, part.scratch)
    found = explore(
        part.spec,
        part.target,
        recording,
        Limits(tuple(limits.models), limits.states, limits.budget_s, limits.depth, jobs),
        part.scratch,
    )
    store.put_census(run.id, part.spec.config, recording.trace_hash, recording.events, 0, [])
    for number, state in enumerate(sorted(found.broken)):
        spec = replace(
            part.spec,
            number=position * STATES_MAX + number,
            plan=FaultPlan(name=f"power loss {state}", loss=state),
        )
        site = found.broken[state][0].site
        store.start_trial(run.id, spec, site.value if site else "", state)
        result = _replay(spec, part.target, recording, part.scratch, part.images)
        if not result.violations:
            result = replace(result, outcome=Outcome.VIOLATION, violations=found.broken[state])
        store.finish_trial(run.id, result)
    store.put_exploration(run.id, part.spec.config, found.summary)
    return bool(found.broken)


def _replay(
    spec: TrialSpec, target: Target, recording: Recording, scratch: Path, images: Path
) -> TrialResult:
    image = images / str(spec.number)
    image.mkdir(parents=True, exist_ok=True)
    return replay_state(spec, target, recording, spec.plan.loss, image, scratch)


def _spec(campaign: Campaign, target: str, config: Config) -> TrialSpec:
    return TrialSpec(
        campaign=campaign.name,
        target=target,
        config=config.label,
        options=config.options,
        workload=campaign.workload,
        params=dict(campaign.params),
        workload_seed=campaign.seed,
        seed=campaign.seed,
        number=0,
        plan=FaultPlan(name="recording"),
    )
