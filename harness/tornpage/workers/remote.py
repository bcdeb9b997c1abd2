"""On a worker of a cluster: does a task of a run in a scratch folder of its own, with its own programs, and
sends back what came of it; crashed images only where there is a finding.

A worker keeps its golden runs for the whole run and takes each when it first needs it. Before its first task
it compares its programs with the owner's.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tornpage import __version__
from tornpage.evidence.images import without_image
from tornpage.faults.image import remove_image
from tornpage.faults.scratch import scratch_folder
from tornpage.plans.origin import program_hashes
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Outcome, TrialResult
from tornpage.vocabulary.paths import find_paths
from tornpage.vocabulary.process_cache import ProcessCache
from tornpage.workers.context import WithResults
from tornpage.workers.pool import machine_errors

__all__ = ["Delivery", "Order", "changed_results", "describe", "do", "leave", "unpack"]


@dataclass(frozen=True, slots=True)
class Order:
    """A task of a run. run: names the owner's connection; programs: the owner's, by describe()."""

    run: str
    target: str
    programs: Mapping[str, str]
    work: Callable[[Any], Any]
    task: Any


@dataclass(frozen=True, slots=True)
class Delivery:
    """What came of it. images: a tar file of those of findings, empty if there is none."""

    answer: Any
    images: bytes


def describe(target: str) -> dict[str, str]:
    """Version and hashes of everything here that makes verdicts on a target."""
    made = make_target(target, find_paths().build)
    return {"version": __version__, **program_hashes(made)}


def do(order: Order) -> Delivery:
    """Raises what the work raises, ConfigError if the programs here are others than the owner's."""
    with machine_errors():
        _, scratch = _HOME.get(order.run, partial(_open, order))
        images = scratch / "images"
        remove_image(images)
        task = replace(order.task, paths=find_paths(), scratch=scratch, images=images)
        answer = changed_results(order.work(task), _only_of_findings)
        return Delivery(answer, _pack(images))


def leave(run: str) -> None:
    """The run is over: its scratch folder goes. Nothing, if another run has come."""
    home = _HOME.take(run)
    if home is not None:
        _end(home)


def changed_results(answer: Any, change: Callable[[TrialResult], TrialResult]) -> Any:
    """The same answer with other results of its trials; what has none stays as it is."""
    match answer:
        case TrialResult():
            return change(answer)
        case tuple():
            return tuple(changed_results(one, change) for one in answer)
        case WithResults():
            return answer.with_results(change)
    return answer


def unpack(images: bytes, folder: Path) -> None:
    """Lays out what a delivery has, in place of what was there."""
    with tarfile.open(fileobj=io.BytesIO(images)) as tar:
        for name in {member.name.partition("/")[0] for member in tar.getmembers()}:
            remove_image(folder / name)
        tar.extractall(folder, filter="data")


_Home = tuple[ExitStack, Path]


def _open(order: Order) -> _Home:
    """The scratch folder of a run that this worker has not worked for."""
    _check(order)
    on_shm = make_target(order.target, find_paths().build).on_shm
    stack = ExitStack()
    return stack, stack.enter_context(scratch_folder(on_shm))


def _end(home: _Home) -> None:
    home[0].close()


_HOME: ProcessCache[str, _Home] = ProcessCache(1, _end)
"""By the run that this worker works for."""


def _check(order: Order) -> None:
    here = describe(order.target)
    if here != order.programs:
        names = sorted(
            name for name in {*here, *order.programs} if here.get(name) != order.programs.get(name)
        )
        raise ConfigError(f"the worker has another {', '.join(names)} than the owner of the run")


def _only_of_findings(result: TrialResult) -> TrialResult:
    return result if result.outcome is Outcome.VIOLATION else without_image(result)


def _pack(images: Path) -> bytes:
    if not images.is_dir() or not any(images.iterdir()):
        return b""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        for path in sorted(images.iterdir()):
            tar.add(path, path.name)
    return packed.getvalue()
