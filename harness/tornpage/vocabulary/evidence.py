"""How a finding came about, for a person: the last file operations before the crash and what became of
each, and the pages that it hurt. Values with a JSON form, like those of model.py.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath

from pydantic import ConfigDict, with_config

__all__ = [
    "CONTENT",
    "SYNCS",
    "Evidence",
    "Fate",
    "Field",
    "Frame",
    "PageView",
    "Phase",
    "RowChange",
    "Step",
    "unwrapped",
]

_JSON = with_config(ConfigDict(extra="forbid"))


CONTENT = ("write", "truncate", "fallocate")
"""Operations on what is in a file."""
SYNCS = ("fsync", "fdatasync", "sync_dir", "sync")
"""Operations that make others durable."""


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
    UNDER_WAY = "under way"
    """It had begun before the crash, and not ended."""
    ACCUSED = "accused"
    """It broke the rule that the phase tells of; no crash has come."""
    MARK = "mark"
    """No operation, but what the run said: a statement was issued, acknowledged, or had failed."""


@_JSON
@dataclass(frozen=True, slots=True)
class Frame:
    """A call on the way to a file operation. function, file, line: "", "" and 0 where no symbol or line tells
    them; module: path of the program or library; build_id: of it, in hexadecimal digits, "" if it has none;
    offset: of the call in its file; -1: an interpreter has told the frame, which is none of a module."""

    function: str = ""
    file: str = ""
    line: int = 0
    module: str = ""
    build_id: str = ""
    offset: int = -1

    def __str__(self) -> str:
        """As "fil_space_t::flush_low fil0fil.cc:512"; "mariadbd+0x51a2" where no symbol tells more."""
        function = self.function.partition("(")[0] or self.function
        place = f"{PurePath(self.file).name}:{self.line}" if self.file else ""
        module = PurePath(self.module).name
        if function:
            return f"{function} {place or module}"
        return place or f"{module or 'code of no file'}+{self.offset:#x}"


def unwrapped(frames: Sequence[Frame], wrappers: Sequence[str]) -> tuple[Frame, ...]:
    """From the first frame on whose function and file fit none of these patterns; all, if each of them
    does."""
    texts = [(frame.function, frame.file) for frame in frames]
    known = (
        n
        for n, told in enumerate(texts)
        if not any(fnmatch.fnmatchcase(text, one) for text in told for one in wrappers)
    )
    return tuple(frames[next(known, 0) :])


@_JSON
@dataclass(frozen=True, slots=True)
class Step:
    """A file operation, or a mark. seq: its number in the recording; op: write, fsync, ..., or issue, ack,
    fail; to: new name of a rename; offset, length in bytes; line: statement that was in flight, 0 if none, or
    that a mark is about; kept: of a torn write one character per sector, "1" = in the crashed image; stack:
    of the call, where it was taken, from the innermost frame of the target's own code on; sync: of a write,
    which sync of its file began before it had ended, and how long; thread: in order of first appearance;
    began: number of the last operation that had ended when it began, -1 if that is not known; start_ns,
    end_ns: when on a monotonic clock, 0 if that is not known; covers: of a sync, how many operations on its
    file it made durable."""

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
    stack: tuple[Frame, ...] = ()
    sync: str = ""
    thread: int = 0
    began: int = -1
    start_ns: int = 0
    end_ns: int = 0
    covers: int = 0


@_JSON
@dataclass(frozen=True, slots=True)
class Phase:
    """The operations of one process before it crashed, or up to the one that broke a rule, the oldest first.
    name: "run" or "recovery 1"; how: of the crash, or what the rule says; sector: bytes of one; rule: its
    name, "" if it is a crash; facts: what is known of the accused page, by name; around: what its picture
    shows besides: syncs of the files of what was lost, marks, calls that were under way; total: how many
    operations there were, 0 if that is not known."""

    name: str
    how: str
    sector: int
    steps: tuple[Step, ...]
    rule: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    around: tuple[Step, ...] = ()
    total: int = 0


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
    that are not listed; redo: records of the page in the log of the crashed image, each with the LSNs of its
    group; redo_note: which these are, or why there are none, "" where nobody looked."""

    path: str
    page: int
    size: int
    sector: int
    sectors: str
    decoded: bool
    fields: tuple[Field, ...]
    more: int = 0
    redo: tuple[str, ...] = ()
    redo_note: str = ""


@_JSON
@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that is not as it was acknowledged. table: the name of its text in the state; expected,
    recovered: "" where there is none; why: what was acknowledged where, and synced or not."""

    table: str
    expected: str
    recovered: str
    why: str


@_JSON
@dataclass(frozen=True, slots=True)
class Evidence:
    """statements: text by line, of those that the steps name and of a few before the last of them.
    page_size: bytes, of the database. rows: that recovery came to otherwise than acknowledged, rows_more of
    them are not listed; rows_note: of which state, or why there are none; wrappers: patterns of functions and
    files from which no call stack is shown (unwrapped())."""

    phases: tuple[Phase, ...] = ()
    pages: tuple[PageView, ...] = ()
    statements: Mapping[int, str] = field(default_factory=dict)
    page_size: int = 0
    rows: tuple[RowChange, ...] = ()
    rows_more: int = 0
    rows_note: str = ""
    wrappers: tuple[str, ...] = ()
