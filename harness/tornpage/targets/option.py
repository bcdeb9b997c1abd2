"""An option of a target, as people are told of it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_FS", "FS", "TargetOption"]

FS = "fs"
"""The option that every target has: on what file system power is lost."""
DEFAULT_FS = "posix"


@dataclass(frozen=True, slots=True)
class TargetOption:
    """values: what it takes; default: where a campaign does not say; what: one line."""

    name: str
    values: str
    default: str
    what: str
