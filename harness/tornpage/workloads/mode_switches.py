"""The mode of index loads changes where nothing else asks for a checkpoint: behind a full one with nothing
logged since, amid a hot backup, or where new pages wait for their first write. Then an index or a table is
loaded in the new mode. A transaction stays open whose rollback, by a recovery, splits pages: rows that it has
made short must be as long as before, and other rows have taken their room.

With the drain and without it (optimize_ddl_drain), for a table with a file of its own and in the system
tablespace. Crashes come behind the load, or behind the end of the backup, when it is prepared.
"""

from __future__ import annotations

import itertools
from functools import partial

from tornpage.workloads.kinds import Ground
from tornpage.workloads.preambles import CLEANED, PreambleKind
from tornpage.workloads.script import Column, IndexDef, Verb
from tornpage.workloads.shapes import Shape

__all__ = ["EACH", "MODE_SWITCH_KINDS", "PAGES", "SHAPE", "insert_rows"]

SHAPE = Shape(
    (Column("k"), Column("v", 14000, varying=True)),
    "k",
    (IndexDef("im", (("v", 20),)),),
)
PAGES, BACKED_UP, EACH = 6, 14, 5
"""Of the table, of one that a backup has, and rows of each. The more, the likelier a prepare is crashed amid
them; the pool and the log have room for the fewer ones while none is home."""
HEAD = 40
"""Bytes of a page and of a record that a row's value leaves."""
_LOAD, _REBUILD = range(4, 53, 24), range(4, 161, 32)
"""Yield points of each that are tried."""


def _prepare(ground: Ground, logged: bool, drain: bool, system: bool, pages: int) -> None:
    """In the mode that is given up, behind a full checkpoint."""
    book = ground.book
    switches = {
        "optimize_ddl_drain": "on" if drain else "off",
        "log_optimize_ddl": "on" if logged else "off",
    }
    book.restart(True, switches)
    ground.table = book.create("m", SHAPE, system)
    insert_rows(ground, [EACH * row for row in range(pages * EACH)])
    book.add(Verb.CHECKPOINT, full=True)


def _value(key: int, length: int) -> bytes:
    return f"{key:05d}".encode().ljust(length, b"m")


def _full(ground: Ground) -> int:
    """Of such values so many fill a page."""
    return ground.book.page_size // EACH - HEAD


def insert_rows(ground: Ground, keys: list[int]) -> None:
    """In one transaction, rows of which so many fill a page."""
    book = ground.book
    trx = book.begin()
    for key in keys:
        values = {"v": _value(key, _full(ground))}
        book.insert(ground.it, trx, key, values=values)
    book.end(trx, commit=True)


def _load(ground: Ground, rebuild: bool) -> None:
    if rebuild:
        ground.book.rebuild(ground.it, in_steps=False)
    else:
        ground.book.add_indexes(ground.it, SHAPE.indexes)


def _leave_open(ground: Ground) -> None:
    """One row of each page is short, for now, and another one has its room. All goes home."""
    book = ground.book
    short = range(0, max(ground.it.live), EACH * EACH)
    trx = book.begin()
    for key in short:
        book.update(ground.it, trx, key, values={"v": _value(key, 1)})
    insert_rows(ground, [key + 1 for key in short])
    book.add(Verb.CLEAN, number=CLEANED)


def _switch(ground: Ground, logged: bool, rebuild: bool, amid: bool, grown: bool) -> None:
    book = ground.book
    if grown:
        insert_rows(ground, [EACH * row + 2 for row in range(PAGES * EACH)])
    if amid:
        book.add(Verb.START_BACKUP, name="b")
    book.set_optimize(not logged)
    _load(ground, rebuild)
    if amid:
        _leave_open(ground)
        book.add(Verb.FINISH_BACKUP, name="b")


def _insert_other(ground: Ground) -> None:
    ground.book.insert(ground.other)


def _kind(
    act: str, *, logged: bool, drain: bool, system: bool, rebuild: bool, amid: bool, grown: bool
) -> PreambleKind:
    words = (
        "rebuild" if rebuild else "load",
        "logged" if logged else "not logged",
        "behind a switch",
        *(["amid a backup"] if amid else []),
        *(["and new pages"] if grown else []),
        *(["in system"] if system else []),
        *([] if drain else ["without drain"]),
    )
    return PreambleKind(
        " ".join(words),
        partial(
            _prepare,
            logged=logged,
            drain=drain,
            system=system,
            pages=BACKED_UP if amid else PAGES,
        ),
        partial(_switch, logged=logged, rebuild=rebuild, amid=amid, grown=grown),
        act,
        _REBUILD if rebuild else _LOAD,
        then=_insert_other if amid else _leave_open,
    )


_CHOICES = ("logged", "drain", "system", "rebuild")
_WHERE = (
    {"amid": False, "grown": False},
    {"amid": True, "grown": False},
    {"amid": False, "grown": True},
)

MODE_SWITCH_KINDS = tuple(
    _kind(act, **dict(zip(_CHOICES, chosen, strict=True)), **where)
    for chosen in itertools.product((False, True), repeat=len(_CHOICES))
    for where in _WHERE
    for act in ("clean", "checkpoint")
)
