"""Pages are freed under a log that tells of each, and are overwritten with zeros where they lie. Then the
file is carried elsewhere: by an export, or by a hot backup. It is crashed behind that, while another table
changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tornpage.workloads.kinds import BULK, Ground, give_up_index
from tornpage.workloads.preambles import COPIED, PreambleKind
from tornpage.workloads.script import Verb

__all__ = ["SCRUBBED_KINDS"]

CHANGES = 2
"""Rows of another table that come behind it."""

_Play = Callable[[Ground], None]


def _prepare(ground: Ground) -> None:
    """Under such a log, with an index more, behind a checkpoint."""
    book, table = ground.book, ground.it
    book.restart(True, {"log_format": "10.5", "scrub": "on"})
    book.add_indexes(table, book.missing_indexes(table)[:1])
    book.add(Verb.CHECKPOINT, full=True)


def _drop_index(ground: Ground) -> None:
    ground.book.drop_index(ground.it, ground.it.indexes[0])


def _drop_and_change(ground: Ground) -> None:
    """Some of the pages come back to life at once."""
    _drop_index(ground)
    for _ in range(BULK):
        ground.book.insert(ground.it)


def _delete(ground: Ground) -> None:
    """Most rows go, and what they leave."""
    book, table = ground.book, ground.it
    trx = book.begin()
    for key in sorted(table.live)[: 2 * BULK]:
        book.delete(table, trx, key)
    book.end(trx, commit=True)
    book.add(Verb.PURGE, number=-1)


def _export(ground: Ground) -> None:
    ground.book.export(ground.it)


def _back_up(ground: Ground) -> None:
    """A part of the file is copied before the flush that overwrites them, and the rest behind it."""
    book = ground.book
    book.add(Verb.START_BACKUP, name="b")
    book.add(Verb.STEP_BACKUP, name="b", number=COPIED)
    book.add(Verb.FLUSH_TABLE, table=ground.it.name)
    book.add(Verb.FINISH_BACKUP, name="b")


def _carry(ground: Ground, free: _Play, carry: _Play) -> None:
    free(ground)
    carry(ground)


def _change_other(ground: Ground) -> None:
    """The page cleaner comes, too, and would overwrite what was left."""
    for _ in range(CHANGES):
        ground.book.insert(ground.other)
        ground.book.add(Verb.CLEAN, number=1)


SCRUBBED_KINDS = tuple(
    PreambleKind(
        f"{carried} behind {freed}",
        _prepare,
        partial(_carry, free=free, carry=carry),
        "clean",
        range(1, 18, 8),
        then=_change_other,
    )
    for carried, carry in (("export", _export), ("backup", _back_up))
    for freed, free in (
        ("a drop of an index", _drop_index),
        ("a drop of an index and new rows", _drop_and_change),
        ("deleted rows", _delete),
        ("a build that is given up", give_up_index),
    )
)
