"""Crashed images: the files of a data directory between the crash and the recovery.

Copying, and planting a stale log block behind the end of the log (I21).

May import: sparse.
"""

from __future__ import annotations

import os
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

from tornpage.faults.sparse import data_ranges

__all__ = ["PlantedBlock", "copy_image", "crc32c", "plant_stale_block", "remove_image", "soft_end"]

PART_BYTES = 1 << 20
LOG_FILE = "ib_logfile0"
BLOCK = 512
HEADER = 2048
START_LSN = 8192
SLOTS = (512, 1536)


@dataclass(frozen=True, slots=True)
class PlantedBlock:
    """A stale block that was planted at `offset` of the log file, over the bytes `original`."""

    offset: int
    original: bytes

    def remove(self, data: Path) -> None:
        """Puts back what was there, in this data directory."""
        _write_at(data / LOG_FILE, self.offset, self.original)


def _write_at(path: Path, offset: int, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(fd, data, offset)
    finally:
        os.close(fd)


def copy_image(source: Path, target: Path) -> None:
    """Copies a data directory (flat, or one level deep) to a new directory."""
    _copy_folder(source, target, memoryview(bytearray(PART_BYTES)))


def _copy_folder(source: Path, target: Path, room: memoryview) -> None:
    target.mkdir()
    with os.scandir(source) as entries:
        for entry in entries:
            place = target / entry.name
            if entry.is_dir(follow_symlinks=False):
                _copy_folder(Path(entry.path), place, room)
            else:
                _copy_file(Path(entry.path), place, room)


def _copy_file(source: Path, target: Path, room: memoryview) -> None:
    """Holes stay holes, and no file is in memory as a whole; its parts come through `room`."""
    old = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        new = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.truncate(new, os.fstat(old).st_size)
            for at, end in data_ranges(old):
                while at < end:
                    got = os.preadv(old, [room[: end - at]], at)
                    if not got:
                        return  # somebody cut it meanwhile
                    at += os.pwrite(new, room[:got], at)
        finally:
            os.close(new)
    finally:
        os.close(old)


def remove_image(path: Path) -> None:
    """Removes a directory tree that the harness made."""
    shutil.rmtree(path, ignore_errors=True)


def _crc_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_CRC = _crc_table()


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), for the few blocks that the harness makes itself."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _offset(lsn: int, area: int) -> int:
    return HEADER + (lsn - START_LSN) % area


def _checkpoint(log: bytes) -> int | None:
    """C of the newest valid slot; None if no slot is valid."""
    best: tuple[int, int] | None = None
    for offset in SLOTS:
        slot = log[offset : offset + BLOCK]
        if len(slot) == BLOCK and crc32c(slot[:508]) == struct.unpack_from(">I", slot, 508)[0]:
            number, lsn = struct.unpack_from(">QQ", slot, 4)
            best = max(best or (0, 0), (number, lsn))
    return best[1] if best else None


def soft_end(log: bytes) -> int | None:
    """LSN at which the first block after the checkpoint's begins that does not belong to the log.

    By block numbers and epochs only: our crash models keep a block of 512 bytes whole. None when no
    checkpoint slot is valid, or every block belongs to the log.
    """
    lsn = _checkpoint(log)
    area = len(log) - HEADER
    if lsn is None or area < BLOCK:
        return None
    at = lsn // BLOCK * BLOCK
    epoch = 0
    for _ in range(area // BLOCK):
        number, found = struct.unpack_from(">II", log, _offset(at, area))
        if number != at // BLOCK & 0xFFFFFFFF or found < epoch:
            return at
        epoch = found
        at += BLOCK
    return None


def plant_stale_block(data: Path, variant: int) -> PlantedBlock | None:
    """Overwrites the block behind the end of the log with a stale one whose checksum is right (I21).

    variant 0: a copy of an earlier block; 1: the same contents under the number that belongs there,
    with an epoch that is over. Returns None if nothing could be planted without touching the live
    part of the log.
    """
    path = data / LOG_FILE
    log = path.read_bytes()
    end = soft_end(log)
    checkpoint = _checkpoint(log)
    area = len(log) - HEADER
    if end is None or checkpoint is None:
        return None
    first = checkpoint // BLOCK * BLOCK
    if end - first < 2 * BLOCK or end + BLOCK - area > first:
        return None
    last_epoch = struct.unpack_from(">I", log, _offset(end - BLOCK, area) + 4)[0]
    donor = max(first, end - 2 * BLOCK)
    block = bytearray(log[_offset(donor, area) : _offset(donor, area) + BLOCK])
    if variant == 1:
        if last_epoch < 1:
            return None
        struct.pack_into(">II", block, 0, end // BLOCK & 0xFFFFFFFF, last_epoch - 1)
        struct.pack_into(">I", block, 508, crc32c(bytes(block[:508])))
    offset = _offset(end, area)
    _write_at(path, offset, bytes(block))
    return PlantedBlock(offset, log[offset : offset + BLOCK])
