"""Files with holes: what takes room in one, and one in memory that takes no more."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["SparseFile", "data_ranges"]

PART_BYTES = 1 << 16


def data_ranges(fd: int) -> Iterator[tuple[int, int]]:
    """Where the open file has data: first byte of each range, and the one behind it."""
    at, size = 0, os.fstat(fd).st_size
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return
        end = os.lseek(fd, at, os.SEEK_HOLE)
        yield at, end
        at = end


class SparseFile:
    """The bytes of a file; parts that were never written are zeros and take no room."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: dict[int, bytearray] = {}

    @classmethod
    def read(cls, path: Path) -> SparseFile:
        """What the file holds now."""
        content = cls()
        with path.open("rb", buffering=0) as file:
            for start, end in data_ranges(file.fileno()):
                for at in range(start, end, PART_BYTES):
                    content.write(at, os.pread(file.fileno(), min(PART_BYTES, end - at), at))
            content.size = os.fstat(file.fileno()).st_size
        return content

    def write(self, offset: int, data: bytes | bytearray) -> None:
        """Over what is there, behind it, or far behind it."""
        at = 0
        while at < len(data):
            number, start = divmod(offset + at, PART_BYTES)
            piece = data[at : at + PART_BYTES - start]
            part = self._parts.get(number)
            if part is None:
                part = self._parts[number] = bytearray(PART_BYTES)
            part[start : start + len(piece)] = piece
            at += len(piece)
        if data:
            self.size = max(self.size, offset + len(data))

    def save(self, path: Path) -> None:
        """As a new file, with holes where nothing was written."""
        with path.open("xb") as file:
            for number, part in sorted(self._parts.items()):
                file.seek(number * PART_BYTES)
                file.write(part)
            file.truncate(self.size)

    def take_over(self, other: SparseFile, start: int, end: int) -> None:
        """What the other file has in these bytes, as far as it reaches."""
        end = min(end, other.size)
        zeros = bytearray(PART_BYTES)
        for number in range(start // PART_BYTES, -(-end // PART_BYTES)):
            base = number * PART_BYTES
            first, last = max(start - base, 0), min(end - base, PART_BYTES)
            self.write(base + first, other._parts.get(number, zeros)[first:last])

    def zero(self, start: int, end: int) -> None:
        """These bytes, as far as they lie in the file; its size stays."""
        end = max(min(end, self.size), start)
        for number in [
            n for n in self._parts if start < (n + 1) * PART_BYTES and n * PART_BYTES < end
        ]:
            base = number * PART_BYTES
            first, last = max(start - base, 0), min(end - base, PART_BYTES)
            if last - first == PART_BYTES:
                del self._parts[number]
            else:
                self._parts[number][first:last] = bytes(last - first)

    def resize(self, size: int) -> None:
        """Cuts, or grows with zeros."""
        self.zero(size, self.size)
        self.size = size

    def difference(self, other: SparseFile) -> tuple[int, int] | None:
        """The first and the last byte that are others, of files of one size; None: all are the same."""
        zeros = bytearray(PART_BYTES)
        wrong = []
        for number in sorted({*self._parts, *other._parts}):
            mine, others = self._parts.get(number, zeros), other._parts.get(number, zeros)
            if mine != others:
                wrong += [
                    number * PART_BYTES + i for i, byte in enumerate(mine) if byte != others[i]
                ]
        return (wrong[0], wrong[-1]) if wrong else None
