"""Replays a recorded stream in memory and compares what it gives with the real files, byte by byte.

What the preload did not see (shared mappings, io_uring, bare system calls, other processes) is in the files
and not in the stream: no crash state that is computed or chosen from such a stream says anything.
"""

from __future__ import annotations

import copy
import fnmatch
import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tornpage.faults.image import files_below
from tornpage.faults.sparse import SparseFile
from tornpage.faults.trace import RENAME_EXCHANGE, WRITE_PAYLOAD, Call, Event, Op, Trace

__all__ = [
    "CREATED",
    "DIRECTORY",
    "RecordedFiles",
    "is_ignored",
    "stream_difference",
    "unseen_changes",
]

CREATED = 1
DIRECTORY = 2
"""Flags of an open."""
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
"""Modes of fallocate that are followed."""
WHAT_TO_DO = "rename within it to a new name, or name the file in `ignore` if no crash needs it"
WHOLE_FILE = (1 << 64) - 1
"""Length of a call under way that may change all of a file: its size too."""
SMALL_BYTES = 1 << 20
"""So much is read without asking whether it has changed."""
TICK_NS = 50_000_000
"""Longer than the clock of files stands still."""


def unseen_changes(trace: Trace, ignored: Sequence[str]) -> str:
    """The first change that the preload saw coming and could not follow, as "mmap of ibdata1"; "" if
    there is none. ignored: patterns of files of which nothing is wanted."""
    if not trace.unseen:
        return ""
    for event, _mark in trace.marks("unseen"):
        call, _, path = trace.text(event).removeprefix("unseen ").partition(" path=")
        path = path.replace("%20", " ")
        if not is_ignored(path, ignored):
            return f"{call} of {path}"
    return ""


def stream_difference(
    trace: Trace, data: Path, ignored: Sequence[str], found: Path | None = None
) -> str:
    """How the files of a directory differ from what the stream gives of those that were `found` before
    it (None: there were none), as "ibdata1 differs in bytes 16384-16391"; "" if they do not. The trace
    must have contents."""
    files = RecordedFiles(ignored, found)
    return files.follow(trace) or files.difference(lambda: trace.under_way, data)


class RecordedFiles:
    """What a recording makes of the files that were there before it, and how those of a directory differ. It
    may be told of a recording in parts, and of the files after each."""

    def __init__(self, ignored: Sequence[str], found: Path | None = None) -> None:
        """found: folder with what was there before; None: nothing. ignored: patterns of files of which
        nothing is wanted."""
        self._ignored = ignored
        self._disk = _Disk(files_below(found) if found is not None else {}, ignored)
        self._touched: set[int] = set()
        self._seen: dict[str, _Looked] = {}
        self.read_bytes = 0
        """Of files that were read for a comparison, all together."""

    def lay_out(self, folder: Path) -> None:
        """Writes the files as they are now below a folder, which is made."""
        folder.mkdir(parents=True)
        for name, number in sorted(self._disk.names.items()):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self._disk.files[number].save(path)

    def follow(self, trace: Trace) -> str:
        """Plays these events, the ones behind those before; what cannot be followed, else ""."""
        for event in trace.events(kinds=_PLAYERS):
            problem = self._disk.play(trace, event)
            if problem:
                return problem
            self._touched.add(event.file)
        return ""

    def difference(
        self, under_way: Callable[[], Sequence[Call]], data: Path, *, all_: bool = True
    ) -> str:
        """How the files of a directory differ from what was played, as "ibdata1 differs in bytes
        16384-16391"; "" if they do not. under_way: asked behind each file that was read, since calls may
        begin meanwhile. all_: read every file; else where they are large only those that the events since the
        last time, or a look at their times and sizes, say have changed."""
        disk = self._disk
        expected = {path: disk.files[number] for path, number in disk.names.items()}
        there = files_below(data)
        all_ = all_ or sum(path.stat().st_size for path in there.values()) <= SMALL_BYTES
        for path in sorted({*expected, *there}):
            if is_ignored(path, self._ignored):
                continue
            if path not in there:
                return f"{path} is not there"
            if path not in expected:
                return f"{path} was not seen to be created"
            number, looked, seen = disk.names[path], _look(there[path]), self._seen.pop(path, None)
            if all_ or number in self._touched or seen is None or not seen.is_still(looked):
                content = SparseFile.read(there[path])
                self.read_bytes += content.size
                calls = [call for call in under_way() if call.file == number]
                problem = _difference(_as_may_be(expected[path], content, calls), content)
                if problem:
                    return f"{path} {problem}"
                if calls:
                    continue  # it is read again
            self._seen[path] = looked
        self._touched.clear()
        return ""


@dataclass(frozen=True, slots=True)
class _Looked:
    """What says whether a file has changed since it was looked at. recent: it had changed so shortly before
    that a later change may have the same time."""

    inode: int
    size: int
    changed_ns: int
    recent: bool

    def is_still(self, now: _Looked) -> bool:
        """Nothing has changed since."""
        mine = (self.inode, self.size, self.changed_ns)
        return not self.recent and mine == (now.inode, now.size, now.changed_ns)


def _look(path: Path) -> _Looked:
    """Before it is read."""
    now = time.time_ns()
    found = path.stat()
    changed = max(found.st_ctime_ns, found.st_mtime_ns)
    return _Looked(found.st_ino, found.st_size, changed, recent=changed > now - TICK_NS)


def _as_may_be(expected: SparseFile, found: SparseFile, calls: Sequence[Call]) -> SparseFile:
    """What calls under way may have done is as it was found: nobody knows what of it was done."""
    if any(call.length == WHOLE_FILE for call in calls):
        return found
    if calls:
        expected = copy.deepcopy(expected)
    for call in calls:
        expected.take_over(found, call.offset, call.offset + call.length)
    return expected


class _Disk:
    """Files by the trace's ids, and the names that lead to them. Those that were there before have ids of
    their own, below 0."""

    def __init__(self, before: Mapping[str, Path], ignored: Sequence[str]) -> None:
        self._ignored = ignored
        self.files = defaultdict[int, SparseFile](SparseFile)
        self.names: dict[str, int] = {}
        for number, (name, path) in enumerate(before.items(), 1):
            self.files[-number] = SparseFile.read(path)
            self.names[name] = -number

    def play(self, trace: Trace, event: Event) -> str:
        """One event; what cannot be followed, else ""."""
        return _PLAYERS[event.kind](self, trace, event) if event.result >= 0 else ""

    def _write(self, trace: Trace, event: Event) -> str:
        if event.result and not event.flags & WRITE_PAYLOAD:
            return f"write {event.seq} has no contents"
        self.files[event.file].write(event.offset, trace.payload(event)[: event.result])
        return ""

    def _truncate(self, trace: Trace, event: Event) -> str:
        number = event.file or self.names.get(trace.text(event), 0)
        self.files[number].resize(event.offset)
        return ""

    def _link(self, trace: Trace, event: Event) -> str:
        old, new = trace.renamed(event)
        if old in self.names or event.file:
            self.names[new] = event.file or self.names[old]
        return ""

    def _unlink(self, trace: Trace, event: Event) -> str:
        self.names.pop(trace.text(event), None)
        return ""

    def _open(self, trace: Trace, event: Event) -> str:
        if event.flags & DIRECTORY or not event.file:
            return ""
        path = trace.text(event)
        before = self.names.get(path, 0)
        if before < 0 and event.file not in self.files and not event.flags & CREATED:
            self.files[event.file] = self.files.pop(before)
            self.names[path] = event.file
        if event.flags & CREATED or event.file not in self.files:
            self.files[event.file] = SparseFile()
            if event.offset & os.O_TMPFILE != os.O_TMPFILE:
                self.names[path] = event.file
        elif event.offset & os.O_TRUNC:
            self.files[event.file].resize(0)
        return ""

    def _allocate(self, _trace: Trace, event: Event) -> str:
        if event.flags & ~(KEEP_SIZE | PUNCH_HOLE | ZERO_RANGE):
            return f"fallocate {event.seq} has a mode that is not followed: {event.flags}"
        content = self.files[event.file]
        end = event.offset + event.length
        if not event.flags & KEEP_SIZE and content.size < end:
            content.resize(end)
        if event.flags & (PUNCH_HOLE | ZERO_RANGE):
            content.zero(event.offset, end)
        return ""

    def _rename(self, trace: Trace, event: Event) -> str:
        """Also of a folder; an empty path is outside: what was written there was not recorded."""
        old, new = trace.renamed(event)
        wanted = any(path and not is_ignored(path, self._ignored) for path in (old, new))
        if wanted and not (old and new):
            way = f"of {old} out of" if old else f"of a file from outside into {new} in"
            return f"a rename {way} the folder is not followed: {WHAT_TO_DO}"
        if old in self.names and self.names[old] == self.names.get(new):
            return ""  # two names of one file: both stay
        if wanted and event.flags & RENAME_EXCHANGE:
            return self._exchange(old, new)
        for path, number in list(self.names.items()):
            if path == old or path.startswith(f"{old}/"):
                del self.names[path]
                if new:
                    self.names[new + path[len(old) :]] = number
        return ""

    def _exchange(self, one: str, other: str) -> str:
        """Of two files."""
        if not {one, other} <= self.names.keys():
            what = f"an exchange of {one} and {other}, which are not both files"
            return f"{what}, is not followed: {WHAT_TO_DO}"
        self.names[one], self.names[other] = self.names[other], self.names[one]
        return ""


_PLAYERS: Mapping[int, Callable[[_Disk, Trace, Event], str]] = {
    Op.OPEN: _Disk._open,
    Op.WRITE: _Disk._write,
    Op.TRUNCATE: _Disk._truncate,
    Op.FALLOCATE: _Disk._allocate,
    Op.RENAME: _Disk._rename,
    Op.LINK: _Disk._link,
    Op.UNLINK: _Disk._unlink,
}
"""What changes a file or a name."""


def is_ignored(path: str, ignored: Sequence[str]) -> bool:
    """Nothing is wanted of a file of this name: some pattern is about it."""
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in ignored)


def _difference(expected: SparseFile, found: SparseFile) -> str:
    if expected.size != found.size:
        return f"has {found.size} bytes, and its stream gives {expected.size}"
    wrong = expected.difference(found)
    return f"differs in bytes {wrong[0]}-{wrong[1]}" if wrong else ""
