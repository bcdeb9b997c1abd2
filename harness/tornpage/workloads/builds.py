"""Pieces of scripts that change definitions: index builds in one statement and in steps, drops, names,
the switch of log_optimize_ddl. What one build has freed, the next one takes, as a rule before any
checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from tornpage.workloads.book import Book
from tornpage.workloads.phases import change, exact_checkpoint, fill, housekeeping
from tornpage.workloads.script import AUTOCOMMIT, Algorithm, Column, IndexDef, Verb
from tornpage.workloads.shapes import LONG, MANY, SHAPES, SMALL, VARYING, Shape
from tornpage.workloads.table import Table

__all__ = [
    "aborted",
    "build",
    "drop_some",
    "force",
    "force_long",
    "in_steps",
    "lengthen",
    "lengthen_or_fail",
    "many",
    "name_burst",
    "rebuild",
    "rename_parts",
    "replace",
    "retire",
    "several",
    "stepped",
    "switch",
    "truncate",
]

LONGEST, LONGEST_KEY = 12_000, 200
"""Bytes of a VARCHAR that becomes longer, and of one that an index may have all of: rows and keys have a size
that they cannot exceed."""


def several(book: Book, table: Table, most: int = 3) -> list[IndexDef]:
    """Some of the indexes that the table does not have, all unique or none."""
    missing = book.missing_indexes(table)
    some = book.rng.sample(missing, min(len(missing), book.rng.randint(1, most)))
    return [index for index in some if index.unique == some[0].unique]


def build(book: Book, table: Table) -> None:
    """Builds indexes in one statement; if the table has all, some go first."""
    if not book.missing_indexes(table):
        drop_some(book, table)
    book.add_indexes(table, several(book, table))


def drop_some(book: Book, table: Table) -> None:
    """Drops an index, or some."""
    for name in book.rng.sample(table.indexes, min(len(table.indexes), book.rng.randint(1, 3))):
        book.drop_index(table, name)


def switch(book: Book, table: Table) -> None:
    """Switches log_optimize_ddl to and fro amid dirty pages. In between pages are made, loaded and written,
    so that what one setting wrote meets, in one checkpoint interval, what the other one logs."""
    on = book.rng.random() < 0.5
    for _ in range(book.rng.randint(1, 4)):
        if not table.building:
            fill(book, table, len(table.live) + book.rng.randint(2, 30))
        book.set_optimize(on)
        for piece in book.rng.sample((build, change, _keep_house), book.rng.randint(0, 3)):
            piece(book, table)
        on = not on


def _keep_house(book: Book, table: Table) -> None:  # noqa: ARG001 - one shape
    """Of all tables."""
    housekeeping(book)


def rebuild(book: Book, table: Table) -> None:
    """An index gets pages by logged inserts, is dropped, and its pages go to builds: not logged, logged,
    or one after the other."""
    if not table.indexes:
        build(book, table)
    if not table.indexes:
        return  # a duplicate
    if book.rng.random() < 0.5:
        book.set_optimize(book.rng.random() < 0.5)
    fill(book, table, len(table.live) + book.rng.randint(2, 30))
    if book.rng.random() < 0.4:
        housekeeping(book)
    gone = book.rng.choice(table.indexes)
    book.drop_index(table, gone)
    if book.rng.random() < 0.3:
        change(book, table)
    again = [index for index in book.missing_indexes(table) if index.name == gone]
    for on in book.rng.choice(((True,), (True, False), (False, True), ())):
        book.set_optimize(on)
        book.add_indexes(table, again)
        again = several(book, table)
        if not again:
            return
    book.add_indexes(table, again)


def retire(book: Book, table: Table) -> None:
    """An index goes whose pages lie before the last checkpoint and have changed behind it: the log has
    changes of them, and not how they began. Then the page cleaner is there, before the next checkpoint."""
    if not table.indexes:
        build(book, table)
    if not table.indexes:
        return  # a duplicate
    if not book.quiet:
        book.add(Verb.CHECKPOINT, full=True)
    for _ in range(book.rng.randint(8, 40)):
        change(book, table)
    book.drop_index(table, book.rng.choice(table.indexes))
    book.add(Verb.CLEAN, number=2 * book.dblwr_pages)
    for _ in range(book.rng.randint(0, 8)):
        change(book, table)


def stepped(
    book: Book,
    table: Table,
    indexes: Sequence[IndexDef] | None = None,
    finish: bool | None = None,
) -> None:
    """A build in steps of few rows; between them changes of other tables, purge, the page cleaner,
    checkpoints. At the end it is finished or aborted, or left as it is."""
    if indexes is None and not book.missing_indexes(table):
        drop_some(book, table)
    book.start_build(table, several(book, table) if indexes is None else indexes)
    in_steps(book, table, finish)


def force(book: Book, table: Table) -> None:
    """Rebuilds of the table, in one statement or in steps, aborted ones too; rows change before and after."""
    for _ in range(book.rng.randint(1, 3)):
        stepwise = book.rng.random() < 0.6
        if book.rng.random() < 0.3:
            book.set_optimize(book.rng.random() < 0.5)
        book.rebuild(table, stepwise)
        if stepwise:
            in_steps(book, table)
        for _ in range(book.rng.randint(0, 4)):
            if not table.building:
                change(book, table)
        if book.rng.random() < 0.3:
            housekeeping(book)


def force_long(book: Book, _: Table) -> None:
    """The same of a table of long values, whose pages a load without redo fills; values go and come behind
    it."""
    table = book.tables.get("long") or book.create("long", LONG)
    fill(book, table, len(table.live) + book.rng.randint(2, 12))
    book.set_optimize(book.rng.random() < 0.8)
    force(book, table)


def in_steps(book: Book, table: Table, finish: bool | None = None) -> None:
    """The steps of a build that has been started, and what comes between them."""
    exact = book.rng.random() < 0.3
    for _ in range(book.rng.randint(2, 10)):
        for _ in range(book.rng.randint(0, 3)):
            _meanwhile(book, table)
        if book.rng.random() < 0.5:
            housekeeping(book)
        rows = book.rng.randint(1, max(1, len(table.live)))
        book.step_build(table, book.rng.randint(1, 4), rows)
        if exact and book.rng.random() < 0.5:
            exact_checkpoint(book)
    if finish is None and book.rng.random() < 0.15:
        return
    book.end_build(table, book.rng.random() < 0.6 if finish is None else finish)


def aborted(book: Book, table: Table) -> None:
    """A build that is aborted, amid other work or at once; then its pages go to rows, or to another build."""
    if book.rng.random() < 0.5:
        stepped(book, table, finish=False)
    else:
        _aborted_at_once(book, table)
    if book.rng.random() < 0.3:
        book.set_optimize(book.rng.random() < 0.5)
    if book.rng.random() < 0.5:
        book.add_indexes(table, several(book, table))
    else:
        fill(book, table, len(table.live) + book.rng.randint(1, 12))


def _aborted_at_once(book: Book, table: Table) -> None:
    """After so many of its steps, and nothing between them: in any phase, its pages still in the pool."""
    if not book.missing_indexes(table):
        drop_some(book, table)
    indexes = several(book, table)
    book.start_build(table, indexes)
    book.step_build(table, book.rng.randint(1, 2 + 3 * len(indexes)), len(table.live) + 1)
    book.end_build(table, finish=False)


def many(book: Book, _: Table) -> None:
    """More indexes at once than the sorts of one scan have memory for, in one statement or in steps, on a
    table of their own, which goes as a rule."""
    if "many" in book.tables:
        book.drop(book.tables["many"])
    table = book.create("many", MANY)
    fill(book, table, book.rng.randint(2, 30))
    book.release(table)
    indexes = book.rng.sample(MANY.indexes, book.rng.randint(24, len(MANY.indexes)))
    if book.rng.random() < 0.5:
        book.add_indexes(table, indexes)
    else:
        stepped(book, table, indexes)
    if not table.building:
        change(book, table)
    if book.rng.random() < 0.7:
        book.drop(table)


def replace(book: Book, table: Table) -> None:
    """Drops the table; another one gets its name and its rows."""
    rows, shape = len(table.live), table.shape
    book.drop(table)
    if book.rng.random() < 0.3:
        housekeeping(book)
    if book.rng.random() < 0.5:
        shape = book.rng.choice(SHAPES)
    fill(book, book.create(table.name, shape), rows)


def truncate(book: Book, table: Table) -> None:
    """Empties the table, with dirty pages or none, before purge has been there or behind it; then its keys
    come back."""
    rows = len(table.live)
    for _ in range(book.rng.randint(0, 6)):
        change(book, table)
    if book.rng.random() < 0.3:
        housekeeping(book)
    book.truncate(table)
    if book.rng.random() < 0.5:
        housekeeping(book)
    if book.rng.random() < 0.4:
        build(book, table)
    fill(book, table, book.rng.randint(1, max(2, rows)))


def rename_parts(book: Book, table: Table) -> None:
    """Columns and indexes get other names, and their own again; in between rows change under these names."""
    for _ in range(book.rng.randint(1, 4)):
        if table.indexes and book.rng.random() < 0.5:
            book.rename_index(table, book.rng.choice(table.indexes))
        else:
            book.rename_column(table, book.rng.choice(table.shape.columns).name)
        if book.rng.random() < 0.5:
            change(book, table)
        if book.rng.random() < 0.2:
            _refused(book, table)


def lengthen(book: Book, table: Table) -> None:
    """A VARCHAR becomes longer, at once or by a copy, as its indexes let it; rows get values that only it has
    room for. Now and then it becomes a bit shorter before that. A table without one leaves it to another."""
    if not any(column.varying for column in table.shape.columns):
        table = book.tables.get("varying") or book.create("varying", VARYING)
        fill(book, table, book.rng.randint(2, 30))
    book.release(table)
    varying = [column for column in table.shape.columns if column.varying]
    for column in book.rng.sample(varying, min(len(varying), book.rng.randint(1, 2))):
        whole = any((column.name, 0) in index.columns for index in table.shape.indexes)
        most = LONGEST_KEY if whole else LONGEST
        length = min(column.length + book.rng.choice((2, 30, column.length)), most)
        if length <= column.length + 1:
            continue
        book.resize_column(table, column.name, length)
        if book.rng.random() < 0.2:
            book.resize_column(table, column.name, length - 1)
        for _ in range(book.rng.randint(1, 4)):
            change(book, table)


def lengthen_or_fail(book: Book, table: Table) -> None:
    """The same, and now and then a promise that cannot be kept."""
    lengthen(book, table)
    for column in table.shape.columns:
        if column.varying and book.rng.random() < 0.2:
            less = (Column(column.name, 1, varying=True),)
            way = book.rng.choice((Algorithm.INPLACE, Algorithm.NOCOPY, Algorithm.INSTANT))
            book.add(Verb.MODIFY_COLUMN, table=table.name, columns=less, algorithm=way)


def _refused(book: Book, table: Table) -> None:
    """A promise that cannot be kept."""
    indexes = table.shape.indexes[:1]
    algorithm = Algorithm.INSTANT
    book.add(Verb.ADD_INDEX, table=table.name, indexes=indexes, algorithm=algorithm)


def name_burst(book: Book, names: tuple[str, str], shape: Shape, bursts: int) -> None:
    """Two names come and go, and come back for another table."""
    for _ in range(bursts):
        there = sorted(set(names) & set(book.tables))
        free = sorted(set(names) - set(there))
        if free and (not there or book.rng.random() < 0.5):
            table = book.create(book.rng.choice(free), shape)
            for key in range(1, 4):
                book.insert(table, key=key)
            book.add(Verb.CLEAN, number=book.clean_pages)
        elif free and book.rng.random() < 0.6:
            book.rename(book.tables[there[0]], free[0])
        else:
            book.drop(book.tables[book.rng.choice(there)])


def _meanwhile(book: Book, table: Table) -> None:
    """What happens between two steps of a build of `table`: other tables change; what this one refuses, it
    refuses."""
    others = [other for other in book.tables.values() if not other.building]
    kind = book.rng.randrange(9)
    if kind < 5 and others:
        change(book, book.rng.choice(others))
        return
    name = table.name
    if kind == 5 and table.live:
        row = table.shape.key(book.rng.choice(sorted(table.live)))
        book.add(Verb.SELECT, table=name, key=row)
        book.add(Verb.UPDATE, trx=AUTOCOMMIT, table=name, key=row, values=book.values(table, 1.0))
    elif kind == 6:
        book.add(Verb.START_INDEX, table=name, indexes=table.shape.indexes[:1])
        book.add(Verb.SET_OPTIMIZE, full=True)
    elif kind == 7:
        short = book.create("short", SMALL)
        book.insert(short)
        book.drop(short)
    else:
        book.add(Verb.FLUSH_TABLE, table=name)
