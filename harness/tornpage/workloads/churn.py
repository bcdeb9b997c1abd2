"""The workload "churn": what moves the structures that the workload "smoke" hardly touches.

Wide keys give trees of three levels from few rows, rows of any size pages that have to be put together, long
values pages of their own; phases that grow and shrink them split, merge, pack, raise and lower;
transactions change one row again and again, bring back what they deleted and fill several undo pages; two
names are created, renamed and dropped in turn while the log still has all of it.
"""

from __future__ import annotations

import random

from pydantic import BaseModel, ConfigDict, Field

from tornpage.workloads.book import Book
from tornpage.workloads.builds import build, lengthen, name_burst, retire
from tornpage.workloads.defragment import defragment
from tornpage.workloads.phases import (
    drain,
    fill,
    restart,
    revive,
    rewrite,
    rolled_back_deletes,
    settle,
)
from tornpage.workloads.script import Script
from tornpage.workloads.shapes import LONG, SMALL, VARYING, WIDE

__all__ = ["ChurnParams", "generate_churn"]

NAMES = ("n1", "n2")
DEFRAGMENT_SHARE = 0.5
"""Rounds in which the table of wide keys loses rows here and there, and its leaves are packed."""
RESTART_SHARE = 0.5
"""Of the places in a round where the target may be started again."""


class ChurnParams(BaseModel):
    """Rounds of growing and shrinking one table of wide keys, one of rows of any size, one of long values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rounds: int = Field(default=2, ge=1, le=1000)
    """How often the table grows and shrinks."""
    rows: int = Field(default=120, ge=16, le=100_000)
    """Rows of the table of wide keys when it is at its largest; the others have a quarter or less."""
    bursts: int = Field(default=6, ge=0, le=1000)
    """File operations on the two names, per round."""


def generate_churn(params: ChurnParams, rng: random.Random) -> Script:
    """The script of these parameters."""
    book = Book(rng)
    table = book.create("w", WIDE)
    varying = [book.create("v", VARYING), book.create("o", LONG)]
    for _ in range(params.rounds):
        for other in varying:
            fill(book, other, params.rows // 4 // other.shape.share * 2)
        book.rebuild(varying[-1], in_steps=False)
        for other in varying:
            plain = [index for index in book.missing_indexes(other) if not index.unique]
            if plain:
                book.add_indexes(other, plain)
            lengthen(book, other)
        fill(book, table, params.rows)
        build(book, table)
        rewrite(book, table, params.rows // 3)
        for other in varying:
            rewrite(book, other, params.rows // 12)
        retire(book, table)
        build(book, table)
        if book.rng.random() < RESTART_SHARE:
            restart(book)
        name_burst(book, NAMES, SMALL, params.bursts)
        if book.rng.random() < RESTART_SHARE:
            restart(book)
        if book.rng.random() < DEFRAGMENT_SHARE:
            defragment(book, table)
        revive(book, table)
        rolled_back_deletes(book, table)
        drain(book, table)
        name_burst(book, NAMES, SMALL, params.bursts)
        revive(book, table)
        for other in varying:
            revive(book, other)
            drain(book, other)
    if rng.random() < 0.5:
        settle(book)
    return Script.of(book.out)
