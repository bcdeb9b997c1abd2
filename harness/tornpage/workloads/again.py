"""What takes a place that was another's in the same checkpoint interval: the pages of an index that is loaded
again and again, and names that tables take from each other.
"""

from __future__ import annotations

from tornpage.workloads.kinds import SHAPE, Ground
from tornpage.workloads.preambles import PreambleKind
from tornpage.workloads.table import Table

__all__ = ["AGAIN_KINDS"]

WIDE = 0
"""Number of the index of several pages."""
CHANGES = 12
"""Rows that change behind the last load."""


# -- pages ---------------------------------------------------------------------------------------


def _drop(ground: Ground) -> None:
    ground.book.drop_index(ground.it, ground.it.shape.indexes[WIDE].name)


def _add(ground: Ground) -> None:
    ground.book.add_indexes(ground.it, [ground.it.shape.indexes[WIDE]])


def _add_and_drop(ground: Ground) -> None:
    """The index goes, comes and goes."""
    _drop(ground)
    _add(ground)
    _drop(ground)


def _change(ground: Ground) -> None:
    book, table = ground.book, ground.it
    trx = book.begin()
    for key in sorted(table.live)[:CHANGES]:
        book.update(table, trx, key)
        book.insert(table, trx)
    book.end(trx, commit=True)


def _add_and_change(ground: Ground) -> None:
    _add(ground)
    _change(ground)


def _changed_between(ground: Ground) -> None:
    """Pages of the index go to rows of the table, and back."""
    _add_and_drop(ground)
    _change(ground)
    _add(ground)
    _drop(ground)


def _rebuild(ground: Ground) -> None:
    ground.book.rebuild(ground.it, in_steps=False)


def _rebuild_and_change(ground: Ground) -> None:
    _rebuild(ground)
    _change(ground)


_LOADS = (
    ("index again", _add_and_drop, _add_and_change, range(2, 122, 8)),
    ("index again behind changes", _changed_between, _add_and_change, range(2, 122, 8)),
    ("rebuild again", _rebuild, _rebuild_and_change, range(4, 196, 16)),
)


# -- names ---------------------------------------------------------------------------------------


def _third(ground: Ground) -> Table:
    """A third table, of which nothing is home."""
    table = ground.book.create("n", SHAPE)
    ground.book.insert(table)
    return table


def _turn(ground: Ground) -> None:
    """a -> x, b -> a: the names of two tables are each other's; a third one has that of before."""
    book, first, second = ground.book, ground.it, ground.other
    book.rename(first, "x")
    book.rename(second, "t")
    book.rename(first, "o")


def _turn_back(ground: Ground) -> None:
    book, first, second = ground.book, ground.it, ground.other
    book.rename(second, "x")
    book.rename(first, "t")
    book.rename(second, "o")


def _there_and_back(ground: Ground) -> None:
    ground.book.rename(ground.it, "x")
    ground.book.rename(ground.it, "t")


def _take_given_back(ground: Ground) -> None:
    """The name that another table has given back."""
    ground.book.rename(ground.other, "x")
    ground.book.insert(ground.it)


def _drop_first(ground: Ground) -> None:
    """Behind that a third table has the name."""
    third, name = _third(ground), ground.it.name
    ground.book.drop(ground.it)
    ground.book.rename(third, name)
    ground.table = third
    ground.book.rename(ground.other, "y")


def _truncate_first(ground: Ground) -> None:
    ground.book.truncate(ground.it)
    _turn_back(ground)


def _rename_and_create(ground: Ground) -> None:
    """The name goes to a new table, whose file is empty."""
    ground.book.rename(ground.it, "z")
    ground.table = ground.book.create("t", SHAPE)
    ground.book.insert(ground.it)


_NAMES = (
    ("names take turns", _turn, _turn_back, range(2, 33, 4)),
    ("names take turns, drop", _turn, _drop_first, range(2, 118, 12)),
    ("names take turns, truncate", _turn, _truncate_first, range(2, 120, 12)),
    ("a name there and back", _there_and_back, _take_given_back, range(2, 22, 3)),
    ("a name for a new table", _there_and_back, _rename_and_create, range(2, 60, 8)),
)

AGAIN_KINDS = (
    *(
        PreambleKind(name, preamble, play, act, numbers)
        for name, preamble, play, numbers in _LOADS
        for act in ("clean", "checkpoint", "evict")
    ),
    *(
        PreambleKind(name, preamble, play, act, numbers)
        for name, preamble, play, numbers in _NAMES
        for act in ("clean", "checkpoint")
    ),
)
