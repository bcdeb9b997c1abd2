"""Reader of the binary event trace that the preload library writes (faults/trace.h tells the bytes).

A trace in which the preload says that it could not do what was asked is not one: TraceError has its reason.

Reading is lazy: a Trace holds the bytes, iteration yields one tuple per event, a marker's text is split
only when asked for. A last record that was cut off by a kill is ignored; anything else that is
wrong with the file raises TraceError.
"""

from __future__ import annotations

import errno
import functools
import itertools
import mmap
import os
import struct
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import xxhash

from tornpage.vocabulary.errors import TraceError

__all__ = [
    "FAULT_KIND_MASK",
    "FAULT_RULE_SHIFT",
    "HEADER_SIZE",
    "RENAME_EXCHANGE",
    "Call",
    "Damage",
    "Event",
    "FilePaths",
    "GrowingTrace",
    "Mark",
    "Op",
    "Trace",
    "has_fired",
    "parse_mark",
    "refusal",
]

MAGIC = b"TPTRACE2"
HEADER_SIZE = 64
CALLS_AT = 32
CALL = struct.Struct("<I4xQQ40x")
CALLS_BYTES = 256 * CALL.size
RECORD = struct.Struct("<IHHQIIQQqQQ")
RECORD_SIZE = 64
RECORD_HEAD = struct.Struct("<IH")
"""Its total length and its kind."""
RESULT = struct.Struct("<q")
RESULT_AT = 40
"""Where in a record its result is."""
PART_BYTES = 1 << 18
"""So much of two traces is compared at a time."""
VERB_MAX = 64
"""Bytes of a mark in which its verb ends, if it has one that is known."""

FLAG_OVERFLOW = 1
FLAG_FIRED = 2
FLAG_STARVED = 8
FLAG_UNSEEN = 16
FLAG_REFUSED = 32
WRITE_PAYLOAD = 1
FAULT_KIND_MASK = 0xFF
FAULT_AFTER = 0x100
FAULT_RULE_SHIFT = 10
RENAME_EXCHANGE = 2
"""Flag of a RENAME: the new name's file gets the old one."""


STARVED = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Errors by which the machine, and not a plan, may make an operation fail."""


class Op(IntEnum):
    """Kind of an event; the numbers are the file format's."""

    OPEN = 1
    CLOSE = 2
    READ = 3
    WRITE = 4
    FSYNC = 5
    FDATASYNC = 6
    SYNC_RANGE = 7
    TRUNCATE = 8
    FALLOCATE = 9
    RENAME = 10
    UNLINK = 11
    SYNC_DIR = 12
    MARK = 13
    KILL = 14
    MKDIR = 15
    FAULT = 16
    LINK = 17
    SYNC_ALL = 18


class Event(NamedTuple):
    """One record. offset and length in bytes; result 0, a byte count or -errno; began: number of the last
    event that had ended when the call began; at, end: where the record's first byte and the byte after its
    last one lie in Trace.data."""

    total: int
    kind: int
    flags: int
    seq: int
    file: int
    thread: int
    offset: int
    length: int
    result: int
    hash: int
    began: int
    at: int

    @property
    def end(self) -> int:
        """Where the next record starts."""
        return self.at + self.total


class Mark(NamedTuple):
    """A marker: its verb and its key=value facts (see docs/FAULT_MODEL.md)."""

    verb: str
    facts: Mapping[str, str]


class Call(NamedTuple):
    """A write that had begun, of this file id; in bytes."""

    file: int
    offset: int
    length: int


class _Heads(NamedTuple):
    """Where each record of a trace begins, and its kind."""

    starts: array[int]
    kinds: array[int]


@dataclass(frozen=True, slots=True)
class Damage:
    """What a KILL or FAULT did to a write: sectors[i] is 0 lost, 1 kept, 2 partly; old, new: contents."""

    sector: int
    sectors: bytes
    old: bytes
    new: bytes
    rule: int
    after: bool


@functools.lru_cache(maxsize=1 << 14)
def parse_mark(text: bytes) -> Mark:
    """Splits "verb key=value ..." (ASCII). The result is shared between calls: do not change it."""
    verb, *tokens = text.decode("ascii", "replace").split(" ")
    facts: dict[str, str] = {}
    for token in tokens:
        key, sep, value = token.partition("=")
        if sep:
            facts[key] = value
    return Mark(verb, facts)


@functools.cache
def _as_bytes(verbs: tuple[str, ...]) -> frozenset[bytes]:
    return frozenset(verb.encode("ascii") for verb in verbs)


class Trace:
    """The events of one recording, in the order of their ends. data: the committed bytes, file header
    included, in memory or mapped: their slices are bytes."""

    __slots__ = ("_heads", "data", "events_declared", "flags", "under_way")

    def __init__(self, data: bytes | mmap.mmap, under_way: Sequence[Call] = ()) -> None:
        """data: the bytes of a trace file; under_way: writes whose process was killed before they were
        recorded. Raises TraceError if it is not one."""
        if len(data) < HEADER_SIZE or data[:8] != MAGIC:
            raise TraceError("not a trace file: no TPTRACE2 header")
        committed, self.flags, _pid, self.events_declared = struct.unpack_from("<QIIQ", data, 8)
        self.data = data[:committed] if committed < len(data) else data
        self.under_way = tuple(under_way)
        self._heads: _Heads | None = None
        if self.flags & FLAG_OVERFLOW:
            raise TraceError("the trace overflowed: give the preload a larger TORNPAGE_TRACE_MAX")
        if self.flags & FLAG_REFUSED:
            texts = [self.text(event) for event, _ in self.marks("refused")]
            raise TraceError(f"the preload refused: {' '.join(texts).removeprefix('refused ')}")

    @classmethod
    def load(cls, path: Path, *, mapped: bool = False) -> Trace:
        """Reads the committed part of a trace file (which is sparse and larger). mapped: its bytes take no
        memory of their own, and the file must stay as it is."""
        try:
            with path.open("rb") as file:
                header = file.read(HEADER_SIZE)
                if len(header) < HEADER_SIZE:
                    raise TraceError(f"{path}: not a trace file: shorter than its header")
                (committed,) = struct.unpack_from("<Q", header, 8)
                size = os.fstat(file.fileno()).st_size
                calls = _calls_under_way(file.fileno(), header)
                wanted = min(max(committed, HEADER_SIZE), size)
                data: bytes | mmap.mmap
                if mapped:
                    data = mmap.mmap(file.fileno(), wanted, access=mmap.ACCESS_READ)
                else:
                    file.seek(0)
                    data = file.read(wanted)
        except OSError as error:
            raise TraceError(f"{path}: {error.strerror}") from error
        return cls(data, calls)

    @property
    def fired(self) -> bool:
        """A fault of the plan happened."""
        return bool(self.flags & FLAG_FIRED)

    @property
    def unseen(self) -> bool:
        """There is a mark of a change that the preload could not follow."""
        return bool(self.flags & FLAG_UNSEEN)

    @property
    def body(self) -> memoryview:
        """All records as bytes: equal for equal runs (the file header holds a pid)."""
        return memoryview(self.data)[HEADER_SIZE:]

    def hash(self) -> str:
        """XXH3-64 of the records, 16 hexadecimal digits."""
        return xxhash.xxh3_64_hexdigest(self.body)

    def events(
        self, start: int = HEADER_SIZE, kinds: Collection[int] | None = None
    ) -> Iterator[Event]:
        """Yields events from byte position `start` (an Event.end); stops at a cut last record. kinds: only
        these, the others are hardly looked at; None: all."""
        data = self.data
        unpack = RECORD.unpack_from
        make = Event._make
        for at in self._starts(kinds, start):
            yield make((*unpack(data, at), at))

    def until(self, seq: int) -> Trace:
        """The same up to this event."""
        end = next((event.at for event in self.events() if event.seq > seq), len(self.data))
        return Trace(bytes(self.data[:end]))

    def marks(self, *verbs: str) -> Iterator[tuple[Event, Mark]]:
        """The MARK events, each with what it says. verbs: only these; none: all."""
        data = self.data
        begins = tuple(verb.encode("ascii") for verb in verbs) or (b"",)
        longest = max(map(len, begins))
        for at in self._starts((Op.MARK,)):
            text = at + RECORD_SIZE
            if data[text : text + longest].startswith(begins):
                event = Event._make((*RECORD.unpack_from(data, at), at))
                mark = self.mark(event)
                if not verbs or mark.verb in verbs:
                    yield event, mark

    def tells(self, event: Event, verbs: tuple[str, ...]) -> bool:
        """Whether a MARK event has one of these verbs; cheaper than mark()."""
        start = event.at + RECORD_SIZE
        head = self.data[start : start + min(event.length, VERB_MAX)]
        return head.partition(b" ")[0] in _as_bytes(verbs)

    def begins_with(self, records: memoryview) -> bool:
        """Whether these are its first records."""
        parts = range(0, len(records), PART_BYTES)  # a copy of all of a mapped trace is slow
        return all(
            self.data[HEADER_SIZE + at : HEADER_SIZE + at + PART_BYTES].startswith(
                records[at : at + PART_BYTES]
            )
            for at in parts
        )

    def starts(self) -> array[int]:
        """Where each record begins: of event 1 first, and without a gap."""
        return self._read_heads().starts

    def _starts(
        self, kinds: Collection[int] | None = None, start: int = HEADER_SIZE
    ) -> Iterator[int]:
        if start > HEADER_SIZE:  # as a rule near the end: what is before it stays unread
            return (at for at, kind in self._scan(start) if kinds is None or kind in kinds)
        heads = self._read_heads()
        if kinds is None:
            return iter(heads.starts)
        return itertools.compress(heads.starts, map(frozenset(kinds).__contains__, heads.kinds))

    def _read_heads(self) -> _Heads:
        """Of all records: they are asked for again and again."""
        if self._heads is None:
            self._heads = heads = _Heads(array("Q"), array("H"))
            for at, kind in self._scan(HEADER_SIZE):
                heads.starts.append(at)
                heads.kinds.append(kind)
        return self._heads

    def _scan(self, start: int) -> Iterator[tuple[int, int]]:
        """Where each record from there on begins, and its kind."""
        data = self.data
        head = RECORD_HEAD.unpack_from
        limit = len(data)
        at = start
        while at + RECORD_SIZE <= limit:
            total, kind = head(data, at)
            if total < RECORD_SIZE or total % 8 or at + total > limit:
                break
            yield at, kind
            at += total

    def payload(self, event: Event) -> bytes:
        """Bytes behind the record's fixed part, zero padding included."""
        return self.data[event.at + RECORD_SIZE : event.at + event.total]

    def text(self, event: Event) -> str:
        """Payload of OPEN, UNLINK, SYNC_DIR, MKDIR: a path."""
        return self.payload(event).rstrip(b"\0").decode("utf-8", "surrogateescape")

    def mark(self, event: Event) -> Mark:
        """The parsed marker of a MARK event."""
        start = event.at + RECORD_SIZE
        return parse_mark(self.data[start : start + event.length])

    def renamed(self, event: Event) -> tuple[str, str]:
        """Old and new path of a RENAME or LINK."""
        old, _, new = self.payload(event).rstrip(b"\0").partition(b"\0")
        return old.decode("utf-8", "surrogateescape"), new.decode("utf-8", "surrogateescape")

    def damage(self, event: Event) -> Damage | None:
        """What a KILL or FAULT event did to the write; None if it did not hit a write."""
        payload = self.payload(event)
        at = 8 if event.kind == Op.FAULT else 0
        if len(payload) < at + 8:
            return None
        sector, count = struct.unpack_from("<II", payload, at)
        if sector == 0:
            return None
        at += 8
        sectors = payload[at : at + count]
        at += (count + 7) // 8 * 8
        known = len(payload) >= at + 2 * event.length
        return Damage(
            sector=sector,
            sectors=sectors,
            old=payload[at : at + event.length] if known else b"",
            new=payload[at + event.length : at + 2 * event.length] if known else b"",
            rule=event.flags >> FAULT_RULE_SHIFT,
            after=bool(event.flags & FAULT_AFTER),
        )

    def rewritten(self, seq: int, contents: bytes) -> bytes:
        """The same in which this write had these contents, of the same length; its hash stays."""
        event = next(event for event in self.events(kinds=(Op.WRITE,)) if event.seq == seq)
        at = event.at + RECORD_SIZE
        return bytes(self.data[:at]) + contents + bytes(self.data[at + len(contents) :])

    def contents(self, seq: int) -> bytes:
        """What this write wrote, where contents were recorded."""
        event = next(event for event in self.events(kinds=(Op.WRITE,)) if event.seq == seq)
        return self.payload(event)[: event.length]

    def without_contents(self) -> Trace:
        """The trace that the same run gives when contents are not asked for."""
        whole = memoryview(self.data)
        bare = bytearray()
        copied = 0
        for event in self.events(kinds=(Op.WRITE,)):
            if event.flags & WRITE_PAYLOAD:
                bare += whole[copied : event.at]
                at = len(bare)
                bare += whole[event.at : event.at + RECORD_SIZE]
                struct.pack_into("<I", bare, at, RECORD_SIZE)
                struct.pack_into("<H", bare, at + 6, event.flags & ~WRITE_PAYLOAD)
                copied = event.end
        bare += whole[copied:]
        struct.pack_into("<Q", bare, 8, len(bare))
        return Trace(bytes(bare))

    def starved(self) -> str:
        """Name of the error with which an operation failed because the machine had no more space, memory or
        descriptors; "" if none did. What a plan injected stands directly behind its FAULT."""
        if not self.flags & FLAG_STARVED:
            return ""
        injected = False
        heads = self._read_heads()
        for at, kind in zip(heads.starts, heads.kinds, strict=True):
            (result,) = RESULT.unpack_from(self.data, at + RESULT_AT)
            if -result in STARVED and not injected:
                return errno.errorcode[-result]
            injected = kind == Op.FAULT
        return ""

    def kill(self) -> Event | None:
        """The KILL event, the last one of a trace that a plan ended; None if there is none."""
        starts = self._read_heads().starts if self.fired else ()
        last = next(self.events(starts[-1]), None) if starts else None
        return last if last is not None and last.kind == Op.KILL else None


def _calls_under_way(fd: int, header: bytes) -> list[Call]:
    (at,) = struct.unpack_from("<Q", header, CALLS_AT)
    calls = b""
    if 0 < at <= os.fstat(fd).st_size - CALLS_BYTES:
        calls = os.pread(fd, CALLS_BYTES, at)
    return [Call(*call) for call in CALL.iter_unpack(calls) if call[0]]


class GrowingTrace:
    """A recording that is being written. Closed by leaving its context."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._file = path.open("rb", buffering=0)
        self._at = HEADER_SIZE

    def __enter__(self) -> GrowingTrace:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def more(self) -> Trace:
        """What has been recorded since the last time."""
        fd = self._file.fileno()
        header = os.pread(fd, HEADER_SIZE, 0)
        (committed,) = struct.unpack_from("<Q", header, 8)
        new = os.pread(fd, committed - self._at, self._at) if committed > self._at else b""
        self._at += len(new)
        whole = header[:8] + struct.pack("<Q", HEADER_SIZE + len(new)) + header[16:]
        return Trace(whole + new)

    def under_way(self) -> list[Call]:
        """Writes and changes of sizes that have begun and are not recorded yet."""
        fd = self._file.fileno()
        return _calls_under_way(fd, os.pread(fd, HEADER_SIZE, 0))


def has_fired(path: Path) -> bool:
    """Whether a record shows that a fault happened; there may be none, or the beginning of one."""
    try:
        return Trace.load(path, mapped=True).fired
    except (OSError, TraceError):
        return False


def refusal(path: Path) -> str:
    """Why a file holds no trace, in the words of a preload that refused; "" if it does or is missing."""
    try:
        if path.exists():
            Trace.load(path)
    except TraceError as error:
        return str(error)
    return ""


class FilePaths:
    """Which path a file id has at this point of a trace. Feed it every event in order."""

    __slots__ = ("_paths",)

    def __init__(self) -> None:
        """Knows no file yet."""
        self._paths: dict[int, str] = {}

    def see(self, trace: Trace, event: Event) -> None:
        """Takes note of OPEN, RENAME and LINK; cheap for every other kind."""
        if event.kind == Op.OPEN:
            if event.file:
                self._paths[event.file] = trace.text(event)
        elif event.kind == Op.LINK and event.result == 0:
            if event.file:
                self._paths[event.file] = trace.renamed(event)[1]  # its newest name
        elif event.kind == Op.RENAME and event.result == 0:
            old, new = trace.renamed(event)
            if event.file and self._paths.get(event.file) == new:
                return  # two names of one file: both stay
            over = old if event.flags & RENAME_EXCHANGE else ""
            for file, path in list(self._paths.items()):
                if path == new:
                    self._paths[file] = over
                elif path == old or path.startswith(f"{old}/"):
                    self._paths[file] = new + path[len(old) :]

    def __getitem__(self, file: int) -> str:
        """The path relative to the data directory; "" if the id is unknown or was replaced."""
        return self._paths.get(file, "")
