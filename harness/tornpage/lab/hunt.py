"""The hunt for one planted bug: campaigns of growing size, until one of them finds a broken state. The
campaigns are those of the product; nothing is aimed at the bug.

A round is: kills and power loss, and I/O errors and power loss inside recovery if the row names them. The
rounds differ in workload seed and size, and in settings; they are the same for every bug. A rule, or the
fault-free run (golden run) of a round, is a catch too if it names an invariant of the row; the hunt goes on
for a broken state all the same.
"""

from __future__ import annotations

import itertools
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tornpage.campaigns.replay import play_trial
from tornpage.lab.mutant_table import Mutant
from tornpage.lab.randomkill import KillLoop
from tornpage.lab.tryout import Catch, Catches, Tried, lose_power, try_live
from tornpage.plans.campaign import Campaign, fault_free_spec, load_campaign
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import EVERYWHERE
from tornpage.store.file import FILE
from tornpage.store.store import Store
from tornpage.targets.registry import DEFAULT_TARGET, make_target
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.model import Outcome, Violation
from tornpage.vocabulary.paths import BUILD_VARIABLE, Paths
from tornpage.workloads.smoke import SmokeParams

__all__ = ["HuntJob", "MutantRow", "hunt"]

OTHERWISE = {"flush_log_at_trx_commit": "2", "recv_memory": "64k"}
LARGE_PAGES = {"page_size": "16k", "log_file_size": "1m"}


@dataclass(frozen=True, slots=True)
class _Round:
    """trials: of kills, and of I/O errors; share: of the power-loss states; scale: of the workload's
    size."""

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


@dataclass(frozen=True, slots=True)
class HuntJob:
    """paths: with the mutant's own programs; states: bound for the power-loss states of the whole hunt;
    strikes: kills of the base line; out: where the store of this mutant lies."""

    mutant: Mutant
    paths: Paths
    scratch: Path
    out: Path
    states: int
    strikes: int


@dataclass(frozen=True, slots=True)
class MutantRow:
    """What the hunt came to.

    by_state: the first broken state; by_rule: the first catch in any other way, by an invariant of the row.
    also: invariants broken on the way that are none of the row's. trials, states: all that were run, in so
    many seconds. baseline: number of the first random kill that found anything, 0 = none did.
    """

    name: str
    by_state: Catch | None = None
    by_rule: Catch | None = None
    also: tuple[int, ...] = ()
    trials: int = 0
    states: int = 0
    seconds: float = 0.0
    baseline: int = 0
    baseline_invariants: tuple[int, ...] = ()
    error: str = ""

    @property
    def catch(self) -> Catch | None:
        """The stronger of the two."""
        return self.by_state or self.by_rule


def hunt(job: HuntJob) -> MutantRow:
    """On a worker. A failure of the harness is in the row's `error`."""
    scratch = job.scratch / job.mutant.name
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        return _Hunt(replace(job, scratch=scratch)).run()
    except TornpageError as error:
        return MutantRow(job.mutant.name, error=str(error))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Hunt:
    """The state of one hunt."""

    def __init__(self, job: HuntJob) -> None:
        self.job = job
        self.target = make_target(DEFAULT_TARGET, job.paths.build)
        self.catches = Catches(self._keep, job.mutant.invariants)
        shutil.rmtree(job.out / job.mutant.name, ignore_errors=True)

    def run(self) -> MutantRow:
        """All rounds up to a catch by state, then the base line."""
        mutant, catches = self.job.mutant, self.catches
        rounds = (self._round(number, effort) for number, effort in enumerate(ROUNDS))
        for tried in itertools.chain.from_iterable(rounds):
            if catches.add(tried):
                break
        count = catches.tried.get
        row = MutantRow(
            mutant.name,
            by_state=catches.by_state,
            by_rule=catches.by_rule,
            also=tuple(sorted(catches.broken - set(mutant.invariants))),
            trials=count("kill", 0) + count("io_error", 0),
            states=count("powerloss", 0) + count("nested", 0),
            seconds=catches.seconds,
        )
        return self._base_line(row)

    # -- rounds ---------------------------------------------------------------------------------

    def _round(self, number: int, effort: _Round) -> Iterator[Tried]:
        models = self.job.mutant.models
        yield from self._live("kill", number, effort.trials)
        if "io_error" in models:
            yield from self._live("io_error", number, effort.trials)
        kinds = ["powerloss", *(["nested"] if "nested" in models else [])]
        for kind, name in itertools.product(kinds, LOSS_CAMPAIGNS):
            states = self.job.states / len(kinds) / len(LOSS_CAMPAIGNS)
            yield from self._lose(kind, self._campaign(name, number), states * effort.share)

    def _live(self, model: str, number: int, trials: int) -> Iterator[Tried]:
        campaign = self._campaign("smoke" if model == "kill" else model, number)
        return try_live(campaign, self.target, self.job.scratch, model, trials)

    def _lose(self, model: str, campaign: Campaign, states: float) -> Iterator[Tried]:
        """Ends of the log first, then all models, each in every configuration."""
        configs = campaign.configs()
        wanted = max(1, round(states / len(configs)))
        depth = 2 if model == "nested" else 1
        slices = [Limits(models=("log-cut",), states=wanted // 2 or 1, depth=depth)]
        slices.append(Limits(states=wanted - wanted // 2, depth=depth))
        parts = (
            (fault_free_spec(campaign, DEFAULT_TARGET, config), limits, EVERYWHERE)
            for config, limits in itertools.product(configs, slices)
        )
        return lose_power(parts, self.target, self.job.scratch, model)

    def _campaign(self, name: str, number: int) -> Campaign:
        campaign = load_campaign(name, self.job.paths.workloads)
        effort = ROUNDS[number]
        params: dict[str, int | str] = dict(campaign.params)
        if campaign.workload == "smoke":
            plain = SmokeParams()
            params = {"rows": plain.rows * effort.scale, "changes": plain.changes * effort.scale}
        settings = {**effort.settings, **self.job.mutant.options}
        return campaign.with_options(settings).model_copy(
            update={"seed": campaign.seed + number, "params": params}
        )

    # -- results --------------------------------------------------------------------------------

    def _keep(self, tried: Tried, violation: Violation) -> str:
        """Puts a catch into the mutant's own store; the line that repeats it."""
        job, spec = self.job, tried.spec
        out = job.out / job.mutant.name
        build = f"{BUILD_VARIABLE}={shlex.quote(str(job.paths.build))}"
        with Store(out / FILE) as store:
            campaign = load_campaign(spec.campaign, job.paths.workloads)
            settings = campaign.model_dump(mode="json")
            run = store.begin_run(spec.campaign, DEFAULT_TARGET, spec.seed, 1, settings)
            site = violation.site
            store.start_trial(run.id, spec, site.value if site else "", spec.plan.loss)
            result = tried.result
            if result is None:
                result = play_trial(spec, self.target, job.scratch, job.scratch / "images")
            if not result.violations:
                result = replace(result, outcome=Outcome.VIOLATION, violations=(violation,))
            store.finish_trial(run.id, replace(result, image=None))
            store.finish_run(run.id)
        return f"{build} tornpage replay {run.id}.{spec.number} --out {shlex.quote(str(out))}"

    def _base_line(self, row: MutantRow) -> MutantRow:
        """Random kills, spread over the configurations, until one of them finds anything."""
        if self.job.strikes == 0:
            return row
        configs = self._campaign("smoke", 0).configs()
        loops = []
        for position, config in enumerate(configs):
            spec = fault_free_spec(self._campaign("smoke", 0), DEFAULT_TARGET, config)
            loops.append(KillLoop(spec, self.target, self.job.scratch / f"loop-{position}"))
        for number in range(self.job.strikes):
            found = loops[number % len(loops)].strike(number)
            if found:
                broken = tuple(sorted({item.invariant for item in found}))
                return replace(row, baseline=number + 1, baseline_invariants=broken)
        return row
