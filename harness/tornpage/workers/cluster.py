"""Runs on more machines: the workers of a Dask cluster do what worker processes do. docs/SCALE.md says how.

The owner draws, orders and stores as ever, so that neither the number of workers nor the order in which they
finish changes anything in the store. A task whose worker dies, or whose machine fails, goes to another worker
once; a trial, or a slice of states, that fails twice is a failure of the harness at this one and at no other.
What a task raised comes back as it was; a worker that is lost is the machine's failure.
"""

from __future__ import annotations

import itertools
import logging
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from tornpage.vocabulary.errors import ConfigError, MachineError
from tornpage.vocabulary.model import TrialResult
from tornpage.workers.context import Pending
from tornpage.workers.remote import Delivery, Order, changed_results, describe, do, leave, unpack

__all__ = ["Cluster", "open_cluster"]

T = TypeVar("T")
F = TypeVar("F")
CONNECT_S = 30
WORKERS_MAX = 64
"""Of local:N."""
RETRIES = 1


@contextmanager
def open_cluster(address: str, target: str) -> Iterator[Cluster]:
    """Connects to dask://HOST:PORT, or starts local:N for as long as the block lasts. target: by its name in
    the store; every worker must have its programs. ConfigError: no such cluster, no worker, or others than
    here."""
    distributed = _library()
    with ExitStack() as stack:
        scheduler, wanted = _scheduler(address, distributed, stack)
        try:
            client = stack.enter_context(
                distributed.Client(scheduler, timeout=CONNECT_S, set_as_default=False)
            )
            client.wait_for_workers(wanted, timeout=CONNECT_S)
        except (OSError, distributed.TimeoutError) as error:
            raise ConfigError(f"--cluster {address}: no scheduler with workers: {error}") from error
        cluster = Cluster(client, target)
        try:
            yield cluster
        finally:
            cluster.leave()


class Cluster:
    """An Executor (context.py) of Dask's workers. workers: their addresses; dashboard: its link."""

    def __init__(self, client: Any, target: str) -> None:
        """Compares versions and programs of all workers with those of this machine. ConfigError."""
        self._client = client
        self._target = target
        self._run = uuid.uuid4().hex
        self._numbers = itertools.count()
        self._programs = describe(target)
        threads = client.nthreads()
        self.workers = sorted(threads)
        self.dashboard = str(client.dashboard_link)
        for worker in self.workers:
            if threads[worker] != 1:
                raise ConfigError(
                    f"worker {worker} has {threads[worker]} threads: a trial wants a process of its "
                    "own: dask worker --nthreads 1 --nworkers N"
                )
        self._compare()

    @property
    def size(self) -> int:
        """Of the workers that were there at the beginning; others may come."""
        return len(self.workers)

    def submit(
        self, work: Callable[[Any], T], task: Any, failed: Callable[[Exception], F] | None = None
    ) -> Pending[T | F]:
        """To the scheduler."""
        order = Order(self._run, self._target, self._programs, work, task)
        key = f"{work.__name__}-{self._run}-{next(self._numbers)}"
        future = self._client.submit(do, order, key=key, pure=False, retries=RETRIES)
        return cast("Pending[T | F]", _Handed(future, task, failed))

    def wait(self, pending: Sequence[Pending[Any]]) -> None:
        """Until one of these has ended. That the cluster is gone is told by what is asked next."""
        distributed = _library()
        futures = [cast(_Handed, one).future for one in pending]
        with self._client.as_current(), suppress(CancelledError):
            distributed.wait(futures, return_when="FIRST_COMPLETED")

    def leave(self) -> None:
        """The scratch folders of the run go."""
        try:
            self._client.run(leave, self._run, on_error="ignore")
        except Exception:
            logging.getLogger(__name__).debug("the cluster is gone", exc_info=True)

    def _compare(self) -> None:
        try:
            found = self._client.run(describe, self._target)
        except Exception as error:  # whatever a worker without Tornpage says
            raise ConfigError(f"a worker cannot run {self._target}: {error}") from error
        for worker, programs in found.items():
            names = {*programs, *self._programs}
            other = sorted(n for n in names if programs.get(n) != self._programs.get(n))
            if other:
                raise ConfigError(
                    f"worker {worker} has another {', '.join(other)} than this machine"
                )


@dataclass(frozen=True, slots=True)
class _Handed:
    """A task at the scheduler."""

    future: Any
    task: Any
    failed: Callable[[Exception], Any] | None

    def done(self) -> bool:
        """It has ended."""
        return bool(self.future.done())

    def result(self) -> Any:
        """The answer, with its images where the task wants them. If the wait is interrupted, it can be asked
        again."""
        try:
            delivery: Delivery = self.future.result()
        except ConfigError:
            raise
        except Exception as error:
            return self._failed(error)
        if delivery.images:
            self.task.images.mkdir(parents=True, exist_ok=True)
            unpack(delivery.images, self.task.images)
        self.future.release()
        return changed_results(delivery.answer, self._here)

    def _here(self, result: TrialResult) -> TrialResult:
        if result.image is None:
            return result
        images: Path = self.task.images
        return replace(result, image=(images / result.image.name).resolve())

    def _failed(self, error: Exception) -> Any:
        """Of one task, if the cluster is still there; else of the run, which can go on later."""
        self.future.release()
        kind = type(error).__name__
        if kind in ("CancelledError", "FutureCancelledError", "CommClosedError"):
            raise MachineError(f"the cluster is gone: {error}") from error
        if type(error).__module__.partition(".")[0] in ("distributed", "dask"):
            lost = MachineError(f"{kind}: {error}")
            lost.__cause__ = error
            error = lost
        if self.failed is None:
            raise error
        return self.failed(error)


def _library() -> ModuleType:
    try:
        import distributed
    except ImportError as error:
        raise ConfigError("--cluster needs Dask: pip install 'tornpage[cluster]'") from error
    return cast(ModuleType, distributed)


def _scheduler(address: str, distributed: Any, stack: ExitStack) -> tuple[Any, int]:
    """What a client connects to, and how many workers it waits for."""
    local = re.fullmatch(r"local:([0-9]{1,4})", address)
    if local is not None and 1 <= int(local[1]) <= WORKERS_MAX:
        import dask

        # As RETRIES for a worker that dies: one death is borne.
        stack.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": RETRIES}))
        cluster = distributed.LocalCluster(
            n_workers=int(local[1]),
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
        return stack.enter_context(cluster), int(local[1])
    remote = re.fullmatch(r"dask://(\S+:[0-9]{1,5})", address)
    if remote is None:
        raise ConfigError(
            f"--cluster {address!r}: expected dask://HOST:PORT, or local:N with N of 1 to {WORKERS_MAX}"
        )
    return f"tcp://{remote[1]}", 1
