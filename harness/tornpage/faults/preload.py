"""The library that is loaded into a program to record and disturb it: where it is and how it is asked for."""

from __future__ import annotations

from pathlib import Path

from tornpage.faults.recorder import fs_environment
from tornpage.vocabulary.errors import TargetError

__all__ = [
    "BARE",
    "EXIT_PRELOAD_REFUSED",
    "WHOLE",
    "can_preload",
    "preload_environment",
    "preload_path",
]

EXIT_PRELOAD_REFUSED = 97
"""Of a program in which it cannot do what its environment or its plan asks."""
WHOLE = {"TORNPAGE_PAYLOAD": "full"}
"""Records contents too."""
BARE = {"TORNPAGE_PAYLOAD": "hash"}
"""Records only the hashes of contents."""


def preload_path(build: Path) -> Path:
    """The library of a build folder (as build/release)."""
    return build / "faults" / "libtornpage_preload.so"


def can_preload(path: Path) -> bool:
    """Whether the loader can be told of it: it takes a list with spaces or colons between, and no escape."""
    return not set(str(path)) & set(" :")


def preload_environment(
    preload: Path, data: Path, trace: Path, plan: Path | None
) -> dict[str, str]:
    """What makes the preload record (and disturb) what happens below data. A preload of which the
    loader cannot be told is linked beside the trace."""
    if not can_preload(preload):
        link = trace.parent / preload.name
        if not can_preload(link):
            raise TargetError(
                f"{link}: the loader would split it: set TORNPAGE_TMP to another folder"
            )
        if not link.is_symlink():
            link.symlink_to(preload)
        preload = link
    return {"LD_PRELOAD": str(preload), **fs_environment(data, trace, plan)}
