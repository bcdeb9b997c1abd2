"""Worker processes: what they are told, and what they do for the owner of a run.

A violation is played once more before it goes to the owner: what does not come again is unstable and no
finding. What the machine did (a full disk, no memory) is no verdict: it ends the run, which can go on
later.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from tornpage.faults.aim import RecoveryAim
from tornpage.faults.image import remove_image
from tornpage.faults.process import ENDING, undivided
from tornpage.faults.trace import STARVED
from tornpage.live.fault_free import judge_fault_free
from tornpage.live.golden_run import take_golden_run
from tornpage.live.kept import is_of_recording
from tornpage.live.trial import run_aimed, run_trial
from tornpage.store.rows import GoldenRunRow
from tornpage.targets.registry import make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import MachineError, TornpageError
from tornpage.vocabulary.model import GoldenRun, Outcome, TrialResult, TrialSpec
from tornpage.vocabulary.outputs import FULL, told_full
from tornpage.vocabulary.paths import Paths, require_floor
from tornpage.workers.context import Executor, RunContext

__all__ = [
    "Job",
    "Played",
    "confirmed",
    "executor_of",
    "failed_trial",
    "failed_twice",
    "machine_errors",
    "not_confirmed",
    "play",
    "play_fault_free",
    "play_golden_run",
    "process_pool",
    "said",
    "submit",
    "worker_pool",
]

Played = tuple[TrialSpec, TrialResult]
P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker needs for a golden run or a trial. images: where a crashed image is kept; aim: the fault
    that is yet to be drawn."""

    spec: TrialSpec
    paths: Paths
    scratch: Path
    images: Path
    aim: RecoveryAim | None = None


def process_pool(jobs: int) -> ProcessPoolExecutor:
    """Spawned rather than forked: the owner has threads (progress, pool), which a fork would halve."""
    return ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_die_with_owner,
        initargs=(os.getpid(),),
    )


@contextmanager
def worker_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes that die with their owner, and at once when what it does with them ends by an
    exception. Raises MachineError when somebody else has killed one."""
    with undivided():  # its semaphores would be left
        pool = process_pool(jobs)
    try:
        with machine_errors():
            yield pool
    except BaseException:
        _kill_workers(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Processes:
    """Worker processes of this machine, as an Executor."""

    pool: ProcessPoolExecutor
    size: int

    def submit(
        self,
        work: Callable[[Any], T],
        task: Any,
        failed: Callable[[Exception], F] | None = None,  # noqa: ARG002 - a dead worker ends the run here
    ) -> Future[T | F]:
        """To a worker process."""
        return cast("Future[T | F]", submit(self.pool, work, task))


@contextmanager
def executor_of(context: RunContext) -> Iterator[Executor]:
    """Who works for this run: its cluster, or so many worker processes."""
    if context.cluster is not None:
        yield context.cluster
        return
    with worker_pool(context.jobs) as pool:
        yield _Processes(pool, context.jobs)


def _kill_workers(pool: ProcessPoolExecutor) -> None:
    """One may have been in the middle of a result. The pool would wait for its rest for ever: this process
    holds the pipe open for writing too, and there is no public way to have that closed."""
    for worker in multiprocessing.active_children():
        worker.kill()
    results = pool._result_queue
    if results is not None:
        results._writer.close()  # type: ignore[attr-defined]


def submit(
    pool: ProcessPoolExecutor, work: Callable[P, T], *arguments: P.args, **named: P.kwargs
) -> Future[T]:
    """Hands it to a worker, which may have to be started first: one that is cut off in that complains."""
    with undivided():
        return pool.submit(work, *arguments, **named)


def play_golden_run(job: Job) -> GoldenRun:
    """On a worker: the fault-free run of a configuration; its stream stays in scratch for trials."""
    with machine_errors():
        require_floor(job.scratch)
        target = make_target(job.spec.target, job.paths.build)
        return take_golden_run(job.spec, target, job.scratch)


def play_fault_free(job: Job) -> GoldenRunRow:
    """On a worker: a run without a fault and its verdict; nothing of it stays."""
    with machine_errors():
        require_floor(job.scratch)
        target = make_target(job.spec.target, job.paths.build)
        return judge_fault_free(job.spec, target, job.scratch / f"fault-free-{os.getpid()}")


def play(job: Job) -> Played:
    """On a worker: one trial, and its plan in full. A failure of the harness is a result too, so that the
    rest goes on; one of the machine is raised."""
    try:
        with machine_errors():
            require_floor(job.scratch)
            return _play(job)
    except MachineError:
        raise
    except Exception as error:
        return not_played(job.spec, said(error))


def said(error: Exception) -> str:
    """A failure of the harness in words; of one that nobody has foreseen also where."""
    if isinstance(error, TornpageError):
        return str(error)
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(at.filename).name}:{at.lineno})"


def not_played(spec: TrialSpec, reason: str) -> Played:
    """A failure of the harness, as a result."""
    return spec, TrialResult(spec.number, Outcome.HARNESS_ERROR, reason=reason)


def failed_trial(spec: TrialSpec, error: Exception) -> Played:
    """One that no worker of a cluster could play."""
    return not_played(spec, failed_twice(error))


def failed_twice(error: Exception) -> str:
    """In words: a cluster tries a task once more, on another worker."""
    kind = "" if isinstance(error, TornpageError) else f"{type(error).__name__}: "
    return f"failed on two workers: {kind}{error}"


def confirmed(result: TrialResult, again: TrialResult) -> TrialResult:
    """A violation and the same trial played again: itself, or unstable."""
    first, second = _broken(result), _broken(again)
    if first == second:
        return result
    told = result.reason or result.violations[0].what
    reason = f"broke {_names(first)}, and played again {_names(second)}: {told}"
    return replace(result, outcome=Outcome.UNSTABLE, reason=reason)


def not_confirmed(result: TrialResult, why: str) -> TrialResult:
    """A violation that could not be played again: all that it showed is kept, and it is unstable."""
    reason = f"not confirmed: {why}; broke {_names(_broken(result))}: {result.reason}"
    return replace(result, outcome=Outcome.UNSTABLE, reason=reason)


def with_recording_of(result: TrialResult, again: TrialResult, target: Target) -> TrialResult:
    """The second play, with what a recording shows of the first one: that is kept, and shows it for ever."""
    shown = [one for one in result.violations if is_of_recording(one, target)]
    other = [one for one in again.violations if not is_of_recording(one, target)]
    return replace(again, violations=(*other, *shown))


@contextmanager
def machine_errors() -> Iterator[None]:
    """What the harness itself meets of a full machine is the machine's failure, and so is a worker that
    somebody has killed."""
    try:
        yield
    except BrokenProcessPool as error:
        raise MachineError("a worker process died") from error
    except OSError as error:
        if error.errno not in STARVED:
            raise
        said = f"{error.filename or 'the harness'}: {error.strerror}"
        raise MachineError(told_full(error, ()) if error.errno in FULL else said) from error
    except MemoryError as error:
        raise MachineError("the harness has no memory left") from error


def _play(job: Job) -> Played:
    target = make_target(job.spec.target, job.paths.build)
    spec, result = run_aimed(job.spec, job.aim, target, job.scratch, job.images)
    if result.outcome is not Outcome.VIOLATION:
        return spec, result
    require_floor(job.scratch)
    images = job.scratch / f"again-{os.getpid()}"
    try:
        again = run_trial(spec, target, job.scratch, images)
    except MachineError:
        raise
    except Exception as error:
        return spec, not_confirmed(result, said(error))
    finally:
        remove_image(images)
    require_floor(job.scratch)
    return spec, confirmed(result, with_recording_of(result, again, target))


def _broken(result: TrialResult) -> list[int]:
    return sorted({violation.invariant for violation in result.violations})


def _names(invariants: list[int]) -> str:
    return ", ".join(f"I{number}" for number in invariants) or "none"


def _die_with_owner(owner: int) -> None:
    """On a worker: SIGKILL it when the owner dies, so that a killed harness leaves no process behind. An
    owner that died before this worker got here is no longer its parent."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL))
    if os.getppid() != owner:
        os._exit(1)
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
