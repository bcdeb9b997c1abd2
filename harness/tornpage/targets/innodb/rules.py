"""The rules on bytes that MariaDB's own writes must keep, on one recorded process.

    rule          invariant   broken by
    home_page     I5          a write that is no page of its place
    write_ahead   I4          a page with an LSN beyond the durable log
    dblwr_skip    I13         a page without a copy, unless it is the first write since the log initialised it
                              at or after the checkpoint
    area_sync     I22         a page whose copy is not fsynced
    area_reuse    I22         a copy that is overwritten before its page is fsynced
    index_load    I16         an INDEX_LOAD that is durable before its file is fsynced
    ckpt_pages    I19         a checkpoint that is durable while a page that it has passed is written and not
                              fsynced: the log that would repeat the change is not read any more

Numbered facts of MariaDB that they lean on:
 1. A page of zeros extends a file, and a write of part of a page is left to the states.
 2. From 10.5 on a page's first write since its initialisation needs no copy (MDEV-19738).
 3. What an fsync covers are the writes that ended before it began.
 4. The first page of a new file is written before any mini-transaction knows it, with LSN 0.
 5. A page's LSN is the end of its last mini-transaction. One that the log frees or initialises later needs
    no fsync.
 6. A copy may be ahead of the log, which the page waits for: recovery leaves out copies from beyond its end.
 7. Behind its end a block of the log holds what the buffer held before. Where that begins with groups that
    are whole, of the same lap, they look like more of the log, until the block is written again.
 8. A batch fills the area from its beginning, so behind a short one there are copies of earlier ones, perhaps
    of the same page. Recovery takes the newest that the log has reached (fact 6).
 9. What is in a page that is compressed by anything but zlib is not known. It is counted, and left to the
    states, as most compressed pages are by fact 1: no more of them is written than they have.
"""

from __future__ import annotations

import zlib
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tornpage.targets.innodb.log import LOG_FILE, Log, open_log
from tornpage.targets.innodb.page import (
    UNREAD,
    Checksum,
    doublewrite_blocks,
    pages_per_extent,
    read_page,
    tablespace_page_size,
)
from tornpage.targets.innodb.records import Kind
from tornpage.targets.innodb.spaces import SYSTEM, Spaces, Undo

__all__ = ["LOG_FILE", "SYSTEM", "Rules", "is_tablespace"]

TRX_SYS_PAGE = 5
PAGE_SIZE = 16384
GROUPS_MAX = 4096
"""Groups of the log that can be taken back: more than its last block can have."""

Told = Callable[[int, str, str], None]
"""Invariant, rule, what."""
Place = tuple[int, int]
"""Space and page number."""


def is_tablespace(path: str) -> bool:
    """Whether a file holds pages, by its name."""
    return path == SYSTEM or path.endswith(".ibd") or path.rpartition("/")[2].startswith("undo0")


@dataclass(slots=True)
class _Copy:
    """A page in the area. written: number of the event that wrote it; needed: its page is written, and
    that is not fsynced."""

    place: Place
    digest: int
    written: int
    synced: bool = False
    needed: bool = False


@dataclass(slots=True)
class _Init:
    """When the log last initialised a page, and whether it was written since."""

    lsn: int
    written: bool = False


@dataclass(slots=True)
class _Write:
    """Of a page, which no fsync of its file has covered. number: of its event; lsn: 0 if no checkpoint needs
    it, as one of zeros, or one that was told of; copy: that the page needs until then."""

    number: int
    place: Place = (0, 0)
    lsn: int = 0
    copy: _Copy | None = None


@dataclass(slots=True)
class Rules:
    """Feed it what the process did, in order. tell: called for each finding; doublewrite: configured.

    counters: pages that were doublewritten, first flushes without a copy, INDEX_LOADs, checkpoints.
    _groups: of the log, each with where the one before it ended.
    """

    tell: Told
    doublewrite: bool
    page_size: int = PAGE_SIZE
    durable: int = 0
    checkpoint: int = 0
    counters: Counter[str] = field(default_factory=Counter)
    _log: Log | None = None
    _areas: list[range] = field(default_factory=list)
    _slots: dict[int, _Copy] = field(default_factory=dict)
    _copies: dict[Place, list[_Copy]] = field(default_factory=dict)
    _inits: dict[Place, _Init] = field(default_factory=dict)
    _writes: dict[str, list[_Write]] = field(default_factory=dict)
    _freed: dict[Place, int] = field(default_factory=dict)
    _spaces: Spaces = field(default_factory=Spaces)
    _waiting: list[tuple[int, int, bytes]] = field(default_factory=list)
    _groups: deque[tuple[int, Undo]] = field(default_factory=lambda: deque(maxlen=GROUPS_MAX))
    _seq: int = 0

    def find(self, path: str, data: bytes) -> None:
        """A file that was there before: all of it is durable. The system tablespace comes first."""
        if path == LOG_FILE:
            self._open_log(data)
        elif is_tablespace(path):
            if path == SYSTEM:
                self.page_size = tablespace_page_size(data) or self.page_size
                self._learn_area(data)
            self._learn_space(path, data)

    @property
    def found(self) -> bool:
        """There is a log with a valid checkpoint."""
        return self._log is not None and self.checkpoint > 0

    def write(
        self, path: str, offset: int, data: bytes, seq: int = 0, *, durable: bool = False
    ) -> None:
        """One that succeeded. seq: number of its event; durable: by itself."""
        self._seq = seq
        if path == LOG_FILE:
            self._write_log(offset, data)
        elif is_tablespace(path) and self.found:
            size = self.page_size
            if offset % size or len(data) % size:
                return  # fact 1
            for at in range(0, len(data), size):
                write = _Write(seq)
                self._writes.setdefault(path, []).append(write)
                self._write_page(path, (offset + at) // size, data[at : at + size], write)

        if durable:
            self.sync(path, seq)

    def sync(self, path: str, began: int = 1 << 63) -> None:
        """An fsync or fdatasync that succeeded. began: number of the last event that had ended when it
        began (fact 3)."""
        if path == LOG_FILE:
            self._sync_log(began)
        late = []
        for write in self._writes.pop(path, []):
            if write.number > began:
                late.append(write)
            elif write.copy is not None:
                write.copy.needed = False
        if late:
            self._writes[path] = late
        if path == SYSTEM:
            for copy in self._slots.values():
                copy.synced = copy.synced or copy.written <= began

    def rename(self, old: str, new: str) -> None:
        """The file keeps what is known of it."""
        self._spaces.rename(old, new)
        self._lose(new)
        if old in self._writes:
            self._writes[new] = self._writes.pop(old)

    def remove(self, path: str) -> None:
        """The file is gone, and no write of it needs anything any more."""
        self._spaces.remove(path)
        self._lose(path)

    def _lose(self, path: str) -> None:
        for write in self._writes.pop(path, []):
            if write.copy is not None:
                write.copy.needed = False

    # ---- the log ----

    def _open_log(self, data: bytes) -> None:
        self._log = open_log(bytearray(data))
        if self._log is not None:
            self.checkpoint = self.durable = self._log.checkpoint()
            self._advance()

    def _write_log(self, offset: int, data: bytes) -> None:
        if self._log is None:
            return
        if offset + len(data) <= len(self._log.data):
            self._waiting.append((self._seq, offset, data))

    def _sync_log(self, began: int) -> None:
        if self._log is None:
            return
        waiting, self._waiting = self._waiting, []
        for seq, offset, data in waiting:
            if seq <= began:
                self._take_back(self._log, offset, data)
                self._log.data[offset : offset + len(data)] = data
            else:
                self._waiting.append((seq, offset, data))
        passed = self._log.checkpoint()
        self._advance()
        if passed > self.checkpoint:
            self.checkpoint = passed
            self.counters["checkpoints"] += 1
            self._check_passed()

    def _take_back(self, log: Log, offset: int, data: bytes) -> None:
        """Fact 7: the log does not go on where other bytes are written now."""
        old = log.data[offset : offset + len(data)]
        if log.framed or offset < log.first or old == data:
            return
        same = next(at for at, (a, b) in enumerate(zip(old, data, strict=True)) if a != b)
        lsn = log.lsn_at(offset + same, self.durable)
        while self.durable > lsn and self._groups:
            self.durable, undo = self._groups.pop()
            for take_back in reversed(undo):
                take_back()

    def _advance(self) -> None:
        """What was fsynced is durable as far as it is complete."""
        if self._log is None or not self.durable:
            return
        for group in self._log.groups(self.durable):
            undo: Undo = []
            self._groups.append((self.durable, undo))
            self.durable = group.end
            seen: set[Place] = set()
            for record in group.records:
                if record.kind in (Kind.INIT, Kind.FREE):
                    place = (record.space, record.page)
                    if place not in seen:  # before the group, not amid it
                        undo.append(self._as_before(place))
                    seen.add(place)
                    self._begin_or_end(place, record.kind)
                elif record.kind is Kind.INDEX_LOAD:
                    self.counters["index_loads"] += 1
                    self._check_load(record.space)
                else:
                    wrong = self._spaces.name(record, undo)
                    if wrong:
                        self.tell(5, "home_page", wrong)

    def _as_before(self, place: Place) -> Callable[[], None]:
        """What takes back all that a group says of a page; one that was written meanwhile was written."""
        init, freed = self._inits.get(place), self._freed.get(place, 0)

        def take_back() -> None:
            late = self._inits.pop(place, None)
            if init is not None:
                init.written = init.written or (late is not None and late.written)
                self._inits[place] = init
            self._freed[place] = freed

        return take_back

    def _begin_or_end(self, place: Place, kind: Kind) -> None:
        """The log, durable up to here, initialises or frees a page."""
        self._inits.pop(place, None)
        if kind is Kind.INIT:
            self._inits[place] = _Init(self.durable)
        else:
            self._freed[place] = self.durable

    def _check_load(self, space: int) -> None:
        dirty = [path for path in self._writes if self._spaces.of(path) == space]
        if dirty:
            self.tell(16, "index_load", f"{dirty[0]} is not fsynced, and INDEX_LOAD is durable")

    def _check_passed(self) -> None:
        """Each write is told once, all that a checkpoint has passed together."""
        lost = {}
        for path, writes in self._writes.items():
            for write in writes:
                if self._has_passed(write.place, write.lsn):
                    lost[path, write.place] = True
                    write.lsn = 0
        if lost:
            path, place = next(iter(lost))
            what = f"the checkpoint {self.checkpoint} has passed pages that are not fsynced"
            self.tell(19, "ckpt_pages", f"{what}: {len(lost)}, as page {place[1]} of {path}")
            self.counters["checkpoints_too_early"] += 1

    def _has_passed(self, place: Place, lsn: int) -> bool:
        """Whether the checkpoint lies behind what a page of this LSN holds, and nothing replaces it."""
        return 0 < lsn <= self.checkpoint and not self._is_replaced(place, lsn)

    def _is_replaced(self, place: Place, lsn: int) -> bool:
        """Fact 5."""
        init = self._inits.get(place)
        return self._freed.get(place, 0) > lsn or (init is not None and init.lsn > lsn)

    # ---- pages ----

    def _learn_space(self, path: str, data: bytes) -> None:
        page = read_page(data[: self.page_size]) if len(data) >= self.page_size else None
        self._spaces.find(path, page.space if page is not None and page.whole else None)

    def _learn_area(self, data: bytes) -> None:
        """Where the area is, and the copies in it."""
        size = self.page_size
        trx_sys = data[TRX_SYS_PAGE * size : (TRX_SYS_PAGE + 1) * size]
        blocks = doublewrite_blocks(trx_sys) if len(trx_sys) == size else None
        if blocks is None:
            return
        pages = pages_per_extent(size)
        self._areas = [range(block, block + pages) for block in blocks]
        for slot in (slot for area in self._areas for slot in area):
            image = data[slot * size : (slot + 1) * size]
            page = read_page(image) if len(image) == size else None
            if page is not None and page.whole:
                self._keep_copy(slot, _Copy((page.space, page.number), zlib.crc32(image), 0, True))

    def _write_page(self, path: str, number: int, data: bytes, write: _Write) -> None:
        page = read_page(data)
        if page.checksum is Checksum.ZERO:
            return  # fact 1
        if path == SYSTEM and any(number in area for area in self._areas):
            self._write_copy(number, page.space, page.number, data)  # fact 6
            return
        if page.type == UNREAD:
            self.counters["pages_unread"] += 1  # fact 9
            return
        space = self._spaces.of(path)
        if space is None and number == 0 and page.whole:
            space = self._spaces.claim(path, page.space)
        if not page.whole or (page.space, page.number) != (space, number):
            what = f"checksum {page.checksum}, says page {page.number} of space {page.space}"
            whose = f"of space {space}" if space is not None else "of no space that is known"
            self.tell(5, "home_page", f"page {number} of {path}, {whose}: {what}")
            return
        self._check_log(path, number, page.lsn)
        write.place, write.lsn = (page.space, number), page.lsn
        if self.doublewrite and page.lsn > 0:  # fact 4
            self._check_copy(path, data, write)
        init = self._inits.get(write.place)
        if init is not None:
            init.written = True

    def _check_log(self, path: str, number: int, lsn: int) -> None:
        if lsn > self.durable:
            what = f"page {number} of {path} has LSN {lsn}, durable is {self.durable}"
            self.tell(4, "write_ahead", what)

    def _write_copy(self, slot: int, space: int, number: int, data: bytes) -> None:
        old = self._slots.get(slot)
        if old is not None and old.needed:
            self.tell(
                22, "area_reuse",
                f"the copy of page {old.place[1]} of space {old.place[0]} is overwritten before its page "
                "is fsynced",
            )  # fmt: skip
        self._keep_copy(slot, _Copy((space, number), zlib.crc32(data), self._seq))

    def _keep_copy(self, slot: int, copy: _Copy) -> None:
        """In the place of what was there."""
        old = self._slots.get(slot)
        if old is not None and old in self._copies.get(old.place, ()):
            self._copies[old.place].remove(old)
        self._slots[slot] = copy
        self._copies.setdefault(copy.place, []).append(copy)

    def _check_copy(self, path: str, data: bytes, write: _Write) -> None:
        place, digest = write.place, zlib.crc32(data)
        copies = self._copies.pop(place, ())  # fact 8
        copy = next((copy for copy in reversed(copies) if copy.digest == digest), None)
        if copy is not None:
            if not copy.synced:
                self.tell(22, "area_sync", f"page {place[1]} of {path}: its copy is not fsynced")
            write.copy, copy.needed = copy, True
            self.counters["doublewritten"] += 1
            return
        init = self._inits.get(place)
        skips = self._log is not None and self._log.skips_first_flush
        if not skips or init is None or init.written or init.lsn < self.checkpoint:
            why = (
                "the log does not initialise it" if init is None
                else "it was written since the log initialised it" if init.written
                else "the checkpoint has passed its initialisation"
            )  # fmt: skip
            self.tell(13, "dblwr_skip", f"page {place[1]} of {path} has no copy: {why}")
        else:
            self.counters["first_flush_skips"] += 1
