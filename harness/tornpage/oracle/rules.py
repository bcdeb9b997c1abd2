"""The frame of the trace invariants: one walk over a trace feeds many small rules.

A rule has a method `mark_VERB(facts)` for each marker and `op_KIND(event, path)` for each kind of I/O
event that it wants to see, and reports what it finds. All rules share a LogState, which is fed
first: what is durable is derived from the writes and fsyncs themselves, not from what the engine says.

May import: model, trace.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tornpage.faults.trace import Event, FilePaths, Op, Trace
from tornpage.vocabulary.model import Source, Violation

__all__ = [
    "LOG_FILE",
    "LOG_FILES",
    "Finding",
    "LogState",
    "PageKey",
    "Rule",
    "Setting",
    "page_key",
    "walk",
]

LOG_FILE = "ib_logfile0"
LOG_FILES = frozenset({LOG_FILE, "ib_logfile101"})
"""The log has the second name while a new database is being made."""
LOG_BLOCK = 512
LOG_BLOCK_HEADER = 12
"""An LSN with this offset in its block is the first of the block: no byte of the block precedes it."""
LOG_HEADER = 2048
LOG_START_LSN = 8192

Facts = Mapping[str, str]
PageKey = tuple[int, int]
"""Space id, page number."""


def page_key(facts: Facts) -> PageKey:
    """Which page a marker is about."""
    return int(facts["space"]), int(facts["page"])


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation and the number of the event that showed it."""

    seq: int
    violation: Violation


@dataclass(frozen=True, slots=True)
class Setting:
    """What the rules must know of the target: sizes in bytes, doublewrite configured, and whether each
    commit is fsynced before it is acknowledged (flush_log_at_trx_commit=1)."""

    page_size: int
    log_size: int
    doublewrite: bool = True
    durable_commits: bool = True


class LogState:
    """What of the log is written, durable and in force, according to the I/O events.

    written, durable: LSN up to which the file holds the log, and holds it durably. checkpoint: C in
    force, i.e. of the newest slot that was fsynced; None before the first. recv_end: where recovery found
    the end of the log; None if there was none. found: what the rules report at the present event.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.written = 0
        self.durable = 0
        self.checkpoint: int | None = None
        self.recv_end: int | None = None
        self.found: list[Violation] = []
        self._at = 0
        self._end = 0
        self._slot: int | None = None
        self._slot_written: int | None = None
        self._base_known = False

    def offset_of(self, lsn: int) -> int:
        """Where in the log file the block of this LSN lies."""
        area = self.setting.log_size - LOG_HEADER
        return LOG_HEADER + (lsn - LOG_START_LSN) // LOG_BLOCK * LOG_BLOCK % area

    def mark_log_write(self, facts: Facts) -> None:
        """The log blocks that the next writes hold."""
        self._base_known = True
        self._at = int(facts["start"]) // LOG_BLOCK * LOG_BLOCK
        self._end = int(facts["end"])

    def mark_log_durable(self, facts: Facts) -> None:
        """Before the first write: where the log that was found in the file ends."""
        if not self._base_known:
            self._base_known = True
            self.written = self.durable = int(facts["lsn"])

    def mark_checkpoint(self, facts: Facts) -> None:
        """The checkpoint that the next slot write holds."""
        self._slot = int(facts["c"])

    def mark_recv_start(self, facts: Facts) -> None:
        """What recovery has read from the file was written there: it counts as durable."""
        self._base_known = True
        self.recv_end = int(facts["end"])
        self.checkpoint = int(facts["c"])
        self.written = max(self.written, self.recv_end)
        self.durable = max(self.durable, self.recv_end)

    def announced(self) -> tuple[int, int]:
        """LSN of the block that the next log write starts with, and end of what was announced."""
        return self._at, self._end

    def op_write(self, event: Event, path: str) -> None:
        """Follows writes of the log file."""
        if path not in LOG_FILES or event.result < 0:
            return
        if event.offset < LOG_HEADER:
            self._slot_written = self._slot
            return
        self._at += event.length
        empty_tail = LOG_BLOCK_HEADER if self._end % LOG_BLOCK == LOG_BLOCK_HEADER else 0
        if self._at >= self._end - empty_tail:
            self.written = max(self.written, self._end)

    def op_fsync(self, event: Event, path: str) -> None:
        """Follows fsyncs of the log file."""
        if path not in LOG_FILES or event.result < 0:
            return
        self.durable = max(self.durable, self.written)
        if self._slot_written is not None:
            self.checkpoint = self._slot_written
            self._slot_written = None


class Rule:
    """Base of a rule. numbers: invariants it reports; blind: what it does not verify."""

    numbers: ClassVar[tuple[int, ...]] = ()
    blind: ClassVar[str] = ""

    def __init__(self, log: LogState) -> None:
        self.log = log

    def report(self, number: int, what: str, path: str = "") -> None:
        """Notes a violation at the present event."""
        self.log.found.append(Violation(number, what, path=path, source=Source.RULE))


_OPS: dict[int, str] = {
    Op.OPEN: "op_open",
    Op.CLOSE: "op_close",
    Op.READ: "op_read",
    Op.WRITE: "op_write",
    Op.FSYNC: "op_fsync",
    Op.FDATASYNC: "op_fsync",
    Op.TRUNCATE: "op_truncate",
    Op.RENAME: "op_rename",
    Op.UNLINK: "op_unlink",
    Op.SYNC_DIR: "op_sync_dir",
}
_PATH_IN_RECORD = frozenset({Op.OPEN, Op.UNLINK, Op.SYNC_DIR, Op.RENAME})


def walk(trace: Trace, log: LogState, rules: Iterable[Rule]) -> list[Finding]:
    """Feeds all events of a trace to the log state and the rules; returns what they found, in order.

    op_ methods get the path of the file: for RENAME "old\\0new", for CLOSE, READ, WRITE and syncs the
    path that the file has at that moment.
    """
    listeners = [log, *rules]
    marks = _methods("mark_", listeners)
    ops = _methods("op_", listeners)
    handlers = {kind: ops[name] for kind, name in _OPS.items() if name in ops}
    findings: list[Finding] = []
    paths = FilePaths()
    for event in trace.events():
        kind = event.kind
        if kind == 13:  # Op.MARK: most events are
            mark = trace.mark(event)
            for handle in marks.get(mark.verb, ()):
                handle(mark.facts)
        elif kind in _PATH_IN_RECORD:
            paths.see(trace, event)
            path = _path_in(trace, event)
            for handle in handlers.get(kind, ()):
                handle(event, path)
        elif kind in handlers:
            path = paths[event.file]
            for handle in handlers[kind]:
                handle(event, path)
        if log.found:
            findings.extend(Finding(event.seq, violation) for violation in log.found)
            log.found.clear()
    return findings


def _path_in(trace: Trace, event: Event) -> str:
    return "\0".join(trace.renamed(event)) if event.kind == Op.RENAME else trace.text(event)


@functools.cache
def _names(cls: Any, prefix: str) -> tuple[str, ...]:
    return tuple(name for name in dir(cls) if name.startswith(prefix))


def _methods(prefix: str, objects: Iterable[object]) -> dict[str, list[Callable[..., None]]]:
    found: dict[str, list[Callable[..., None]]] = {}
    for item in objects:
        kind: Any = type(item)
        for name in _names(kind, prefix):
            key = name if prefix == "op_" else name.removeprefix(prefix)
            found.setdefault(key, []).append(getattr(item, name))
    return found
