"""How a finding came about, for a person: the last file operations before the crash and what became of
each, and the pages that it hurt. Values with a JSON form, like those of model.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import ConfigDict, with_config

__all__ = ["Evidence", "Fate", "Field", "PageView", "Phase", "Step"]

_JSON = with_config(ConfigDict(extra="forbid"))


class Fate(StrEnum):
    """What a crash made of a file operation."""

    DURABLE = "durable"
    """Synced before the crash, or itself a sync that was done."""
    KEPT = "kept"
    """Not synced, and in the crashed image all the same."""
    TORN = "torn"
    LOST = "lost"
    GONE = "gone"
    """No name leads to its file any more: it cannot be seen after the crash."""
    FAILED = "failed"
    """It returned an error."""


@_JSON
@dataclass(frozen=True, slots=True)
class Step:
    """A file operation. seq: its number in the recording; op: write, fsync, ...; to: new name of a
    rename; offset, length in bytes; line: statement that was in flight, 0 if none; kept: of a torn
    write one character per sector, "1" = in the crashed image."""

    seq: int
    op: str
    path: str
    fate: Fate
    to: str = ""
    offset: int = 0
    length: int = 0
    site: str = ""
    line: int = 0
    kept: str = ""


@_JSON
@dataclass(frozen=True, slots=True)
class Phase:
    """The operations of one process before it crashed, the oldest first. name: "run" or "recovery 1";
    how: of the crash; sector: bytes of one."""

    name: str
    how: str
    sector: int
    steps: tuple[Step, ...]


@_JSON
@dataclass(frozen=True, slots=True)
class Field:
    """One decoded fact of a page in its three states, "" where it does not have it."""

    name: str
    before: str
    written: str
    after: str


@_JSON
@dataclass(frozen=True, slots=True)
class PageView:
    """A page in three states: before the write that was hurt (power loss: as it was durable), as it was
    written, and after the crash. sectors: one letter per sector: n new, o old, s same (old and new are
    equal), x neither. decoded: the fields are the target's own; else they are bytes. more: differences
    that are not listed."""

    path: str
    page: int
    size: int
    sector: int
    sectors: str
    decoded: bool
    fields: tuple[Field, ...]
    more: int = 0


@_JSON
@dataclass(frozen=True, slots=True)
class Evidence:
    """statements: text by line, of those that the steps name and of a few before the last of them.
    page_size: bytes, of the database."""

    phases: tuple[Phase, ...] = ()
    pages: tuple[PageView, ...] = ()
    statements: Mapping[int, str] = field(default_factory=dict)
    page_size: int = 0
