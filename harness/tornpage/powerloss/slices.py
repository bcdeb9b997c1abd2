"""Slices of an exploration: many workers share the states of one recorded run. The explorer merges what they
came to, so that it is what one process says of all states, however many slices there are.

Each worker records the run for itself; only a deterministic target can be explored so. The owner keeps in
files beside the images what has come back, of all explorations that are under way, as soon as it is there:
whatever ends the run, it goes on with the slices that are missing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from tornpage.evidence.images import KeptImages, without_image
from tornpage.live.fault_free import failed_run, script_of
from tornpage.live.golden_run import golden_run_key
from tornpage.live.recording import Recording, recorded_run
from tornpage.plans.limits import Limits
from tornpage.powerloss.evidence import keep_loss_evidence
from tornpage.powerloss.explorer import Exploration, Scope, explore_slice, merge_slices
from tornpage.powerloss.parts import (
    Broken,
    Explored,
    Found,
    Part,
    found_states,
    play_found,
    recorded_golden_run,
    with_statements,
)
from tornpage.powerloss.slice_files import Sliced, SliceFiles
from tornpage.store.rows import GoldenRunRow
from tornpage.targets.registry import make_target
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.errors import FailedRunError, MachineError, UnexploredError
from tornpage.vocabulary.model import TrialSpec
from tornpage.vocabulary.paths import Paths, require_floor
from tornpage.vocabulary.process_cache import ProcessCache
from tornpage.workers.context import Executor, Pending
from tornpage.workers.pool import failed_twice, machine_errors
from tornpage.workloads.pairwise import kinds_of

__all__ = [
    "Failed",
    "Slice",
    "SlicedPart",
    "answer_of",
    "play_again",
    "run_slice",
    "slice_count",
]

SLICE_STATES = 2500
"""A second or more of work: to read the recording and plan again is little beside it."""
SLICES_OF_ALL = 64
"""Where it is not said how many states there are at most."""
KEPT_RECORDINGS = 4
"""On a worker: of the parts in work, and of the one before, whose states are played again."""

T = TypeVar("T")

Wait = Callable[[Sequence[Pending[Any]]], None]
"""Until all of these have ended. Meanwhile it has keep() of every part under way keep what comes back."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What a worker needs for a slice, number 1 ... of."""

    spec: TrialSpec
    limits: Limits
    scope: Scope
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
class Failed:
    """In place of an answer. error: what the task raised wherever it was tried."""

    error: Exception

    def of(self, what: str) -> Exception:
        """To be raised. UnexploredError if a machine failed, or a worker was lost: another try may end
        otherwise. what: was tried."""
        if not isinstance(self.error, MachineError):
            return self.error
        unexplored = UnexploredError(f"{what} {failed_twice(self.error)}")
        unexplored.__cause__ = self.error
        return unexplored


def slice_count(part: Part, target: Target) -> int:
    """How many slices a part is cut into; 0: it stays whole. Nothing else says so: a run that goes on has as
    many."""
    if part.limits.budget_s or Capability.DETERMINISTIC not in target.capabilities:
        return 0
    if not part.limits.states:
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
            recording = _recording(spec, target, task.scratch)
        except FailedRunError as error:
            return Sliced(failed_run(spec.config, True, error), None)
        told = explore_slice(spec, target, recording, task.limits, task.scope, task.number, task.of)
        return Sliced(recorded_golden_run(spec, recording), zlib.compress(told, 1))


def play_again(task: Again) -> Broken:
    """On a worker: plays a state again that the explorer has named."""
    with machine_errors():
        require_floor(task.scratch)
        target = make_target(task.found.spec.target, task.paths.build)
        recording = _recording(task.found.spec, target, task.scratch)
        broken = play_found(task.found, target, recording, task.images)
        if task.keep:
            keep_loss_evidence(broken.spec, broken.result, target, recording, task.scratch)
            return broken
        return replace(broken, result=without_image(broken.result))


def answer_of(pending: Pending[T | Failed], what: str) -> T:
    """Waits for it. Raises Failed.of(), MachineError if the cluster is gone."""
    answer = pending.result()
    if isinstance(answer, Failed):
        raise answer.of(what)
    return answer


class SlicedPart:
    """Of the owner: a part whose slices are handed out. folder: where they are kept until forget()."""

    def __init__(
        self, part: Part, target: Target, executor: Executor, folder: Path, wait: Wait
    ) -> None:
        self._of = slice_count(part, target)
        self.part, self._target, self._executor, self._wait = part, target, executor, wait
        self._files = SliceFiles(folder, self._of)
        self._failures: dict[int, Exception] = {}
        self._failed_runs: dict[int, GoldenRunRow] = {}
        missing = self._files.missing()
        self._handed = {number: self._hand(run_slice, self._slice(number)) for number in missing}

    def pending(self) -> list[Pending[Any]]:
        """Slices that are handed out and not done."""
        return [one for one in self._handed.values() if not one.done()]

    def done(self) -> bool:
        """Never: broken states have to be played again."""
        return False

    def keep(self) -> None:
        """What has come back is durable from now on. MachineError: the cluster is gone."""
        for number, pending in list(self._handed.items()):
            if pending.done():
                self._take(number, pending.result())
                del self._handed[number]

    def result(self) -> Explored:
        """Waits for the slices, merges them, and has the broken states played again. UnexploredError: it has
        no result yet; what else a slice raised is raised as it was."""
        self._wait(self.pending())
        self.keep()
        self._check_failures()
        slices = self._kept_slices()
        if not slices and self._failed_runs:  # no worker could record it
            return Explored(self._failed_runs[min(self._failed_runs)], None, (), True)
        self._check_complete(slices)
        self._check_alike(slices)
        golden_run, found = slices[1].golden_run, self._merge(slices)
        any_broken = bool(found.broken or golden_run.violations)
        summary = with_statements(found.summary, kinds_of(script_of(self.part.spec)))
        return Explored(golden_run, summary, self._play_again(found), any_broken)

    def forget(self) -> None:
        """The slices that are kept go: what they came to is stored."""
        self._files.clear()

    def _take(self, number: int, answer: Sliced | Failed) -> None:
        if isinstance(answer, Failed):
            self._failures[number] = answer.of(self._name(number))
        elif answer.told is None:
            self._failed_runs[number] = answer.golden_run
        else:
            self._files.put(number, answer.golden_run, answer.told)

    def _check_failures(self) -> None:
        """Raises the first; one that another try may mend only if there is no other."""
        failures = [self._failures[number] for number in sorted(self._failures)]
        for failure in sorted(failures, key=lambda one: isinstance(one, UnexploredError)):
            raise failure

    def _kept_slices(self) -> dict[int, Sliced]:
        """By number."""
        slices = {number: self._files.get(number) for number in range(1, self._of + 1)}
        return {number: one for number, one in slices.items() if one is not None}

    def _check_complete(self, slices: Mapping[int, Sliced]) -> None:
        for number in range(1, self._of + 1):
            if number in self._failed_runs:
                why = self._failed_runs[number].violations[0].what
                raise UnexploredError(
                    f"{self._name(number)}: the run failed, which others have recorded: {why}"
                )
            if number not in slices:
                raise UnexploredError(f"{self._name(number)} was kept and cannot be read again")

    def _check_alike(self, slices: Mapping[int, Sliced]) -> None:
        """If they are not, nobody knows which are right: all go."""
        for number, one in slices.items():
            difference = _difference(slices[1].golden_run, one.golden_run)
            if difference:
                self._files.clear()
                raise UnexploredError(
                    f"{self._name(number)} is of another run than slice 1, which the target or a machine "
                    f"makes differ: {difference}"
                )

    def _merge(self, slices: Mapping[int, Sliced]) -> Exploration:
        file = self.part.scratch / f"slices-{golden_run_key(self.part.spec)}"
        with file.open("wb") as all_slices:
            for number in sorted(slices):
                all_slices.write(zlib.decompress(slices[number].told or b""))
        try:
            return merge_slices(self.part.spec, self._target, file)
        finally:
            file.unlink()

    def _play_again(self, found: Exploration) -> tuple[Broken, ...]:
        images = KeptImages()  # as explore_part() does: the state shows what it is named for
        part = self.part
        where = (part.paths, part.scratch, part.images)
        states = found_states(part, found)
        pending = [
            self._hand(play_again, Again(one, images.takes(one.site, one.violations), *where))
            for one in states
        ]
        self._wait(pending)
        return tuple(
            answer_of(one, f"{part.spec.config}: state {state.spec.plan.loss}")
            for one, state in zip(pending, states, strict=True)
        )

    def _name(self, number: int) -> str:
        return f"{self.part.spec.config}: slice {number} of {self._of}"

    def _slice(self, number: int) -> Slice:
        part = self.part
        where = (part.paths, part.scratch, part.images)
        return Slice(part.spec, part.limits, part.scope, number, self._of, *where)

    def _hand(self, work: Callable[[Any], T], task: Any) -> Pending[T | Failed]:
        return self._executor.submit(work, task, Failed)


def _difference(one: GoldenRunRow, other: GoldenRunRow) -> str:
    """What two rows do not agree in."""
    names = [field.name for field in fields(GoldenRunRow) if field.compare]
    return ", ".join(
        _differing(name, getattr(one, name), getattr(other, name))
        for name in names
        if getattr(one, name) != getattr(other, name)
    )


def _differing(name: str, one: Any, other: Any) -> str:
    """In a few words; of counters those that differ."""
    if isinstance(one, Mapping):
        keys = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
        return f"{name} {' '.join(keys)}"
    if isinstance(one, tuple):
        return f"{name} ({len(one)} and {len(other)})"
    return f"{name} ({one} and {other})"


_Kept = tuple[ExitStack, Recording]


def _end(kept: _Kept) -> None:
    kept[0].close()


_RECORDINGS: ProcessCache[tuple[Path, str], _Kept] = ProcessCache(KEPT_RECORDINGS, _end)
"""On a worker: by scratch folder and run."""


def _recording(spec: TrialSpec, target: Target, scratch: Path) -> Recording:
    """Records the run unless it is there. Raises as recorded_run()."""

    def record() -> _Kept:
        stack = ExitStack()
        return stack, stack.enter_context(recorded_run(spec, target, scratch))

    _RECORDINGS.keep(lambda key: key[0] == scratch)  # the others went with their run's folder
    return _RECORDINGS.get((scratch, golden_run_key(spec)), record)[1]
