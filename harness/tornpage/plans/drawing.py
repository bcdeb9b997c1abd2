"""Trials, drawn from a campaign and the golden runs of its scripts.

A campaign's trials go round robin over its cells (configuration x site x mask), so that each cell gets
its share whatever the seed; each round over the cells takes the next script; the write inside the cell
and random masks come from a random stream of the trial's own, derived from seed and number. Drawing
trial 17 needs no other trial.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tornpage.faults.aim import RecoveryAim, faults_of, fits, is_error
from tornpage.plans.campaign import Campaign, Config, fault_free_spec, place_of
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import FaultPlan, GoldenRun, Site, TrialSpec, WriteEvent, config_of
from tornpage.vocabulary.seeds import derive_seed, make_rng

__all__ = ["Cell", "Draw", "cells_of", "draw_trial"]

CRASH = "random"
"""The mask of the kill whose recovery is to be hit."""

STALE_LOG_EVERY = 4
"""One trial in so many also plants a stale block behind the end of the log (I21), and every trial that
tears the log itself: there the block has most often a full one before it, as it must to be read on."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the matrix. label: of what is crossed. runs: the scripts, each with those of its writes
    that may be hit (never empty); during a recovery any may be the crash before it."""

    label: str
    site: Site
    mask: str
    runs: tuple[tuple[Config, tuple[WriteEvent, ...]], ...]
    during: str = "run"

    @property
    def place(self) -> str:
        """What results call the site."""
        return place_of(self.site, self.during)


@dataclass(frozen=True, slots=True)
class Draw:
    """A drawn trial and the cell that it counts for. aim: a fault that the plan gets once the crashed image
    is there."""

    spec: TrialSpec
    cell: Cell
    aim: RecoveryAim | None = None


def cells_of(campaign: Campaign, golden_runs: Mapping[str, GoldenRun]) -> list[Cell]:
    """All cells that the golden runs (by label of their script) have writes for, in an order in which any
    stretch of trials meets every configuration and site. A script without a golden run has none, nor has one
    whose run writes nothing. ConfigError: there are writes, and none of a site of the campaign."""
    scripts: dict[str, list[Config]] = {}
    for script in campaign.scripted():
        scripts.setdefault(config_of(script.label), []).append(script)
    by_site = {label: golden_run.by_site() for label, golden_run in golden_runs.items()}
    cells = []
    for hit in campaign.hit:
        for site, mask, label in itertools.product(hit.sites, hit.masks, scripts):
            taken = [script for script in scripts[label] if script.label in golden_runs]
            if hit.during == "recovery":
                writes = [golden_runs[script.label].writes for script in taken]
            else:
                written = (by_site[script.label].get(site, ()) for script in taken)
                writes = [tuple(w for w in some if fits(mask, w)) for some in written]
            runs = [run for run in zip(taken, writes, strict=True) if run[1]]
            if runs:
                cells.append(Cell(label, site, mask, tuple(runs), hit.during))
    if not cells and any(golden_run.writes for golden_run in golden_runs.values()):
        raise ConfigError(f"campaign {campaign.name}: no write of the run belongs to its sites")
    make_rng(campaign.seed, "cells").shuffle(cells)
    return cells


def draw_trial(campaign: Campaign, target: str, cells: list[Cell], number: int) -> Draw:
    """Trial `number` of the campaign: depends on seed and number only."""
    cell = cells[number % len(cells)]
    config, writes = cell.runs[number // len(cells) % len(cell.runs)]
    seed = derive_seed(campaign.seed, "trial", number)
    rng = make_rng(seed, "draw")
    write = rng.choice(_of_one_site(writes, rng))
    mask = cell.mask if cell.during == "run" else CRASH
    faults = faults_of(mask, write, rng)
    stale = write.site is Site.REDO or rng.randrange(STALE_LOG_EVERY) == 0
    plan = FaultPlan(
        name=f"{cell.place}-{number}", run=faults, stale_log=stale and not is_error(mask)
    )
    fault_free = fault_free_spec(campaign, target, config)
    spec = replace(fault_free, seed=seed, number=number, plan=plan)
    aim = RecoveryAim(cell.site, cell.mask, seed) if cell.during == "recovery" else None
    return Draw(spec, cell, aim)


def _of_one_site(writes: tuple[WriteEvent, ...], rng: random.Random) -> list[WriteEvent]:
    """Those of one site, each site as likely as the other, however many writes it has."""
    sites = sorted({write.site for write in writes})
    site = sites[0] if len(sites) == 1 else rng.choice(sites)
    return [write for write in writes if write.site is site]
