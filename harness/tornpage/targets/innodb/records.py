"""Redo records of MariaDB 10.5 and later, as far as they say which page begins, ends or changes, and which
file.

A record begins with a byte: same page, type, length. A mini-transaction is a sequence of them, ended by a
byte 0 or 1. Space and page are not repeated in a run of records of one page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Kind", "Record", "end_of_group", "read_records"]

SAME_PAGE = 0x80
TYPE = 0x70
LENGTH = 0x0F
END_MAX = 1
STEPS = ((0x80, 0), (0xC0, 0x80), (0xE0, 0x4080), (0xF0, 0x204080), (0xF8, 0x10204080))
"""First bytes below these have no, one, two ... further bytes, and what they begin to count from."""


class Kind(StrEnum):
    """What a record does; of files their names are told."""

    FREE = "free"
    INIT = "init"
    CHANGE = "change"
    OPTION = "option"
    FILE_CREATE = "file_create"
    FILE_DELETE = "file_delete"
    FILE_RENAME = "file_rename"
    FILE_MODIFY = "file_modify"
    FILE_CHECKPOINT = "file_checkpoint"
    INDEX_LOAD = "index_load"


PAGE_KINDS = (Kind.FREE, Kind.INIT, *[Kind.CHANGE] * 4, Kind.OPTION, Kind.OPTION)
FILE_KINDS = {
    0x00: Kind.FILE_CREATE, 0x10: Kind.FILE_DELETE, 0x20: Kind.FILE_RENAME,
    0x30: Kind.FILE_MODIFY, 0x70: Kind.FILE_CHECKPOINT,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """name: of a file, of a rename both with a zero byte between."""

    kind: Kind
    space: int
    page: int
    name: bytes = b""


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends. ValueError."""
    if at >= len(data):
        raise ValueError("cut")
    first = data[at]
    for extra, (below, base) in enumerate(STEPS):
        if first < below:
            end = at + 1 + extra
            if end > len(data):
                raise ValueError("cut")
            top = first & (0xFF >> (extra + 1)) if extra < 4 else 0
            return base + int.from_bytes(bytes([top]) + data[at + 1 : end], "big"), end
    raise ValueError("no number")


def _body(data: bytes, at: int) -> tuple[int, int]:
    """Where the record that begins at `at` has its body, and where that ends. ValueError."""
    length = data[at] & LENGTH
    if length:
        return at + 1, at + 1 + length
    more, body = _number(data, at + 1)
    return body, body + more + 15 - (body - at - 1)


def end_of_group(data: bytes, start: int) -> int | None:
    """Where the byte stands that ends the mini-transaction that begins at `start`; None: it is not all
    there, or none begins there."""
    at = start
    try:
        while at < len(data):
            if data[at] <= END_MAX:
                return at if at > start else None
            body, end = _body(data, at)
            if end < body:
                return None
            at = end
    except ValueError:
        pass
    return None


def read_records(data: bytes) -> Iterator[Record]:
    """Of one mini-transaction without its end. ValueError where the bytes are none."""
    at = 0
    page: tuple[int, int] | None = None
    while at < len(data):
        first = data[at]
        body, end = _body(data, at)
        if end > len(data):
            raise ValueError("cut")
        if not first & SAME_PAGE:
            space, body = _number(data, body)
            number, body = _number(data, body)
            page = (space, number)
        if page is not None:
            yield Record(PAGE_KINDS[(first & TYPE) >> 4], *page)
        elif first & TYPE in FILE_KINDS:
            space, body = _number(data, body)
            number, body = _number(data, body)
            yield Record(FILE_KINDS[first & TYPE], space, number, data[body:end])
        else:
            raise ValueError("a page is meant that was not named")
        at = end
