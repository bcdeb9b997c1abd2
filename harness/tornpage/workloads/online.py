"""Pieces of scripts with LOCK=NONE: a table changes while a build of it goes on. Rows change behind the scan
and before it, in transactions that are rolled back too, and stay open over steps; keys of new unique indexes
are found twice for a while, or to the end; so much changes that the log has no room for it, or just enough to
fill blocks.
"""

from __future__ import annotations

from tornpage.workloads import phases
from tornpage.workloads.book import Book
from tornpage.workloads.builds import several
from tornpage.workloads.shapes import UNIQUE, WIDE
from tornpage.workloads.table import Table

__all__ = ["in_steps", "online", "refused", "twins"]

FLOOD_BYTES = 120_000
FLOOD_ROWS = 400
"""Of the rows that fill a log: what they cost besides is bounded."""
FLOOD_SHARES = (0.3, 0.7, 1.1, 1.3)
"""Of what the log has room for."""
EARLY_SHARE = 0.35
"""Of the builds, those that a flood meets before they have loaded anything: full blocks wait for the load's
end."""
EARLY_FLOOD_SHARES = (0.5, 0.8, 0.9, 1.3)
TWINS = "twins"


def online(book: Book, table: Table) -> None:
    """A build with LOCK=NONE, and changes of the table between its steps."""
    book.release(table)
    missing = several(book, table)
    if missing and book.rng.random() < 0.6:
        book.start_build(table, missing, online=True)
    else:
        book.rebuild(table, in_steps=True, online=True)
    in_steps(book, table)


def twins(book: Book, _: Table) -> None:
    """Unique indexes of a table of its own, with LOCK=NONE: duplicates come and go while they are built."""
    table = book.tables.get(TWINS) or book.create(TWINS, UNIQUE)
    book.release(table)
    phases.fill(book, table, len(table.live) + book.rng.randint(4, 30))
    some = [index for index in book.missing_indexes(table) if index.unique]
    if not some:
        book.drop(table)
        return
    book.start_build(table, some[: book.rng.randint(1, 2)], online=True)
    in_steps(book, table)


def refused(book: Book, _: Table) -> None:
    """An index of a table of its own, built with LOCK=NONE to the end, where it is refused: two rows have one
    key, or the log had no room. What a crash may find of it is nothing."""
    name, shape = book.rng.choice((("copied", UNIQUE), ("flooded", WIDE)))
    table = book.tables.get(name) or book.create(name, shape)
    book.release(table)
    phases.fill(book, table, book.rng.randint(4, 30))
    for _build in range(book.rng.randint(1, 3)):
        for index in list(table.indexes):
            book.drop_index(table, index)
        indexes = table.shape.indexes
        wanted = indexes[:1] if table.shape.serial else indexes[-1:]
        book.start_build(table, wanted, online=True)
        book.step_build(table, book.rng.randint(1, 4), book.rng.randint(1, 30))
        book.rng.choice((_ends, _several_sessions, _keep_house))(book, table)
        book.release_rows(table)
        twin = _add_twin(book, table) if table.shape.serial else None
        if not table.shape.serial:
            _fill_log(book, table, FLOOD_SHARES[-1])
        book.step_build(table, book.rng.randint(1, 20), 30)
        book.end_build(table, finish=True)
        if twin is not None:
            book.delete(table, key=twin)
    if book.rng.random() < 0.5:
        book.drop(table)


def _add_twin(book: Book, table: Table) -> int | None:
    """Another row with the value of one; its key."""
    key = book.free_key(table, live=False)
    if key is not None:
        book.insert(table, key=key, serial=table.serials[min(table.serials)])
    return key


def in_steps(book: Book, table: Table) -> None:
    """Steps and what happens between them; then it ends, or is left as it is."""
    pieces = [
        phases.change,
        phases.change,
        phases.revive,
        phases.rolled_back_deletes,
        phases.hold,
        _ends,
        _several_sessions,
        _again_and_again,
        _keep_house,
    ]
    if table.shape.serial:
        pieces += [_duplicate, _duplicate]
    if book.rng.random() < 0.4:
        pieces += [_flood, _flood]
    if book.rng.random() < EARLY_SHARE:
        _fill_log(book, table, book.rng.choice(EARLY_FLOOD_SHARES))
    for _step in range(book.rng.randint(2, 8)):
        for _piece in range(book.rng.randint(0, 3)):
            book.rng.choice(pieces)(book, table)
        rows = book.rng.randint(1, max(1, len(table.live)))
        book.step_build(table, book.rng.randint(1, 4), rows)
    if book.rng.random() < 0.85:
        book.end_build(table, finish=book.rng.random() < 0.8)


def _ends(book: Book, table: Table) -> None:
    """Rows that the scan meets first, and rows that it meets last."""
    keys = sorted(table.live - set(table.held))
    for key in (*keys[:2], *keys[-2:]):
        if key not in table.live:
            continue
        if book.rng.random() < 0.6:
            book.update(table, key=key)
        else:
            book.delete(table, key=key)
            book.insert(table, key=key)


def _several_sessions(book: Book, table: Table) -> None:
    """Transactions side by side."""
    phases.mixed(book, table, None, book.rng.choice((4, 8, 16)))


def _again_and_again(book: Book, table: Table) -> None:
    """One row, many times."""
    key = book.free_key(table, live=True)
    for _ in range(book.rng.randint(2, 6)):
        if key is not None and key in table.live and key not in table.held:
            book.update(table, key=key)


def _keep_house(book: Book, table: Table) -> None:  # noqa: ARG001 - one shape
    """Of all tables; purge above all."""
    phases.housekeeping(book)


def _duplicate(book: Book, table: Table) -> None:
    """Another row gets a value that one has; the one, or the other, goes as a rule."""
    free = sorted(key for key in table.serials if key not in table.held)
    if not free:
        return
    key = book.rng.choice(free)
    other = book.free_key(table, live=False)
    book.insert(table, key=other, serial=table.serials[key])
    chance = book.rng.random()
    if chance < 0.4:
        book.update(table, key=key, serial=book.new_serial())
    elif chance < 0.8:
        book.delete(table, key=other)


def _flood(book: Book, table: Table) -> None:
    """Some blocks of the log, or more than it has room for."""
    _fill_log(book, table, book.rng.choice(FLOOD_SHARES))


def _fill_log(book: Book, table: Table, share: float) -> None:
    """Rows that come and go, for this share of what the log has room for, as far as they may cost so much."""
    if table.changes is None:
        return
    wanted = table.changes.rows_for(share)
    rows = min(wanted, FLOOD_ROWS, FLOOD_BYTES // table.shape.row_size)
    first = table.next_key
    trx = book.begin()
    if not table.shape.in_sequence:
        for key in range(first, first + rows + 1):
            book.insert(table, trx, key=key)
    else:
        book.insert_seq(table, first, first + rows, trx)
    book.end(trx, commit=False)
