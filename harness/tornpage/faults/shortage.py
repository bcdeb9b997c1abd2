"""Is the machine short of what a process may need? That says whether the end of one may be the machine's. The
explorer asks the same (explorer/targets/machine.c).
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

__all__ = ["is_short", "oom_kills"]

PROC = Path("/proc")
TEMPORARY = "/tmp"
MEMORY_MIN_KIB = 256 << 10
SPACE_MIN_BYTES = 16 << 20


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since it was started; 0 where it does not
    say."""
    return _number(PROC / "vmstat", "oom_kill", 0)


def is_short(oom_kills_before: int) -> bool:
    """There have been more of those, or there is hardly any memory left, or no space for temporary files."""
    return (
        oom_kills() != oom_kills_before
        or _number(PROC / "meminfo", "MemAvailable:", MEMORY_MIN_KIB) < MEMORY_MIN_KIB
        or shutil.disk_usage(TEMPORARY).free < SPACE_MIN_BYTES
    )


def _number(file: Path, word: str, missing: int) -> int:
    """Behind this word."""
    with contextlib.suppress(OSError):
        for line in file.read_text("ascii").splitlines():
            name, *rest = line.split()
            if name == word:
                return int(rest[0])
    return missing
