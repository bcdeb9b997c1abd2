"""Slices of an exploration: many workers share the states of one recorded run. The explorer merges what they
came to, so that it is what one process says of all states, however many slices there are.

Each worker records the run for itself; only a deterministic target can be explored so. The owner keeps what
has come back in a folder beside the images: whatever ends the run, it goes on with the slices that are
missing.

May import: census, codec, crew, errors, evidence, image, images, model, parts, paths, powerloss, registry,
rows, target, workers.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from tornpage.campaigns.census import census_key, failed_run
from tornpage.campaigns.crew import Hands, Pending
from tornpage.campaigns.evidence import keep_loss_evidence
from tornpage.campaigns.images import KeptImages
from tornpage.campaigns.parts import (
    Broken,
    Explored,
    Found,
    Part,
    found_states,
    play_found,
    recorded_census,
)
from tornpage.campaigns.powerloss import (
    Exploration,
    Limits,
    Recording,
    explore_slice,
    merge_slices,
    recorded_run,
)
from tornpage.campaigns.workers import machine_errors
from tornpage.faults.image import remove_image
from tornpage.store.rows import CensusRow
from tornpage.targets.registry import make_target
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import FailedRunError, TornpageError
from tornpage.vocabulary.model import TrialSpec
from tornpage.vocabulary.paths import Paths, require_floor

__all__ = [
    "Failed",
    "Slice",
    "SlicedPart",
    "UnexploredError",
    "play_again",
    "run_slice",
    "slice_count",
]

SLICE_STATES = 2500
"""Seconds of work: to read the recording and plan again, 0.05 s of a small one, is little beside it."""
SLICES_OF_ALL = 64
"""Where it is not said how many states there are at most."""
KEPT_RECORDINGS = 4
"""On a worker: of the parts in work, and of the one before, whose states are played again."""

T = TypeVar("T")


class UnexploredError(TornpageError):
    """Of an exploration something failed on two workers. What else has come back is kept."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What a worker needs for a slice, number 1 ... of."""

    spec: TrialSpec
    limits: Limits
    number: int
    of: int
    paths: Paths
    scratch: Path
    images: Path


@dataclass(frozen=True, slots=True)
class Again:
    """What a worker needs to play a broken state again. keep: its image, with the evidence of how it came
    about."""

    found: Found
    keep: bool
    paths: Paths
    scratch: Path
    images: Path


@dataclass(frozen=True, slots=True)
class Sliced:
    """What a slice came to. told: for merge_slices(), compressed; b"": the target fails the run."""

    census: CensusRow
    told: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no answer."""

    reason: str


def slice_count(part: Part, target: Target) -> int:
    """How many slices a part is cut into; 0: it stays whole. Nothing else says so: a run that goes on has as
    many."""
    if part.limits.budget_s or Capability.DETERMINISTIC not in target.capabilities:
        return 0
    if part.limits.states == 0:
        return SLICES_OF_ALL
    count = -(-part.limits.states // SLICE_STATES)
    return count if count > 1 else 0


def run_slice(task: Slice) -> Sliced:
    """On a worker: explores it."""
    with machine_errors():
        require_floor(task.scratch)
        spec = task.spec
        target = make_target(spec.target, task.paths.build)
        try:
            recording = _RECORDINGS.get(spec, target, task.scratch)
        except FailedRunError as error:
            return Sliced(failed_run(spec.config, True, error), b"")
        told = explore_slice(spec, target, recording, task.limits, task.number, task.of)
        return Sliced(recorded_census(spec, recording), zlib.compress(told, 1))


def play_again(task: Again) -> Broken:
    """On a worker: plays a state again that the explorer has named."""
    with machine_errors():
        require_floor(task.scratch)
        target = make_target(task.found.spec.target, task.paths.build)
        recording = _RECORDINGS.get(task.found.spec, target, task.scratch)
        broken = play_found(task.found, target, recording, task.images)
        if task.keep or broken.result.image is None:
            keep_loss_evidence(broken.spec, broken.result, target, recording, task.scratch)
            return broken
        remove_image(broken.result.image)
        return replace(broken, result=replace(broken.result, image=None))


class SlicedPart:
    """Of the owner: a part whose slices are handed out. count: of them; folder: where they are kept until
    forget()."""

    def __init__(self, part: Part, target: Target, hands: Hands, folder: Path) -> None:
        self.count = slice_count(part, target)
        self._part, self._target, self._hands, self._folder = part, target, hands, folder
        missing = [n for n in range(1, self.count + 1) if not self._file(n).is_file()]
        self._handed = {number: self._hand(run_slice, self._slice(number)) for number in missing}

    def result(self) -> Explored:
        """Waits for the slices, merges them, and has the broken states played again. UnexploredError."""
        census = self._collect()
        if not census.hash:
            return Explored(census, None, (), True)
        found = self._merge()
        kept = KeptImages()  # as explore_part() does: the state shows what it is named for
        tasks = [
            self._again(one, kept.takes(one.site, one.violations))
            for one in found_states(self._part, found)
        ]
        pending = [self._hand(play_again, task) for task in tasks]
        played = [
            self._answer(one, f"state {one_of.found.spec.plan.loss}")
            for one, one_of in zip(pending, tasks, strict=True)
        ]
        any_broken = bool(found.broken or census.violations)
        return Explored(census, found.summary, tuple(played), any_broken)

    def forget(self) -> None:
        """The slices that are kept go: what they came to is stored."""
        remove_image(self._folder)

    def _collect(self) -> CensusRow:
        """Keeps what comes back. The census of the recorded run, which is the same for all."""
        failures = []
        for number, pending in self._handed.items():
            try:
                answer = self._answer(pending, f"slice {number} of {self.count}")
            except UnexploredError as error:
                failures.append(error)
                continue
            if not answer.told:
                return answer.census
            self._keep(number, answer)
        if failures:
            raise failures[0]
        rows = [self._kept_census(number) for number in range(1, self.count + 1)]
        for number, row in enumerate(rows, 1):
            if row != rows[0]:
                self._file(number).unlink()
                raise UnexploredError(
                    f"{self._part.spec.config}: the run of slice {number} has the trace hash {row.hash}, that"
                    f" of slice 1 has {rows[0].hash}"
                )
        return rows[0]

    def _merge(self) -> Exploration:
        all_slices = self._part.scratch / f"slices-{census_key(self._part.spec)}"
        with all_slices.open("wb") as file:
            for number in range(1, self.count + 1):
                file.write(zlib.decompress(self._read(number)[2]))
        try:
            return merge_slices(self._part.spec, self._target, all_slices)
        finally:
            all_slices.unlink()

    def _keep(self, number: int, answer: Sliced) -> None:
        """Whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        early = self._folder / "new"
        bare = replace(answer.census, counters={})
        lines = (to_json(bare).encode(), to_json(answer.census.counters).encode(), answer.told)
        early.write_bytes(b"\n".join(lines))
        early.replace(self._file(number))

    def _read(self, number: int) -> list[bytes]:
        return self._file(number).read_bytes().split(b"\n", 2)

    def _kept_census(self, number: int) -> CensusRow:
        bare, counters, _ = self._read(number)
        return replace(from_json(CensusRow, bare), counters=json.loads(counters))

    def _file(self, number: int) -> Path:
        return self._folder / f"{number}-of-{self.count}"

    def _slice(self, number: int) -> Slice:
        part = self._part
        where = (part.paths, part.scratch, part.images)
        return Slice(part.spec, part.limits, number, self.count, *where)

    def _again(self, found: Found, keep: bool) -> Again:
        return Again(found, keep, self._part.paths, self._part.scratch, self._part.images)

    def _hand(self, work: Callable[[Any], T], task: Any) -> Pending[T | Failed]:
        return self._hands.hand(work, task, Failed)

    def _answer(self, pending: Pending[T | Failed], what: str) -> T:
        """UnexploredError if there is none."""
        answer = pending.result()
        if isinstance(answer, Failed):
            raise UnexploredError(f"{self._part.spec.config}: {what} {answer.reason}")
        return answer


class _Recordings:
    """On a worker: those of the scratch folder of its run that were used last."""

    def __init__(self) -> None:
        self._scratch = Path()
        self._kept: dict[str, tuple[ExitStack, Recording]] = {}

    def get(self, spec: TrialSpec, target: Target, scratch: Path) -> Recording:
        """Records the run unless it is there. Raises as recorded_run()."""
        if scratch != self._scratch:
            self._kept.clear()  # they went with their folder
            self._scratch = scratch
        key = census_key(spec)
        kept = self._kept.pop(key, None)
        if kept is None:
            while len(self._kept) >= KEPT_RECORDINGS:
                self._kept.pop(next(iter(self._kept)))[0].close()
            stack = ExitStack()
            kept = stack, stack.enter_context(recorded_run(spec, target, scratch))
        self._kept[key] = kept
        return kept[1]


_RECORDINGS = _Recordings()
