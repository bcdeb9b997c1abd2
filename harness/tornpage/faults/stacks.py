"""Reads the call stacks that the preload has taken, beside a trace (faults/README.md). Addresses are
offsets in modules: who wants functions and lines asks for symbols (evidence/stacks.py).
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from tornpage.faults.trace import FLAG_OVERFLOW, HEADER_SIZE, RECORD, RECORD_SIZE
from tornpage.vocabulary.errors import TraceError

__all__ = [
    "Call",
    "CallStack",
    "Note",
    "StackLog",
    "copy_stacks",
    "stacks_environment",
    "stacks_path",
]

MAGIC = b"TPSTACK1"
MODULE, FRAMES, OF, NOTE = 1, 2, 3, 4
FRAME = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class Call:
    """Where a function was left for the next one. module: path of the program or library, "" if none is
    there; build_id: in hexadecimal digits, "" if it has none; offset: of the call, as the file has it."""

    module: str
    build_id: str
    offset: int


@dataclass(frozen=True, slots=True)
class CallStack:
    """From the innermost call on. text: what an interpreter said of its own stack, "" if none runs there."""

    calls: tuple[Call, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """What the program said of a step that is no operation. event: number of the last one that had ended;
    stack: number of its call stack (StackLog.stack())."""

    event: int
    text: str
    stack: int


def stacks_path(trace: Path) -> Path:
    """Where the stacks of a trace are."""
    return trace.with_name(f"{trace.name}.stacks")


def stacks_environment(trace: Path) -> dict[str, str]:
    """What makes the preload take stacks, beside what makes it record this trace."""
    return {"TORNPAGE_STACKS": str(stacks_path(trace))}


def copy_stacks(trace: Path, to: Path) -> None:
    """Puts the stacks of a trace beside its copy `to`, if there are any; they have room behind."""
    log = StackLog.load(trace)
    if log is not None:
        stacks_path(to).write_bytes(log.data)


class StackLog:
    """The stacks of one recording. data: the committed bytes; is_full: the stacks of later operations found
    no room."""

    __slots__ = ("_numbers", "_places", "_times", "data", "is_full", "notes")

    def __init__(self, data: bytes) -> None:
        """Raises TraceError if it is no log of stacks, or is cut."""
        if len(data) < HEADER_SIZE or data[:8] != MAGIC:
            raise TraceError("not a log of call stacks: no TPSTACK1 header")
        committed, flags = struct.unpack_from("<QI", data, 8)
        self.is_full = bool(flags & FLAG_OVERFLOW)
        self.data = data[:committed]
        self._places = [0]
        """Of each record, by its number from 1."""
        self._numbers: dict[int, int] = {}
        """Of the FRAMES record of each event."""
        self._times: dict[int, tuple[int, int]] = {}
        self.notes: list[Note] = []
        """In the order in which they were made."""
        at = HEADER_SIZE
        while at < committed:
            if at + RECORD_SIZE > len(data):
                raise TraceError("the log of call stacks is cut")
            record = RECORD.unpack_from(data, at)
            if record[0] < RECORD_SIZE or at + record[0] > len(data):
                raise TraceError("the log of call stacks is damaged")
            if record[1] == OF:
                self._numbers[record[6]] = record[7]
                self._times[record[6]] = (record[8], record[9])
            elif record[1] == NOTE:
                text = data[at + RECORD_SIZE : at + record[0]].rstrip(b"\0")
                self.notes.append(Note(record[6], text.decode("ascii", "replace"), record[7]))
            self._places.append(at)
            at += record[0]
        self._check()

    def _check(self) -> None:
        """What a record names is there, and is what it must be. TraceError."""
        records = [RECORD.unpack_from(self.data, at) for at in self._places[1:]]
        kinds = [0, *(record[1] for record in records)]

        def is_a(number: int, kind: int) -> bool:
            return 0 < number < len(kinds) and kinds[number] == kind

        named = (*self._numbers.values(), *(note.stack for note in self.notes))
        right = all(is_a(number, FRAMES) for number in named)
        modules = {0}
        for at, record in zip(self._places[1:], records, strict=True):
            room, text, count = record[0] - RECORD_SIZE, record[6], record[7]
            if record[1] == MODULE:
                right = right and count <= room
            elif record[1] == FRAMES:
                right = right and count * FRAME.size + text <= room
                start = at + RECORD_SIZE
                end = start + count * FRAME.size if right else start
                modules.update(module for module, _ in FRAME.iter_unpack(self.data[start:end]))
        if not (right and all(is_a(module, MODULE) for module in modules - {0})):
            raise TraceError("the log of call stacks is damaged")

    @classmethod
    def load(cls, trace: Path) -> StackLog | None:
        """Those of a trace; None: none were taken."""
        try:
            with stacks_path(trace).open("rb") as file:
                header = file.read(HEADER_SIZE)
                size = struct.unpack_from("<Q", header, 8)[0] if len(header) == HEADER_SIZE else 0
                size = min(size, os.fstat(file.fileno()).st_size)
                return cls(header + file.read(max(size - HEADER_SIZE, 0)))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TraceError(f"{stacks_path(trace)}: {error.strerror}") from error

    def times(self, seq: int) -> tuple[int, int]:
        """When the operation with this event number began and had ended, in nanoseconds on the monotonic
        clock of that machine; 0, 0: it is not known. For people: they are others in each run."""
        return self._times.get(seq, (0, 0))

    def of(self, seq: int) -> CallStack | None:
        """The stack of the operation with this event number; None: it has none, as marks."""
        number = self._numbers.get(seq)
        return None if number is None else self.stack(number)

    def stack(self, number: int) -> CallStack:
        """The stack of this number, as a note has it."""
        at = self._places[number]
        count, text = self._lengths(at)
        frames = at + RECORD_SIZE
        end = frames + count * FRAME.size
        calls = FRAME.iter_unpack(self.data[frames:end])
        told = self.data[end : end + text].decode("utf-8", "replace")
        return CallStack(tuple(self._call(*call) for call in calls), told)

    def _lengths(self, at: int) -> tuple[int, int]:
        record = RECORD.unpack_from(self.data, at)
        return record[7], record[6]

    def _call(self, module: int, offset: int) -> Call:
        if module == 0:
            return Call("", "", offset)
        at = self._places[module]
        total = RECORD.unpack_from(self.data, at)[0]
        name = at + RECORD_SIZE + self._lengths(at)[0]
        build_id = self.data[at + RECORD_SIZE : name].hex()
        path = self.data[name : at + total].rstrip(b"\0").decode("utf-8", "surrogateescape")
        return Call(path, build_id, offset)
