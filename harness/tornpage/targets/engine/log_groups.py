"""The record groups that a write of the engine's redo log brings to the file, who made each, and the write as
it would have been if the log had ended behind one of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import google_crc32c

from tornpage.faults.stacks import Note
from tornpage.faults.trace import Op, Trace, parse_mark
from tornpage.targets.target import Part

__all__ = ["LogGroups"]

BLOCK = 512
HEADER = 12
CRC = 508
USED, FIRST_GROUP = 8, 10
GROUP = "log_group "
"""A note of engine/log/log_write.c: start=LSN end=LSN."""


class LogGroups:
    """Of one recording with contents."""

    def __init__(self, trace: Trace, notes: Iterable[Note]) -> None:
        """notes: of its log of call stacks."""
        self._trace = trace
        self._writes = {seq: (start, end) for seq, start, end in _log_writes(trace)}
        self._groups = [
            (int(facts["start"]), int(facts["end"]), note)
            for note in notes
            if note.text.startswith(GROUP)
            for facts in (parse_mark(note.text.encode()).facts,)
        ]

    def of(self, seq: int) -> tuple[Part, ...]:
        """The groups that this write completes, the oldest first; none if it writes no log."""
        first, last = self._writes.get(seq, (0, 0))
        return tuple(
            Part(f"the records of LSN {start} to {end}", end, note.event, note.stack)
            for start, end, note in self._groups
            if first < end <= last
        )

    def whole(self, seq: int, share: float) -> int:
        """Whose blocks are all in the first blocks of the write."""
        start, _ = self._writes[seq]
        blocks = round(share * len(self._trace.contents(seq))) // BLOCK
        behind = start - start % BLOCK + blocks * BLOCK
        full = behind + HEADER  # where a group ends that fills the last one
        return sum(part.end <= full for part in self.of(seq))

    def cut(self, seq: int, count: int) -> bytes:
        """What the write would have been behind so many of its groups."""
        start, _ = self._writes[seq]
        end = self.of(seq)[count - 1].end if count else start
        return cut_blocks(self._trace.contents(seq), start, end)


def cut_blocks(blocks: bytes, start: int, end: int) -> bytes:
    """Blocks of the log, the first of which holds the LSN `start`, as the log writer would have written them
    if the log ended at the LSN `end`: nothing of it lies behind. FORMAT.md, "Redo log file"."""
    first = start - start % BLOCK
    cut = bytearray(len(blocks))
    kept = end - first
    whole = kept // BLOCK * BLOCK
    cut[:whole] = blocks[:whole]
    used = kept - whole
    if used and whole < len(blocks):
        last = bytearray(blocks[whole : whole + used]) + bytes(BLOCK - used)
        struct.pack_into(">H", last, USED, used)
        if struct.unpack_from(">H", last, FIRST_GROUP)[0] >= used:
            struct.pack_into(">H", last, FIRST_GROUP, 0)
        struct.pack_into(">I", last, CRC, google_crc32c.value(bytes(last[:CRC])))
        cut[whole : whole + BLOCK] = last
    return bytes(cut)


def _log_writes(trace: Trace) -> Iterator[tuple[int, int, int]]:
    """Number of each write of the log, and the LSNs from which and to which it is new, as the last mark
    before it says."""
    told = None
    for event in trace.events(kinds=(Op.MARK, Op.WRITE)):
        if event.kind == Op.MARK:
            told = event if trace.tells(event, ("log_write",)) else told
        elif told is not None:
            facts = trace.mark(told).facts
            told = None
            yield event.seq, int(facts["start"]), int(facts["end"])
