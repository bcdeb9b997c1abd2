"""Sectors of a write or of a page, one word each: what became of them in a crash."""

from __future__ import annotations

from tornpage.vocabulary.model import TornWrite

__all__ = ["kept_sectors", "page_sectors", "sector_states"]

_LETTERS = {"n": "new", "o": "old", "s": "same", "x": "other"}


def sector_states(torn: TornWrite) -> list[str]:
    """Per sector of the write: "new" (reached the file), "old" (lost) or "same" (lost, but no loss)."""
    states = []
    # The first sector of an unaligned write is the rest of the file's sector that it starts in.
    start = 0
    end = torn.sector - torn.offset % torn.sector
    for kept in torn.kept:
        lost = torn.old[start:end] != torn.new[start:end] or not torn.new
        states.append("new" if kept == "1" else "old" if lost else "same")
        start, end = end, end + torn.sector
    return states


def kept_sectors(kept: str) -> list[str]:
    """Per sector of a torn write: "new" or "old"."""
    return ["new" if one == "1" else "old" for one in kept]


def page_sectors(letters: str) -> list[str]:
    """Per sector of evidence.PageView: "new", "old", "same", or "other" (neither old nor new)."""
    return [_LETTERS[letter] for letter in letters]
