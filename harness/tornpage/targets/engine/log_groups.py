"""The record groups that a write of the engine's redo log brings to the file, who made each, and the write as
it would have been if the log had ended behind one of them. Of a write of a page, who changed that last
without a record since it was written before, which the log does not bring back; else who made the group whose
end its LSN is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping

import google_crc32c

from tornpage.faults.stacks import Note
from tornpage.faults.trace import Op, Trace, parse_mark
from tornpage.targets.target import Part

__all__ = ["LogGroups"]

BLOCK = 512
HEADER = 12
CRC = 508
USED, FIRST_GROUP = 8, 10
Page = tuple[str, str]
"""Numbers of its space and of itself."""
GROUP = "log_group "
"""A note of engine/log/log_write.c: start=LSN end=LSN."""
UNLOGGED = "page_noredo "
"""A marker of engine/mtr/mtr.c, which is a note too: space=S page=P lsn=LSN."""


class LogGroups:
    """Of one recording with contents."""

    def __init__(self, trace: Trace, notes: Iterable[Note]) -> None:
        """notes: of its log of call stacks."""
        self._trace = trace
        self._writes = {
            seq: (int(facts["start"]), int(facts["end"]))
            for seq, facts in _told_writes(trace, "log_write")
        }
        self._pages: dict[int, tuple[Page, int, int]] = {}
        """Of each write its page, the LSN of that, and the number of the write of the same page before."""
        before: dict[Page, int] = {}
        for seq, facts in _told_writes(trace, "page_write"):
            page = facts["space"], facts["page"]
            self._pages[seq] = page, int(facts["lsn"]), before.get(page, 0)
            before[page] = seq
        self._groups: list[tuple[int, int, Note]] = []
        self._unlogged: dict[Page, list[Note]] = {}
        for note in notes:
            if note.text.startswith((GROUP, UNLOGGED)):
                facts = parse_mark(note.text.encode()).facts
                if note.text.startswith(GROUP):
                    self._groups.append((int(facts["start"]), int(facts["end"]), note))
                else:
                    page = facts["space"], facts["page"]
                    self._unlogged.setdefault(page, []).append(note)

    def of(self, seq: int) -> tuple[Part, ...]:
        """The groups that this write completes, the oldest first; none if it writes no log."""
        first, last = self._writes.get(seq, (0, 0))
        return tuple(_part(*group) for group in self._groups if first < group[1] <= last)

    def changer(self, seq: int) -> Part | None:
        """A change without a record counts before those that have one: a recovery makes these again."""
        if seq not in self._pages:
            return None
        page, lsn, before = self._pages[seq]
        unlogged = [note for note in self._unlogged.get(page, ()) if before < note.event < seq]
        if unlogged:
            last = unlogged[-1]
            at = int(parse_mark(last.text.encode()).facts["lsn"])
            return Part(f"a change without a record, at LSN {at}", at, last.event, last.stack)
        return next((_part(*group) for group in self._groups if group[1] == lsn), None)

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


def _part(start: int, end: int, note: Note) -> Part:
    return Part(f"the records of LSN {start} to {end}", end, note.event, note.stack)


def _told_writes(trace: Trace, verb: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Number of each write that a mark of this verb tells of, right before it, and what that says."""
    told = None
    for event in trace.events(kinds=(Op.MARK, Op.WRITE)):
        if event.kind == Op.MARK:
            told = event if trace.tells(event, (verb,)) else told
        elif told is not None:
            facts = trace.mark(told).facts
            told = None
            yield event.seq, facts
