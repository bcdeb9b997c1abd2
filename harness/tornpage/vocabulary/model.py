"""The shared vocabulary: what a trial is, what it may find, and what a golden run of writes says.

Everything here is a frozen value with a JSON form (codec.to_json / codec.from_json), so that the store,
the report and a replay in another process speak of the same things. No behaviour but that of names, no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from pydantic import ConfigDict, with_config

__all__ = [
    "Action",
    "Fault",
    "FaultKind",
    "FaultPlan",
    "GoldenRun",
    "Outcome",
    "Site",
    "Source",
    "TornWrite",
    "TrialResult",
    "TrialSpec",
    "Violation",
    "WriteEvent",
    "config_of",
]


_JSON = with_config(ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"))
"""How the data classes are read from JSON."""


class Outcome(StrEnum):
    """What a trial came to. Only CLEAN counts as a pass."""

    CLEAN = "clean"
    VIOLATION = "violation"
    NOT_EXERCISED = "not_exercised"
    """The fault did not fire."""
    VACUOUS = "vacuous"
    """The fault fired, but what the trial is about did not run (no recovery, a nested crash missed)."""
    HARNESS_ERROR = "harness_error"
    """The harness failed; nothing can be said about the target."""
    UNSTABLE = "unstable"
    """It broke an invariant, and played once more it did not break the same: no finding, and no pass."""


class Source(StrEnum):
    """Who says that an invariant is broken, the strongest first."""

    STATE = "state"
    """Recovery, scanner or oracle, of what a crash or a failed operation left."""
    RULE = "rule"
    """A rule on the record of a run or of a recovery."""
    RUN = "run"
    """The run itself: its answers, its end, or the database that it closed cleanly."""


class Site(StrEnum):
    """What a write was for: the rows of the report's matrix."""

    INDEX_LOAD_PAGE = "index_load_page"
    """Home write of an index page that a non-logged load dirtied (load=1)."""
    DATA_PAGE = "data_page"
    """Home write of a leaf page of a user table or index."""
    INTERNAL_PAGE = "internal_page"
    """Home write of a B+-tree page above the leaves."""
    PAGE0 = "page0"
    """First page of a data file."""
    UNDO_PAGE = "undo_page"
    """Home write of a page of undo records; of MariaDB also of the header of a rollback segment."""
    DICT_PAGE = "dict_page"
    """Home write of a page of the catalogue's own trees."""
    DOUBLEWRITE = "doublewrite"
    """Copies of pages, before their home writes."""
    REDO = "redo"
    """Blocks of the redo log, or frames of a write-ahead log."""
    CHECKPOINT_HEADER = "checkpoint_header"
    """Start of the log file: header and checkpoint slots."""
    SYSTEM_PAGE = "system_page"
    """Other pages of the system space, and descriptor and inode pages."""
    FREED_PAGE = "freed_page"
    """Zeros over a page that is free."""
    ROLLBACK_JOURNAL = "rollback_journal"
    """Old page contents, kept until the transaction that changes them has committed (SQLite)."""
    METADATA = "metadata"
    """A file that marks others as complete: those of a backup, of an exported table."""
    SORT_RUN = "sort_run"
    """Sorted entries of an index build, in a temporary file."""
    ROW_LOG = "row_log"
    """Changes of rows during an index build, in a temporary file."""
    FILE_OP = "file_op"
    """Create, rename, unlink, truncate."""
    OTHER = "other"
    """Any other write, such as that of a page that recovery restores from doublewrite; the read of a page."""


PAGE_SITES = frozenset(
    {
        Site.INDEX_LOAD_PAGE,
        Site.DATA_PAGE,
        Site.INTERNAL_PAGE,
        Site.PAGE0,
        Site.UNDO_PAGE,
        Site.DICT_PAGE,
        Site.SYSTEM_PAGE,
        Site.FREED_PAGE,
    }
)
"""Home writes of pages: if recovery refuses to start after one of them was torn, that breaks I5. For
targets that do not name the cause of a refusal."""


class FaultKind(StrEnum):
    """Which operations a fault counts."""

    WRITE = "write"
    FSYNC = "fsync"
    READ = "read"
    TRUNCATE = "truncate"
    RENAME = "rename"
    UNLINK = "unlink"
    SYNC_DIR = "sync_dir"
    MARK = "mark"


class Action(StrEnum):
    """What happens to the operation that a fault hits."""

    KILL = "kill"
    """The chosen sectors are written, then the process dies by SIGKILL."""
    TEAR = "tear"
    """The chosen sectors are written, success is reported, the process lives on."""
    DROP = "drop"
    CORRUPT = "corrupt"
    MISDIRECT = "misdirect"
    ERROR = "error"
    SHORT = "short"


@_JSON
@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the nth operation (1-based) of a kind on files that match a pattern, and its fate.

    offset: only operations whose file offset lies in [min, max] bytes count.
    sectors: "all", "none", "prefix:K", "suffix:K" or a string of 0 and 1, one per sector of `sector`
    bytes (1 = persisted); bytes: persist exactly the first `bytes` bytes instead.
    text: for kind mark, the prefix of the marker text. error: errno name for action error.
    shift: bytes by which action misdirect moves the write. follows: only operations behind the one that
    the fault before it in the plan has hit count.
    """

    kind: FaultKind
    nth: int
    action: Action
    file: str = "*"
    offset: tuple[int, int] | None = None
    sector: int = 512
    sectors: str | None = None
    bytes: int | None = None
    when: str = "before"
    error: str | None = None
    shift: int | None = None
    text: str | None = None
    follows: bool = False


@_JSON
@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Faults of the run, and of each following recovery that is to be disturbed as well (nested).

    recover[i] holds the faults of the i-th recovery; the one after the last is fault-free. A single empty
    one: it was to be disturbed, and has no write to hit.
    stale_log: plant a stale but valid log block behind the end of the log before recovery (I21).
    loss: instead of a live fault, the power-loss state of this id ("SEQ.MODEL.K", nested with "/").
    """

    name: str = ""
    run: tuple[Fault, ...] = ()
    recover: tuple[tuple[Fault, ...], ...] = ()
    stale_log: bool = False
    loss: str = ""

    @property
    def crashes(self) -> bool:
        """Something is done to the target."""
        return bool(self.run or self.recover or self.loss)


@_JSON
@dataclass(frozen=True, slots=True)
class TrialSpec:
    """Everything that is needed to replay one trial.

    config: label of configuration and script, as "log_optimize_ddl=on seed=3"; see config_of().
    workload_seed makes the script, seed is the trial's own; number counts from 0 in its campaign.
    options: target options by name (for the engine: names of engine_options_t), values as text.
    stacks: its operations carry their call stacks, which no verdict looks at.
    """

    campaign: str
    target: str
    config: str
    options: Mapping[str, str]
    workload: str
    params: Mapping[str, int | str]
    workload_seed: int
    seed: int
    number: int
    plan: FaultPlan
    stacks: bool = False


@_JSON
@dataclass(frozen=True, slots=True)
class Violation:
    """One broken invariant.

    invariant: 1 ... 30 of docs/INVARIANTS.md; 0: the run itself went wrong, before any recovery (it hung,
    died, or was not the same run as the golden run: a kind of its own).
    path: file inside the data directory, "" if it is not about one file.
    """

    invariant: int
    what: str
    site: Site | None = None
    path: str = ""
    source: Source = Source.STATE


@_JSON
@dataclass(frozen=True, slots=True)
class TornWrite:
    """The write that a fault hit: its sectors and both contents.

    kept: one character per sector, "1" = reached the file. old and new are `length` bytes each, or
    empty when the trace has no contents (length beyond what is kept).
    """

    path: str
    offset: int
    length: int
    sector: int
    kept: str
    old: bytes = b""
    new: bytes = b""


@_JSON
@dataclass(frozen=True, slots=True)
class TrialResult:
    """The verdict of a trial.

    site, mask: the write that was hit, and the plan's sector choice as text ("prefix:3", "none", ...).
    counters: recovery counters by name, as dblwr_restored, index_load_reads, pages_created,
    indexes_dropped, tables_dropped, swaps_finished, trx_rolled_back, redo_records, batches; nested_kills,
    nested_errors, stale_log, exports_judged.
    seconds: durations by phase (run, copy, recover, verify, judge, total).
    peak_bytes: largest resident size of any child; written_bytes: written by all children.
    trace_hash: XXH3-64 of the run's trace (hex), the same for the same seed; digest: of the recovered
    state (hex), "" if it was refused.
    events: I/O events before the crash. image: directory of the crashed image, kept for the first trial of
    a fingerprint. alike: so many power-loss states broke the same, this one included. answer: of the
    recovery, if it did not succeed.
    """

    number: int
    outcome: Outcome
    reason: str = ""
    violations: tuple[Violation, ...] = ()
    site: Site | None = None
    mask: str = ""
    path: str = ""
    offset: int | None = None
    page_no: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_bytes: int = 0
    written_bytes: int = 0
    events: int = 0
    trace_hash: str = ""
    digest: str = ""
    image: Path | None = None
    torn: TornWrite | None = None
    alike: int = 1
    answer: str = ""


@_JSON
@dataclass(frozen=True, slots=True)
class WriteEvent:
    """One write of the golden run, or a read, a change of a size or a name, or the sync of a folder (kind).

    nth: 1-based among those of its kind of `file` (its path at that time; of a rename the old one); seq:
    event number in the trace.
    next_fsync: the same number of the first fsync of the file after it, 0 if there is none.
    facts: the page_write marker of a home write (space, page, lsn, type, level, index, dblwr, why, load).
    line: script line in flight, or last finished. unit: bytes of an aligned part of the file that the
    storage writes whole or not at all; promised: the most of any file.
    """

    nth: int
    seq: int
    file: str
    offset: int
    length: int
    site: Site
    line: int
    facts: Mapping[str, str] = field(default_factory=dict)
    next_fsync: int = 1
    unit: int = 512
    promised: int = 512
    kind: FaultKind = FaultKind.WRITE


@_JSON
@dataclass(frozen=True, slots=True)
class GoldenRun:
    """What one fault-free run writes, by site, with its verdicts.

    key: names the run (target, options, workload, seed). writes: those after the first statement was
    issued, so that the database exists. violations: of the trace invariants over the
    whole run and of the final state against the oracle. statements: lines executed. operations: what it
    reads, and does to sizes, names and folders meanwhile, of a target whose files are always called the same.
    """

    key: str
    writes: tuple[WriteEvent, ...]
    trace_hash: str
    events: int
    statements: int
    violations: tuple[Violation, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    operations: tuple[WriteEvent, ...] = ()

    def by_site(self) -> dict[Site, list[WriteEvent]]:
        """The writes and other operations of each site, in the order of the run."""
        sites: dict[Site, list[WriteEvent]] = {}
        for write in (*self.writes, *self.operations):
            sites.setdefault(write.site, []).append(write)
        return sites


def config_of(label: str) -> str:
    """The configuration of a script's label: "log_optimize_ddl=on seed=3,depth=2" ->
    "log_optimize_ddl=on"."""
    return label.partition(" ")[0]
