"""New pages of a table go home in parts, behind a checkpoint and with nothing drained. Where loads are
logged they have no copies, and nothing fsyncs a part that has new pages only. Then their rows stay, or go
again, with the pages. The power fails, and a new life may load the table's next index in the other mode.

The mode is set before the checkpoint, by a start, or behind it. A batch of the page cleaner comes at a yield
point of the growth, and smaller ones behind it.

And new pages, the first of which are behind a checkpoint that stands at the initialisation of the next one.
That is home, and not fsynced, when the mode changes. A load that is given up has its INDEX_LOAD at once.
"""

from __future__ import annotations

from functools import partial

from tornpage.workloads.kinds import LEVELS, Ground, give_up_index
from tornpage.workloads.mode_switches import EACH, PAGES, SHAPE, insert_rows
from tornpage.workloads.preambles import PreambleKind
from tornpage.workloads.script import Verb

__all__ = ["GROWN_KINDS", "HALF_HOME_KINDS"]

OLD = 8
"""Pages that the growth has changed besides: oldest of all, and with copies."""
NEW = 2 * PAGES
PARTS, OF = (1, 2, 3), 3
"""Batches behind the one that has the old pages, and pages of each."""


def _prepare(ground: Ground, by_set: bool) -> None:
    book = ground.book
    switches = {"optimize_ddl_drain": "off", "log_optimize_ddl": "on" if by_set else "off"}
    book.restart(True, switches)
    ground.table = book.create("m", SHAPE, system=False)
    insert_rows(ground, [EACH * row for row in range(PAGES * EACH)])
    book.add(Verb.CHECKPOINT, full=True)
    if by_set:
        book.set_optimize(False)


def _grow(ground: Ground, parts: int, gone: bool) -> None:
    book, table = ground.book, ground.it
    first = PAGES * EACH
    grown = [EACH * row for row in range(first, first + NEW * EACH)]
    insert_rows(ground, grown)
    book.add(Verb.CLEAN, number=OLD)
    for _ in range(parts):
        book.add(Verb.CLEAN, number=OF)
    if gone:
        trx = book.begin()
        for key in grown:
            book.delete(table, trx, key)
        book.end(trx, commit=True)
        book.add(Verb.PURGE, number=-1)
    book.add(Verb.FLUSH_LOG)


def _insert_other(ground: Ground) -> None:
    ground.book.insert(ground.other)


def _half_home(ground: Ground, home: int) -> None:
    """home: pages behind the checkpoint, some of them old ones."""
    book = ground.book
    book.restart(True, {"optimize_ddl_drain": "off", "log_optimize_ddl": "off"})
    ground.table = book.create("n", ground.it.shape)
    book.insert_seq(ground.it, 1, LEVELS)
    book.add(Verb.CHECKPOINT, full=True)
    book.insert_seq(ground.it, LEVELS + 1, 3 * LEVELS)
    book.add(Verb.CLEAN, number=home)
    book.add(Verb.CHECKPOINT)
    book.add(Verb.CLEAN, number=1)


def _set_and_give_up(ground: Ground) -> None:
    ground.book.set_optimize(True)
    give_up_index(ground)


GROWN_KINDS = tuple(
    PreambleKind(
        f"new pages {'behind a set' if by_set else 'behind a start'}, home in {parts} parts"
        + (", free again" if gone else ""),
        partial(_prepare, by_set=by_set),
        partial(_grow, parts=parts, gone=gone),
        "clean",
        range(8, 57, 12),
        then=_insert_other,
    )
    for by_set in (False, True)
    for parts in PARTS
    for gone in (False, True)
)
HALF_HOME_KINDS = tuple(
    PreambleKind(
        f"load that is given up behind {home} pages and a checkpoint",
        partial(_half_home, home=home),
        _set_and_give_up,
        "evict",
        range(2, 3),
        then=_insert_other,
    )
    for home in range(6, 18)
)
