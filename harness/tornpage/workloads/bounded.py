"""The workload "bounded": all sequences of up to so many statements on a small prepared database, by number.

A sequence is crashed from its last statement on. Up to there it is the same script, byte for byte, as the
shorter sequence that ends there, which is crashed too. So all sequences up to a length have each crash point
of such scripts once. Left out are sequences that would be the same again: where nothing is loaded,
log_optimize_ddl is not switched off.
"""

from __future__ import annotations

import itertools
import random
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
    PAGE,
    SHAPE,
    Ground,
    Kind,
    switch,
)
from tornpage.workloads.script import Script, Verb

__all__ = ["BoundedParams", "Sequence", "generate_bounded", "prepare", "sequences_of"]


@dataclass(frozen=True, slots=True)
class Sequence:
    """rows: of the table before it; logged: index loads are; checkpoint: whether a full one comes before the
    last statement, behind the others; system: the table, and those that are created, are in the system
    tablespace."""

    kinds: tuple[Kind, ...]
    rows: int
    logged: bool
    checkpoint: bool
    system: bool = False


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
    """All up to this length, shorter ones first. Of one statement with every size of the table, of more
    with the largest."""
    found: list[Sequence] = []
    for size in range(1, length + 1):
        for kinds in itertools.product(KINDS, repeat=size):
            if not _can_be(kinds):
                continue
            found += [
                Sequence(kinds, rows, logged, checkpoint, system)
                for rows in ((EMPTY, PAGE, LEVELS) if size == 1 else (LEVELS,))
                for logged in ((False, True) if any(kind.loads for kind in kinds) else (False,))
                for checkpoint in ((False, True) if size > 1 else (False,))
                for system in (False, True)[: 1 + all(kind.name in IN_SYSTEM for kind in kinds)]
            ]
    return tuple(found)


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
    table, other = book.create("t", SHAPE, sequence.system), book.create("o", SHAPE)
    book.system_share = float(sequence.system)
    for one, rows in ((table, sequence.rows), (other, PAGE)):
        book.add_indexes(one, SHAPE.indexes[:1])
        trx = book.begin()
        for key in range(rows):
            book.insert(one, trx, 3 * key)
        book.end(trx, commit=True)
    ground = Ground(book, table, other)
    if sequence.logged:
        switch(ground)
    book.add(Verb.PURGE, number=-1)
    book.add(Verb.CHECKPOINT, full=True)
    return ground
