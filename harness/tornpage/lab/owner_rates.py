"""What the owner of a run does alone, however many work for it: merge slices of states, and store trials."""

from __future__ import annotations

import statistics
from pathlib import Path

from tornpage.faults.scratch import scratch_folder
from tornpage.lab.crash_rates import STATES
from tornpage.lab.filled import fill_store
from tornpage.lab.measured import Effort, Measured, spent
from tornpage.live.recording import recorded_run
from tornpage.plans.campaign import fault_free_spec, load_campaign
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import Scope, explore_slice, merge_slices
from tornpage.powerloss.slices import SLICE_STATES
from tornpage.targets.registry import DEFAULT_TARGET, make_target
from tornpage.vocabulary.paths import Paths

__all__ = ["owner_rates"]

TRIALS = 20_000


def owner_rates(paths: Paths, effort: Effort) -> Measured:
    """States merged and trials stored per second, and the states per second of one slice beside them."""
    merged, judged = [], []
    with scratch_folder() as scratch:
        for _ in range(effort.rounds):
            merges, judges = _slices(paths, scratch, effort.of(STATES))
            merged.append(merges)
            judged.append(judges)
    stored = [_stored(paths, effort.of(TRIALS)) for _ in range(effort.rounds)]
    cells = [
        ("states of slices merged", statistics.median(merged)),
        ("states of slices judged by a worker", statistics.median(judged)),
        ("trials stored", statistics.median(stored)),
    ]
    return Measured("owner", "what the owner of a run does alone", ("what", "per s"), cells)


def _slices(paths: Paths, scratch: Path, states: int) -> tuple[float, float]:
    """States per second: of the merge of an exploration, and of its slices, one after the other."""
    campaign = load_campaign("powerloss", paths.workloads)
    spec = fault_free_spec(campaign, DEFAULT_TARGET, campaign.configs()[0])
    target = make_target(DEFAULT_TARGET, paths.build)
    of = max(2, states // SLICE_STATES)
    all_slices = scratch / "slices"
    with recorded_run(spec, target, scratch) as recording:
        limits = Limits(states=states)
        with all_slices.open("wb") as file, spent() as judging:
            for number in range(1, of + 1):
                file.write(explore_slice(spec, target, recording, limits, Scope(), number, of))
        with spent() as merging:
            found = merge_slices(spec, target, all_slices)
    there = int(found.summary["states"])
    return there / merging.wall, there / judging.wall


def _stored(paths: Paths, trials: int) -> float:
    with scratch_folder() as scratch:
        return trials / fill_store(paths, scratch, trials).seconds
