"""The workload mix: scripts are valid, differ in structure, and together have what they are for."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.workloads.book import Book
from tornpage.workloads.capacity import clustered_tree, edges, secondary_tree
from tornpage.workloads.parse import parse_script
from tornpage.workloads.script import Lock, Script, Statement, Verb
from tornpage.workloads.shapes import LARGE, LIST, LONG
from tornpage.workloads.workload import fit_params, generate

SEEDS_TRIED = range(40)
OPTIONS = {"sort_buffer_size": "64k", "online_alter_log_max_size": "64k"}
"""What the workload's own parameters are for."""
WANTED_ERRORS = {
    "DB_UNSUPPORTED",
    "DB_DUPLICATE_KEY",
    "DB_RECORD_NOT_FOUND",
    "DB_LOCK_CONFLICT",
    "DB_TABLE_LOCKED",
    "DB_ONLINE_LOG_TOO_BIG",
    "DB_PAUSED",
}


@pytest.fixture(scope="module")
def scripts() -> list[Script]:
    """Scripts of many seeds."""
    return [generate("mix", fit_params("mix", {}, OPTIONS), seed) for seed in SEEDS_TRIED]


def test_the_same_seed_gives_the_same_text(scripts: list[Script]) -> None:
    """And its text parses to the same statements."""
    for seed, script in zip(SEEDS_TRIED, scripts, strict=True):
        assert generate("mix", fit_params("mix", {}, OPTIONS), seed).text == script.text
        assert parse_script(script.text) == script
    assert len({script.text for script in scripts}) == len(scripts)


def test_errors_are_those_on_purpose(scripts: list[Script]) -> None:
    """The book is right about what exists: no statement fails for want of a table, an index or a build."""
    steps = [step for script in scripts for step in Oracle(script, OPTIONS).steps]
    failed = Counter(step.error for step in steps if step.error)
    assert set(failed) <= WANTED_ERRORS
    assert failed.total() < len(steps) / 20


def test_scripts_differ_in_structure(scripts: list[Script]) -> None:
    """No two have the same definitions in the same order, and many never do one thing with success."""
    ddl = {Verb.CREATE_TABLE, Verb.ADD_INDEX, Verb.DROP_INDEX, Verb.START_INDEX, Verb.SET_OPTIMIZE}
    shapes = {tuple(s.verb for s in x.statements if s.verb in ddl | {Verb.BEGIN}) for x in scripts}
    assert len(shapes) > 0.9 * len(scripts)
    done = [
        {
            s.verb
            for s, step in zip(x.statements, Oracle(x, OPTIONS).steps, strict=True)
            if not step.error
        }
        for x in scripts
    ]
    for verb in (
        Verb.DROP_INDEX,
        Verb.START_INDEX,
        Verb.CHECKPOINT,
        Verb.DROP_TABLE,
        Verb.SET_OPTIMIZE,
    ):
        having = sum(verb in verbs for verbs in done)
        assert 4 <= having <= 36, verb


def test_pages_are_used_again_within_one_interval(scripts: list[Script]) -> None:
    """Indexes are built after a drop or an abort, tables created under a name that was dropped, with no
    checkpoint asked for in between."""
    seen: Counter[str] = Counter()
    for script in scripts:
        freed: Counter[str] = Counter()
        for statement in script.statements:
            if statement.verb in (Verb.CHECKPOINT, Verb.SET_OPTIMIZE):
                freed.clear()
            elif statement.verb in (Verb.ADD_INDEX, Verb.START_INDEX):
                seen["built after a drop"] += freed["index " + statement.table] > 0
                seen["built after an abort"] += freed["build " + statement.table] > 0
            elif statement.verb is Verb.CREATE_TABLE:
                seen["created again"] += freed["table " + statement.table] > 0
            freed[_frees(statement)] += 1
    assert min(seen[what] for what in seen) >= 8 and len(seen) == 3


def _frees(statement: Statement) -> str:
    kind = {Verb.DROP_INDEX: "index", Verb.ABORT_INDEX: "build", Verb.DROP_TABLE: "table"}
    return f"{kind.get(statement.verb, 'nothing')} {statement.table}"


def test_changes_go_back_to_hot_keys(scripts: list[Script]) -> None:
    """Of the single updates many hit a row that one of the last ten changes of the table hit too."""
    hot = total = 0
    for script in scripts:
        last: list[str] = []
        for statement in script.statements:
            if statement.key is None:
                continue
            key = f"{statement.table} {dict(statement.key)}"
            if statement.verb is Verb.UPDATE:
                total += 1
                hot += key in last
            last = [*last, key][-10:]
    assert hot > total / 10


@pytest.mark.parametrize(("page_size", "rows"), [(4096, 15), (16384, 61)])
def test_edges_are_full_pages(page_size: int, rows: int) -> None:
    """An index on a CHAR(255) has records of 264 bytes, its node pointers have 268."""
    tree = secondary_tree(LARGE.indexes[0], LARGE.columns, (LARGE.primary,))
    assert tree == (264, 263)
    node = (page_size - 72) // (268 + 2)
    found = edges(tree, page_size, 10_000)
    assert found[:3] == [rows, 2 * rows, 3 * rows]
    assert {rows * node, rows * (node - 1), rows * (node + 1), 2 * rows * node} <= set(found)
    assert edges(tree, page_size, rows - 1) == []


def test_rows_have_system_columns() -> None:
    """A leaf record of a table is the info byte, 13 bytes of history and the columns."""
    assert clustered_tree(LIST.columns, (LIST.primary,)) == (1 + 13 + 8 + 200 + 8 + 30, 8)


def test_builds_beside_changes_end_in_every_way(scripts: list[Script]) -> None:
    """Finished, aborted, refused while a transaction is open, for too many changes, for a duplicate."""
    seen: Counter[str] = Counter()
    for script in scripts:
        errors = {step.line: step.error for step in Oracle(script, OPTIONS).steps}
        online: set[str] = set()
        for statement in script.statements:
            if statement.lock is Lock.NONE:
                online.add(statement.table)
            elif statement.verb in (Verb.FINISH_INDEX, Verb.ABORT_INDEX):
                seen[f"{statement.verb} {errors[statement.line]}"] += statement.table in online
                online.discard(statement.table)
            elif statement.table in online and statement.trx:
                seen["changes"] += 1
    for error in ("", "DB_TABLE_LOCKED", "DB_DUPLICATE_KEY", "DB_ONLINE_LOG_TOO_BIG"):
        assert seen[f"finish index {error}"] > 1, seen
    assert seen["abort index "] > 5 and seen["changes"] > 1000, seen


@pytest.mark.parametrize("page_size", [4096, 8192, 16384, 32768, 65536])
def test_rows_of_long_values_are_too_long_for_any_page(page_size: int) -> None:
    """A row has to fit in half a page. Where all texts of a row could, none would ever leave it."""
    table = Book(random.Random(1), page_size=page_size).create("o", LONG)
    longest = sum(column.length for column in table.shape.columns if column.varying)
    assert longest > page_size // 2
