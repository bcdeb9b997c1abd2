"""The lock that the owner of a run holds from its first verdict to its last: a file beside the store,
locked with flock, that holds the owner's pid. A lock dies with its owner; the file stays until the run
is resumed.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tornpage.vocabulary.errors import ConfigError

__all__ = ["RunLock"]

PID_BYTES = 32


class RunLock:
    """One held lock."""

    def __init__(self, path: Path, what: str) -> None:
        """Takes it. ConfigError naming the owner's pid if somebody has it; what: as "run 3"."""
        self._path = path
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(path, flags, 0o644)
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                owner = os.pread(self._fd, PID_BYTES, 0).decode("ascii", "replace").strip()
                os.close(self._fd)
                raise ConfigError(f"{what} has a running owner: process {owner}") from error
            if self._is_named():
                break
            os.close(self._fd)  # its last owner removed it in this very moment
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode("ascii"), 0)

    def release(self) -> None:
        """Removes the file, then lets go of it."""
        self._path.unlink(missing_ok=True)
        os.close(self._fd)

    def _is_named(self) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._fd))
        except FileNotFoundError:
            return False
