"""What a write of MariaDB is for, by what is written."""

from __future__ import annotations

from tornpage.targets.innodb.log import BLOCK, LOG_FILE, BlockLog, Log, is_block
from tornpage.targets.innodb.page import SIZES, Checksum, Page, read_page
from tornpage.targets.innodb.rules import SYSTEM, is_tablespace
from tornpage.vocabulary.model import Site

__all__ = ["SITES", "site_of_write"]

OTHER_HEADERS = (3, 7)
"""Pages of the same type as a rollback segment's header: of the change buffer, and of the dictionary."""
SITES = frozenset(
    {
        Site.CHECKPOINT_HEADER, Site.REDO, Site.DOUBLEWRITE, Site.PAGE0, Site.UNDO_PAGE, Site.SYSTEM_PAGE,
        Site.DICT_PAGE, Site.INTERNAL_PAGE, Site.DATA_PAGE,
    }
)  # fmt: skip


def site_of_write(path: str, offset: int, data: bytes) -> Site | None:
    """None: of another file, or nothing that can be named."""
    if path == LOG_FILE:
        return (
            Site.REDO if offset >= Log.first or _is_block(offset, data) else Site.CHECKPOINT_HEADER
        )
    if not is_tablespace(path) or not data:
        return None
    page = _first_page(data)
    if page is None:
        return Site.PAGE0 if offset == 0 else None
    if path == SYSTEM and (page.space != 0 or page.number * _size(data) != offset):
        return Site.DOUBLEWRITE
    return Site.PAGE0 if offset == 0 else _site_of(page, path)


def _is_block(offset: int, data: bytes) -> bool:
    """Of a ring of blocks, which begins before the checkpoints of the newer format end: told by its bytes."""
    return offset >= BlockLog.first and is_block(data[:BLOCK])


def _site_of(page: Page, path: str) -> Site:
    if page.type == "undo" or _heads_rollback_segment(page, path):
        return Site.UNDO_PAGE
    if page.type == "blob":
        return Site.DATA_PAGE
    if page.type != "index":
        return Site.SYSTEM_PAGE
    if path == SYSTEM:
        return Site.DICT_PAGE
    return Site.INTERNAL_PAGE if page.level else Site.DATA_PAGE


def _heads_rollback_segment(page: Page, path: str) -> bool:
    """There are 128, which would hide the few other pages of the system tablespace."""
    return page.type == "system" and path == SYSTEM and page.number not in OTHER_HEADERS


def _size(data: bytes) -> int:
    """Of the first page that is whole; a batch of the doublewrite buffer has many."""
    return next((size for size in SIZES if size <= len(data) and _whole(data[:size])), 0)


def _whole(data: bytes) -> bool:
    return read_page(data).checksum not in (Checksum.WRONG, Checksum.ZERO)


def _first_page(data: bytes) -> Page | None:
    size = _size(data)
    return read_page(data[:size]) if size else None
