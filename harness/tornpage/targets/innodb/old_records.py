"""Redo records of MariaDB 10.2 to 10.4, as far as they must be known to walk over them.

A record begins with its type, with the highest bit set if it is all of its mini-transaction, and the page;
several records end with MULTI_REC_END. What follows depends on the type, and its length on what it says.
"""

from __future__ import annotations

from collections.abc import Callable

from tornpage.targets.innodb.records import Kind, Record

__all__ = ["read_group"]

SINGLE = 0x80
MULTI_REC_END = 31
DUMMY = 32
CHECKPOINT = 56
COMP = range(36, 47)
"""Types with a description of their index, but for the first two."""
COMP_WITHOUT_INDEX = (36, 37)
SQL_NULL = 0xFFFFFFFF
FILE_NAMES = {35: (1, 0), 47: (1, 4), 54: (2, 0), 55: (1, 0)}
"""Of records about files: how many names, and how many bytes before them."""
KINDS = {
    29: Kind.INIT, 59: Kind.INIT, 61: Kind.INDEX_LOAD, 35: Kind.FILE_DELETE, 47: Kind.FILE_CREATE,
    54: Kind.FILE_RENAME, 55: Kind.FILE_MODIFY,
}  # fmt: skip


class Reader:
    """A position in bytes. Every method raises ValueError where they end."""

    def __init__(self, data: bytes, at: int) -> None:
        """From `at` on."""
        self.data = data
        self.at = at

    def skip(self, length: int) -> bytes:
        """The bytes that are passed over."""
        end = self.at + length
        if end > len(self.data):
            raise ValueError("cut")
        passed = self.data[self.at : end]
        self.at = end
        return passed

    def fixed(self, length: int) -> int:
        """A number in so many bytes."""
        return int.from_bytes(self.skip(length), "big")

    def short(self) -> int:
        """A number of 32 bits that needs fewer bytes the smaller it is, or the nearer to the largest."""
        first = self.fixed(1)
        for bound, mask, more, base in (
            (0x80, 0x7F, 0, 0), (0xC0, 0x3F, 1, 0), (0xE0, 0x1F, 2, 0), (0xF0, 0x0F, 3, 0),
            (0xF8, 0, 4, 0), (0xFC, 0x03, 1, 0xFFFFFC00), (0xFE, 0x01, 2, 0xFFFE0000),
            (0x100, 0, 3, 0xFF000000),
        ):  # fmt: skip
            if first < bound:
                return base | (first & mask) << 8 * more | self.fixed(more)
        raise ValueError("no number")

    def long(self) -> None:
        """One of 64 bits: its upper half short, its lower half whole."""
        self.short()
        self.skip(4)


def _system_values(reader: Reader) -> None:
    reader.short()
    reader.skip(7)
    reader.long()


def _insert(reader: Reader) -> None:
    reader.skip(2)
    length = reader.short()
    if length & 1:
        reader.skip(1)
        reader.short()
        reader.short()
    reader.skip(length >> 1)


def _delete_mark(reader: Reader) -> None:
    reader.skip(2)
    _system_values(reader)
    reader.skip(2)


def _update(reader: Reader) -> None:
    reader.skip(1)
    _system_values(reader)
    reader.skip(3)
    for _ in range(reader.short()):
        reader.short()
        length = reader.short()
        if length != SQL_NULL:
            reader.skip(length)


def _offset_and_number(reader: Reader) -> None:
    reader.skip(2)
    reader.short()


def _offset_and_long(reader: Reader) -> None:
    reader.skip(2)
    reader.long()


def _text(reader: Reader) -> None:
    reader.skip(2)
    reader.skip(reader.fixed(2))


def _names(count: int, before: int = 0) -> Callable[[Reader], None]:
    def read(reader: Reader) -> None:
        reader.skip(before)
        for _ in range(count):
            reader.skip(reader.fixed(2))

    return read


def _bytes(length: int) -> Callable[[Reader], object]:
    return lambda reader: reader.skip(length)


def _copied(reader: Reader) -> None:
    reader.skip(reader.fixed(4))


BODIES: dict[int, Callable[[Reader], object]] = {
    1: _offset_and_number, 2: _offset_and_number, 4: _offset_and_number, 8: _offset_and_long,
    9: _insert, 10: _delete_mark, 11: _bytes(3), 13: _update, 14: _bytes(2), 15: _bytes(2), 16: _bytes(2),
    17: _copied, 18: _bytes(0), 19: _bytes(0), 20: _names(1), 21: _bytes(0), 22: Reader.short, 23: _bytes(0),
    24: Reader.long, 25: Reader.long, 26: _bytes(2), 27: _bytes(0), 29: _bytes(0), 30: _text,
    36: _bytes(2), 37: _bytes(0), 38: _insert, 39: _delete_mark, 40: _bytes(3), 41: _update, 42: _bytes(2),
    43: _bytes(2), 44: _bytes(2), 45: _copied, 46: _bytes(0),
    57: _bytes(0), 58: _bytes(0), 59: _bytes(0), 60: _bytes(8), 61: _bytes(8),
    **{kind: _names(*names) for kind, names in FILE_NAMES.items()},
}  # fmt: skip
"""By type, what stands behind the page and the index."""


def read_group(data: bytes, start: int) -> tuple[int, list[Record]] | None:
    """Where the mini-transaction ends that begins at `start`, and its records; None: it is not all there,
    or has a record of a type that is not known."""
    reader = Reader(data, start)
    records: list[Record] = []
    try:
        while True:
            first = reader.fixed(1)
            kind = first & ~SINGLE
            if kind == MULTI_REC_END and records:
                return reader.at, records
            if kind == DUMMY:
                return reader.at, records
            if kind == CHECKPOINT:
                reader.skip(8)
                return reader.at, records
            records.append(_record(reader, kind))
            if first & SINGLE:
                return reader.at, records
    except (ValueError, KeyError):
        return None


def _record(reader: Reader, kind: int) -> Record:
    space, page = reader.short(), reader.short()
    if kind in COMP and kind not in COMP_WITHOUT_INDEX:
        columns = reader.fixed(2)
        reader.skip(2 + 2 * columns)
    start = reader.at
    BODIES[kind](reader)
    body = reader.data[start : reader.at]
    return Record(KINDS.get(kind, Kind.CHANGE), space, page, _file_names(kind, body))


def _file_names(kind: int, body: bytes) -> bytes:
    """As Record has them, of a record about a file; of others what they hold."""
    if kind not in FILE_NAMES:
        return body
    count, before = FILE_NAMES[kind]
    reader = Reader(body, before)
    return b"\0".join(reader.skip(reader.fixed(2)).rstrip(b"\0") for _ in range(count))
