"""The stale block that is planted behind the end of the engine's log."""

from __future__ import annotations

import struct
from pathlib import Path

import google_crc32c
import pytest

from tornpage.targets.engine.stale_log import plant_stale_block, soft_end
from tornpage.vocabulary.errors import PlanError


def _sealed(body: bytes) -> bytes:
    body = body.ljust(508, b"\0")
    return body + struct.pack(">I", google_crc32c.value(body))


def make_log(blocks: dict[int, int], c: int, area_blocks: int = 8) -> bytes:
    """A log file of area_blocks blocks: number of a block -> its epoch; checkpoint at LSN c."""
    log = bytearray(2048 + 512 * area_blocks)
    log[512:1024] = _sealed(struct.pack(">IQQ", 1, 7, c))
    log[1536:2048] = _sealed(struct.pack(">IQQ", 1, 6, c - 1000))
    for number, epoch in blocks.items():
        at = 2048 + (number * 512 - 8192) % (512 * area_blocks)
        log[at : at + 512] = _sealed(struct.pack(">II", number, epoch) + b"payload")
    return bytes(log)


@pytest.mark.parametrize(
    ("blocks", "c", "end"),
    [
        ({16: 1, 17: 1, 18: 1}, 8204, 19 * 512),
        ({16: 1, 17: 1, 18: 1}, 17 * 512 + 20, 19 * 512),
        ({16: 1, 18: 1}, 8204, 17 * 512),
        ({16: 1, 17: 3, 18: 2}, 8204, 18 * 512),
        ({22: 1, 23: 1, 24: 2}, 22 * 512 + 12, 25 * 512),
    ],
)
def test_soft_end_is_where_numbers_or_epochs_break(
    blocks: dict[int, int], c: int, end: int
) -> None:
    """A wrong block number or a smaller epoch ends the log, also behind the wrap."""
    assert soft_end(make_log(blocks, c)) == end


@pytest.mark.parametrize("variant", [0, 1])
def test_stale_block_is_valid_but_foreign(tmp_path: Path, variant: int) -> None:
    """The planted block has a right checksum, and yet does not belong: the soft end stays."""
    log = make_log({16: 1, 17: 2, 18: 2}, 8204)
    (tmp_path / "ib_logfile0").write_bytes(log)
    planted = plant_stale_block(tmp_path, variant)
    assert planted is not None
    changed = (tmp_path / "ib_logfile0").read_bytes()
    at = 2048 + 3 * 512
    assert (changed[:at], changed[at + 512 :]) == (log[:at], log[at + 512 :])
    block = changed[at : at + 512]
    assert struct.unpack_from(">I", block, 508)[0] == google_crc32c.value(block[:508])
    number, epoch = struct.unpack_from(">II", block)
    assert (number, epoch) == ((17, 2) if variant == 0 else (19, 1))
    assert soft_end(changed) == 19 * 512
    planted.remove(tmp_path)
    assert (tmp_path / "ib_logfile0").read_bytes() == log


def test_nothing_is_planted_over_the_live_log(tmp_path: Path) -> None:
    """A full area leaves no room: the file stays as it is."""
    log = make_log(dict.fromkeys(range(16, 24), 1), 8204)
    (tmp_path / "ib_logfile0").write_bytes(log)
    assert plant_stale_block(tmp_path, 0) is None
    assert (tmp_path / "ib_logfile0").read_bytes() == log


def test_before_the_log_is_made_none_can_be_planted(tmp_path: Path) -> None:
    """A plan that asks for it is refused in words."""
    (tmp_path / "ib_logfile101").write_bytes(bytes(4096))
    with pytest.raises(PlanError, match="before the log is made"):
        plant_stale_block(tmp_path, 0)
