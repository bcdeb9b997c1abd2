"""The workload "bounded": all sequences of up to so many statements on a small prepared database, by number.

A sequence is crashed from its last statement on. Up to there it is the same script, byte for byte, as the
shorter sequence that ends there, which is crashed too. So all sequences up to a length have each crash point
of such scripts once. Left out are sequences that would be the same again: where nothing is loaded,
log_optimize_ddl is not switched off.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pydantic import BaseModel, ConfigDict, Field

from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.book import Book
from tornpage.workloads.kinds import (
    EMPTY,
    IN_SYSTEM,
    KINDS,
    LEVELS,
    OFF_PAGE,
    PAGE,
    SHAPE,
    Ground,
    Kind,
    switch,
)
from tornpage.workloads.script import Script, Value, Verb
from tornpage.workloads.table import Table

__all__ = ["BoundedParams", "Sequence", "generate_bounded", "prepare", "sequences_of"]


@dataclass(frozen=True, slots=True)
class Sequence:
    """rows: of the table before it; logged: index loads are; checkpoint: whether a full one comes before the
    last statement, behind the others; system: the table, and those that are created, are in the system
    tablespace; long: its rows have a text in pages of its own; through: the log is written with each record
    group, so that a crash may end it at any."""

    kinds: tuple[Kind, ...]
    rows: int
    logged: bool
    checkpoint: bool
    system: bool = False
    long: bool = False
    through: bool = False


class BoundedParams(BaseModel):
    """Every sequence of statements up to a length, on a small database: each once, or one alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    length: int = Field(default=2, ge=1, le=3)
    """Most statements of a sequence."""
    sequence: int = Field(default=0, ge=0)
    """Given: only this one, by number; shorter sequences come first."""
    page_size: int = Field(default=4096, ge=4096, le=65536)
    """The target's, in bytes."""


@cache
def sequences_of(length: int) -> tuple[Sequence, ...]:
    """All up to this length, shorter ones first. Of one statement, and of a purge behind another one, with
    every size and kind of table and both ways of writing the log; else with the largest, and one way."""
    found: list[Sequence] = []
    for size in range(1, length + 1):
        for kinds in itertools.product(KINDS, repeat=size):
            if not _can_be(kinds) or (any(kind.alone for kind in kinds) and not _is_alone(kinds)):
                continue
            found += [
                Sequence(kinds, rows, logged, checkpoint, system, long, through)
                for rows, system, long in _tables(kinds)
                for logged in ((False, True) if any(kind.loads for kind in kinds) else (False,))
                for through in ((False, True) if _is_alone(kinds) else (False,))
                for checkpoint in _checkpoints(kinds, special=long or through)
            ]
    return tuple(found)


def _is_alone(kinds: tuple[Kind, ...]) -> bool:
    """One statement, or a purge of what it left."""
    return len(kinds) == 1 or (len(kinds) == 2 and kinds[1].name == "purge")


def _checkpoints(kinds: tuple[Kind, ...], special: bool) -> tuple[bool, ...]:
    """Before the last statement; only where what is before it is a sequence too (_is_alone)."""
    return (False,) if len(kinds) == 1 or special or kinds[0].alone else (False, True)


def _tables(kinds: tuple[Kind, ...]) -> Iterator[tuple[int, bool, bool]]:
    """Rows; in the system tablespace; with long texts."""
    sizes = (EMPTY, PAGE, LEVELS) if len(kinds) == 1 else (LEVELS,)
    spaces = (False, True) if all(kind.name in IN_SYSTEM for kind in kinds) else (False,)
    yield from ((rows, system, False) for rows in sizes for system in spaces)
    if _is_alone(kinds):
        yield PAGE, False, True


def _can_be(kinds: tuple[Kind, ...]) -> bool:
    facts: tuple[bool, int] | None = (True, 1)
    for kind in kinds:
        if facts is None:
            return False
        facts = kind.after(facts)
    return facts is not None


def generate_bounded(params: BoundedParams, rng: random.Random) -> Script:
    """The script of this sequence. Raises WorkloadError if there is none of this number."""
    every = sequences_of(params.length)
    if params.sequence >= len(every):
        raise WorkloadError(f"sequence {params.sequence}: there are {len(every)}, from 0")
    sequence = every[params.sequence]
    book = Book(rng, page_size=params.page_size)
    ground = prepare(book, sequence)
    for kind in sequence.kinds[:-1]:
        kind.play(ground)
    if sequence.checkpoint:
        book.add(Verb.CHECKPOINT, full=True)
    ready = len(book.out)
    sequence.kinds[-1].play(ground)
    return Script.of(book.out, ready)


def prepare(book: Book, sequence: Sequence) -> Ground:
    """The database as a sequence finds it, behind a full checkpoint."""
    if sequence.through:
        book.restart(clean=True, options={"log_write_through": "on"})
    shape = OFF_PAGE if sequence.long else SHAPE
    table, other = book.create("t", shape, sequence.system), book.create("o", shape)
    book.system_share = float(sequence.system)
    for one, rows in ((table, sequence.rows), (other, PAGE)):
        book.add_indexes(one, shape.indexes[:1])
        trx = book.begin()
        for key in range(rows):
            book.insert(one, trx, 3 * key, values=_long_row(book, one) if sequence.long else None)
        book.end(trx, commit=True)
    ground = Ground(book, table, other)
    if sequence.logged:
        switch(ground)
    book.add(Verb.PURGE, number=-1)
    book.add(Verb.CHECKPOINT, full=True)
    return ground


def _long_row(book: Book, table: Table) -> dict[str, Value]:
    text = table.shape.columns[-1]
    return {**book.values(table, 0.7), text.name: book.long_text(text.length)}
