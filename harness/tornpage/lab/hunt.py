"""The hunt for one planted bug: campaigns of growing size, until a violation of an invariant that its row of
the table names. The campaigns are those of the product; nothing is aimed at the bug.

A round is: kills and power loss, and I/O errors and power loss inside recovery if the row names them. The
rounds differ in workload seed and size, and in settings; they are the same for every bug. The undisturbed
run (census) of each round is judged like any other and is a catch too.

May import: campaign, errors, lossrunner, model, mutant_table, paths, powerloss, randomkill, registry, store,
summary, target, trial, workload.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tornpage.campaigns.campaign import (
    Campaign,
    cells_of,
    draw_trial,
    load_campaign,
    undisturbed_spec,
)
from tornpage.campaigns.lossrunner import replay_loss
from tornpage.campaigns.powerloss import Limits, explore, record_run
from tornpage.campaigns.trial import run_aimed, take_census
from tornpage.lab.mutant_table import Mutant
from tornpage.lab.randomkill import KillLoop
from tornpage.reports.summary import undisturbed_line
from tornpage.store.store import Store
from tornpage.targets.registry import make_target
from tornpage.targets.target import MUTANT_VARIABLE, Target
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.model import FaultPlan, Outcome, TrialResult, TrialSpec, Violation
from tornpage.vocabulary.paths import Paths
from tornpage.workloads.workload import SmokeParams

__all__ = ["CRASH_MODELS", "HuntJob", "MutantRow", "hunt"]

TARGET = "engine"
OTHERWISE = {"flush_log_at_trx_commit": "2", "recv_memory": "64k"}
LARGE_PAGES = {"page_size": "16k", "log_file_size": "1m"}


@dataclass(frozen=True, slots=True)
class _Round:
    """trials: of kills, and of I/O errors; share: of the power-loss states; scale: of the workload's size."""

    trials: int
    share: float
    scale: int
    settings: Mapping[str, str] = field(default_factory=dict)


ROUNDS = (
    _Round(60, 0.001, 1),
    _Round(240, 0.005, 1, OTHERWISE),
    _Round(1200, 0.05, 2),
    _Round(60, 0.1, 4, OTHERWISE),
    _Round(60, 0.1, 2, LARGE_PAGES),
    *(_Round(0, 0.124, 8) for _ in range(6)),
)
LOSS_CAMPAIGNS = ("powerloss", "churn")
"""Campaigns whose runs lose power, each with the same number of states."""
CRASH_MODELS = ("kill", "io_error", "powerloss", "nested")
"""What the rows of the table may name, in the order of a round. Anything else is not built."""


@dataclass(frozen=True, slots=True)
class HuntJob:
    """states: bound for the power-loss states of the whole hunt; strikes: kills of the base line;
    out: where the store of this mutant lies."""

    mutant: Mutant
    paths: Paths
    scratch: Path
    out: Path
    states: int
    strikes: int


@dataclass(frozen=True, slots=True)
class MutantRow:
    """What the hunt came to.

    invariant, model, what: of the catch (0, "" if there is none); model: census, or one of CRASH_MODELS.
    tries: trials or states of that model up to and including the slice of the catch; seconds: since the
    hunt began. also: other invariants broken on the way. trials, states: all that were run.
    baseline: number of the first random kill that found anything, 0 = none did.
    """

    name: str
    caught: bool = False
    invariant: int = 0
    model: str = ""
    tries: int = 0
    seconds: float = 0.0
    what: str = ""
    replay: str = ""
    also: tuple[int, ...] = ()
    trials: int = 0
    states: int = 0
    baseline: int = 0
    baseline_invariants: tuple[int, ...] = ()
    error: str = ""


class _Caught(Exception):
    """Ends a hunt."""

    def __init__(self, model: str, tries: int, spec: TrialSpec, violation: Violation) -> None:
        super().__init__(violation.what)
        self.model = model
        self.tries = tries
        self.spec = spec
        self.violation = violation
        self.result: TrialResult | None = None


def hunt(job: HuntJob) -> MutantRow:
    """On a worker. A failure of the harness is in the row's `error`."""
    os.environ[MUTANT_VARIABLE] = job.mutant.name
    scratch = job.scratch / job.mutant.name
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        return _Hunt(replace(job, scratch=scratch)).run()
    except TornpageError as error:
        return MutantRow(job.mutant.name, error=str(error))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        os.environ.pop(MUTANT_VARIABLE)


@dataclass(slots=True)
class _Hunt:
    """The state of one hunt."""

    job: HuntJob
    tried: dict[str, int] = field(default_factory=dict)
    also: set[int] = field(default_factory=set)

    def run(self) -> MutantRow:
        """All rounds, then the base line."""
        mutant = self.job.mutant
        target = make_target(TARGET, self.job.paths.build)
        unknown = sorted(set(mutant.models) - set(CRASH_MODELS))
        clock = time.monotonic()
        row = MutantRow(mutant.name, error=f"{unknown[0]}: not built" if unknown else "")
        try:
            for number, effort in enumerate(ROUNDS):
                self._round(target, number, effort)
        except _Caught as catch:
            row = self._row(row, catch, target)
        row = replace(
            row,
            seconds=round(time.monotonic() - clock, 2),
            also=tuple(sorted(self.also - {row.invariant})),
            trials=self.tried.get("kill", 0) + self.tried.get("io_error", 0),
            states=self.tried.get("powerloss", 0) + self.tried.get("nested", 0),
        )
        return self._base_line(row, target)

    # -- rounds ---------------------------------------------------------------------------------

    def _round(self, target: Target, number: int, effort: _Round) -> None:
        models = self.job.mutant.models
        self._live(target, "kill", number, effort.trials)
        if "io_error" in models:
            self._live(target, "io_error", number, effort.trials)
        kinds = ["powerloss", *(["nested"] if "nested" in models else [])]
        for kind, name in itertools.product(kinds, LOSS_CAMPAIGNS):
            states = self.job.states / len(kinds) / len(LOSS_CAMPAIGNS)
            self._lose(target, kind, self._campaign(name, number), states * effort.share)

    def _live(self, target: Target, model: str, number: int, trials: int) -> None:
        """A census of each configuration, then trials under the preload."""
        campaign = self._campaign("smoke" if model == "kill" else model, number)
        censuses = {}
        for config in campaign.configs():
            spec = undisturbed_spec(campaign, TARGET, config)
            census = take_census(spec, target, self.job.scratch)
            self._judge("census", number + 1, spec, census.violations)
            censuses[config.label] = census
        if trials == 0:
            return
        cells = cells_of(campaign, censuses)
        for trial in range(trials):
            draw = draw_trial(campaign, TARGET, campaign.seed, cells, trial)
            self.tried[model] = self.tried.get(model, 0) + 1
            spec, result = run_aimed(
                draw.spec, draw.aim, target, self.job.scratch, self.job.scratch / "images"
            )
            try:
                self._judge(model, self.tried[model], spec, result.violations)
            except _Caught as catch:
                catch.result = result
                raise
            shutil.rmtree(self.job.scratch / "images", ignore_errors=True)

    def _lose(self, target: Target, model: str, campaign: Campaign, states: float) -> None:
        """Power loss of a recorded run of each configuration: ends of the log first, then all models."""
        configs = campaign.configs()
        wanted = max(1, round(states / len(configs)))
        depth = 2 if model == "nested" else 1
        slices = [Limits(("log-cut",), states=wanted // 2 or 1, depth=depth)]
        slices.append(Limits(states=wanted - wanted // 2, depth=depth))
        for config, limits in itertools.product(configs, slices):
            spec = undisturbed_spec(campaign, TARGET, config)
            recording = record_run(spec, target, self.job.scratch)
            found = explore(spec, target, recording, limits)
            self.tried[model] = self.tried.get(model, 0) + int(found.summary["states"])
            for state, violations in sorted(found.broken.items()):
                plan = FaultPlan(name=f"power loss {state}", loss=state)
                self._judge(model, self.tried[model], replace(spec, plan=plan), violations)

    def _judge(
        self, model: str, tries: int, spec: TrialSpec, violations: Iterable[Violation]
    ) -> None:
        for violation in violations:
            if violation.invariant in self.job.mutant.invariants:
                raise _Caught(model, tries, spec, violation)
            self.also.add(violation.invariant)

    def _campaign(self, name: str, number: int) -> Campaign:
        campaign = load_campaign(name, self.job.paths.workloads)
        effort = ROUNDS[number]
        params: dict[str, int | str] = dict(campaign.params)
        if campaign.workload == "smoke":
            plain = SmokeParams()
            params = {"rows": plain.rows * effort.scale, "changes": plain.changes * effort.scale}
        settings = {**effort.settings, **self.job.mutant.options}
        return campaign.with_settings(settings).model_copy(
            update={"seed": campaign.seed + number, "params": params}
        )

    # -- results --------------------------------------------------------------------------------

    def _row(self, row: MutantRow, catch: _Caught, target: Target) -> MutantRow:
        return replace(
            row,
            caught=True,
            invariant=catch.violation.invariant,
            model=catch.model,
            tries=catch.tries,
            what=catch.violation.what,
            replay=self._keep(catch, target),
        )

    def _keep(self, catch: _Caught, target: Target) -> str:
        """Puts the catch into a store of its own; the line that repeats it."""
        job, spec = self.job, catch.spec
        variables = f"TORNPAGE_BUILD={job.paths.build} {MUTANT_VARIABLE}={job.mutant.name}"
        out = job.out / job.mutant.name
        if catch.model == "census":
            sets = {**spec.options, **{f"params.{name}": v for name, v in spec.params.items()}}
            line = undisturbed_line(f"{spec.campaign} --seed {spec.seed} --trials 1", sets)
            return f"{variables} {line} --out {out}"
        shutil.rmtree(out, ignore_errors=True)
        with Store(out / "tornpage.db") as store:
            campaign = load_campaign(spec.campaign, job.paths.workloads)
            settings = campaign.model_dump(mode="json")
            run = store.begin_run(spec.campaign, target.name, spec.seed, 1, settings)
            site = catch.violation.site
            store.start_trial(run.id, spec, site.value if site else "", spec.plan.loss)
            result = catch.result
            if result is None:
                result = replay_loss(spec, target, job.scratch, job.scratch / "images")
            if not result.violations:
                result = replace(result, outcome=Outcome.VIOLATION, violations=(catch.violation,))
            store.finish_trial(run.id, replace(result, image=None))
            store.finish_run(run.id)
        return f"{variables} tornpage replay {run.id}.{spec.number} --out {out}"

    def _base_line(self, row: MutantRow, target: Target) -> MutantRow:
        """Random kills, spread over the configurations, until one of them finds anything."""
        if self.job.strikes == 0:
            return row
        configs = self._campaign("smoke", 0).configs()
        loops = []
        for position, config in enumerate(configs):
            spec = undisturbed_spec(self._campaign("smoke", 0), TARGET, config)
            loops.append(KillLoop(spec, target, self.job.scratch / f"loop-{position}"))
        for number in range(self.job.strikes):
            strike = loops[number % len(loops)].strike(number)
            if strike.violations:
                broken = tuple(sorted({item.invariant for item in strike.violations}))
                return replace(row, baseline=number + 1, baseline_invariants=broken)
        return row
