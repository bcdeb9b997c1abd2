"""Pages of 4 KiB as MariaDB writes them, and its log of 10.8."""

from __future__ import annotations

import struct

from tornpage.targets.innodb.page import crc32c

__all__ = [
    "FIRST_LSN",
    "FREE",
    "INIT",
    "RING",
    "SIZE",
    "checkpoint",
    "classic",
    "full_crc32",
    "group",
    "log_file",
    "page",
    "with_crc32",
]

SIZE = 4096
FIRST_LSN = 12288
RING = 8192
INIT = b"\x12\x05\x09"
"""Initialises page 9 of space 5."""
FREE = b"\x02\x05\x09"


def page(space: int, number: int, lsn: int, kind: int = 17855, fill: bytes = b"") -> bytes:
    """With a right checksum (full_crc32)."""
    data = bytearray(SIZE)
    struct.pack_into(">4xI8xQH", data, 0, number, lsn, kind)
    struct.pack_into(">I", data, 34, space)
    data[100 : 100 + len(fill)] = fill
    struct.pack_into(">I", data, SIZE - 8, lsn & 0xFFFFFFFF)
    struct.pack_into(">I", data, SIZE - 4, crc32c(data[:-4]))
    return bytes(data)


def with_crc32(plain: bytes) -> bytes:
    """The page with the checksum of 10.2."""
    data = bytearray(plain)
    checksum = crc32c(data[4:26]) ^ crc32c(data[38:-8])
    struct.pack_into(">I", data, 0, checksum)
    struct.pack_into(">I4s", data, SIZE - 8, checksum, plain[20:24])
    return bytes(data)


def full_crc32(plain: bytes, payload: bytes) -> bytes:
    """The page as it is stored compressed since 10.5. payload: what an algorithm has made of it."""
    blocks = -(-(26 + len(payload) + 4) // 256)
    data = bytearray(plain[:26] + payload + bytes(blocks * 256 - 26 - len(payload)))
    struct.pack_into(">H", data, 24, 0x8000 | blocks)
    struct.pack_into(">I", data, len(data) - 4, crc32c(data[:-4]))
    return bytes(data) + bytes(SIZE - len(data))


def classic(plain: bytes, payload: bytes, algorithm: int = 1) -> bytes:
    """The same before."""
    head = bytearray(plain[:38])
    struct.pack_into(">I", head, 0, 0xDEADBEEF)
    struct.pack_into(">HQ", head, 24, 34354, algorithm)
    data = bytes(head) + struct.pack(">H", len(payload)) + payload
    return data + bytes(SIZE - len(data))


def group(records: bytes, lap: int = 1) -> bytes:
    """A mini-transaction of the log."""
    return records + bytes([lap]) + crc32c(records).to_bytes(4, "big")


def checkpoint(lsn: int) -> bytes:
    """A slot with it."""
    slot = bytearray(64)
    struct.pack_into(">QQ", slot, 0, lsn, lsn)
    struct.pack_into(">I", slot, 60, crc32c(slot[:60]))
    return bytes(slot)


def log_file(ring: bytes, size: int = RING) -> bytearray:
    """With a checkpoint at its first LSN. size: of the ring."""
    data = bytearray(12288 + size)
    struct.pack_into(">IIQ", data, 0, 0x50687973, 0, FIRST_LSN)
    data[4096 : 4096 + 64] = checkpoint(FIRST_LSN)
    data[12288 : 12288 + len(ring)] = ring
    return data
