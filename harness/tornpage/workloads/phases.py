"""Pieces of scripts that change rows. A generator puts them one after the other, by hand or as the seed
draws them; each leaves the book right, so any order is a valid script.
"""

from __future__ import annotations

from collections.abc import Callable

from tornpage.workloads.book import Book
from tornpage.workloads.capacity import clustered_tree, edges, secondary_tree
from tornpage.workloads.script import AUTOCOMMIT, Verb
from tornpage.workloads.table import Table

__all__ = [
    "batches",
    "change",
    "drain",
    "edge",
    "exact_checkpoint",
    "expected_error",
    "fill",
    "hold",
    "housekeeping",
    "mixed",
    "restart",
    "revive",
    "rewrite",
    "rolled_back_deletes",
    "settle",
    "shrink",
    "transaction",
]

LEFT = 4
"""Rows that a table keeps when it shrinks."""
RESTART_OPTIONS = {
    "log_optimize_ddl": ("on", "off"),
    "log_write_through": ("on", "off"),
    "log_page_checksums": ("on", "off"),
    "buffer_pool_pages": ("48", "96", "1024"),
    "recv_memory": ("64k", "4m"),
    "cleaner_interval": ("0", "1", "3"),
    "purge_interval": ("0", "3"),
    "scrub": ("on", "off"),
    "schedule_seed": ("1", "2", "3", "4", "5", "6"),
}
"""What an operator may set between two starts."""
CONVERTED_SHARE = 0.8
"""Of the restarts behind a clean close, those that ask for a format of the log, which is another one half
of the time."""


# -- single statements ---------------------------------------------------------------------------


def change(book: Book, table: Table, trx: str = AUTOCOMMIT) -> None:
    """One change of one row."""
    insert, update, delete = book.insert, book.update, book.delete
    book.rng.choice((insert, insert, update, update, update, delete))(table, trx)


def expected_error(book: Book, table: Table, trx: str) -> None:
    """A duplicate key, a missing row, or a conflict with the row of another transaction."""
    kind = book.rng.randrange(3)
    others = sorted(key for key, owner in table.held.items() if owner != trx)
    shape = table.shape
    if kind == 0 and others:
        row = shape.key(book.rng.choice(others))
        values = book.values(table, 1.0)
        book.add(Verb.UPDATE, trx=trx, table=table.name, key=row, values=values)
    elif kind == 1:
        key = book.free_key(table, live=True)
        if key is not None:
            book.add(Verb.INSERT, trx=trx, table=table.name, values=shape.key(key))
    else:
        row = shape.key(10_000_000 + book.rng.randrange(9))
        book.add(Verb.DELETE, trx=trx, table=table.name, key=row)


def housekeeping(book: Book) -> None:
    """The page cleaner, purge, or a checkpoint."""
    kind = book.rng.randrange(6 if book.quiet else 8)
    if kind < 4:
        book.add(Verb.CLEAN, number=book.clean_pages)
    elif kind < 6:
        book.add(Verb.PURGE, number=book.rng.choice((4, 16, -1)))
    else:
        book.add(Verb.CHECKPOINT, full=kind == 7 and book.rng.random() < 0.3)


def exact_checkpoint(book: Book) -> None:
    """So many of the oldest pages go home, and C comes to lie where the next one was first changed: at what
    a load has stamped its pages with, if they are next."""
    book.add(Verb.CLEAN, number=book.rng.randint(1, 2 * book.dblwr_pages))
    book.add(Verb.CHECKPOINT)


def transaction(book: Book, work: Callable[[str], None], commit: bool) -> None:
    """Runs `work` in a transaction."""
    trx = book.begin()
    work(trx)
    book.end(trx, commit)


# -- rounds of changes ---------------------------------------------------------------------------


def mixed(book: Book, table: Table, side: Table | None, changes: int) -> None:
    """Several transactions at once, some rolled back, with expected errors; purge and the page cleaner run
    while they are open. side: changed now and then, in no transaction."""
    open_trx: list[str] = []
    for _ in range(changes):
        choice = book.rng.random()
        if choice < 0.2 and len(open_trx) < 3:
            open_trx.append(book.begin())
        elif choice < 0.26 and open_trx:
            trx = open_trx.pop(book.rng.randrange(len(open_trx)))
            book.end(trx, commit=book.rng.random() < 0.6)
        elif choice < 0.36:
            housekeeping(book)
        elif choice < 0.44 and side is not None:
            change(book, side)
        else:
            trx = book.rng.choice([*open_trx, *open_trx, AUTOCOMMIT])
            (expected_error if choice > 0.92 else change)(book, table, trx)
    if open_trx and book.undo[open_trx[0]] and book.rng.random() < 0.5:
        book.add(
            Verb.DROP_TABLE, table=table.name
        )  # refused: it has changes of an open transaction
    for trx in open_trx:
        book.end(trx, commit=book.rng.random() < 0.7)
    if book.rng.random() < 0.7:  # it rests while a transaction is open
        book.add(Verb.PURGE, number=book.rng.choice((4, 16, -1)))


def rewrite(book: Book, table: Table, rows: int) -> None:
    """Many updates in one transaction, and rows that one transaction changes again and again."""

    def many(trx: str) -> None:
        for key in _some(book, table, rows):
            book.update(table, trx, key)

    def again(trx: str) -> None:
        for key in _some(book, table, 6):
            book.update(table, trx, key)
            book.delete(table, trx, key)
            book.insert(table, trx, key)
            book.update(table, trx, key)

    for work in (many, again):
        for commit in (False, True):
            transaction(book, work, commit)
            book.add(Verb.CLEAN, number=4)


def revive(book: Book, table: Table) -> None:
    """Rows that were deleted, not yet purged, and come back; some go again."""
    for key in _some(book, table, 8):
        book.delete(table, key=key)
        if book.rng.random() < 0.5:
            book.insert(table, key=key)
        else:
            trx = book.begin()
            book.insert(table, trx, key)
            if book.rng.random() < 0.4:
                book.add(Verb.CLEAN, number=book.clean_pages)  # what is rolled back is at home
            book.end(trx, commit=book.rng.random() < 0.3)


def rolled_back_deletes(book: Book, table: Table) -> None:
    """Plain deletes, purge and the page cleaner while their transaction is open, then the rollback; some
    of the rows go for good afterwards."""
    keys = _some(book, table, book.rng.randint(2, 10))
    trx = book.begin()
    for key in keys:
        book.delete(table, trx, key)
        if book.rng.random() < 0.3:
            housekeeping(book)
    book.end(trx, commit=False)
    for key in keys:
        if book.rng.random() < 0.4:
            book.delete(table, key=key)
    if book.rng.random() < 0.5:
        book.add(Verb.PURGE, number=book.rng.choice((1, 4, -1)))


def hold(book: Book, table: Table) -> None:
    """A transaction that stays open, so that purge has to wait, until a change of the table's definition
    or the end of the script."""
    trx = book.begin()
    for _ in range(book.rng.randint(1, 5)):
        change(book, table, trx)


def settle(book: Book) -> None:
    """Ends every transaction and lets purge finish. Without history the scan knows more: nothing may
    carry a mark any more, and no index an entry of an older version."""
    for trx in sorted(book.undo):
        book.end(trx, commit=book.rng.random() < 0.5)
    book.add(Verb.PURGE, number=-1)


def restart(book: Book) -> None:
    """Another start of the target, behind a clean close or a crash, under other options and with a log of
    another format. Transactions and builds end as they stand."""
    clean = book.rng.random() < 0.7
    names = book.rng.sample(sorted(RESTART_OPTIONS), book.rng.randint(0, 3))
    options = {name: book.rng.choice(RESTART_OPTIONS[name]) for name in names}
    if clean and book.rng.random() < CONVERTED_SHARE:
        options["log_format"] = book.rng.choice(("10.4", "10.5"))
    book.restart(clean, options)


# -- sizes ---------------------------------------------------------------------------------------


def edge(book: Book, table: Table, most: int) -> int:
    """A number of rows at which full pages hold them all in one of the table's trees, one less, or one
    more."""
    shape = table.shape
    rows = clustered_tree(shape.columns, (shape.primary,))
    trees = [rows] if rows is not None else []
    trees += [secondary_tree(index, shape.columns, (shape.primary,)) for index in shape.indexes]
    numbers = edges(book.rng.choice(trees), book.page_size, most)
    if not numbers:
        return book.rng.randint(most // 2, most)
    return max(1, book.rng.choice(numbers) + book.rng.choice((-1, 0, 1)))


def fill(book: Book, table: Table, rows: int) -> None:
    """Rows are added until there are so many: upwards, downwards or in any order, alone or in a
    transaction that is rolled back at first."""
    missing = rows - len(table.live)
    if missing <= 0:
        return
    first = table.next_key
    order = book.rng.randrange(4)
    if order == 0 and table.shape.in_sequence:
        cut = first + book.rng.randrange(missing)
        book.insert_seq(table, first, cut)
        if cut < first + missing - 1:
            book.insert_seq(table, cut + 1, first + missing - 1)
        return
    keys = list(range(first, first + missing))
    if order == 1:
        keys.reverse()
    elif order == 2:
        keys = _gaps(table, rows)[:missing]
        book.rng.shuffle(keys)
    for key in keys[: missing // 2]:
        book.insert(table, key=key)
    book.add(Verb.CLEAN, number=book.clean_pages)

    def rest(trx: str) -> None:
        for key in keys[missing // 2 :]:
            book.insert(table, trx, key)

    if book.rng.random() < 0.5:
        transaction(book, rest, commit=False)
    transaction(book, rest, commit=True)


def shrink(book: Book, table: Table, rows: int = LEFT) -> None:
    """Deletes until so many rows are left, while purge takes the pages away."""
    free = sorted(table.live - set(table.held))
    gone = free[: max(0, len(free) - rows)]
    if book.rng.random() < 0.5:
        book.rng.shuffle(gone)
    for number, key in enumerate(gone):
        book.delete(table, key=key)
        if number % 16 == 15:
            book.add(Verb.PURGE, number=book.rng.choice((8, 24, -1)))
        if number % 40 == 39:
            book.add(Verb.CLEAN, number=book.clean_pages)


def drain(book: Book, table: Table) -> None:
    """Shrinks the table and lets purge finish: its pages are free for what comes next."""
    book.release(table)
    shrink(book, table)
    book.add(Verb.PURGE, number=-1)


def batches(book: Book, table: Table) -> None:
    """Dirties pages, then has them written in exactly full doublewrite batches, one page less, or one
    more."""
    for key in _some(book, table, 3 * book.dblwr_pages):
        book.update(table, key=key)
    pages = book.dblwr_pages * book.rng.choice((1, 1, 2)) + book.rng.choice((-1, 0, 0, 1))
    book.add(Verb.CLEAN, number=pages)


def _some(book: Book, table: Table, count: int) -> list[int]:
    """So many live keys that nobody holds, or all there are."""
    free = sorted(table.live - set(table.held))
    return book.rng.sample(free, min(count, len(free)))


def _gaps(table: Table, rows: int) -> list[int]:
    """Unused keys from 0 on, as many as `rows`, the gaps between the live ones first."""
    limit = rows + len(table.live) + len(table.held)
    return [key for key in range(limit + 1) if key not in table.live and key not in table.held]
