"""Runs a power-loss campaign: per script a recorded run, then the explorer over its crash states. Each
broken state becomes a trial of the store, so that show, replay and report treat it like any other.

May import: campaign, codec, crew, errors, image, images, parts, paths, powerloss, registry, rows, slices,
store.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import xxhash

from tornpage.campaigns.campaign import Campaign, Config, undisturbed_spec
from tornpage.campaigns.crew import Crew, Hands, Pending
from tornpage.campaigns.images import KeptImages
from tornpage.campaigns.parts import Explored, Part, explore_part
from tornpage.campaigns.powerloss import Limits, loss_models, recorded_run
from tornpage.campaigns.slices import Failed, SlicedPart, UnexploredError, slice_count
from tornpage.faults.image import remove_image
from tornpage.store.rows import Run
from tornpage.store.store import Store
from tornpage.targets.registry import explorer_path, make_target
from tornpage.vocabulary.codec import to_json
from tornpage.vocabulary.errors import ConfigError, FailedRunError, MachineError
from tornpage.vocabulary.paths import Paths

__all__ = [
    "check_parts",
    "forget_slices",
    "loss_limits",
    "loss_parts",
    "run_losses",
]

STATES_MAX = 10_000
"""Numbers set aside for the broken states of one configuration: far more than there are fingerprints."""


class _Waiting(Protocol):
    """An exploration that is under way."""

    @property
    def count(self) -> int:
        """Tasks that were handed out for it."""

    def result(self) -> Explored:
        """Waits for its end. UnexploredError: it cannot be told, but others can."""

    def forget(self) -> None:
        """What it came to is stored."""


def run_losses(
    store: Store,
    run: Run,
    campaign: Campaign,
    crew: Crew,
    scratch: Path,
) -> int:
    """Makes every exploration that the store has no result of yet, until the time is up. Returns how many
    there must be: the others are of scripts that the target fails undisturbed. MachineError: some could not
    be made, and may be tried again.

    Here one follows the other, each on all workers; the workers of a cluster share the states of each, and
    have those of the next before it ends. The results are stored in the order of the campaign.
    """
    done = store.explorations(run.id)
    parts = loss_parts(campaign)
    jobs = crew.jobs if crew.cluster is None else 1
    kept = KeptImages.of(store, run)
    waiting: deque[_Waiting] = deque()
    failed = 0
    failures: list[UnexploredError] = []
    clock = time.monotonic()

    def collect() -> None:
        nonlocal failed, clock
        first = waiting.popleft()
        try:
            explored = first.result()
        except UnexploredError as error:
            failures.append(error)
            return
        _keep(store, run, explored, kept)
        first.forget()
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
        waiting.append(_begin(part, crew, slices_of(crew.out, run.id)))
        while _enough(waiting, crew.cluster):
            collect()
    while waiting:
        collect()
    if failures:
        raise MachineError("; ".join(str(error) for error in failures))
    forget_slices(crew.out, run.id)
    return len(parts) - failed


def slices_of(out: Path, run: int) -> Path:
    """Where slices of explorations that are not done are kept."""
    return out / "slices" / str(run)


def forget_slices(out: Path, run: int) -> None:
    """All of a run that are still there."""
    remove_image(slices_of(out, run))
    with contextlib.suppress(OSError):  # of another run there are some
        slices_of(out, run).parent.rmdir()


def _enough(waiting: Sequence[_Waiting], cluster: Hands | None) -> bool:
    """Nobody is idle while the first one is waited for."""
    if cluster is None:
        return bool(waiting)
    return sum(one.count for one in itertools.islice(waiting, 1, None)) > cluster.size


def _begin(part: Part, crew: Crew, slices: Path) -> _Waiting:
    if crew.cluster is None:
        return _Here(part, crew.progress.note)
    target = make_target(part.spec.target, crew.paths.build)
    if slice_count(part, target):
        # Those of another run, which had its number in a store that is no more, are not taken for its own.
        key = xxhash.xxh3_64_hexdigest(
            to_json((crew.origin.programs, part.spec, part.limits)).encode()
        )
        return SlicedPart(part, target, crew.cluster, slices / key)
    return _Whole(part, crew.cluster.hand(explore_part, part, Failed))


@dataclass(frozen=True, slots=True)
class _Whole:
    """An exploration that one worker makes."""

    part: Part
    pending: Pending[Explored | Failed]
    count: int = 1

    def result(self) -> Explored:
        """What has come back."""
        answer = self.pending.result()
        if isinstance(answer, Failed):
            raise UnexploredError(f"{self.part.spec.config}: {answer.reason}")
        return answer

    def forget(self) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, slots=True)
class _Here:
    """An exploration that is made when its result is asked for."""

    part: Part
    tell: Callable[[str], None]
    count: int = 1

    def result(self) -> Explored:
        """Makes it."""
        return explore_part(self.part, self.tell)

    def forget(self) -> None:
        """Nothing is kept."""


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


def _keep(store: Store, run: Run, explored: Explored, kept: KeptImages) -> None:
    """Stores what an exploration came to, at last that it is done."""
    store.put_census(run.id, explored.census)
    for one in explored.broken:
        store.start_trial(run.id, one.spec, one.site, one.state)
        store.finish_trial(run.id, kept.only_new(one.site, one.result))
    if explored.summary is not None:
        store.put_exploration(run.id, explored.census.config, explored.summary)


def check_parts(campaign: Campaign, target: str, paths: Paths, scratch: Path) -> None:
    """Raises ConfigError if there is no such model of crash states, CensusError or ConfigError if the first
    run of the campaign cannot even be recorded."""
    _check_models(campaign, paths)
    config, _depth = loss_parts(campaign)[0]
    with contextlib.suppress(FailedRunError):  # a verdict, which is found again
        spec = undisturbed_spec(campaign, target, config)
        with recorded_run(spec, make_target(target, paths.build), scratch):
            pass


def _check_models(campaign: Campaign, paths: Paths) -> None:
    assert campaign.explore is not None, "the campaign's model says so"
    if not campaign.explore.models:
        return
    known = loss_models(explorer_path(paths.build))
    for model in campaign.explore.models:
        if model not in known:
            raise ConfigError(f"no model {model!r} of crash states; there are: {', '.join(known)}")
