"""The workload "mix": scripts that differ in structure. The seed draws the tables, which pieces a script
uses at all and how often, their order and their sizes. A script that never does one thing does the others
in combinations that a script of everything would hardly come to. And "storm": of pieces of data definition.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field

from tornpage.workloads import builds, phases
from tornpage.workloads.book import Book
from tornpage.workloads.clauses import clauses
from tornpage.workloads.collisions import collide
from tornpage.workloads.columns import change_primary, columns
from tornpage.workloads.defragment import defragment
from tornpage.workloads.instant import instant
from tornpage.workloads.online import online, refused, twins
from tornpage.workloads.rowlog import ONLINE_LOG_MAX, SORT_BUFFER
from tornpage.workloads.script import Script, Verb
from tornpage.workloads.shapes import SHAPES, SMALL
from tornpage.workloads.table import Table
from tornpage.workloads.transport import transport

__all__ = ["MixParams", "StormParams", "generate_mix", "generate_storm"]

NAMES = ("n1", "n2")
CHANGES = (6, 12, 24)
"""Statements of a round of mixed changes."""
SCALES = (0.3, 1, 1, 1.5)
"""Of the most rows, for a whole script."""
COPY_SHARES = (0, 0, 0.1, 0.4)
"""Of a script's statements that alter a table, those with ALGORITHM=COPY."""
STORM_COPY_SHARE = 0.3
SYSTEM_SHARES = (0, 0.4)
"""Of a script's tables, those in the system tablespace."""
EXCLUSIVE_SHARE = 0.15
"""Of those that leave the lock open, those that let nobody read the table meanwhile."""
SETTLED_SHARE = 0.5
"""Scripts that end without history; the others end as they stand."""
RESTART_SHARES = (0, 0.05, 0.1, 0.3)
"""Of the places between two pieces of a script, those with a restart."""
CLAUSES = (0, 1, 2)
"""Pieces of statements of several clauses, which a script ends with."""
INSTANTS = (0, 1, 2)
"""Pieces of instant columns, which come behind those."""
QUIET_SHARE = 0.6
"""Scripts that never ask for a checkpoint: all they do lies in one interval if the log is large enough."""

Phase = Callable[[Book, Table], None]


class MixParams(BaseModel):
    """A script of phases that the seed draws."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    phases: int = Field(default=14, ge=1, le=1000)
    """Pieces of a script."""
    rows: int = Field(default=400, ge=16, le=100_000)
    """Most rows of a table of small rows; others have fewer."""
    page_size: int = Field(default=4096, ge=4096, le=65536)
    """The target's, in bytes: tables are sized to end exactly at page ends."""
    dblwr_pages: int = Field(default=16, ge=4, le=256)
    """The target's: batches are exactly full, or nearly."""
    sort_buffer_size: int = Field(default=SORT_BUFFER, ge=65536, le=1 << 36)
    """The target's, in bytes: the logs of row changes are divided into blocks of it."""
    online_alter_log_max_size: int = Field(default=ONLINE_LOG_MAX, ge=65536, le=1 << 36)
    """The target's, in bytes: the most that may be changed during a build with LOCK=NONE."""


class StormParams(MixParams):
    """A script of builds, rebuilds, copies, renames and drops, in one statement and in steps, also with
    LOCK=NONE; rows change between them and during them."""

    phases: int = Field(default=20, ge=1, le=1000)
    """Pieces of a script."""
    rows: int = Field(default=250, ge=16, le=100_000)
    """Most rows of a table of small rows; others have fewer."""


def generate_mix(params: MixParams, rng: random.Random) -> Script:
    """The script of these parameters."""
    return _generate(params, rng, _pieces, rng.choice(COPY_SHARES))


def generate_storm(params: StormParams, rng: random.Random) -> Script:
    """The script of these parameters."""
    return _generate(params, rng, _storm_pieces, STORM_COPY_SHARE)


def _generate(
    params: MixParams,
    rng: random.Random,
    all_pieces: Callable[[int], list[Phase]],
    copy_share: float,
) -> Script:
    book = Book(
        rng,
        page_size=params.page_size,
        dblwr_pages=params.dblwr_pages,
        clean_pages=rng.choice((3, 6, 20)),
        quiet=rng.random() < QUIET_SHARE,
        copy_share=copy_share,
        exclusive_share=EXCLUSIVE_SHARE,
        system_share=rng.choice(SYSTEM_SHARES),
        sort_buffer_size=params.sort_buffer_size,
        online_alter_log_max_size=params.online_alter_log_max_size,
    )
    rows = round(params.rows * rng.choice(SCALES))
    for number in range(rng.randint(1, 3)):
        table = book.create(f"t{number + 1}", rng.choice(SHAPES))
        _grow(book, table, rows)
    pieces = all_pieces(rows)
    chosen = rng.sample(pieces, rng.randint(4, 8))
    weights = [rng.choice((1, 1, 2, 4)) for _ in chosen]
    restart_share = rng.choice(RESTART_SHARES)
    for piece in rng.choices(chosen, weights, k=params.phases):
        piece(book, _table(book))
        if rng.random() < restart_share:
            phases.restart(book)
    for _ in range(rng.choice(CLAUSES)):
        clauses(book, _table(book))
    for _ in range(rng.choice(INSTANTS)):
        instant(book, _table(book))
    if rng.random() < SETTLED_SHARE:
        phases.settle(book)
    if rng.random() < 0.3:
        book.add(Verb.FLUSH_TABLE, table=_table(book).name)
    return Script.of(book.out)


def _table(book: Book) -> Table:
    """Any that can be changed. A build that was left as it is ends now if there is no other."""
    free = [table for table in book.tables.values() if not table.building]
    if free:
        return book.rng.choice(free)
    table = book.rng.choice(list(book.tables.values()))
    book.end_build(table, finish=book.rng.random() < 0.5)
    return table


def _grow(book: Book, table: Table, rows: int) -> None:
    """To a number of rows at the end of a page, of any tree that the table has or may get."""
    phases.fill(book, table, phases.edge(book, table, rows // table.shape.share))


def _mixed(book: Book, table: Table) -> None:
    others = [t for t in book.tables.values() if t is not table and not t.building]
    side = book.rng.choice(others) if others else None
    phases.mixed(book, table, side, book.rng.choice(CHANGES))


def _names(book: Book, _: Table) -> None:
    builds.name_burst(book, NAMES, SMALL, book.rng.randint(2, 8))


DEFINITION: tuple[Phase, ...] = (
    _names,
    builds.build,
    builds.drop_some,
    builds.many,
    builds.rebuild,
    builds.retire,
    builds.stepped,
    builds.aborted,
    builds.replace,
    builds.switch,
    builds.rename_parts,
    builds.lengthen_or_fail,
    builds.force,
    builds.force,
    builds.force_long,
    builds.force_long,
    builds.truncate,
    columns,
    columns,
    change_primary,
    change_primary,
    defragment,
    defragment,
    transport,
    collide,
    online,
    online,
    online,
    refused,
    twins,
)
"""Pieces of data definition, some of them twice."""


def _storm_pieces(_: int) -> list[Phase]:
    """Data definition, and some changes of rows for it to meet."""
    return [_mixed, *DEFINITION]


def _pieces(rows: int) -> list[Phase]:
    """All that a script may be made of."""

    def grow(book: Book, table: Table) -> None:
        _grow(book, table, rows)

    def regrow(book: Book, table: Table) -> None:
        phases.drain(book, table)
        _grow(book, table, rows)

    def shrink(book: Book, table: Table) -> None:
        phases.shrink(book, table, book.rng.randrange(len(table.live) + 1))

    def rewrite(book: Book, table: Table) -> None:
        phases.rewrite(book, table, book.rng.randint(4, 40))

    def keep_house(book: Book, _: Table) -> None:
        phases.housekeeping(book)

    def settle(book: Book, _: Table) -> None:
        phases.settle(book)

    return [
        _mixed,
        _mixed,
        grow,
        regrow,
        shrink,
        rewrite,
        keep_house,
        settle,
        phases.revive,
        phases.rolled_back_deletes,
        phases.hold,
        phases.batches,
        builds.rebuild,
        collide,
        *DEFINITION,
    ]
