"""A hot backup that stands in the middle of a file, at each page of it, while a statement fills, frees or
replaces what was copied and what was not.

It is crashed behind the end of the backup, whose copies are prepared then: crashes amid a backup are those of
the workload "backup".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tornpage.workloads.book import Book
from tornpage.workloads.bounded import Sequence, prepare
from tornpage.workloads.kinds import ALL_ROWS, KINDS, LEVELS, Ground, Kind, give_up_index
from tornpage.workloads.script import Verb

__all__ = ["FILE", "MID_BACKUP_KINDS", "SYSTEM", "MidBackupKind", "play_mid_backup"]

SYSTEM, FILE = 40, 40
"""Pages of the system tablespace, which is copied first, and of the table's file, which comes next."""
APART = 4
"""Of what is logged whole one page in so many."""
_STEPS_OF_AN_INDEX = 6
"""Of a build without redo: its scan, and all of its first index."""

_Play = Callable[[Ground], None]


@dataclass(frozen=True, slots=True)
class MidBackupKind:
    """before: what comes before the backup; apart: of so many pages of the file one; logged: loads are;
    system: the file is the system tablespace, where the table is."""

    name: str
    play: _Play
    before: _Play | None = None
    apart: int = APART
    logged: bool = False
    system: bool = False

    @property
    def pages(self) -> range:
        """Pages of the file that are copied when the statement comes."""
        return range(1, (SYSTEM if self.system else FILE) + 1, self.apart)


def play_mid_backup(book: Book, kind: MidBackupKind, page: int) -> int:
    """The statements; how many of them lead to the end of the backup."""
    ground = prepare(book, Sequence((), LEVELS, kind.logged, False, kind.system))
    if kind.before:
        kind.before(ground)
    book.add(Verb.START_BACKUP, name="b")
    before = 0 if kind.system else SYSTEM
    book.add(Verb.STEP_BACKUP, name="b", number=before + page)
    kind.play(ground)
    book.add(Verb.FINISH_BACKUP, name="b")
    ready = len(book.out)
    book.insert(ground.other)
    return ready


def _start_two(ground: Ground) -> None:
    """Of two indexes the first one is loaded."""
    book, table = ground.book, ground.it
    book.start_build(table, book.missing_indexes(table)[:2])
    book.step_build(table, _STEPS_OF_AN_INDEX, ALL_ROWS)


def _load_one(ground: Ground, steps: int) -> None:
    """Of one index so many steps: its scan, merge and load, then its flush, fsync and INDEX_LOAD."""
    book, table = ground.book, ground.it
    book.start_build(table, book.missing_indexes(table)[:1])
    book.step_build(table, steps, ALL_ROWS)


def _load_wide(ground: Ground, steps: int) -> None:
    """The same of an index of several pages, which is loaded again."""
    ground.book.drop_index(ground.it, ground.it.shape.indexes[0].name)
    _load_one(ground, steps)


def _start_rebuild(ground: Ground) -> None:
    """The new file is there, and the backup knows of it."""
    ground.book.rebuild(ground.it, in_steps=True)


def _finish(ground: Ground) -> None:
    ground.book.end_build(ground.it, finish=True)


def _checkpoint_and_finish(ground: Ground, full: bool) -> None:
    """Between a load and what makes it durable."""
    ground.book.add(Verb.CHECKPOINT, full=full)
    _finish(ground)


def _finish_and_checkpoint(ground: Ground) -> None:
    """C passes the INDEX_LOAD before the backup ends."""
    _finish(ground)
    ground.book.add(Verb.CHECKPOINT, full=True)


def _replace_index(ground: Ground) -> None:
    """A load takes the pages that a drop has freed."""
    book, table = ground.book, ground.it
    book.drop_index(table, table.indexes[0])
    book.add_indexes(table, book.missing_indexes(table)[1:2])


def _aborted(ground: Ground) -> None:
    """A load takes the pages of one that was given up."""
    give_up_index(ground)
    ground.book.add_indexes(ground.it, ground.book.missing_indexes(ground.it)[1:2])


def _kind(name: str) -> Kind:
    return next(kind for kind in KINDS if kind.name == name)


_CHECKPOINTS = (
    *(
        MidBackupKind(
            f"{'full ' if full else ''}checkpoint behind step {steps} of an index",
            partial(_checkpoint_and_finish, full=full),
            partial(_load_wide, steps=steps),
            apart=2 * APART,
        )
        for steps in (3, 4, 5)
        for full in (False, True)
    ),
    MidBackupKind(
        "rest of an index and full checkpoint",
        _finish_and_checkpoint,
        partial(_load_wide, steps=3),
    ),
)
_LOGGED = (
    "delete many",
    "drop table",
    "truncate table",
    "rename table",
    "drop index",
    "add index, algorithm=copy",
    "defragment",
)
_LOADS = (
    ("add index", _kind("add index").play, None),
    *(
        (f"rest of an index behind step {steps}", _finish, partial(_load_one, steps=steps))
        for steps in (3, 4, 5)
    ),
    ("rest of two indexes", _finish, _start_two),
    ("rest of a rebuild", _finish, _start_rebuild),
    ("drop index and add index", _replace_index, None),
    ("add index behind an aborted one", _aborted, None),
)

MID_BACKUP_KINDS = (
    *(MidBackupKind(name, play, before, apart=1) for name, play, before in _LOADS),
    *_CHECKPOINTS,
    *(MidBackupKind(name, play, before, logged=True) for name, play, before in _LOADS[:1]),
    *(MidBackupKind(name, _kind(name).play) for name in _LOGGED),
    MidBackupKind("add index in system", _kind("add index").play, system=True),
)
