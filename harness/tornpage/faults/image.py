"""Crashed images: the files of a data directory between the crash and the recovery.

They are copied with their holes, and removed.

May import: sparse.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tornpage.faults.sparse import data_ranges

__all__ = ["copy_image", "remove_image"]

PART_BYTES = 1 << 20


def copy_image(source: Path, target: Path) -> None:
    """Copies a data directory (flat, or one level deep) to a new directory."""
    _copy_folder(source, target, memoryview(bytearray(PART_BYTES)))


def _copy_folder(source: Path, target: Path, room: memoryview) -> None:
    target.mkdir()
    with os.scandir(source) as entries:
        for entry in entries:
            place = target / entry.name
            if entry.is_dir(follow_symlinks=False):
                _copy_folder(Path(entry.path), place, room)
            else:
                _copy_file(Path(entry.path), place, room)


def _copy_file(source: Path, target: Path, room: memoryview) -> None:
    """Holes stay holes, and no file is in memory as a whole; its parts come through `room`."""
    old = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        new = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.truncate(new, os.fstat(old).st_size)
            for at, end in data_ranges(old):
                while at < end:
                    got = os.preadv(old, [room[: end - at]], at)
                    if not got:
                        return  # somebody cut it meanwhile
                    at += os.pwrite(new, room[:got], at)
        finally:
            os.close(new)
    finally:
        os.close(old)


def remove_image(path: Path) -> None:
    """Removes a directory tree that the harness made."""
    shutil.rmtree(path, ignore_errors=True)
