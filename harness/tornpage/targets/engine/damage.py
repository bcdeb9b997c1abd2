"""Damage to a table's file that the scanner must see: the judge of kills is tried with it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["damage_tables"]

PAGES = 16
"""From page 1 on: the root of the table's first tree is among them."""
PLACE, LENGTH = 64, 64
"""Within a page, where a compressed one has something too."""


def damage_tables(data: Path, page_size: int) -> bool:
    """Damages pages of the first table, and takes all copies away. False: there is no table."""
    tables = sorted(data.glob("*.ibd"))
    if not tables:
        return False
    (data / "ib_dblwr").unlink(missing_ok=True)
    pages = bytearray(tables[0].read_bytes())
    for number in range(1, min(len(pages) // page_size, PAGES + 1)):
        at = number * page_size + PLACE
        pages[at : at + LENGTH] = bytes(byte ^ 0xFF for byte in pages[at : at + LENGTH])
    tables[0].write_bytes(pages)
    return True
