"""What the campaigns find as they are shipped: the default ones (`default = true`), each with its own
budget, workload and settings, on each planted bug, with several seeds. Nothing is known of the bug.

A mutant and a seed are one task. It ends with the first catch by state: any invariant counts, since any
alarm makes a user look.
"""

from __future__ import annotations

import itertools
import math
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.table import Table

from tornpage.faults.scratch import scratch_folder
from tornpage.lab.hunted import try_hunt
from tornpage.lab.mutant_build import MutantBuilder
from tornpage.lab.mutant_pool import KeptRows, each_done, maker_of
from tornpage.lab.mutant_table import Mutant
from tornpage.lab.tryout import (
    Catch,
    Catches,
    Tried,
    lose_power,
    try_fault_free,
    try_live,
)
from tornpage.plans.campaign import Campaign, default_campaigns, fault_free_spec
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import Scope
from tornpage.powerloss.runner import look_limits, look_scope, loss_limits, loss_parts, loss_scope
from tornpage.targets.registry import DEFAULT_TARGET, make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.model import TrialSpec, Violation
from tornpage.vocabulary.paths import BUILD_VARIABLE, Paths
from tornpage.workers.context import Progress

__all__ = [
    "Order",
    "SeedRow",
    "ShippedRow",
    "ShippedScore",
    "bugs_page",
    "live_first",
    "run_shipped",
    "shipped_table",
    "try_campaigns",
]

LIVE = ("kill", "io_error")
"""Crash models of live processes, in the order of their campaigns' turns."""


class Order(StrEnum):
    """What is tried first: as `run` has it, or as `hunt`, which has no kills and no I/O errors."""

    RUN = "run"
    HUNT = "hunt"


_KEPT_IN = {Order.RUN: "as-shipped", Order.HUNT: "hunted"}


@dataclass(frozen=True, slots=True)
class SeedRow:
    """What one seed came to. tried: fault-free runs, trials and states, by crash model; cpu: seconds of
    processor time."""

    seed: int
    by_state: Catch | None = None
    by_rule: Catch | None = None
    tried: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    cpu: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class ShippedRow:
    """A mutant's seeds, in order."""

    name: str
    seeds: tuple[SeedRow, ...]

    @property
    def detected(self) -> bool:
        """Every seed found something, by state or by rule."""
        return all(row.by_state or row.by_rule for row in self.seeds)

    @property
    def by_state(self) -> bool:
        """Every seed found a broken state."""
        return all(row.by_state for row in self.seeds)

    @property
    def detections(self) -> int:
        """Seeds that found something."""
        return sum(1 for row in self.seeds if row.by_state or row.by_rule)


@dataclass(frozen=True, slots=True)
class ShippedScore:
    """All rows, by name."""

    rows: tuple[ShippedRow, ...]

    def exit_code(self) -> int:
        """0: every seed detects every mutant; 1: not all; 2: the harness failed at one of them."""
        if any(seed.error for row in self.rows for seed in row.seeds):
            return 2
        return 0 if all(row.detected for row in self.rows) else 1

    def to_json(self) -> dict[str, Any]:
        """For --json. rate: per cent of all pairs of mutant and seed in which something was found; of a
        row, of its seeds. by_state: mutants of which every seed found a broken state."""
        detected = sum(row.detected for row in self.rows)
        pairs = sum(len(row.seeds) for row in self.rows)
        return {
            "mutants": len(self.rows),
            "detected_every_seed": detected,
            "rate": _percent(sum(row.detections for row in self.rows), pairs),
            "by_state": sum(row.by_state for row in self.rows),
            "rows": [
                {
                    **to_plain(row),
                    "detected": row.detected,
                    "by_state": row.by_state,
                    "rate": _percent(row.detections, len(row.seeds)),
                }
                for row in self.rows
            ],
        }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


@dataclass(frozen=True, slots=True)
class _Task:
    """first: the live crash models that the mutant's header names, whose campaigns begin; limit: seconds of
    processor time after which the search is given up."""

    mutant: str
    seed: int
    scratch: Path
    first: tuple[str, ...]
    limit: float
    order: Order

    @property
    def name(self) -> str:
        return f"{self.mutant}.{self.seed}"


def run_shipped(
    mutants: list[Mutant],
    seeds: int,
    builder: MutantBuilder,
    paths: Paths,
    jobs: int,
    out: Path,
    progress: Progress,
    limit: float = math.inf,
    order: Order = Order.RUN,
) -> ShippedScore:
    """Runs every campaign on every mutant with seeds 1 to `seeds`; jobs: how many tasks at a time; limit:
    seconds of processor time after which the search for one mutant with one seed is given up; a hunt has no
    other end."""
    builder.check_patches(mutants)
    kept = KeptRows(out / _KEPT_IN[order], SeedRow, maker_of(paths.workloads))
    keys = {mutant.name: f"{builder.key(mutant)} {limit}" for mutant in mutants}
    found: dict[str, SeedRow] = {}
    left = []
    with scratch_folder() as scratch:
        for mutant, seed in itertools.product(mutants, range(1, seeds + 1)):
            task = _Task(mutant.name, seed, scratch, live_first(mutant), limit, order)
            row = kept.load(task.name, keys[mutant.name])
            if row is None:
                left.append((mutant, task))
            else:
                found[task.name] = row
        progress.phase("mutants x seeds", len(left))
        for task, row in each_done(left, _try, _failed, builder, paths, jobs):
            found[task.name] = row
            if not row.error:
                kept.keep(task.name, keys[task.mutant], row)
            progress.advance(row.by_state is None)
    return ShippedScore(
        tuple(
            ShippedRow(m.name, tuple(found[f"{m.name}.{seed}"] for seed in range(1, seeds + 1)))
            for m in mutants
        )
    )


def live_first(mutant: Mutant) -> tuple[str, ...]:
    """Those that the header names. None where a power loss can show it too: that has the most states per
    second."""
    models = [model for model in mutant.models if model in LIVE]
    return tuple(models) if len(models) == len(mutant.models) else ()


def _failed(task: _Task, why: str) -> SeedRow:
    return SeedRow(task.seed, error=why)


def _try(task: _Task, paths: Paths) -> SeedRow:
    """On a worker."""
    scratch = task.scratch / task.name
    scratch.mkdir(parents=True)

    def line(tried: Tried, violation: Violation) -> str:  # noqa: ARG001 - the run finds it again
        build = f"{BUILD_VARIABLE}={shlex.quote(str(paths.build))}"
        command = "hunt" if task.order is Order.HUNT else f"run {tried.spec.campaign}"
        return f"{build} tornpage {command} --seed {task.seed}"

    catches = Catches(line)
    try:
        target = make_target(DEFAULT_TARGET, paths.build)
        for tried in _tries(task, target, paths, scratch):
            if catches.add(tried) or catches.is_over(task.limit):
                break
    except TornpageError as error:
        return _failed(task, str(error))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return SeedRow(
        task.seed,
        catches.by_state,
        catches.by_rule,
        catches.tried,
        catches.seconds,
        catches.cpu,
    )


def _tries(task: _Task, target: Target, paths: Paths, scratch: Path) -> Iterator[Tried]:
    if task.order is Order.HUNT:
        return try_hunt(task.seed, target, paths, scratch)
    return try_campaigns(task.seed, task.first, target, paths, scratch)


def try_campaigns(
    seed: int, first: Sequence[str], target: Target, paths: Paths, scratch: Path
) -> Iterator[Tried]:
    """Everything that the default campaigns try with this seed. Which comes first decides how long a
    mutant takes, and nothing else: explorations, one of each campaign in turn, with first looks at later ones
    between them; runs without a fault; live faults. Before all that, the live faults of `first`."""
    campaigns = [
        found.model_copy(update={"seed": seed}) for found in default_campaigns(paths.workloads)
    ]
    losses = [found for found in campaigns if found.crash_model == "power_loss"]
    live = [found for model in LIVE for found in campaigns if found.crash_model == model]
    early = [found for found in live if found.crash_model in first]
    for campaign in early:
        yield from try_live(campaign, target, scratch, campaign.crash_model, campaign.trials)
    turns = itertools.zip_longest(*(_explorations(found) for found in losses))
    parts = [part for turn in turns for part in turn if part is not None]
    yield from lose_power(_looks_between(parts), target, scratch, "power_loss")
    for campaign in campaigns:
        yield from try_fault_free(campaign, target, scratch)
    for campaign in live:
        if campaign not in early:
            yield from try_live(campaign, target, scratch, campaign.crash_model, campaign.trials)


Exploration = tuple[TrialSpec, Limits, Scope]
LOOKS_EACH = 6
"""First looks before each exploration: about half as much work."""


def _looks_between(parts: Sequence[Exploration]) -> Iterator[Exploration]:
    """All explorations, and looks at those that come later: what shows in few states of few scripts is met
    early, and what takes many states waits half as long again."""
    for number, part in enumerate(parts):
        for spec, limits, scope in parts[max(1, number * LOOKS_EACH) : (number + 1) * LOOKS_EACH]:
            look = look_limits(limits)
            if look is not None:
                yield spec, look, look_scope(scope)
        yield part


def _explorations(campaign: Campaign) -> Iterator[Exploration]:
    for config, depth in loss_parts(campaign):
        spec = fault_free_spec(campaign, DEFAULT_TARGET, config)
        yield spec, loss_limits(campaign, depth), loss_scope(campaign)


def shipped_table(score: ShippedScore) -> Table:
    """For a terminal."""
    data = score.to_json()
    table = Table(
        title=f"{data['detected_every_seed']} of {data['mutants']} mutants detected with every seed "
        f"({data['rate']} %), {data['by_state']} by state"
    )
    for column in ("mutant", "by state", "by rule", "seconds"):
        table.add_column(column, overflow="fold")
    for row in score.rows:
        errors = "".join(f" [red]{seed.error}[/]" for seed in row.seeds if seed.error)
        table.add_row(
            row.name,
            _ways([seed.by_state for seed in row.seeds]) + errors,
            _ways([seed.by_rule for seed in row.seeds]),
            f"{sum(seed.seconds for seed in row.seeds):.1f}",
        )
    return table


def _ways(catches: list[Catch | None]) -> str:
    """How many seeds, and by which campaigns and invariants."""
    found = [catch for catch in catches if catch is not None]
    names = sorted({f"{catch.campaign} I{catch.invariant}" for catch in found})
    return f"{len(found)} of {len(catches)}" + (f": {', '.join(names)}" if names else "")


def bugs_page(mutants: list[Mutant], score: ShippedScore) -> str:
    """docs/BUGS.md."""
    data = score.to_json()
    rows = {row.name: row for row in score.rows}
    seeds = len(score.rows[0].seeds)
    lines = [
        "# Bugs",
        "",
        "Bugs planted in the bundled engine, each a patch ([rules](../tests/mutants/README.md)). The",
        f"default campaigns ran as shipped, with seeds 1 to {seeds}, and do not know them. Written by",
        "`tornpage mutants --as-shipped --table docs/BUGS.md`; do not edit.",
        "",
        f"**{data['detected_every_seed']} of {data['mutants']} found with every seed**, "
        f"{data['by_state']} of them by state; {data['rate']} % of all pairs of bug and seed.",
        "",
        "| mutant | bug or rule | mechanism | breaks | by state | by rule |",
        "|---|---|---|---|---|---|",
    ]
    for mutant in mutants:
        row = rows[mutant.name]
        breaks = ", ".join(f"I{number}" for number in mutant.invariants)
        ways = (_found([s.by_state for s in row.seeds]), _found([s.by_rule for s in row.seeds]))
        cells = (f"`{mutant.name}`", mutant.bug, mutant.mechanism, breaks, *ways)
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "*by state*: recovery, scanner or oracle found a broken state after a crash or an I/O error; any",
        "invariant counts. *by rule*: a rule on the bytes of a run or of a recovery, or the fault-free run",
        "itself, broke an invariant of the row. Each cell: number of seeds, campaigns, invariants. A search",
        "ends at the first broken state, so a rule may not have had its turn.",
    ]
    return "\n".join(lines) + "\n"


def _found(catches: list[Catch | None]) -> str:
    return _ways(catches) if any(catches) else "no"
