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
    logged after the checkpoint in force; and the log from that checkpoint on never holds both such an
    initialisation and an INDEX_LOAD of the same space."""

    numbers = (13,)
    blind = "whether redo really rebuilds the skipped page (the oracle and the scanner see that)"

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._fresh: dict[PageKey, int] = {}
        self._loads: dict[int, int] = {}
        self._skipped: dict[int, int] = {}

    def mark_page_init(self, facts: Facts) -> None:
        """A logged initialisation: the next write may skip."""
        self._fresh[page_key(facts)] = int(facts["lsn"])

    def mark_recv_create(self, facts: Facts) -> None:
        """Recovery initialised the page from such a record."""
        self._fresh[page_key(facts)] = int(facts["init_lsn"])

    def mark_recv_read(self, facts: Facts) -> None:
        """An INDEX_LOAD lies in the log somewhere before its end."""
        if facts["why"] == "index_load":
            self._loads[int(facts["space"])] = self.log.recv_end or 0

    def mark_index_load(self, facts: Facts) -> None:
        """The INDEX_LOAD record was appended to the log."""
        space = int(facts["space"])
        self._loads[space] = int(facts["lsn"])
        needed = self._skipped.get(space, 0)
        if needed > (self.log.checkpoint or 0):
            what = (
                f"INDEX_LOAD in space {space}, a page initialised at {needed} skipped doublewrite"
            )
            self.report(13, f"{what} and the checkpoint is at {self.log.checkpoint}")

    def mark_page_noredo(self, facts: Facts) -> None:
        """A page was changed without redo."""
        self._fresh.pop(page_key(facts), None)

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
        if self._loads.get(key[0], 0) > (self.log.checkpoint or 0):
            what = f"{_name(key)} skips doublewrite, the log has an INDEX_LOAD at"
            self.report(13, f"{what} {self._loads[key[0]]}")
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
    """I15: between its free and its next initialisation a page is neither read nor applied to."""

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
        """Before a home write: a freed page is written like any other."""
        self._next_space = int(facts["space"])

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
    """I16: at an INDEX_LOAD record the space has no unwritten non-logged page and no unsynced write of one,
    and the record is durable when the DDL has committed; every non-logged load has its record. The record of
    an interrupted load vouches for nothing."""

    numbers = (16,)
    blind = "which of several indexes a non-logged page belongs to: the whole space must be clean"

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._dirty: dict[int, dict[int, int]] = {}
        self._unsynced: dict[int, str] = {}
        self._space_of: dict[str, int] = {}
        self._next_space: int | None = None  # of a home write of a load's page
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
        self._next_space = int(facts["space"]) if facts["load"] == "1" else None

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
        if "aborted" in facts:
            return
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
    """I22, for each position of the area: copy written, area fsynced, home write, fsync of the home file, and
    only then reuse."""

    numbers = (22,)
    blind = "that the copies in the area are those of the pages written home"

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._announced: tuple[int, int] | None = None
        self._synced: dict[int, bool] = {}
        self._homes: dict[int, str] = {}
        self._batch = 0
        self._next: int | None = None

    def mark_dblwr_batch(self, facts: Facts) -> None:
        """Before the area write of a batch."""
        self._batch = int(facts["pages"])
        self._announced = (0, self._batch)

    def mark_dblwr_single(self, facts: Facts) -> None:
        """Before the area write of one page."""
        self._announced = (int(facts["pos"]), 1)

    def op_write(self, event: Event, path: str) -> None:
        """The area write or a home write."""
        if path == DBLWR_FILE:
            self._area_write(event)
        elif self._next is not None and is_data_file(path):
            self._homes[self._next] = path
        self._next = None

    def _area_write(self, event: Event) -> None:
        size = self.log.setting.page_size
        first, n = event.offset // size, event.length // size
        if self._announced is None:
            self.report(22, "doublewrite area written outside of a batch", DBLWR_FILE)
        elif (event.offset, event.length) != tuple(size * i for i in self._announced):
            what = f"{event.length} bytes at {event.offset} of the doublewrite area, announced"
            self.report(
                22, f"{what}: {self._announced[1]} pages at {self._announced[0]}", DBLWR_FILE
            )
        self._announced = None
        for pos in range(first, first + n):
            if pos in self._homes:
                home = self._homes.pop(pos)
                what = f"position {pos} of the area is used again before the fsync of {home}"
                self.report(22, what, DBLWR_FILE)
            self._synced[pos] = False

    def op_fsync(self, event: Event, path: str) -> None:
        """The area or a data file is durable."""
        if event.result < 0:
            return
        if path == DBLWR_FILE:
            self._synced = dict.fromkeys(self._synced, True)
        else:
            self._gone(path)

    def op_unlink(self, event: Event, path: str) -> None:
        """A deleted file needs no copies."""
        if event.result >= 0:
            self._gone(path)

    def op_rename(self, event: Event, path: str) -> None:
        """Unsynced home writes move with the file."""
        old, _, new = path.partition("\0")
        if event.result >= 0:
            self._homes = {pos: new if at == old else at for pos, at in self._homes.items()}

    def _gone(self, path: str) -> None:
        self._homes = {pos: home for pos, home in self._homes.items() if home != path}

    def mark_dblwr_synced(self, facts: Facts) -> None:
        """After the fsync of the area."""
        if not all(self._synced.get(pos, False) for pos in range(self._batch)):
            self.report(22, f"slot {facts['slot']} is not fsynced", DBLWR_FILE)

    def mark_page_write(self, facts: Facts) -> None:
        """Before a home write, which uses its copy up."""
        self._next = None
        if facts["dblwr"] != "used":
            return
        pos = int(facts["pos"])
        synced = self._synced.pop(pos, None)
        if synced is None:
            self.report(22, f"{_name(page_key(facts))} goes home, no copy of it is at {pos}")
        elif not synced:
            self.report(22, f"{_name(page_key(facts))} goes home before its copy is fsynced")
        self._next = pos

    def mark_dblwr_done(self, facts: Facts) -> None:
        """The batch region may be reused."""
        for path in sorted({self._homes[pos] for pos in range(self._batch) if pos in self._homes}):
            self.report(22, f"slot {facts['slot']} is given up before the fsync of {path}", path)
