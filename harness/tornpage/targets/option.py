"""An option of a target, as people are told of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["DEFAULT_FS", "FS", "RECORDER", "TargetOption"]

FS = "fs"
"""The option that every target has: on what file system power is lost."""
DEFAULT_FS = "posix"
RECORDER = "recorder"
"""The option that every target file has: what records it."""


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
