"""Replays a recorded stream in memory and compares what it gives with the real files, byte by byte.

What the preload did not see (shared mappings, io_uring, bare system calls, other processes) is in the files
and not in the stream: no crash state that is computed or chosen from such a stream says anything.

May import: image, sparse, trace.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tornpage.faults.image import files_below
from tornpage.faults.sparse import SparseFile
from tornpage.faults.trace import WRITE_PAYLOAD, Event, Op, Trace

__all__ = ["is_ignored", "stream_difference", "unseen_changes"]

CREATED = 1
DIRECTORY = 2
PLAYED = frozenset((Op.OPEN, Op.WRITE, Op.TRUNCATE, Op.FALLOCATE, Op.RENAME, Op.LINK, Op.UNLINK))
"""What a file or a name is changed by."""
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
"""Modes of fallocate that are followed."""
RENAME_EXCHANGE = 2


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
    disk = _Disk(files_below(found) if found is not None else {}, ignored)
    for event in trace.events(kinds=PLAYED):
        problem = disk.play(trace, event)
        if problem:
            return problem
    expected = {path: disk.files[number] for path, number in disk.names.items()}
    there = files_below(data)
    for path in sorted({*expected, *there}):
        if is_ignored(path, ignored):
            continue
        if path not in there:
            return f"{path} is not there"
        if path not in expected:
            return f"{path} was not seen to be created"
        content = SparseFile.read(there[path])
        for call in trace.under_way:  # nobody knows what of it was done
            if call.file == disk.names[path]:
                expected[path].take_over(content, call.offset, call.offset + call.length)
        problem = _difference(expected[path], content)
        if problem:
            return f"{path} {problem}"
    return ""


class _Disk:
    """Files by the trace's ids, and the names that lead to them. Those that were there before have ids of
    their own, below 0."""

    def __init__(self, before: Mapping[str, Path], ignored: Sequence[str]) -> None:
        self._ignored = ignored
        self.files: dict[int, SparseFile] = {}
        self.names: dict[str, int] = {}
        for number, (name, path) in enumerate(before.items(), 1):
            self.files[-number] = SparseFile.read(path)
            self.names[name] = -number

    def play(self, trace: Trace, event: Event) -> str:
        """One event; what cannot be followed, else ""."""
        if event.result < 0:
            return ""
        if event.kind == Op.OPEN:
            self._open(trace, event)
        elif event.kind == Op.WRITE and event.result > 0:
            if not event.flags & WRITE_PAYLOAD:
                return f"write {event.seq} has no contents"
            content = self.files.setdefault(event.file, SparseFile())
            content.write(event.offset, trace.payload(event)[: event.result])
        elif event.kind == Op.TRUNCATE:
            number = event.file or self.names.get(trace.text(event), 0)
            self.files.setdefault(number, SparseFile()).resize(event.offset)
        elif event.kind == Op.FALLOCATE:
            return self._allocate(event)
        elif event.kind == Op.RENAME:
            return self._rename(event, *trace.renamed(event))
        elif event.kind == Op.LINK:
            old, new = trace.renamed(event)
            if old in self.names or event.file:
                self.names[new] = event.file or self.names[old]
        elif event.kind == Op.UNLINK:
            self.names.pop(trace.text(event), None)
        return ""

    def _open(self, trace: Trace, event: Event) -> None:
        if event.flags & DIRECTORY or not event.file:
            return
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

    def _allocate(self, event: Event) -> str:
        if event.flags & ~(KEEP_SIZE | PUNCH_HOLE | ZERO_RANGE):
            return f"fallocate {event.seq} has a mode that is not followed: {event.flags}"
        content = self.files.setdefault(event.file, SparseFile())
        end = event.offset + event.length
        if not event.flags & KEEP_SIZE and content.size < end:
            content.resize(end)
        if event.flags & (PUNCH_HOLE | ZERO_RANGE):
            content.zero(event.offset, end)
        return ""

    def _rename(self, event: Event, old: str, new: str) -> str:
        """Also of a folder; an empty path is outside: what was written there was not recorded."""
        wanted = any(path and not is_ignored(path, self._ignored) for path in (old, new))
        if wanted and not (old and new):
            way = f"of {old} out of" if old else f"of a file from outside into {new} in"
            return f"a rename {way} the folder is not followed"
        if wanted and event.flags & RENAME_EXCHANGE:
            return f"an exchange of {old} and {new} is not followed"
        for path, number in list(self.names.items()):
            if path == old or path.startswith(f"{old}/"):
                del self.names[path]
                if new:
                    self.names[new + path[len(old) :]] = number
        return ""


def is_ignored(path: str, ignored: Sequence[str]) -> bool:
    """Nothing is wanted of a file of this name: some pattern is about it."""
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in ignored)


def _difference(expected: SparseFile, found: SparseFile) -> str:
    if expected.size != found.size:
        return f"has {found.size} bytes, and its stream gives {expected.size}"
    wrong = expected.difference(found)
    return f"differs in bytes {wrong[0]}-{wrong[1]}" if wrong else ""
