"""What commands write: one rule for all outputs, and one sentence for a full disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import SHM, TMP_VARIABLE

__all__ = ["FULL", "full_disk", "output", "told_full"]

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What the system says of a full disk."""
FULL_BYTES = 1 << 20
"""A disk with less than that free is full, whatever a library says of it."""

REMEDY = "free some space, or choose another place (--out, --store; for scratch TORNPAGE_TMP)"


@contextmanager
def output(place: Path) -> Iterator[None]:
    """A file or folder that is made inside; folders above it that are missing are made. ConfigError: it
    cannot be. That the disk is full is for whoever called to say."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        if error.errno in FULL:
            error.filename = error.filename or str(place)
            raise
        raise ConfigError(f"{error.filename or place}: {error.strerror or error}") from error


def told_full(error: OSError, folders: Iterable[Path]) -> str:
    """What to say of an error that says that a disk is full: which one, of the file that it names, of these
    folders, of scratch, or here."""
    named = [Path(error.filename).parent] if isinstance(error.filename, str) else []
    scratch = Path(os.environ.get(TMP_VARIABLE) or SHM)
    told = full_disk([*named, *folders, scratch, Path.cwd()])
    return told or f"{error.filename or 'a disk'}: {error.strerror}: {REMEDY}"


def full_disk(folders: Iterable[Path]) -> str:
    """What to say where one of these is on a full disk, "" if none is. A folder may be one that could not be
    made."""
    for folder in folders:
        there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
        disk = os.statvfs(there)
        if disk.f_bavail * disk.f_frsize < FULL_BYTES or (disk.f_files and not disk.f_favail):
            return f"{there} is on a full disk: {REMEDY}"
    return ""
