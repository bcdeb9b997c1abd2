"""Rules about page writes: doublewrite (I13, I22), freed pages (I15), non-logged loads (I16).

May import: model, rules, rules_log, trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tornpage.faults.trace import Event
from tornpage.oracle.rules import LOG_FILES, LogState, PageKey, Rule, page_key
from tornpage.oracle.rules_log import is_data_file

__all__ = ["DoublewriteOrder", "DoublewriteSkip", "FreedPages", "IndexLoad"]

DBLWR_FILE = "ib_dblwr"
Facts = Mapping[str, str]


def _name(key: PageKey) -> str:
    return f"page {key[0]}:{key[1]}"


class DoublewriteSkip(Rule):
    """I13: a page goes home without doublewrite only at the first write since an initialisation that was
    logged after the checkpoint in force, and only in a space that was never non-logged; nor may a space
    become non-logged while such an initialisation is still needed."""

    numbers = (13,)
    blind = "whether redo really rebuilds the skipped page (the oracle and the scanner see that)"

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._fresh: dict[PageKey, int] = {}
        self._nonlogged: set[int] = set()
        self._skipped: dict[int, int] = {}

    def mark_page_init(self, facts: Facts) -> None:
        """A logged initialisation: the next write may skip."""
        self._fresh[page_key(facts)] = int(facts["lsn"])

    def mark_recv_create(self, facts: Facts) -> None:
        """Recovery initialised the page from such a record."""
        self._fresh[page_key(facts)] = int(facts["init_lsn"])

    def mark_recv_read(self, facts: Facts) -> None:
        """An INDEX_LOAD lies in the log: the space was non-logged."""
        if facts["why"] == "index_load":
            self._become_nonlogged(int(facts["space"]))

    def mark_nonlogged(self, facts: Facts) -> None:
        """Redo is off for a page of the space."""
        self._become_nonlogged(int(facts["space"]))

    def mark_page_noredo(self, facts: Facts) -> None:
        """A page was changed without redo."""
        self._fresh.pop(page_key(facts), None)
        self._become_nonlogged(int(facts["space"]))

    def _become_nonlogged(self, space: int) -> None:
        if space in self._nonlogged:
            return
        self._nonlogged.add(space)
        needed = self._skipped.get(space, 0)
        if needed > (self.log.checkpoint or 0):
            what = f"space {space} becomes non-logged, a page initialised at {needed} skipped doublewrite"
            self.report(13, f"{what} and the checkpoint is at {self.log.checkpoint}")

    def mark_page_write(self, facts: Facts) -> None:
        """Before a home write."""
        key = page_key(facts)
        fresh = self._fresh.pop(key, None)
        if facts["dblwr"] == "used":
            return
        if facts["why"] == "off":
            if self.log.setting.doublewrite:
                self.report(13, f"{_name(key)} written without doublewrite, which is on")
            return
        if key[0] in self._nonlogged:
            self.report(13, f"{_name(key)} skips doublewrite in a space with non-logged pages")
        elif fresh is None:
            self.report(
                13, f"{_name(key)} skips doublewrite without an initialisation since its last write"
            )
        elif fresh != int(facts["init_lsn"]):
            self.report(13, f"{_name(key)} was initialised at {fresh}, not at {facts['init_lsn']}")
        elif self.log.checkpoint is not None and fresh <= self.log.checkpoint:
            what = f"{_name(key)} skips doublewrite, its initialisation at {fresh}"
            self.report(13, f"{what} is not after the checkpoint at {self.log.checkpoint}")
        else:
            self._skipped[key[0]] = max(self._skipped.get(key[0], 0), fresh)


class FreedPages(Rule):
    """I15: between its free and its next initialisation a page is not read, applied to or written, and its
    changes are given up only when its free is durable."""

    numbers = (15,)
    blind = (
        "reads by recovery before its free records are known, and reads of several pages at once"
    )

    def __init__(self, log: LogState, noredo: Sequence[tuple[int, PageKey]] = ()) -> None:
        """noredo: for a recovery, (LSN, page) of what the run before it changed without redo: such a page
        is in use again although the log's last word on it is a free."""
        super().__init__(log)
        self._noredo = noredo
        self._reused: dict[PageKey, int] = {}
        self._freed: dict[PageKey, str] = {}
        self._space_of: dict[int, int] = {}
        self._next_space: int | None = None
        self._closed = False

    def mark_page_free(self, facts: Facts) -> None:
        """The page's free was logged."""
        self._freed[page_key(facts)] = facts["lsn"]

    def mark_recv_start(self, facts: Facts) -> None:
        """What was changed without redo before the end of the log."""
        end = int(facts["end"])
        self._reused = {key: lsn for lsn, key in self._noredo if lsn <= end}

    def mark_recv_free(self, facts: Facts) -> None:
        """The log's last word on the page is its free."""
        key = page_key(facts)
        if self._reused.get(key, -1) < int(facts["lsn"]):
            self._freed[key] = facts["lsn"]

    def _initialised(self, facts: Facts) -> None:
        self._freed.pop(page_key(facts), None)

    mark_page_init = _initialised
    mark_page_noredo = _initialised
    mark_recv_create = _initialised

    def _used(self, facts: Facts, how: str) -> None:
        key = page_key(facts)
        self._next_space = key[0]
        if key in self._freed:
            self.report(15, f"{_name(key)} {how} although it was freed at {self._freed[key]}")

    def mark_page_write(self, facts: Facts) -> None:
        """Before a home write."""
        self._used(facts, "is written")

    def mark_page_drop_freed(self, facts: Facts) -> None:
        """The page leaves the flush list unwritten."""
        if int(facts["lsn"]) > self.log.durable:
            what = f"{_name(page_key(facts))} is dropped, its free at {facts['lsn']} is not durable"
            self.report(15, f"{what}: the log is durable to {self.log.durable}")

    def mark_recv_read(self, facts: Facts) -> None:
        """Recovery reads the page."""
        self._used(facts, "is read by recovery")

    def mark_recv_apply(self, facts: Facts) -> None:
        """Recovery changes the page."""
        self._used(facts, "is applied to")

    def op_write(self, event: Event, path: str) -> None:
        """Learns which file a space is."""
        if self._next_space is not None and is_data_file(path):
            self._space_of[event.file] = self._next_space
        self._next_space = None

    def op_read(self, event: Event, path: str) -> None:
        """A page read from a known space."""
        if self._closed or not is_data_file(path):
            return
        if self._next_space is not None:
            self._space_of[event.file] = self._next_space
            self._next_space = None
            return
        size = self.log.setting.page_size
        space = self._space_of.get(event.file)
        if space is None or event.length != size:
            return
        key = (space, event.offset // size)
        if key in self._freed:
            self.report(
                15, f"{_name(key)} is read although it was freed at {self._freed[key]}", path
            )

    def op_close(self, event: Event, path: str) -> None:  # noqa: ARG002 - the path tells
        """After the log is closed only the scanner reads, and it may read anything."""
        self._closed = self._closed or path in LOG_FILES


class IndexLoad(Rule):
    """I16: at an INDEX_LOAD record the space has no unwritten non-logged page and no unsynced write, and the
    record is durable before the DDL's commit is logged; every non-logged load has its record."""

    numbers = (16,)
    blind = "which of several indexes a non-logged page belongs to: the whole space must be clean"

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._dirty: dict[int, dict[int, int]] = {}
        self._unsynced: dict[int, str] = {}
        self._space_of: dict[str, int] = {}
        self._next_space: int | None = None
        self._loading: dict[str, bool] = {}
        self._records: dict[str, int] = {}

    def mark_load_begin(self, facts: Facts) -> None:
        """The load of an index starts."""
        self._loading[facts["index"]] = facts["redo"] == "0"

    def mark_page_noredo(self, facts: Facts) -> None:
        """A page was changed without redo."""
        space, page = page_key(facts)
        self._dirty.setdefault(space, {})[page] = int(facts["lsn"])

    def _clean(self, facts: Facts) -> None:
        space, page = page_key(facts)
        self._dirty.get(space, {}).pop(page, None)

    mark_page_discard = _clean
    mark_page_free = _clean
    mark_page_init = _clean

    def mark_page_write(self, facts: Facts) -> None:
        """Before a home write."""
        self._clean(facts)
        self._next_space = int(facts["space"])

    def op_write(self, event: Event, path: str) -> None:  # noqa: ARG002 - the path tells
        """The home write itself."""
        if self._next_space is not None and is_data_file(path):
            self._unsynced[self._next_space] = path
            self._space_of[path] = self._next_space
        self._next_space = None

    def op_fsync(self, event: Event, path: str) -> None:
        """The writes of this file are durable."""
        if event.result >= 0 and path in self._space_of:
            self._unsynced.pop(self._space_of[path], None)

    def mark_index_load(self, facts: Facts) -> None:
        """The INDEX_LOAD record was appended to the log."""
        space = int(facts["space"])
        self._records[facts["index"]] = int(facts["lsn"])
        dirty = self._dirty.get(space)
        if dirty:
            pages = ", ".join(str(page) for page in sorted(dirty)[:5])
            what = (
                f"INDEX_LOAD of index {facts['index']} with {len(dirty)} unwritten non-logged pages"
            )
            self.report(16, f"{what} in space {space}: {pages}")
        if space in self._unsynced:
            what = f"INDEX_LOAD of index {facts['index']} before the fsync of its pages"
            self.report(16, what, self._unsynced[space])

    def mark_point(self, facts: Facts) -> None:
        """A commit record was appended: the records of finished loads must be durable by then."""
        if facts.get("name") == "trx.commit_logged":
            self._check_durable("before its DDL commits")

    def _check_durable(self, when: str) -> None:
        for index, lsn in self._records.items():
            if lsn > self.log.durable:
                what = f"INDEX_LOAD of index {index} at {lsn} is not durable {when}"
                self.report(16, f"{what}: the log is durable to {self.log.durable}")

    def mark_load_end(self, facts: Facts) -> None:
        """The whole DDL has committed."""
        index = facts["index"]
        if self._loading.pop(index, False) and index not in self._records:
            self.report(
                16, f"index {index} was loaded without redo and without an INDEX_LOAD record"
            )
        self._check_durable("when its DDL has committed")
        self._records.pop(index, None)


class DoublewriteOrder(Rule):
    """I22: area write, fsync of the area, home writes, fsync of the data files, and only then reuse."""

    numbers = (22,)
    blind = "that the copies in the area are those of the pages written home"

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._slot: str | None = None
        self._pages = 0
        self._area_bytes = 0
        self._area_synced = False
        self._ready = False
        self._home = 0
        self._unsynced: set[str] = set()
        self._next_home = False

    def mark_dblwr_batch(self, facts: Facts) -> None:
        """Before the area write."""
        if self._slot is not None:
            what = f"slot {facts['slot']} is used before slot {self._slot} was done"
            self.report(22, what, DBLWR_FILE)
        self._slot = facts["slot"]
        self._pages = int(facts["pages"])
        self._area_bytes = 0
        self._area_synced = self._ready = False
        self._home = 0
        self._unsynced.clear()

    def op_write(self, event: Event, path: str) -> None:
        """The area write or a home write."""
        if path == DBLWR_FILE:
            if self._slot is None or self._ready:
                self.report(22, "doublewrite area written outside of a batch", path)
            self._area_bytes += event.length
            self._area_synced = False
        elif self._next_home and is_data_file(path):
            self._unsynced.add(path)
        self._next_home = False

    def op_fsync(self, event: Event, path: str) -> None:
        """The area or a data file is durable."""
        if event.result < 0:
            return
        if path == DBLWR_FILE:
            self._area_synced = True
        self._unsynced.discard(path)

    def mark_dblwr_synced(self, facts: Facts) -> None:
        """After the fsync of the area."""
        if not self._area_synced:
            self.report(22, f"slot {facts['slot']} is not fsynced", DBLWR_FILE)
        if self._area_bytes != self._pages * self.log.setting.page_size:
            what = f"slot {facts['slot']} got {self._area_bytes} bytes for {self._pages} pages"
            self.report(22, what, DBLWR_FILE)
        self._ready = True

    def mark_page_write(self, facts: Facts) -> None:
        """Before a home write."""
        self._next_home = True
        if facts["dblwr"] != "used":
            return
        self._home += 1
        if not self._ready:
            self.report(22, f"{_name(page_key(facts))} goes home before its copy is fsynced")
        elif self._home > self._pages:
            what = f"{_name(page_key(facts))} goes home as number {self._home}"
            self.report(22, f"{what} of a batch of {self._pages} copies")

    def mark_dblwr_done(self, facts: Facts) -> None:
        """The slot may be reused."""
        for path in sorted(self._unsynced):
            self.report(22, f"slot {facts['slot']} is given up before the fsync of {path}", path)
        if facts["slot"] != self._slot:
            self.report(
                22, f"slot {facts['slot']} is done, slot {self._slot} was in use", DBLWR_FILE
            )
        self._slot = None
        self._ready = False
