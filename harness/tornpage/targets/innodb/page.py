"""A page of a MariaDB tablespace: where it says that it belongs, its LSN, and whether its checksum is right.

    0  checksum (classic), key version (full_crc32)      16  LSN, 8 bytes      26  ...
    4  page number                                       24  page type         34  space id
    size-8  classic: checksum, low half of the LSN       full_crc32: low half of the LSN, checksum

A page that is stored compressed (PAGE_COMPRESSED) has a header and, compressed, the whole page with its own:

    full_crc32  26 bytes of header, the page. The type is how many blocks of 256 bytes that are, with the
                highest bit set; their last four bytes are the checksum. The file's flags have the algorithm
    classic     38 bytes of header, two with a length, the page. A type of its own; 0xDEADBEEF is the
                checksum, the algorithm is at 26

Whatever the bytes are, they are read without an error.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from enum import StrEnum

import google_crc32c

__all__ = [
    "SIZES",
    "UNREAD",
    "Checksum",
    "Page",
    "crc32c",
    "doublewrite_blocks",
    "pages_per_extent",
    "read_page",
    "tablespace_page_size",
]

SIZES = (4096, 8192, 16384, 32768, 65536)
HEADER = 38
TRAILER = 8
NO_CHECKSUM = 0xDEADBEEF
FSP_FLAGS = 54
FLAG_FULL_CRC32 = 0x10
TYPE_INDEX = 17855
TYPE_COMPRESSED = 34354
"""FIL_PAGE_PAGE_COMPRESSED, of the classic format."""
COMPRESSED_BIT = 0x8000
COMPRESSED_BLOCK = 256
COMPRESSED_HEADER = 26
ZLIB = 1
"""PAGE_ZLIB_ALGORITHM."""
UNREAD = "unread"
"""The type of a page that is compressed by anything but zlib. What is in it, and its space, is not known."""
NO_SPACE = 0xFFFFFFFF
TYPES = {
    2: "undo", 3: "inode", 5: "bitmap", 6: "system", 7: "trx_sys", 8: "fsp", 9: "xdes", 10: "blob",
    17853: "rtree", 17854: "instant", TYPE_INDEX: "index",
}  # fmt: skip
DOUBLEWRITE = 200
"""From the end of the page TRX_SYS, which is page 5 of the system tablespace."""
DOUBLEWRITE_MAGIC = 536853855
EXTENT_BYTES = 1 << 20
PAGES_MIN = 64
MULTIPLIER = 1463735687
MULTIPLIER_2 = 1653893711


class Checksum(StrEnum):
    """Of which kind it is; the wrong one of a torn page is none of them."""

    FULL_CRC32 = "full_crc32"
    CRC32 = "crc32"
    INNODB = "innodb"
    NONE = "none"
    WRONG = "wrong"
    ZERO = "zero"


@dataclass(frozen=True, slots=True)
class Page:
    """type: UNREAD if only the server can read it; level: of an index page, else 0."""

    space: int
    number: int
    lsn: int
    type: str
    checksum: Checksum
    level: int = 0

    @property
    def whole(self) -> bool:
        """Its checksum is right; a page of zeros is none."""
        return self.checksum not in (Checksum.WRONG, Checksum.ZERO)


def read_page(data: bytes) -> Page:
    """data: a whole page, of a size in SIZES."""
    (kind,) = struct.unpack_from(">H", data, 24)
    if kind == TYPE_COMPRESSED:
        return _classic(data)
    size = (kind & ~COMPRESSED_BIT) * COMPRESSED_BLOCK
    if kind & COMPRESSED_BIT and COMPRESSED_HEADER + 4 < size < len(data):
        return _full_crc32(data, size) or _plain(data)
    return _plain(data)


def _plain(data: bytes) -> Page:
    number, lsn, kind = struct.unpack_from(">4xI8xQH", data)
    (space,) = struct.unpack_from(">I", data, 34)
    (level,) = struct.unpack_from(">H", data, HEADER + 26) if kind == TYPE_INDEX else (0,)
    name = TYPES.get(kind, f"type {kind}")
    return Page(space, number, lsn, name, _checksum(data), level)


def _full_crc32(data: bytes, size: int) -> Page | None:
    """That of which the first `size` bytes are the compressed form; None if they are none."""
    (last,) = struct.unpack_from(">I", data, size - 4)
    if last != crc32c(data[: size - 4]):
        return None
    number, lsn = struct.unpack_from(">4xI8xQ", data)
    plain = _inflated(data[COMPRESSED_HEADER:size], len(data))
    if plain is None:
        return Page(NO_SPACE, number, lsn, UNREAD, Checksum.FULL_CRC32)
    return replace(_plain(plain), number=number, lsn=lsn, checksum=Checksum.FULL_CRC32)


def _classic(data: bytes) -> Page:
    """The page in it has a checksum, what it is in has none."""
    head, number, lsn, algorithm = struct.unpack_from(">II8xQ2xQ", data)
    (length,) = struct.unpack_from(">H", data, HEADER)
    plain = _inflated(data[HEADER + 2 : HEADER + 2 + length], len(data))
    if head != NO_CHECKSUM or (plain is None and algorithm == ZLIB):
        return replace(_plain(data), checksum=Checksum.WRONG)
    if plain is None:
        return Page(NO_SPACE, number, lsn, UNREAD, Checksum.NONE)
    return _plain(plain)


def _inflated(data: bytes, size: int) -> bytes | None:
    """A page of this size; None: that is not what zlib has made of one."""
    try:
        plain = zlib.decompressobj().decompress(data, size)
    except zlib.error:
        return None
    return plain if len(plain) == size else None


def _checksum(data: bytes) -> Checksum:
    if not any(data):
        return Checksum.ZERO
    (head,) = struct.unpack_from(">I", data)
    (lsn_low,) = struct.unpack_from(">I", data, 20)
    first, last = struct.unpack_from(">II", data, len(data) - TRAILER)
    if first == lsn_low and last == crc32c(data[:-4]):
        return Checksum.FULL_CRC32
    if last != lsn_low:
        return Checksum.WRONG
    if head == first == NO_CHECKSUM:
        return Checksum.NONE
    parts = (data[4:26], data[HEADER:-TRAILER])
    if head == first == crc32c(parts[0]) ^ crc32c(parts[1]):
        return Checksum.CRC32
    if head == (_fold(parts[0]) + _fold(parts[1])) & 0xFFFFFFFF and first == _fold(data[:26]):
        return Checksum.INNODB
    return Checksum.WRONG


def crc32c(data: bytes | bytearray) -> int:
    """CRC-32C (Castagnoli)."""
    return int(google_crc32c.value(bytes(data)))


def _fold(data: bytes) -> int:
    """The checksum of before crc32: 64 bits wide, of which the lower half is stored."""
    fold = 0
    for byte in data:
        fold = (((fold ^ byte ^ MULTIPLIER_2) << 8) + fold ^ MULTIPLIER) + byte
        fold &= 0xFFFFFFFFFFFFFFFF
    return fold & 0xFFFFFFFF


def tablespace_page_size(data: bytes) -> int | None:
    """Of a file, by the flags in its first page; None where they make no sense."""
    if len(data) < FSP_FLAGS + 4:
        return None
    (flags,) = struct.unpack_from(">I", data, FSP_FLAGS)
    shift = flags & 0xF if flags & FLAG_FULL_CRC32 else flags >> 6 & 0xF
    size = 512 << shift if shift else 16384
    return size if size in SIZES else None


def pages_per_extent(page_size: int) -> int:
    """256 of 4k, 64 from 16k on."""
    return max(PAGES_MIN, EXTENT_BYTES // page_size)


def doublewrite_blocks(trx_sys: bytes) -> tuple[int, int] | None:
    """First pages of the two blocks of the doublewrite buffer; None: it has not been made."""
    magic, first, second = struct.unpack_from(">10xIII", trx_sys, len(trx_sys) - DOUBLEWRITE)
    return (first, second) if magic == DOUBLEWRITE_MAGIC else None
