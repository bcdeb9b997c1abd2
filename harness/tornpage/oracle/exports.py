"""Which table is exported when a crash comes: its file must then be the table, by itself (I28)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Export", "exported_in"]


@dataclass(frozen=True, slots=True)
class Export:
    """acked: the statement was acknowledged, so that file and .cfg must be there, and whole."""

    table: str
    acked: bool


def exported_in(exports: Mapping[int, str], low: int, high: int) -> Export | None:
    """The table that is exported at the newest prefix that may be there and has one. It is acknowledged if it
    is exported whichever of them is. exports: by prefix (Oracle.exports); low: that is acknowledged, whatever
    commits a crash may lose; high: as of judge()."""
    may_be = range(low, high + 1)
    table = next((exports[prefix] for prefix in reversed(may_be) if prefix in exports), None)
    if table is None:
        return None
    return Export(table, all(exports.get(prefix) == table for prefix in may_be))
