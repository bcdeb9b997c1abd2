"""An option of a target, as people are told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = [
    "DEFAULT_FS",
    "FS",
    "NO_DISK",
    "OWN_OPTIONS",
    "RECORDER",
    "UNDER",
    "TargetOption",
    "disk_of",
]

FS = "fs"
"""The option that every target has: on what file system power is lost."""
DEFAULT_FS = "posix"
RECORDER = "recorder"
"""The option that every target file has: what records it."""
UNDER = "under"
"""The same: on which real file system it works, on a disk of which every write is recorded."""
NO_DISK = "none"
OWN_OPTIONS = frozenset({FS, RECORDER, UNDER})
"""Those of a target file that its store is not told."""


def disk_of(options: Mapping[str, str]) -> str:
    """The real file system that these say, "" if none."""
    return "" if options.get(UNDER, NO_DISK) == NO_DISK else options[UNDER]


@dataclass(frozen=True, slots=True)
class TargetOption:
    """values: what it takes, for people; default: where a campaign does not say; what: one line. check: says
    why it does not take a value, "" if it does; None: that shows when the target runs. absolute: a value as
    it is found from everywhere, a path that is relative to where the command is called."""

    name: str
    values: str
    default: str
    what: str
    check: Callable[[str], str] | None = None
    absolute: Callable[[str], str] = str
