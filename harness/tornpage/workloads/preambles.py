"""Statements behind a preamble, so that what is placed in them meets pages that were written, or logged,
in a way that is rare by chance.

- An import takes the place of rows that have changed: a checkpoint at each of its yield points.
- Pages of a table are written by a batch, change again, and are written one by one, while the batch waits for
  its fsync or before: the batch begins at each yield point of these changes.
- A crash ends an export, and the table changes: its `.cfg` must not come back.
- An index that has taken the pages of another load changes, and its pages are written: the doublewrite area
  has copies of the same pages with contents of before.
- Pages of an index that was loaded where another one had been, and has changed since, are freed and loaded
  again, with no checkpoint between all that.
- A page that was loaded without redo is as old as the checkpoint that comes behind the load: another
  one comes at each yield point of the load, so that the second one is before the page's stamp, at it, or
  behind it.
- A text grows until another one, which is not set, has no room beside it and moves to pages of its own: the
  page cleaner comes at each yield point of that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tornpage.workloads.kinds import ALL_ROWS, Ground
from tornpage.workloads.script import Column, Verb
from tornpage.workloads.shapes import Shape

__all__ = ["PREAMBLE_KINDS", "PreambleKind"]

CLEANED = 64
"""More pages than are dirty: all go home, with no checkpoint."""
CHANGES = 8
"""Rows that change, the same ones again and again."""

COPIED = 56
"""Pages that a backup has copied: the system tablespace, and a part of the table's file."""

TWO_TEXTS = Shape((Column("k"), *(Column(name, 3000, varying=True) for name in "bc")), "k", ())

_Play = Callable[[Ground], None]


@dataclass(frozen=True, slots=True)
class PreambleKind:
    """preamble: what comes before; act: what is placed in it, at which of its yield points; then: what comes
    behind it, which alone is crashed."""

    name: str
    preamble: _Play
    play: _Play
    act: str
    numbers: range
    full: bool = False
    then: _Play | None = None


def _into_changed(ground: Ground) -> None:
    book, table = ground.book, ground.it
    ground.other = other = book.create("n", table.shape)
    for _ in range(CHANGES):
        book.insert(other)
    book.add_indexes(other, [one for one in table.shape.indexes if one.name in table.indexes])
    book.add(Verb.CHECKPOINT, full=True)
    for key in sorted(other.live):
        book.update(other, key=key)
    book.export(table)


def _import(ground: Ground) -> None:
    ground.book.import_rows(ground.other, ground.it)


def _update(ground: Ground) -> None:
    for key in sorted(ground.it.live)[:CHANGES]:
        ground.book.update(ground.it, key=key)


def _update_at_once(ground: Ground) -> None:
    trx = ground.book.begin()
    for key in sorted(ground.it.live)[: CHANGES // 2]:
        ground.book.update(ground.it, trx, key)
    ground.book.end(trx, commit=True)


def _two_texts(ground: Ground) -> None:
    """Of some rows: both fit."""
    book, part = ground.book, ground.book.page_size // 8
    ground.other = book.create("n", TWO_TEXTS)
    for _ in range(CHANGES):
        book.insert(ground.other, values={"b": b"b" * 3 * part, "c": b"c"})
    book.add(Verb.CHECKPOINT, full=True)


def _lengthen_one(ground: Ground) -> None:
    """In each row, and all is taken back."""
    book, part = ground.book, ground.book.page_size // 8
    trx = book.begin()
    for key in sorted(ground.other.live):
        book.update(ground.other, trx, key, values={"c": b"c" * 2 * part})
    book.end(trx, commit=False)


def _flush(ground: Ground) -> None:
    ground.book.add(Verb.FLUSH_TABLE, table=ground.it.name)


def _update_and_export(ground: Ground) -> None:
    _update(ground)
    ground.book.export(ground.it)


def _export_and_crash(ground: Ground) -> None:
    ground.book.export(ground.it)
    ground.book.restart(False, {})


def _load_over_load(ground: Ground) -> None:
    """The index of wide entries is loaded again; then two of one page each take its pages."""
    book, table = ground.book, ground.it
    wide, narrow, other = table.shape.indexes[:3]
    book.drop_index(table, wide.name)
    book.add_indexes(table, [wide])
    book.drop_index(table, wide.name)
    book.add_indexes(table, [narrow])
    book.add_indexes(table, [other])
    book.add(Verb.CLEAN, number=CLEANED)


def _load_and_change(ground: Ground) -> None:
    """Pages that were freed are loaded without redo, and change: all behind one checkpoint."""
    book, table = ground.book, ground.it
    wide = table.shape.indexes[0]
    book.drop_index(table, wide.name)
    book.add_indexes(table, [wide])
    _update(ground)


def _free_and_load(ground: Ground) -> None:
    """They are free again, and are loaded once more."""
    book, table = ground.book, ground.it
    wide = table.shape.indexes[0]
    book.drop_index(table, wide.name)
    book.add_indexes(table, [wide])


def _start_load(ground: Ground, index: int) -> None:
    """Up to its sort."""
    ground.book.start_build(ground.it, [ground.it.shape.indexes[index]])
    ground.book.step_build(ground.it, 2, ALL_ROWS)


def _load_and_checkpoint(ground: Ground) -> None:
    ground.book.step_build(ground.it, 1, ALL_ROWS)
    ground.book.add(Verb.CHECKPOINT)


def _flush_load(ground: Ground) -> None:
    """Its pages, one by one, and their fsync."""
    ground.book.step_build(ground.it, 2, ALL_ROWS)


def _load_amid_backup(ground: Ground) -> None:
    """An index of several pages is loaded and not flushed; the backup has copied a part of its file."""
    book, table = ground.book, ground.it
    book.drop_index(table, table.shape.indexes[0].name)
    book.add(Verb.START_BACKUP, name="b")
    _start_load(ground, 0)
    book.step_build(table, 1, ALL_ROWS)
    book.add(Verb.STEP_BACKUP, name="b", number=COPIED)


def _flush_and_finish(ground: Ground) -> None:
    """Flush, fsync and INDEX_LOAD; the end of the load, and of the backup."""
    _flush_load(ground)
    ground.book.end_build(ground.it, finish=True)
    ground.book.add(Verb.FINISH_BACKUP, name="b")


PREAMBLE_KINDS = (
    PreambleKind(
        "import into changed rows", _into_changed, _import, "checkpoint", range(65, 113), full=True
    ),
    PreambleKind("update that moves a text", _two_texts, _lengthen_one, "clean", range(1, 33)),
    PreambleKind("export of rows that change", _update, _update_and_export, "clean", range(1, 65)),
    PreambleKind(
        "changes behind a crash amid an export",
        _update,
        _export_and_crash,
        "clean",
        range(1, 9),
        then=_update,
    ),
    *(
        PreambleKind(
            "change behind a load over a load",
            _load_over_load,
            _update_at_once,
            act,
            range(1, 25),
            then=_flush,
        )
        for act in ("clean", "evict")
    ),
    PreambleKind(
        "free and load behind a load that changes",
        _load_and_change,
        _free_and_load,
        "clean",
        range(1, 25),
    ),
    *(
        PreambleKind(
            f"load of index {index} and checkpoint",
            partial(_start_load, index=index),
            _load_and_checkpoint,
            "checkpoint",
            range(1, 9),
            full=True,
            then=_flush_load,
        )
        for index in range(1, 5)
    ),
    *(
        PreambleKind(
            f"flush of a load amid a backup, {'full' if full else 'plain'} checkpoint",
            _load_amid_backup,
            _flush_and_finish,
            "checkpoint",
            range(1, 33, 4 if full else 1),
            full=full,
        )
        for full in (False, True)
    ),
)
