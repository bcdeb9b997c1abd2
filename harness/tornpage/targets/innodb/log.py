"""The redo log of MariaDB as it lies in ib_logfile0: what of it is complete, from a checkpoint on.

10.8 and later: a header, checkpoints at 4096 and 8192, from 12288 on a ring of mini-transactions, each with
a byte that says in which lap it was written and its CRC-32C. 10.5 to 10.7: checkpoints at 512 and 1536, from
2048 on a ring of blocks of 512 bytes with a number and a CRC-32C; there LSNs count the frames of blocks too.
10.2 to 10.4: the same blocks with other records, and their place counts from the checkpoint's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tornpage.targets.innodb.old_records import read_group
from tornpage.targets.innodb.page import crc32c
from tornpage.targets.innodb.records import Record, end_of_group, read_records

__all__ = ["BLOCK", "LOG_FILE", "BlockLog", "Group", "Log", "is_block", "open_log"]

LOG_FILE = "ib_logfile0"
FORMAT_10_5 = 0x50485953
FORMAT_10_8 = 0x50687973
FORMATS_OLD = (1, 103, 104)
WINDOW = 1 << 16
WINDOW_MAX = 1 << 22
"""Bytes of a ring that are looked at first, for little of it is new; and more than a mini-transaction has."""
BLOCK = 512
BLOCK_HEADER = 12


@dataclass(frozen=True, slots=True)
class Group:
    """A mini-transaction. end: LSN behind it, which its pages carry."""

    start: int
    end: int
    records: tuple[Record, ...]


class Log:
    """A ring of mini-transactions. data: the file, which changes as it is written."""

    first = 12288
    slots = (4096, 8192)
    skips_first_flush = True
    """Its records allow that (MDEV-19738)."""
    framed = False
    """Whether something but the next bytes tells where it ends: without, what a buffer held before may look
    like more of it."""

    def __init__(self, data: bytearray) -> None:
        """data: from the header on."""
        self.data = data
        (self.first_lsn,) = struct.unpack_from(">Q", data, 8)

    @property
    def capacity(self) -> int:
        """Bytes of the ring."""
        return len(self.data) - self.first

    def lsn_at(self, offset: int, near: int) -> int:
        """Of the bytes there in the file, the one of all laps that lies nearest to `near`."""
        lsn: int = self.first_lsn + offset - self.first
        return lsn + (near - lsn + self.capacity // 2) // self.capacity * self.capacity

    def checkpoint(self) -> int:
        """LSN of the newest valid checkpoint, 0 if there is none."""
        found = [self._checkpoint(slot) for slot in self.slots]
        return max(found)

    def _checkpoint(self, slot: int) -> int:
        lsn, _end = struct.unpack_from(">QQ", self.data, slot)
        (crc,) = struct.unpack_from(">I", self.data, slot + 60)
        return int(lsn) if crc == crc32c(self.data[slot : slot + 60]) else 0

    def groups(self, lsn: int) -> Iterator[Group]:
        """Complete mini-transactions from one that begins at `lsn` on, at most a lap of them."""
        if lsn < self.first_lsn:
            return
        begin, window = lsn, WINDOW
        while lsn - begin < self.capacity:
            end = lsn
            for group in self._groups_in(lsn, min(window, self.capacity - (lsn - begin))):
                yield group
                end = group.end
            if end > lsn:
                lsn, window = end, WINDOW
            elif window < WINDOW_MAX:
                window *= 8
            else:
                return

    def _groups_in(self, lsn: int, window: int) -> Iterator[Group]:
        """Of so many bytes from there on."""
        ring = self._ring(lsn, window)
        at = 0
        while True:
            end = end_of_group(ring, at)
            if end is None or end + 5 > len(ring) or ring[end] != self._lap(lsn + end):
                return
            body = ring[at:end]
            if ring[end + 1 : end + 5] != crc32c(body).to_bytes(4, "big"):
                return
            try:
                records = tuple(read_records(body))
            except ValueError:
                return
            yield Group(lsn + at, lsn + end + 5, records)
            at = end + 5

    def _ring(self, lsn: int, window: int) -> bytes:
        at = self.first + (lsn - self.first_lsn) % self.capacity
        straight = bytes(self.data[at : at + window])
        return straight + bytes(self.data[self.first : self.first + window - len(straight)])

    def _lap(self, lsn: int) -> int:
        return int(1 - ((lsn - self.first_lsn) // self.capacity & 1))


class BlockLog(Log):
    """A ring of blocks."""

    first = 2048
    slots = (512, 1536)
    framed = True

    def _checkpoint(self, slot: int) -> int:
        _number, lsn = struct.unpack_from(">QQ", self.data, slot)
        (crc,) = struct.unpack_from(">I", self.data, slot + BLOCK - 4)
        return int(lsn) if crc == crc32c(self.data[slot : slot + BLOCK - 4]) else 0

    def groups(self, lsn: int) -> Iterator[Group]:
        """As of the other format."""
        stream, lsns = self._stream(lsn)
        at = 0
        while at < len(stream):
            found = self._group(stream, at)
            if found is None:
                return
            end, records = found
            yield Group(_lsn_at(lsns, at), _lsn_at(lsns, end), tuple(records))
            at = end

    def _group(self, stream: bytes, at: int) -> tuple[int, list[Record]] | None:
        """Where the mini-transaction ends that begins there, and what it holds."""
        if stream[at] == 0:
            return at + 1, []
        end = end_of_group(stream, at)
        try:
            return None if end is None else (end + 1, [*read_records(stream[at:end])])
        except ValueError:
            return None

    def _offset(self, block_lsn: int) -> int:
        return int(self.first + (block_lsn - self.first_lsn // BLOCK * BLOCK) % self.capacity)

    def _stream(self, lsn: int) -> tuple[bytes, list[tuple[int, int]]]:
        """What the blocks from `lsn` on hold, and of each where it begins in that, with its LSN."""
        parts: list[bytes] = []
        lsns: list[tuple[int, int]] = []
        used = 0
        at = lsn // BLOCK * BLOCK
        skipped = max(lsn - at, BLOCK_HEADER)
        for _ in range(self.capacity // BLOCK):
            offset = self._offset(at)
            block = bytes(self.data[offset : offset + BLOCK])
            if len(block) < BLOCK or not _right_block(block, at):
                break
            (length,) = struct.unpack_from(">H", block, 4)
            data = block[skipped : min(length, BLOCK - 4)]
            lsns.append((used, at + skipped))
            parts.append(data)
            used += len(data)
            if length < BLOCK:
                break
            at += BLOCK
            skipped = BLOCK_HEADER
        return b"".join(parts), lsns


class OldLog(BlockLog):
    """With the records of before 10.5."""

    skips_first_flush = False

    def __init__(self, data: bytearray) -> None:
        """Where its LSNs are is told by its checkpoint."""
        super().__init__(data)
        slot = max(self.slots, key=self._checkpoint)
        _number, self._known_lsn, self._known_offset = struct.unpack_from(">QQQ", data, slot)

    def _group(self, stream: bytes, at: int) -> tuple[int, list[Record]] | None:
        return read_group(stream, at)

    def _offset(self, block_lsn: int) -> int:
        known = self._known_lsn // BLOCK * BLOCK
        at = self._known_offset // BLOCK * BLOCK - self.first
        return int(self.first + (at + block_lsn - known) % self.capacity)


def is_block(data: bytes) -> bool:
    """A block of the ring: by its checksum."""
    return len(data) == BLOCK and data[BLOCK - 4 :] == crc32c(data[: BLOCK - 4]).to_bytes(4, "big")


def _right_block(block: bytes, lsn: int) -> bool:
    (number,) = struct.unpack_from(">I", block)
    wanted = (lsn // BLOCK & 0x3FFFFFFF) + 1
    return bool(number & 0x7FFFFFFF == wanted and is_block(block))


def _lsn_at(lsns: list[tuple[int, int]], at: int) -> int:
    start, lsn = next((pair for pair in reversed(lsns) if pair[0] <= at), lsns[0])
    return lsn + at - start


def open_log(data: bytearray) -> Log | None:
    """The log in these bytes; None: no format that is known, encrypted, or too short."""
    if len(data) < Log.first + BLOCK:
        return None
    (version,) = struct.unpack_from(">I", data)
    if version == FORMAT_10_8:
        return Log(data)
    if version == FORMAT_10_5:
        return BlockLog(data)
    return OldLog(data) if version in FORMATS_OLD else None
