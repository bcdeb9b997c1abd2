"""Rule about what recovery reads: I14, I15. It compares the recovery's trace with what the run before it put
into the log, as the run's own markers tell (LogHistory).

May import: model, rules, rules_log, trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tornpage.faults.trace import Event
from tornpage.oracle.rules import LogState, PageKey, Rule, page_key
from tornpage.oracle.rules_log import is_data_file

__all__ = ["HistoryCollector", "LogHistory", "RecoveryReads"]

Facts = Mapping[str, str]


@dataclass(slots=True)
class LogHistory:
    """What the log of a run holds, by LSN (end of the record's mini-transaction), in ascending order.

    inits, frees: (lsn, page); loads: (lsn, space) of INDEX_LOAD; written: page LSN of home writes;
    noredo: (lsn, page) changed without redo; deleted: (lsn, space); files: path of each living space.
    """

    inits: list[tuple[int, PageKey]] = field(default_factory=list)
    frees: list[tuple[int, PageKey]] = field(default_factory=list)
    loads: list[tuple[int, int]] = field(default_factory=list)
    written: list[tuple[int, PageKey]] = field(default_factory=list)
    noredo: list[tuple[int, PageKey]] = field(default_factory=list)
    deleted: list[tuple[int, int]] = field(default_factory=list)
    files: dict[int, str] = field(default_factory=dict)


class HistoryCollector(Rule):
    """Not a rule: collects a LogHistory in the same walk."""

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self.history = LogHistory()
        self._next_space: int | None = None

    def mark_page_init(self, facts: Facts) -> None:
        """A logged initialisation."""
        self.history.inits.append((int(facts["lsn"]), page_key(facts)))

    def mark_page_free(self, facts: Facts) -> None:
        """A logged free."""
        self.history.frees.append((int(facts["lsn"]), page_key(facts)))

    def mark_index_load(self, facts: Facts) -> None:
        """An INDEX_LOAD record."""
        self.history.loads.append((int(facts["lsn"]), int(facts["space"])))

    def mark_page_noredo(self, facts: Facts) -> None:
        """A change without redo."""
        self.history.noredo.append((int(facts["lsn"]), page_key(facts)))

    def mark_page_write(self, facts: Facts) -> None:
        """A home write: the page was changed by a record that ends at its LSN."""
        self._next_space = int(facts["space"])
        self.history.written.append((int(facts["lsn"]), page_key(facts)))

    def op_write(self, event: Event, path: str) -> None:  # noqa: ARG002 - the path tells
        """Learns the file of a space."""
        if self._next_space is not None and is_data_file(path):
            self.history.files[self._next_space] = path
        self._next_space = None

    def mark_file_op(self, facts: Facts) -> None:
        """A logged deletion or rename of a file."""
        files = self.history.files
        for space in [space for space, path in files.items() if path == facts["path"]]:
            if facts["op"] == "delete":
                self.history.deleted.append((int(facts["lsn"]), space))
                del files[space]
            elif facts["op"] == "rename":
                files[space] = facts["to"]


class RecoveryReads(Rule):
    """I14: recovery creates and never reads a page that redo initialises, unless an INDEX_LOAD lies in its
    space; and it does read, create or recognise as free every other page that the log changes. I15: it does
    not read or restore a page whose last record is its free, and which no load has taken again."""

    numbers = (14, 15)
    blind = (
        "pages that were changed but neither initialised nor written home before the crash; page 0 of a "
        "space, which is read to identify its file; reads during the doublewrite restore"
    )

    def __init__(self, log: LogState, history: LogHistory) -> None:
        super().__init__(log)
        self._history = history
        self._inits: dict[PageKey, int] = {}
        self._frees: dict[PageKey, int] = {}
        self._loads: set[int] = set()
        self._reused: dict[PageKey, int] = {}
        self._seen: set[PageKey] = set()
        self._created: set[PageKey] = set()
        self._active = False

    def mark_recv_start(self, facts: Facts) -> None:
        """The scan is over: from here on it is known what lies in [C, end)."""
        low, high = int(facts["c"]), int(facts["end"])
        self._inits = {key: lsn for lsn, key in self._history.inits if low < lsn <= high}
        self._frees = {key: lsn for lsn, key in self._history.frees if low < lsn <= high}
        self._loads = {space for lsn, space in self._history.loads if low < lsn <= high}
        self._reused = {key: lsn for lsn, key in self._history.noredo if lsn <= high}
        self._range = (low, high)
        self._active = True

    def mark_recv_read(self, facts: Facts) -> None:
        """Before the read of a page."""
        key = page_key(facts)
        created, seen = key in self._created, key in self._seen
        self._seen.add(key)
        if not self._active or key[1] == 0 or created:
            return  # made here, written home and evicted: it may be read again
        init = self._inits.get(key)
        name = f"page {key[0]}:{key[1]}"
        if not seen:
            self._check_in_use(key, "is read")
        if init is not None and key[0] not in self._loads:
            self.report(14, f"{name} is read although redo initialises it at {init}")
        elif facts["why"] == "index_load" and (init is None or key[0] not in self._loads):
            self.report(14, f"{name} is read for an INDEX_LOAD that is not in the log")

    def mark_recv_dblwr_restore(self, facts: Facts) -> None:
        """A page is overwritten with its doublewrite copy."""
        if self._active:
            self._check_in_use(page_key(facts), "is restored")

    def _check_in_use(self, key: PageKey, how: str) -> None:
        freed = self._frees.get(key, 0)
        if freed > max(self._inits.get(key, 0), self._reused.get(key, -1)):
            what = f"page {key[0]}:{key[1]} {how} although its last record"
            self.report(15, f"{what}, at {freed}, is its free")

    def mark_recv_create(self, facts: Facts) -> None:
        """A page is made from its initialisation record."""
        key = page_key(facts)
        self._seen.add(key)
        self._created.add(key)
        if not self._active or key[1] == 0:
            return
        name, lsn = f"page {key[0]}:{key[1]}", int(facts["init_lsn"])
        if key[0] in self._loads:
            self.report(14, f"{name} is created at {lsn} although its space has an INDEX_LOAD")
        elif self._inits.get(key) != lsn:
            wanted = self._inits.get(key)
            self.report(14, f"{name} is created at {lsn}, its latest initialisation is {wanted}")

    def mark_recv_free(self, facts: Facts) -> None:
        """A page whose latest state is free."""
        self._seen.add(page_key(facts))

    def mark_recv_apply(self, facts: Facts) -> None:
        """Records are applied."""
        key = page_key(facts)
        if key not in self._seen:
            self.report(14, f"page {key[0]}:{key[1]} is changed, but neither read nor created")

    def mark_point(self, facts: Facts) -> None:
        """All records are applied: every logged page must have been looked at."""
        if facts.get("name") != "recv.applied" or not self._active:
            return
        self._active = False
        low, high = self._range
        deleted = {space for lsn, space in self._history.deleted if low < lsn <= high}
        noredo = {key for lsn, key in self._history.noredo if lsn > low}
        for lsn, key in self._history.written:
            known = key in self._seen or key in noredo or key[0] in deleted
            if low < lsn <= high and not known and self._frees.get(key, 0) < lsn:
                self.report(14, f"page {key[0]}:{key[1]} changed at {lsn} is not looked at")
                self._seen.add(key)
