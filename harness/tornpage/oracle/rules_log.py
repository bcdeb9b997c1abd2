"""Rules about the log, checkpoints and file operations: I1, I4, I19, I20, I21, I23, I24.

May import: model, rules, trace.
"""

from __future__ import annotations

from collections.abc import Mapping

from tornpage.faults.trace import Event
from tornpage.oracle.rules import (
    LOG_BLOCK,
    LOG_FILE,
    LOG_FILES,
    LOG_HEADER,
    LogState,
    PageKey,
    Rule,
    page_key,
)

__all__ = [
    "CheckpointOrder",
    "CommitDurable",
    "FailedIo",
    "FileOpOrder",
    "LogOverwrite",
    "LogTailCut",
    "WriteAhead",
]

OPEN_CREATED = 1
SORT_FILE_PREFIX = "#sql-tmp-"
Facts = Mapping[str, str]


def is_data_file(path: str) -> bool:
    """A tablespace file, whose unsynced writes a checkpoint must wait for."""
    return path == "ibdata1" or path.endswith(".ibd")


class WriteAhead(Rule):
    """I4: no home write of a page before the log is durable up to the page's LSN, no page beyond the end of
    the log, and no durability announced that no fsync gave."""

    numbers = (4,)
    blind = (
        "the LSN inside the written page: it is taken from the marker (the scanner looks at files)"
    )

    def mark_page_write(self, facts: Facts) -> None:
        """Before a home write."""
        lsn = int(facts["lsn"])
        if lsn > self.log.durable:
            page = f"page {facts['space']}:{facts['page']}"
            self.report(
                4, f"{page} of LSN {lsn} goes home, the log is durable to {self.log.durable}"
            )

    def mark_log_durable(self, facts: Facts) -> None:
        """After an fsync of the log."""
        lsn = int(facts["lsn"])
        if lsn > self.log.durable:
            self.report(
                4, f"log said to be durable to {lsn}, fsynced to {self.log.durable}", LOG_FILE
            )

    def mark_recv_apply(self, facts: Facts) -> None:
        """Before records are applied to a page that recovery has read."""
        end = self.log.recv_end
        if end is not None and int(facts["page_lsn"]) > end:
            page = f"page {facts['space']}:{facts['page']}"
            self.report(4, f"{page} has LSN {facts['page_lsn']} beyond the end of the log, {end}")


class CommitDurable(Rule):
    """I1: when a statement that committed is acknowledged, the log is fsynced as far as it was written
    (with flush_log_at_trx_commit=1)."""

    numbers = (1,)
    blind = "that the commit record is in the log by then: a kill and the oracle show that"

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._committing = False

    def mark_point(self, facts: Facts) -> None:
        """A commit record was appended."""
        if facts.get("name") == "trx.commit_logged":
            self._committing = True

    def mark_ack(self, facts: Facts) -> None:
        """A statement was acknowledged."""
        if self._committing and self.log.setting.durable_commits:
            written, durable = self.log.written, self.log.durable
            if durable < written:
                what = f"line {facts['n']} acknowledged with the log written to {written}"
                self.report(1, f"{what} and fsynced to {durable}", LOG_FILE)
        self._committing = False


class LogOverwrite(Rule):
    """I20: each log block is written where its LSN belongs, and never over [C, end) of the checkpoint in
    force."""

    numbers = (20,)
    blind = "the block's own number and checksum; the log of a database while it is being created"

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._announced = False

    def mark_log_write(self, facts: Facts) -> None:
        """Before the writes of log blocks."""
        self._announced = "end" in facts

    def op_write(self, event: Event, path: str) -> None:
        """A write of the log file; the log state has already moved past it, unless it failed."""
        if path not in LOG_FILES or event.offset < LOG_HEADER or event.result < 0:
            return
        if not self._announced:
            self.report(20, f"log write at {event.offset} without log_write", path)
            return
        after, _ = self.log.announced()
        start = after - event.length
        if event.offset != self.log.offset_of(start):
            wanted = self.log.offset_of(start)
            self.report(20, f"LSN {start} written at {event.offset}, belongs at {wanted}", path)
        oldest = self.log.checkpoint
        lap = self.log.setting.log_size - LOG_HEADER
        if oldest is not None and after - lap > oldest // LOG_BLOCK * LOG_BLOCK:
            self.report(20, f"log write to {after} overwrites the checkpoint's LSN {oldest}", path)


class LogTailCut(Rule):
    """I21: before a recovery appends to the log, the block at its end is rewritten without the unfinished
    group behind the end, and fsynced: a later block could complete that group."""

    numbers = (21,)
    blind = "the contents of that block: a stale block planted behind it shows what is read on"

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._end: int | None = None
        self._written = False

    def mark_recv_start(self, facts: Facts) -> None:
        """Where the log ends."""
        self._end, self._written = int(facts["end"]), False

    def mark_log_write(self, facts: Facts) -> None:
        """Before the writes of log blocks."""
        if self._end is None:
            return
        if int(facts["start"]) == int(facts["end"]) == self._end:
            self._written = True
            return
        self.report(
            21, f"log written from {facts['start']} before its end at {self._end} was cut", LOG_FILE
        )
        self._end = None

    def op_fsync(self, event: Event, path: str) -> None:
        """The cut is durable."""
        if path in LOG_FILES and event.result >= 0 and self._written:
            self._end = None


class CheckpointOrder(Rule):
    """I19: at a checkpoint slot write the marker is durable, the slot is the one not in force, and every
    change before C is home and fsynced."""

    numbers = (19,)
    blind = "unwritten changes of pages that were not initialised since: no marker tells their LSN"

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._slot: str | None = None
        self._unsynced: dict[str, int] = {}
        self._oldest: int | None = None
        self._initialised: dict[PageKey, int] = {}
        self._expected: tuple[int, int] | None = None

    def mark_checkpoint(self, facts: Facts) -> None:
        """Before the slot write."""
        c, marker, slot = int(facts["c"]), int(facts["marker"]), facts["slot"]
        if self._slot == slot:
            self.report(19, f"checkpoint {facts['no']} overwrites slot {slot}, which is in force")
        if "start" not in facts:
            self._check_durable(c, marker)
        self._slot = slot
        self._expected = (LOG_BLOCK * (3 if slot == "1" else 1), LOG_BLOCK)

    def _check_durable(self, c: int, marker: int) -> None:
        if marker >= self.log.durable:
            self.report(19, f"marker at {marker} is not durable, only {self.log.durable} is")
        for path, oldest in sorted(self._unsynced.items()):
            if oldest < c:
                self.report(19, f"checkpoint at {c} with unsynced writes of {path}", path)
        for (space, page), lsn in self._initialised.items():
            if lsn <= c:
                what = f"checkpoint at {c} passes page {space}:{page}, initialised at {lsn}"
                self.report(19, f"{what} and never written")

    def mark_page_init(self, facts: Facts) -> None:
        """A page's initialisation was logged: it must go home before a checkpoint passes it."""
        self._initialised[page_key(facts)] = int(facts["lsn"])

    def mark_recv_create(self, facts: Facts) -> None:
        """The same in recovery."""
        self._initialised[page_key(facts)] = int(facts["init_lsn"])

    def _forget(self, facts: Facts) -> None:
        self._initialised.pop(page_key(facts), None)

    mark_page_discard = _forget
    mark_page_free = _forget
    mark_recv_free = _forget

    def mark_page_write(self, facts: Facts) -> None:
        """Before a home write: from which LSN on it holds changes."""
        self._forget(facts)
        self._oldest = int(facts["oldest"])

    def op_write(self, event: Event, path: str) -> None:
        """A slot write at the wrong place, or a data file write to be synced."""
        if is_data_file(path):
            oldest = self._oldest if self._oldest is not None else 0
            self._unsynced[path] = min(oldest, self._unsynced.get(path, oldest))
            self._oldest = None
        elif path in LOG_FILES and event.offset < LOG_HEADER:
            if self._expected is None:
                if path != LOG_FILE:
                    return  # the whole header of a log that is being created
                self.report(19, f"checkpoint slot write at {event.offset} without marker", path)
            elif (event.offset, event.length) != self._expected:
                where = f"{event.length} bytes at {event.offset}"
                self.report(19, f"slot write of {where}, expected {self._expected}", path)
            self._expected = None

    def op_fsync(self, event: Event, path: str) -> None:
        """The writes of this file are durable."""
        if event.result >= 0:
            self._unsynced.pop(path, None)

    def op_unlink(self, event: Event, path: str) -> None:
        """A deleted file needs no sync."""
        if event.result >= 0:
            self._unsynced.pop(path, None)

    def op_rename(self, event: Event, path: str) -> None:
        """Unsynced writes move with the file."""
        old, _, new = path.partition("\0")
        if event.result >= 0 and old in self._unsynced:
            self._unsynced[new] = self._unsynced.pop(old)


class FailedIo(Rule):
    """I23: after a failed write, truncate or fsync of a file that lasts, nothing is acknowledged, no
    checkpoint is written, and no recovery is said to be done."""

    numbers = (23,)
    blind = (
        "failures that the target never saw, failed reads, sort files (nothing durable is in them)"
    )

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._failed = ""

    def _note(self, event: Event, path: str) -> None:
        if event.result < 0 and not self._failed and not path.startswith(SORT_FILE_PREFIX):
            self._failed = f"failed operation {event.seq} on {path}"

    op_write = _note
    op_truncate = _note
    op_fsync = _note

    def mark_ack(self, facts: Facts) -> None:
        """A statement was acknowledged."""
        if self._failed:
            self.report(23, f"line {facts['n']} acknowledged after the {self._failed}")

    def mark_checkpoint(self, facts: Facts) -> None:
        """A checkpoint is about to be written."""
        if self._failed:
            self.report(23, f"checkpoint {facts['no']} after the {self._failed}")

    def mark_recv_done(self, facts: Facts) -> None:  # noqa: ARG002 - that it is said is enough
        """The database is about to accept work."""
        if self._failed:
            self.report(23, f"recovery done after the {self._failed}")


class FileOpOrder(Rule):
    """I24: the record of a create, delete or rename of a table's file is durable before the operation, and
    the directory is fsynced after it, before the next acknowledgement."""

    numbers = (24,)
    blind = "files that are not a table's (log, doublewrite, system space, temporary files)"

    def __init__(self, log: LogState) -> None:
        super().__init__(log)
        self._logged: set[tuple[str, str]] = set()
        self._unsynced: set[str] = set()

    def mark_file_op(self, facts: Facts) -> None:
        """Before the operation."""
        lsn, path = int(facts["lsn"]), facts["path"]
        if lsn > self.log.durable:
            what = (
                f"{facts['op']} of {path} logged at {lsn}, the log is durable to {self.log.durable}"
            )
            self.report(24, what, path)
        self._logged.add((facts["op"], path))

    def mark_file_op_done(self, facts: Facts) -> None:
        """After the directory's fsync."""
        self._check_synced(f"{facts['op']} of {facts['path']} is done")
        self._logged.discard((facts["op"], facts["path"]))

    def mark_ack(self, facts: Facts) -> None:
        """A statement was acknowledged."""
        self._check_synced(f"line {facts['n']} is acknowledged")

    def _check_synced(self, when: str) -> None:
        for path in sorted(self._unsynced):
            self.report(24, f"{when}, and the directory entry of {path} is not durable", path)
        self._unsynced.clear()

    def _operation(self, op: str, event: Event, path: str) -> None:
        if event.result < 0 or not path.endswith(".ibd"):
            return
        if (op, path) not in self._logged:
            self.report(24, f"{op} of {path} was not logged before", path)
        self._unsynced.add(path)

    def op_open(self, event: Event, path: str) -> None:
        """A file may have been created."""
        if event.flags & OPEN_CREATED:
            self._operation("create", event, path)

    def op_unlink(self, event: Event, path: str) -> None:
        """A file is gone."""
        self._operation("delete", event, path)

    def op_rename(self, event: Event, path: str) -> None:
        """A file has a new name."""
        self._operation("rename", event, path.partition("\0")[0])

    def op_sync_dir(self, event: Event, path: str) -> None:  # noqa: ARG002 - one directory
        """All entries are durable."""
        if event.result >= 0:
            self._unsynced.clear()
