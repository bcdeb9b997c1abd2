"""Loads with redo and without in one checkpoint interval, one behind the other, in either order: of two
indexes, or of one that is loaded again and takes the pages that it had. The first load may be given up.

Nothing is drained when the mode changes (optimize_ddl_drain is off): what one mode has left unwritten, or in
flight, meets the other one. It is changed by SET, or by a crash and a start with the other setting. Pages go
home at a yield point of the second load.
"""

from __future__ import annotations

from functools import partial

from tornpage.workloads.kinds import Ground, give_up_index
from tornpage.workloads.preambles import CLEANED, PreambleKind
from tornpage.workloads.script import Verb

__all__ = ["TWO_MODES_KINDS"]

WIDE, OTHER, THIRD = 0, 1, 2
"""Numbers of indexes of the shape: of several pages, and of one."""
ROWS = 12
"""Rows that come behind the second load, and split pages of its index."""


def _begin(ground: Ground, logged: bool) -> None:
    """In this mode, behind a checkpoint, and without the index of several pages."""
    switches = {"optimize_ddl_drain": "off", "log_optimize_ddl": "off" if logged else "on"}
    ground.book.drop_index(ground.it, ground.it.shape.indexes[WIDE].name)
    ground.book.restart(True, switches)


def _set(ground: Ground, logged: bool) -> None:
    ground.book.set_optimize(not logged)


def _start_again(ground: Ground, logged: bool) -> None:
    """A crash takes no checkpoint."""
    ground.book.restart(False, {"log_optimize_ddl": "off" if logged else "on"})


def _two(ground: Ground, logged: bool, start_again: bool, first: int, second: int) -> None:
    """The mode changes between two loads; logged: the second one is."""
    book, table = ground.book, ground.it
    _begin(ground, not logged)
    book.add_indexes(table, [table.shape.indexes[first]])
    if first == second:
        book.drop_index(table, table.shape.indexes[first].name)
    (_start_again if start_again else _set)(ground, logged)


def _all_home(ground: Ground) -> None:
    """Behind a load without redo nothing waits, and no checkpoint has come; then the mode changes."""
    book, table = ground.book, ground.it
    _begin(ground, logged=False)
    book.add_indexes(table, [table.shape.indexes[OTHER]])
    book.add(Verb.CLEAN, number=CLEANED)
    _set(ground, logged=True)


def _given_up(ground: Ground) -> None:
    """A load without redo ends before its pages are written; what is loaded with redo may get them."""
    _begin(ground, logged=False)
    give_up_index(ground)
    _set(ground, logged=True)


def _one_home(ground: Ground) -> None:
    """Of two loads with redo the pages of the first one are home, those of the second one are not."""
    book, table = ground.book, ground.it
    _begin(ground, logged=True)
    book.add_indexes(table, [table.shape.indexes[WIDE]])
    book.add(Verb.CLEAN, number=CLEANED)
    book.add_indexes(table, [table.shape.indexes[THIRD]])
    _set(ground, logged=False)


def _load_alone(ground: Ground, index: int) -> None:
    ground.book.add_indexes(ground.it, [ground.it.shape.indexes[index]])


def _load(ground: Ground, index: int) -> None:
    _load_alone(ground, index)
    _insert(ground)


def _insert(ground: Ground) -> None:
    book, table = ground.book, ground.it
    trx = book.begin()
    for _ in range(ROWS):
        book.insert(table, trx)
    book.end(trx, commit=True)
    book.add(Verb.CLEAN, number=CLEANED)


_PAIRS = (
    ("two indexes", OTHER, WIDE),
    ("two indexes, small", WIDE, OTHER),
    ("one index", WIDE, WIDE),
)

_NUMBERS = range(2, 35, 3)

TWO_MODES_KINDS = (
    *(
        PreambleKind(
            f"{name}, {'logged' if logged else 'not logged'} behind a {'start' if again else 'set'}",
            partial(_two, logged=logged, start_again=again, first=first, second=second),
            partial(_load, index=second),
            "clean",
            _NUMBERS,
        )
        for name, first, second in _PAIRS
        for logged in (False, True)
        for again in (False, True)
    ),
    PreambleKind(
        "three indexes, one of them home, not logged behind a set",
        _one_home,
        partial(_load, index=OTHER),
        "clean",
        _NUMBERS,
    ),
    *(
        PreambleKind(
            f"index {index} behind a load that is given up, logged behind a set",
            _given_up,
            partial(_load, index=index),
            "clean",
            _NUMBERS,
        )
        for index in (WIDE, THIRD)
    ),
    PreambleKind(
        "two indexes, all home between them, logged behind a set",
        _all_home,
        partial(_load_alone, index=WIDE),
        "clean",
        _NUMBERS,
        then=_insert,
    ),
)
