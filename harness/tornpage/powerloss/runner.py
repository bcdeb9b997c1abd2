"""Runs a power-loss campaign: per script a recorded run, then the explorer over its crash states. Each
broken state becomes a trial of the store, so that show, replay and report treat it like any other.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import xxhash

from tornpage.evidence.images import KeptImages, images_of
from tornpage.faults.image import remove_image
from tornpage.live.fault_free import script_of
from tornpage.live.recording import recorded_run
from tornpage.plans.campaign import Campaign, Config, fault_free_spec
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import Scope
from tornpage.powerloss.parts import Explored, Part, explore_part, first_look
from tornpage.powerloss.slices import Failed, SlicedPart, answer_of, slice_count
from tornpage.powerloss.watching import Tell, watched
from tornpage.store.rows import Run
from tornpage.store.store import Store
from tornpage.targets.registry import make_target
from tornpage.targets.target import Capability
from tornpage.vocabulary.codec import to_json
from tornpage.vocabulary.errors import (
    FailedRunError,
    TornpageError,
    UnexploredError,
)
from tornpage.vocabulary.paths import Paths
from tornpage.workers.context import Executor, Pending, RunContext
from tornpage.workloads.pairwise import Pairwise, covering_order, kinds_of

__all__ = [
    "canary_places",
    "check_parts",
    "forget_slices",
    "give_up",
    "look_limits",
    "look_scope",
    "loss_limits",
    "loss_parts",
    "loss_scope",
    "run_losses",
]

EACH_MIN = 4
"""Explorations per worker process, from which on each has one of its own."""
LOOK_STATES = 120
"""Of each script, before any is explored whole: a bug that few scripts show need not wait for its turn."""
LOOK_SHARE_MIN = 4
"""So many times more states has an exploration that is worth a first look."""
LOOKS_AHEAD = 4
"""Handed out, per worker."""
STATES_MAX = 10_000
"""Numbers set aside for the broken states of one configuration: far more than there are fingerprints."""


class _UnderWay(Protocol):
    """An exploration that is under way."""

    @property
    def part(self) -> Part:
        """What it is."""

    def pending(self) -> list[Pending[Any]]:
        """Tasks that were handed out for it and are not done."""

    def done(self) -> bool:
        """result() will not wait."""

    def keep(self) -> None:
        """What has come back of it survives the run."""

    def result(self) -> Explored:
        """Waits for its end. UnexploredError: it has none yet, but others can."""

    def forget(self) -> None:
        """What it came to is stored."""


def run_losses(
    store: Store,
    run: Run,
    campaign: Campaign,
    context: RunContext,
    executor: Executor,
    scratch: Path,
) -> int:
    """Makes every exploration that the store has no result of yet, until the time is up. Returns how many
    there must be: the others are of scripts that the target fails without a fault. UnexploredError: some
    could not be made, and may be tried again.

    Scripts are in the order of pairwise.py. A few states of every script come first, and explorations of
    scripts that show something by then are made before the others. Each worker process makes one at a time,
    or, where they are few or may not be made side by side, all together one after the other; the workers of a
    cluster share the states of each, and have those of the next before it ends. The results are stored in the
    order in which the explorations are made, which hangs on no clock.
    """
    done = store.explorations(run.id)
    parts = loss_parts(campaign)
    heard = canary_places([config for config, _ in parts])
    order = _covering(campaign, run.target, parts)
    left = [place for place in order if parts[place][0].label not in done]
    alone = context.cluster is None and not _side_by_side(campaign, run.target, len(left), context)
    jobs = context.jobs if alone else 1

    def part_of(position: int) -> Part:
        config, depth = parts[position]
        return Part(
            spec=fault_free_spec(campaign, run.target, config),
            limits=loss_limits(campaign, depth),
            scope=replace(loss_scope(campaign), jobs=jobs, canaries=position in heard),
            first=position * STATES_MAX,
            known=frozenset(store.finished_numbers(run.id)),
            paths=context.paths,
            scratch=scratch,
            images=images_of(context.out, run.id),
        )

    waiting = [part_of(position) for position in left]
    losses = _Losses(store, run, context, None if alone else executor)
    here = alone or context.cluster is not None
    eyes = nullcontext() if here else watched(losses.under_way, context.progress.note)
    shown = _shown_at_first_look(waiting, context, None if alone else executor)
    context.progress.phase("runs explored", len(waiting))
    with losses.rescued(), eyes:
        first = {look.first for look in shown}
        for part in sorted(waiting, key=lambda part: part.first not in first):
            if context.is_late():
                if shown and not losses.begun:  # what was seen is told
                    losses.begin(shown[0])
                break
            losses.begin(part)
        losses.end()
    forget_slices(context.out, run.id)
    return len(parts) - losses.failed


def _covering(
    campaign: Campaign, target: str, parts: Sequence[tuple[Config, int]]
) -> Sequence[int]:
    """The places of all, those that are done too, in the order in which what the scripts have comes early:
    a run that goes on has the order of one that was never interrupted. What is enumerated keeps the order of
    its plan."""
    if campaign.enumerated():
        return range(len(parts))
    each = [
        Pairwise.of(
            kinds_of(script_of(fault_free_spec(campaign, target, config))),
            {**config.options, "depth": str(depth)},
        )
        for config, depth in parts
    ]
    return covering_order(each)


def look_limits(limits: Limits) -> Limits | None:
    """Of a first look at what is explored so far; None: that is hardly more. What only crashes of recoveries
    show needs more states than a look has."""
    states = limits.states or STATES_MAX
    shallow = limits.depth in (None, 1)
    worth = shallow and not limits.budget_s and states >= LOOK_SHARE_MIN * LOOK_STATES
    return replace(limits, states=LOOK_STATES) if worth else None


def look_scope(scope: Scope) -> Scope:
    """Where a first look looks: a few states of all models, in which canaries need not be heard again."""
    return replace(scope, whole=False, canaries=False)


def _looked_at(part: Part) -> Part | None:
    """The first look at it; None: it is not worth one, or another recording of it would differ."""
    limits = look_limits(part.limits)
    target = make_target(part.spec.target, part.paths.build)
    if limits is None or Capability.DETERMINISTIC not in target.capabilities:
        return None
    return replace(part, limits=limits, scope=look_scope(part.scope))


def _shown_at_first_look(
    parts: Sequence[Part], context: RunContext, executor: Executor | None
) -> list[Part]:
    """Looks at each, until the time is up: the first looks that show something. A single one needs none, and
    a cluster has many explorations under way at once."""
    few = len(parts) < 2 or context.cluster is not None
    looks = [] if few else [look for part in parts if (look := _looked_at(part))]
    context.progress.phase("first looks", len(looks))
    shown: list[Part] = []
    waiting: deque[tuple[Part, Pending[bool | Failed]]] = deque()

    def take(look: Part, any_broken: bool) -> None:
        shown.extend([look] if any_broken else ())
        context.progress.advance(any_broken)

    def collect(most: int) -> None:
        while len(waiting) > most:
            look, answer = waiting.popleft()
            take(look, answer.result() is True)  # of one that failed the exploration will say why

    for look in looks:
        if context.is_late():
            break
        if executor is None:
            take(look, first_look(look))
            continue
        waiting.append((look, executor.submit(first_look, look, Failed)))
        collect(executor.size * LOOKS_AHEAD)
    collect(0)
    return shown


def canary_places(configs: Sequence[Config]) -> set[int]:
    """Of what is crossed the first exploration each: there the judge is tried by canaries."""
    first: dict[str, int] = {}
    for place, config in enumerate(configs):
        first.setdefault(config.label.partition(" ")[0], place)
    return set(first.values())


def _side_by_side(campaign: Campaign, target: str, left: int, context: RunContext) -> bool:
    """Whether there are enough of them that nobody waits long for the last one; no clock ends them; and the
    target is no server, of which one runs at a time."""
    assert campaign.explore is not None, "the campaign's model says so"
    capabilities = make_target(target, context.paths.build).capabilities
    many = context.jobs > 1 and left >= EACH_MIN * context.jobs
    return many and not campaign.explore.budget_s and Capability.DETERMINISTIC in capabilities


class _Losses:
    """The explorations under way, in their order. begun: how many there were so far; failed: scripts that the
    target fails."""

    def __init__(
        self, store: Store, run: Run, context: RunContext, executor: Executor | None
    ) -> None:
        """executor: to which they are given; None: each is made here when its turn comes."""
        self.failed = 0
        self.begun = 0
        self._store, self._run, self._context, self._executor = store, run, context, executor
        self._kept = KeptImages.of(store, run)
        self._waiting: deque[_UnderWay] = deque()
        self._failures: list[UnexploredError] = []
        self._clock = time.monotonic()

    def begin(self, part: Part) -> None:
        """Hands it out, and stores those before it that have ended, or while there is enough to do without
        the first."""
        self.begun += 1
        self._waiting.append(self._begun(part))
        while self._waiting and (self._waiting[0].done() or self._enough()):
            self._collect()

    def under_way(self) -> list[tuple[Path, Limits]]:
        """Files that tell how far those are that are handed out."""
        return [(one.part.progress, one.part.limits) for one in list(self._waiting)]

    def end(self) -> None:
        """Stores all that are left. UnexploredError: some have no result."""
        while self._waiting:
            self._collect()
        if self._failures:
            each = ExceptionGroup("explorations without a result", self._failures)
            raise UnexploredError("; ".join(str(error) for error in self._failures)) from each

    @contextmanager
    def rescued(self) -> Iterator[None]:
        """If it ends by an exception, what has come back is stored up to the first that has not, and of the
        others kept."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(TornpageError, OSError):
                while self._waiting and self._waiting[0].done():
                    self._collect()
            for one in self._waiting:
                with contextlib.suppress(TornpageError, OSError):
                    one.keep()
            raise

    def _collect(self) -> None:
        """Stores the first; it stays the first if it is interrupted while it waits."""
        first = self._waiting[0]
        try:
            explored = first.result()
        except UnexploredError as error:
            self._failures.append(error)
            self._waiting.popleft()
            return
        except Exception:
            self._waiting.popleft()
            raise
        _keep(self._store, self._run, explored, self._kept)
        self._waiting.popleft()
        first.forget()
        now = time.monotonic()
        self._store.add_seconds(self._run.id, now - self._clock)
        self._clock = now
        self.failed += explored.summary is None
        self._context.progress.advance(explored.any_broken)
        if explored.summary is not None:
            self._context.progress.explored(
                explored.golden_run.config, explored.summary, explored.broken_by_site()
            )

    def _enough(self) -> bool:
        """Nobody is idle while the first one is waited for."""
        if self._executor is None:
            return bool(self._waiting)
        others = itertools.islice(self._waiting, 1, None)
        return sum(len(one.pending()) for one in others) > self._executor.size

    def _begun(self, part: Part) -> _UnderWay:
        context = self._context
        if self._executor is None:
            return _Here(part, context.progress.note)
        target = make_target(part.spec.target, context.paths.build)
        if context.cluster is None or not slice_count(part, target):
            return _Whole(part, self._executor.submit(explore_part, part, Failed))
        # Those of another run, which had its number in a store that is no more, are not taken for its own.
        key = xxhash.xxh3_64_hexdigest(
            to_json((context.origin.programs, part.spec, part.limits, part.scope)).encode()
        )
        folder = slices_of(context.out, self._run.id) / key
        return SlicedPart(part, target, context.cluster, folder, self._wait)

    def _wait(self, pending: Sequence[Pending[Any]]) -> None:
        """Until these have ended. What comes back meanwhile, of whichever exploration, is kept."""
        cluster = self._context.cluster
        assert cluster is not None, "only it has slices"
        while left := [one for one in pending if not one.done()]:
            cluster.wait([*left, *(one for part in self._waiting for one in part.pending())])
            for part in self._waiting:
                part.keep()


def slices_of(out: Path, run: int) -> Path:
    """Where slices of explorations that are not done are kept."""
    return out / "slices" / str(run)


def forget_slices(out: Path, run: int) -> None:
    """All of a run that are still there."""
    remove_image(slices_of(out, run))
    with contextlib.suppress(OSError):  # of another run there are some
        slices_of(out, run).parent.rmdir()


@dataclass(frozen=True, slots=True)
class _Whole:
    """An exploration that one worker makes."""

    part: Part
    answer: Pending[Explored | Failed]

    def pending(self) -> list[Pending[Any]]:
        """Itself."""
        return [] if self.done() else [self.answer]

    def done(self) -> bool:
        """It has come back."""
        return self.answer.done()

    def keep(self) -> None:
        """It cannot be kept but in the store."""

    def result(self) -> Explored:
        """What has come back."""
        return answer_of(self.answer, f"{self.part.spec.config}: its exploration")

    def forget(self) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, slots=True)
class _Here:
    """An exploration that is made when its result is asked for."""

    part: Part
    tell: Tell

    def pending(self) -> list[Pending[Any]]:
        """None."""
        return []

    def done(self) -> bool:
        """Not before."""
        return False

    def keep(self) -> None:
        """There is nothing."""

    def result(self) -> Explored:
        """Makes it."""
        return explore_part(self.part, self.tell)

    def forget(self) -> None:
        """Nothing is kept."""


def loss_parts(campaign: Campaign) -> list[tuple[Config, int]]:
    """Script and depth of every exploration. Where there are several, the label tells the depth too.

    Depths take turns, and each configuration begins with another: a bug that only a crash of the recovery
    shows need not wait for all others. A configuration has each depth as often as the campaign says.
    """
    depths = campaign.parts()
    scripts = campaign.scripted()
    configs = len(scripts) // len(depths)
    found = []
    for number, script in enumerate(scripts):
        depth = depths[sum(divmod(number, configs)) % len(depths)]
        label = f"{script.label},depth={depth}" if len(depths) > 1 else script.label
        found.append((replace(script, label=label), depth))
    return found


def loss_limits(campaign: Campaign, depth: int) -> Limits:
    """How far the campaign explores one configuration at this depth."""
    explore = campaign.explore
    assert explore is not None, "the campaign's model says so"
    return Limits(
        models=tuple(explore.models),
        depth=depth,
        states=explore.states,
        budget_s=explore.budget_s,
    )


def loss_scope(campaign: Campaign) -> Scope:
    """Where it looks."""
    assert campaign.explore is not None, "the campaign's model says so"
    return Scope(aim=campaign.explore.aim, whole=campaign.explore.whole)


def give_up(store: Store, run: int, out: Path) -> None:
    """The run has failed for good: nobody will go on with its slices."""
    store.fail_run(run)
    forget_slices(out, run)


def _keep(store: Store, run: Run, explored: Explored, kept: KeptImages) -> None:
    """Stores what an exploration came to, at last that it is done."""
    store.put_golden_run(run.id, explored.golden_run)
    for one in explored.broken:
        store.start_trial(run.id, one.spec, one.site, one.state)
        store.finish_trial(run.id, kept.only_new(one.site, one.result))
    if explored.summary is not None:
        store.put_exploration(run.id, explored.golden_run.config, explored.summary)


def check_parts(campaign: Campaign, target: str, paths: Paths, scratch: Path) -> None:
    """Raises GoldenRunError or ConfigError if the first run of the campaign cannot even be recorded."""
    config, _depth = loss_parts(campaign)[0]
    with contextlib.suppress(FailedRunError):  # a verdict, which is found again
        spec = fault_free_spec(campaign, target, config)
        with recorded_run(spec, make_target(target, paths.build), scratch):
            pass
