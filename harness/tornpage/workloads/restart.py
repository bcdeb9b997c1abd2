"""What a `restart` of the script language may set: the target's options, but for those that are fixed for
the life of a database, and those that its judges go by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["LOG_FORMAT", "RESTART_OPTIONS", "Numbers", "option_of"]

LOG_FORMAT = "log_format"
"""Converts the log, after a clean close only."""
_SWITCH = frozenset({"on", "ON", "1", "off", "OFF", "0"})
_COMPRESSION = frozenset({"none", "lz4", "zstd"})
_FORMATS = frozenset({"10.4", "10.5", "0"})
_NUMBER = re.compile(r"([0-9]{1,18})([kKmMgG]?)")
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30}


class Numbers(NamedTuple):
    """The least and the greatest number; of bytes, with k, m or g."""

    least: int
    most: int
    bytes: bool = False


RESTART_OPTIONS: Mapping[str, frozenset[str] | Numbers] = {
    LOG_FORMAT: _FORMATS,
    "buffer_pool_pages": Numbers(32, 1 << 20),
    "log_optimize_ddl": _SWITCH,
    "optimize_ddl_drain": _SWITCH,
    "dblwr_pages": Numbers(4, 256),
    "cleaner_interval": Numbers(0, 1_000_000),
    "purge_interval": Numbers(0, 1_000_000),
    "max_undo_log_size": Numbers(0, 64 << 30, bytes=True),
    "backup_interval": Numbers(0, 1_000_000),
    "scrub": _SWITCH,
    "page_compression": _COMPRESSION,
    "schedule_seed": Numbers(0, (1 << 32) - 1),
    "log_write_through": _SWITCH,
    "log_page_checksums": _SWITCH,
    "sort_buffer_size": Numbers(64 << 10, 64 << 30, bytes=True),
    "online_alter_log_max_size": Numbers(64 << 10, 64 << 30, bytes=True),
    "defragment_interval": Numbers(0, 1_000_000),
    "defragment_n_pages": Numbers(2, 32),
    "defragment_fill_factor": Numbers(70, 100),
    "defragment_fill_factor_n_recs": Numbers(1, 100),
    "recv_memory": Numbers(64 << 10, 64 << 30, bytes=True),
    "open_files": Numbers(2, 1 << 16),
}
"""By name, what it takes."""


def option_of(word: str, before: Mapping[str, str]) -> tuple[str, str]:
    """Name and value of OPTION=VALUE. Raises ValueError for what a restart cannot set, or has set already."""
    name, sep, value = word.partition("=")
    if not sep or name not in RESTART_OPTIONS or name in before:
        raise ValueError("OPTION=VALUE expected, of what a restart can set, and each once")
    if not _takes(RESTART_OPTIONS[name], value):
        raise ValueError(f"{name} does not take {value!r}")
    return name, value


def _takes(values: frozenset[str] | Numbers, value: str) -> bool:
    if isinstance(values, frozenset):
        return value in values
    match = _NUMBER.fullmatch(value)
    if match is None or (match[2] and not values.bytes):
        return False
    return values.least <= int(match[1]) << _SHIFTS[match[2].lower()] <= values.most
