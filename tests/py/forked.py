"""Worker processes of campaigns that a test runs inside of its own process. A server that has loaded the
package once forks them; those of `tornpage run` are spawned, and each loads it again, which costs more than
most of these campaigns."""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.util import Finalize
from pathlib import Path
from unittest import mock

from tornpage.faults.process import ENDING
from tornpage.workers import pool

__all__ = ["forked_workers"]

LOADED = ["tornpage.workers.canaries", "tornpage.powerloss.runner"]


@contextlib.contextmanager
def forked_workers() -> Iterator[None]:
    """In place of spawned ones."""
    with mock.patch.object(pool, "process_pool", _forked):
        yield


def _forked(jobs: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    return ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_begin, initargs=(dict(os.environ),)
    )


def _begin(environment: Mapping[str, str]) -> None:
    """On a worker: what a spawned one has of its owner, and hands on to its own children; what is kept for
    its exit is ended there."""
    os.environ.clear()
    os.environ.update(environment)
    for name in Path("/proc/self/fd").iterdir():
        if int(name.name) > 2:
            with contextlib.suppress(OSError):  # that of the folder itself
                os.set_inheritable(int(name.name), False)
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    Finalize(None, atexit._run_exitfuncs, exitpriority=0)
