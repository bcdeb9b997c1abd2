"""A stale block behind the end of the engine's redo log: recovery must not read it (I21)."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

import google_crc32c

from tornpage.vocabulary.errors import PlanError

__all__ = ["LOG_FILE", "PlantedBlock", "plant_stale_block", "soft_end"]

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
    file: str = LOG_FILE

    def remove(self, data: Path) -> None:
        """Puts back what was there, in this data directory."""
        _write_at(data / self.file, self.offset, self.original)


def _write_at(path: Path, offset: int, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(fd, data, offset)
    finally:
        os.close(fd)


def _offset(lsn: int, area: int) -> int:
    return HEADER + (lsn - START_LSN) % area


def _checkpoint(log: bytes) -> int | None:
    """C of the newest valid slot; None if no slot is valid."""
    best: tuple[int, int] | None = None
    for offset in SLOTS:
        slot = log[offset : offset + BLOCK]
        if (
            len(slot) == BLOCK
            and google_crc32c.value(slot[:508]) == struct.unpack_from(">I", slot, 508)[0]
        ):
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
    part of the log. PlanError: there is no log.
    """
    path = data / LOG_FILE
    if not path.is_file():
        raise PlanError(
            f"stale_log: the crash leaves no {LOG_FILE}: it comes before the log is made"
        )
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
        struct.pack_into(">I", block, 508, google_crc32c.value(bytes(block[:508])))
    offset = _offset(end, area)
    _write_at(path, offset, bytes(block))
    return PlantedBlock(offset, log[offset : offset + BLOCK])
