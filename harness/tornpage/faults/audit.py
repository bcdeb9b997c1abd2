"""The audit of a run: every system call that changed something below the data directory must be in the
recording.

`tornpage-audit` (faults/audit.c) follows all threads and processes of a run from outside, by ptrace, and
lists these calls. A call and its record are one to one: a call without one is a change that no crash state
shows, even if the bytes are as before in the end. faults/README.md has the form of the list.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from tornpage.faults.stream import is_ignored
from tornpage.faults.trace import Event, FilePaths, Op, Trace
from tornpage.vocabulary.errors import TraceError
from tornpage.vocabulary.paths import find_paths

__all__ = ["AUDITOR", "Audit", "AuditedCall", "audited_argv", "mapped_files", "unrecorded_call"]

AUDITOR = Path("faults", "tornpage-audit")
"""Inside a build folder."""
NOT_AUDITED = "not audited"
UNKNOWN = "?"
FIELDS = 12
SPOKEN = {"pwrite64": "pwrite"}
"""What people call a system call."""
OPEN_CHANGES = os.O_CREAT | os.O_TRUNC | os.O_TMPFILE & ~os.O_DIRECTORY
"""Flags of an open without which nothing is changed."""
OF_CONTENT = ("write", "sync", "sync_all", "truncate", "allocate")
WITHOUT_RECORD = ("map", "other", "mknod")
"""Kinds of which a file system records what comes of them: writes, or nothing that an image has."""
PART_BYTES = 1 << 19
"""The kernel passes a write of more than that, at most twice of it, on in parts."""
SYNCS = (Op.FSYNC, Op.FDATASYNC, Op.SYNC_DIR)


@dataclass(frozen=True, slots=True)
class AuditedCall:
    """A system call that has succeeded. name: as the kernel has it; kind: what it does; began, ended: numbers
    of events between which a recorder has recorded it; killed: its thread was before it came to another one;
    loaded: the preload was in its process; path, other: relative to the data directory, "" outside of it, "?"
    if nobody can tell; offset, length: in bytes."""

    name: str
    kind: str
    began: int
    ended: int
    killed: bool
    loaded: bool
    pid: int
    process: str
    path: str
    other: str
    offset: int
    length: int

    def describe(self) -> str:
        """Call, file and process, as "pwrite of main.db by store"."""
        name = SPOKEN.get(self.name, self.name)
        file = "" if self.path in ("", UNKNOWN) else f" of {self.path}"
        what = f"{name}{file} by {self.process}"
        if not self.loaded:
            what += (
                ", into which the recorder is not loaded: it is linked statically or set-user-id, or was "
                "started without its environment"
            )
        return what


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit has listed. missing: why there was none, "" if there was."""

    calls: tuple[AuditedCall, ...]
    missing: str

    @classmethod
    def load(cls, path: Path) -> Audit:
        """Reads the list of a run that has ended. TraceError if it is not whole."""
        try:
            lines = path.read_text("utf-8", "surrogateescape").splitlines()
        except OSError as error:
            raise TraceError(f"{path}: {error.strerror}") from error
        if not lines or lines[-1] != "end":
            raise TraceError(f"{path}: the audit has not come to its end")
        first, _, reason = lines[0].partition("\t")
        if first == NOT_AUDITED:
            return cls((), unquote(reason))
        return cls(tuple(_call_of(line) for line in lines[:-1]), "")


def _call_of(line: str) -> AuditedCall:
    words = [unquote(word, errors="surrogateescape") for word in line.split("\t")]
    if len(words) != FIELDS:
        raise TraceError(f"a line of the audit has {len(words)} fields: {line[:80]!r}")
    name, kind, began, ended, killed, loaded, pid, process, path, other, offset, length = words
    return AuditedCall(
        name=name,
        kind=kind,
        began=int(began),
        ended=int(ended),
        killed=killed == "1",
        loaded=loaded == "1",
        pid=int(pid),
        process=process,
        path=path,
        other=other,
        offset=int(offset),
        length=int(length),
    )


def audited_argv(argv: Sequence[str], data: Path, trace: Path, log: Path) -> tuple[str, ...]:
    """The same program, audited below data; trace: what its preload records; log: for the list."""
    auditor = find_paths().build / AUDITOR
    return (str(auditor), str(data.resolve()), str(trace), str(log), *argv)


def unrecorded_call(
    trace: Trace | None, audit: Audit, ignored: Sequence[str], *, below: bool = False
) -> AuditedCall | None:
    """The first call that changed something and is not in the recording of the same run (None: there is
    none). ignored: patterns of files of which nothing is wanted; below: the recorder is a file system."""
    left = [call for call in audit.calls if not _of_ignored(call, ignored)]
    if below:
        left = [replace(call, loaded=True) for call in left if call.kind not in WITHOUT_RECORD]
    else:  # nothing is there to be made durable before the first record
        left = [call for call in left if call.name != "sync" or call.began > 0]
    if trace is None:
        return min(left, key=lambda call: call.began, default=None)
    records = list(_records(trace, below=below))
    # Closest first: what is not recorded must not take the place of what is.
    for key in (_key, _key_anywhere):
        for near in (True, False):
            left, records = _match(left, records, key, near)
    if below:
        left = _match_parts(left, records)
    marks = [(event.seq, trace.text(event)) for event, _mark in trace.marks("unseen")]
    for call in sorted(left, key=lambda call: call.began):
        if not _is_told(call, marks) and not _is_cut_short(call, trace):
            return call
    return None


def mapped_files(audit: Audit, ignored: Sequence[str]) -> tuple[str, ...]:
    """Files that were changed, or could be, through shared mappings, by name. ignored: as above."""
    calls = (call for call in audit.calls if call.kind == "map" and not _of_ignored(call, ignored))
    return tuple(sorted({call.path for call in calls}))


def _of_ignored(call: AuditedCall, ignored: Sequence[str]) -> bool:
    """All names that it has below the data directory are."""
    names = [name for name in (call.path, call.other) if name]
    return all(name != UNKNOWN and is_ignored(name, ignored) for name in names)


@dataclass(frozen=True, slots=True)
class _Record:
    seq: int
    kind: str
    names: tuple[str, ...]
    place: tuple[int, ...]


def _records(trace: Trace, *, below: bool) -> Iterator[_Record]:
    """What the recording has of the kinds that an audit lists. below: a file system is not told that an open
    might have made the file."""
    paths = FilePaths()
    for event in trace.events():
        paths.see(trace, event)
        if event.result >= 0:
            kind, names, place = _facts(trace, event, paths, below=below)
            if kind:
                yield _Record(event.seq, kind, names, place)


def _facts(
    trace: Trace, event: Event, paths: FilePaths, *, below: bool
) -> tuple[str, tuple[str, ...], tuple[int, ...]]:
    by_path = {Op.OPEN: "open", Op.UNLINK: "unlink", Op.MKDIR: "mkdir", Op.SYNC_DIR: "sync"}
    if event.kind in by_path:
        changes = below or event.kind != Op.OPEN or event.offset & OPEN_CHANGES
        return (by_path[Op(event.kind)] if changes else ""), (trace.text(event),), ()
    if event.kind == Op.RENAME:
        return "rename", trace.renamed(event), ()
    if event.kind == Op.LINK:
        return "link", trace.renamed(event)[1:], ()
    if event.kind == Op.SYNC_ALL:
        return "sync_all", (), ()
    file = (paths[event.file],)
    if event.kind == Op.WRITE:
        return "write", file, (event.offset, event.result)
    if event.kind in SYNCS:
        return "sync", file, ()
    if event.kind == Op.TRUNCATE:
        return "truncate", file if event.file else (trace.text(event),), (event.offset,)
    if event.kind == Op.FALLOCATE:
        return "allocate", file, (event.offset, event.length)
    return "", (), ()


def _place(call: AuditedCall) -> tuple[int, ...]:
    if call.kind in ("write", "allocate"):
        return call.offset, call.length
    return (call.offset,) if call.kind == "truncate" else ()


def _names(call: AuditedCall) -> tuple[str, ...]:
    return (call.path, call.other) if call.kind == "rename" else (call.path,)


def _key(kind: str, names: tuple[str, ...], place: tuple[int, ...]) -> Hashable:
    return kind, names, place


def _key_anywhere(kind: str, names: tuple[str, ...], place: tuple[int, ...]) -> Hashable:
    """A file may have two names, and one that was replaced has none."""
    return (kind, place) if kind in OF_CONTENT else (kind, names, place)


def _match(
    calls: Iterable[AuditedCall],
    records: list[_Record],
    key: Callable[[str, tuple[str, ...], tuple[int, ...]], Hashable],
    near: bool,
) -> tuple[list[AuditedCall], list[_Record]]:
    """Takes out pairs of a call and a record that is behind its begin. near: and not behind the next call of
    its thread. What is left of both."""
    waiting: defaultdict[Hashable, deque[_Record]] = defaultdict(deque)
    for record in records:
        waiting[key(record.kind, record.names, record.place)].append(record)
    left = []
    for call in sorted(calls, key=lambda call: (call.ended, call.began)):
        queue = waiting[key(call.kind, _names(call), _place(call))]
        found = next(
            (
                index
                for index, record in enumerate(queue)
                if record.seq > call.began and not (near and record.seq > call.ended)
            ),
            None,
        )
        if found is None:
            left.append(call)
        else:
            del queue[found]
    rest = sorted((record for queue in waiting.values() for record in queue), key=lambda r: r.seq)
    return left, rest


def _match_parts(calls: Iterable[AuditedCall], records: Iterable[_Record]) -> list[AuditedCall]:
    """Without the large writes whose parts, one behind the other, are all there."""
    rest = [record for record in records if record.kind == "write"]
    left = []
    for call in calls:
        at, end, parts = call.offset, call.offset + call.length, list[_Record]()
        while call.kind == "write" and at < end and call.length > PART_BYTES:
            part = next((one for one in rest if _is_part(one, call, at, end)), None)
            if part is None:
                break
            parts.append(part)
            at += part.place[1]
            rest.remove(part)
        if not parts or at < end:
            left.append(call)
    return left


def _is_part(record: _Record, call: AuditedCall, at: int, end: int) -> bool:
    """What may be the part of a write that begins there."""
    offset, length = record.place
    return (
        record.names == _names(call)
        and record.seq > call.began
        and offset == at
        and 0 < length <= end - at
    )


def _is_told(call: AuditedCall, marks: Sequence[tuple[int, str]]) -> bool:
    """The preload itself says that it could not follow it."""
    return any(
        call.began < seq <= call.ended
        and text.rpartition(" path=")[2].replace("%20", " ") in (call.path, call.other, ".")
        for seq, text in marks
    )


def _is_cut_short(call: AuditedCall, trace: Trace) -> bool:
    """Its process was killed between the call and its record: a write that the recording knows to be under
    way, or a sync, of which nobody has learned that it had ended."""
    place = (call.offset, call.length)
    return call.killed and (
        call.kind in ("sync", "sync_all")
        or (
            call.kind == "write"
            and any((under.offset, under.length) == place for under in trace.under_way)
        )
    )
