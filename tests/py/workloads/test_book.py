"""What the book of a generator keeps of tables."""

from __future__ import annotations

import random

from tornpage.oracle.oracle import Oracle
from tornpage.workloads import phases
from tornpage.workloads.book import Book
from tornpage.workloads.script import Script
from tornpage.workloads.shapes import VARYING


def test_new_rows_do_not_wait_for_a_row_that_is_being_deleted() -> None:
    """The last row is deleted by a transaction that is open: new rows come behind its key, in each order."""
    for seed in range(8):
        book = Book(random.Random(seed))
        table = book.create("t", VARYING)
        for key in range(1, 10):
            book.insert(table, key=key)
        book.delete(table, book.begin(), 9)
        phases.fill(book, table, 30)
        steps = Oracle(Script.of(book.out)).steps
        assert {step.error for step in steps} == {""}
        assert len(table.live) == 30
