"""Scratch folders on tmpfs: held by a lock, recognised by it, and nothing else is ever removed.

A folder of ours has a file LOCK that its owner keeps locked (flock) as long as it lives. Whoever gets that
lock knows that the owner is gone, whatever its pid was and in whichever container it ran. The lock is taken
before the file has its name, so that no moment shows a living owner's folder without its lock.

The semaphores of an owner's worker pool have its folder's name. They go with the owner, or with the tracker
that Python starts beside it; where somebody kills both, with the folder.
"""

from __future__ import annotations

import fcntl
import glob
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tornpage.faults.process import undivided
from tornpage.vocabulary.paths import tmpfs_folder

__all__ = ["LOCK", "PREFIX", "scratch_folder"]

PREFIX = "tornpage-"
LOCK = ".tornpage-scratch"
SEMAPHORES = Path("/dev/shm")
"""Where Linux has what sem_open() makes: sem.NAME."""


@contextmanager
def scratch_folder(on_shm: bool = True) -> Iterator[Path]:
    """A folder for crash images, removed at the end whatever happens: a signal that comes meanwhile waits for
    that. on_shm: whether /dev/shm serves. Folders of owners that were killed before they could do it are
    removed now. ConfigError where there is no room (tmpfs_folder)."""
    parent = tmpfs_folder(on_shm)
    for left in parent.glob(f"{PREFIX}*"):
        _remove_if_left(left)
    with ExitStack() as made:
        with undivided():
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            made.callback(_remove, folder, _lock(folder))
        made.enter_context(_semaphores_named(folder.name))
        yield folder


@contextmanager
def _semaphores_named(name: str) -> Iterator[None]:
    """Those of multiprocessing that are made meanwhile; it has no public way to say that."""
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    before = config["semprefix"]
    config["semprefix"] = f"/{name}"
    try:
        yield
    finally:
        config["semprefix"] = before


def _remove(folder: Path, lock: int) -> None:
    with undivided():
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _lock(folder: Path) -> int:
    early = folder / f"{LOCK}.new"
    lock = os.open(early, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    early.rename(folder / LOCK)
    return lock


def _remove_if_left(folder: Path) -> None:
    """Removes a folder of ours whose owner is gone. Without the lock's file it is not ours; a link is not
    followed."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not folder.is_symlink():
            for semaphore in SEMAPHORES.glob(f"sem.{glob.escape(folder.name)}-*"):
                semaphore.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return
    finally:
        os.close(lock)
