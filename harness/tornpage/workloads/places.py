"""The workload "places": each kind of statement once for each yield point and each thing done there.

The statements and their database are those of "bounded". Before the statement rows have changed, so that
there are dirty pages, and log behind the last checkpoint. And large statements with a full log (full_log.py),
statements while a backup stands in the middle of a file (mid_backup.py), and statements behind a preamble
(preambles.py): also loads in two modes (two_modes.py), builds that are a block of their row log behind
(row_log_blocks.py), pages and names that are taken again (again.py), new pages that go home in parts
(grown.py), two loads side by side (side_by_side.py), pages that are freed and overwritten before their file
is carried elsewhere (scrubbed.py). And statements about a table of the system tablespace (in_system.py).
Those whose harm shows when a recovery crashes are a workload of their own, "switches" (mode_switches.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial

from pydantic import BaseModel, ConfigDict, Field

from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.again import AGAIN_KINDS
from tornpage.workloads.book import Book
from tornpage.workloads.bounded import Sequence, prepare
from tornpage.workloads.full_log import LARGE_KINDS, LargeKind, prepare_large
from tornpage.workloads.grown import GROWN_KINDS, HALF_HOME_KINDS
from tornpage.workloads.in_system import SYSTEM_KINDS, SystemKind
from tornpage.workloads.kinds import KINDS, LEVELS, Kind
from tornpage.workloads.mid_backup import MID_BACKUP_KINDS, MidBackupKind, play_mid_backup
from tornpage.workloads.mode_switches import MODE_SWITCH_KINDS
from tornpage.workloads.preambles import PREAMBLE_KINDS, PreambleKind
from tornpage.workloads.row_log_blocks import ROW_LOG_KINDS
from tornpage.workloads.script import Script, Verb
from tornpage.workloads.scrubbed import SCRUBBED_KINDS
from tornpage.workloads.side_by_side import SIDE_BY_SIDE_KINDS
from tornpage.workloads.two_modes import TWO_MODES_KINDS

__all__ = [
    "ACTS",
    "BEHIND",
    "EACH",
    "STRIDE",
    "Place",
    "PlacesParams",
    "SwitchesParams",
    "generate_places",
    "places_of",
]

BEHIND = (
    *PREAMBLE_KINDS,
    *TWO_MODES_KINDS,
    *ROW_LOG_KINDS,
    *AGAIN_KINDS,
    *GROWN_KINDS,
    *HALF_HOME_KINDS,
    *SIDE_BY_SIDE_KINDS,
    *SCRUBBED_KINDS,
)
"""Statements behind a preamble."""
ACTS = (("checkpoint", True), ("clean", False), ("evict", False))
"""What is done there, and whether it is full."""
CHANGES = tuple(kind for kind in KINDS if kind.name in ("insert", "update", "delete"))
ROWS = 4
"""Rows of each of these changes before the statement."""
EACH, STRIDE = 16, 8
"""The first yield points one by one, then one in so many. For full checkpoints all of them."""
FIRST, LATER = 8, (32, 128, 512, 2048)
"""Yield points of a large statement at which the log is full: its beginning, and some of its many steps."""
YIELDS = {
    "insert": 11,
    "insert, rolled back": 7,
    "update": 10,
    "update, rolled back": 5,
    "delete": 12,
    "delete, rolled back": 10,
    "insert many": EACH,
    "insert many, rolled back": EACH,
    "delete many": EACH,
    "delete many, rolled back": EACH,
    "transaction that stays open": 5,
    "create table": 40,
    "drop table": 46,
    "truncate table": 88,
    "rename table": 11,
    "add index": 30,
    "drop index": 29,
    "add index, aborted after step 1": 36,
    "add index, aborted after step 2": 36,
    "add index, aborted after step 3": 40,
    "several clauses": 88,
    "rename index": 10,
    "rename column": 10,
    "modify column": 10,
    "add column, algorithm=instant": 24,
    "rebuild": 108,
    "rebuild, algorithm=copy": 32,
    "defragment": 10,
    "export": 36,
    "backup": 22,
    "set log_optimize_ddl": 3,
    "checkpoint": 3,
    "full checkpoint": 3,
    "purge": 26,
}
"""Yield points of a kind that are tried: about as many as it has. Those of rows one by one are alike."""
ALIKE = {
    "add index, lock=none": 42,
    "add index, algorithm=copy": 32,
    "modify column, algorithm=copy": 32,
    "rebuild, lock=none": 120,
    "add column, lock=none": 120,
    "drop column": 220,
    "several clauses, rebuild": 112,
    "another primary key": 220,
    "rebuild, aborted after step 1": 80,
    "rebuild, aborted after step 3": 88,
    "rebuild, aborted after step 5": 88,
    "import": 192,
}
"""The same of kinds that begin like others, or are made of them: one in STRIDE, twice as many checkpoints."""
FILLED = frozenset(
    {
        "create table",
        "drop table",
        "truncate table",
        "rename table",
        "add index",
        "drop index",
        "rename index",
        "rename column",
        "modify column",
        "add column, algorithm=instant",
    }
)
"""Kinds that meet a full log at each yield point: the steps of files, names and the catalogue."""
CHECKPOINTS = frozenset({"set log_optimize_ddl", "checkpoint", "full checkpoint"})
"""Kinds whose yield points are amid a checkpoint of their own: another one waits for its end."""


@dataclass(frozen=True, slots=True)
class Place:
    """number: of the yield point, or of the page at which a backup stands, from 1; logged: index loads
    are."""

    kind: Kind | SystemKind | LargeKind | MidBackupKind | PreambleKind
    logged: bool
    act: str
    full: bool
    number: int


class PlacesParams(BaseModel):
    """Each kind of statement of bounded with a full checkpoint at each of its yield points, a batch of the
    page cleaner and an eviction at each of the first ones, then at one in eight; large statements with a
    full log at some of theirs; statements while a hot backup stands at a page, some behind a preamble (of
    loads in two modes or two files, full blocks of a row log, pages and names that are taken again, new pages
    that go home in parts, freed pages that are overwritten, too), and some about a table of the system
    tablespace: each once, or one alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sequence: int = Field(default=0, ge=0)
    """Given: only this one, by number."""
    page_size: int = Field(default=4096, ge=4096, le=65536)
    """The target's, in bytes."""


class SwitchesParams(PlacesParams):
    """The mode of index loads changes with nothing logged since a full checkpoint, amid a hot backup, or
    while new pages wait for their first write. A load or a rebuild follows, and a transaction that stays
    open, whose rollback splits pages; a checkpoint or the page cleaner comes at a yield point of it. Each
    once, or one alone."""


@cache
def places_of(workload: str = "places") -> tuple[Place, ...]:
    """All of them, or those of the workload "switches"."""
    if workload == "switches":
        return _behind(MODE_SWITCH_KINDS)
    small = tuple(
        Place(kind, logged, act, full, number)
        for kind in KINDS
        for logged in ((False, True) if kind.loads else (False,))
        for act, full in ACTS
        if not (act == "checkpoint" and kind.name in CHECKPOINTS)
        for number in _numbers(kind.name, dense=full)
    ) + tuple(
        Place(kind, False, "fill", False, number)
        for kind in KINDS
        if kind.name in FILLED
        for number in _numbers(kind.name, dense=True)
    )
    large = tuple(
        Place(kind, kind.logged, "fill", False, number)
        for kind in LARGE_KINDS
        for number in (*range(1, FIRST + 1), *LATER)
        if number <= kind.yields
    )
    amid = tuple(
        Place(kind, kind.logged, "backup", False, page)
        for kind in MID_BACKUP_KINDS
        for page in kind.pages
    )
    in_system = tuple(
        Place(kind, False, "checkpoint", True, number)
        for kind in SYSTEM_KINDS
        for number in kind.numbers
    )
    return small + large + amid + _behind(BEHIND) + in_system


def _behind(kinds: Iterable[PreambleKind]) -> tuple[Place, ...]:
    return tuple(
        Place(kind, False, kind.act, kind.full, number) for kind in kinds for number in kind.numbers
    )


def _numbers(kind: str, dense: bool) -> Iterator[int]:
    last = YIELDS.get(kind, 0)
    yield from range(1, (last if dense else min(last, EACH)) + 1)
    yield from range(EACH + STRIDE, 0 if dense else last + 1, STRIDE)
    alike = STRIDE // 2 if dense else STRIDE
    yield from range(alike, ALIKE.get(kind, 0) + 1, alike)


def generate_places(params: PlacesParams, rng: random.Random) -> Script:
    """The script of this place. Raises WorkloadError if there is none of this number."""
    every = places_of("switches" if isinstance(params, SwitchesParams) else "places")
    if params.sequence >= len(every):
        raise WorkloadError(f"place {params.sequence}: there are {len(every)}, from 0")
    place = every[params.sequence]
    book = Book(rng, page_size=params.page_size)
    if isinstance(place.kind, MidBackupKind):
        ready = play_mid_backup(book, place.kind, place.number)
        return Script.of(book.out, ready)
    play, then = _ready(book, place, place.kind)
    ready = len(book.out)
    book.add(Verb.AT, number=place.number, name=place.act, full=place.full)
    play()
    over = 0
    if then:
        ready = len(book.out)
        then()
        over = len(book.out)
    return Script.of(book.out, ready, over)


_Issue = Callable[[], None]


def _ready(
    book: Book, place: Place, kind: Kind | SystemKind | LargeKind | PreambleKind
) -> tuple[_Issue, _Issue | None]:
    """Prepares the database; what issues the statement, and what comes behind it."""
    if isinstance(kind, LargeKind):
        return partial(kind.play, book, prepare_large(book, kind)), None
    system = isinstance(kind, SystemKind)
    ground = prepare(book, Sequence((), LEVELS, place.logged, False, system))
    if isinstance(kind, PreambleKind):
        kind.preamble(ground)
        return partial(kind.play, ground), kind.then and partial(kind.then, ground)
    for change in () if place.act == "fill" else CHANGES * ROWS:
        change.play(ground)
    return partial(kind.play, ground), None
