"""Delta debugging ends at a failing input of which nothing can go; scripts and fingerprints follow suit."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tornpage.oracle.fingerprint import Fingerprint, fingerprint_of, path_of
from tornpage.oracle.oracle import Oracle
from tornpage.shrinking.crashes import shows
from tornpage.shrinking.crashes_loss import different_sectors
from tornpage.shrinking.ddmin import ddmin, shrink_range
from tornpage.shrinking.reduce import Items, items_of, operations, reduce_script
from tornpage.vocabulary.model import Site, Violation
from tornpage.workloads.parse import parse_script
from tornpage.workloads.script import Script, Verb
from tornpage.workloads.workload import generate

NUMBERS = st.lists(st.integers(0, 30), max_size=40, unique=True)


@given(NUMBERS, st.lists(st.sets(st.integers(0, 30), max_size=6), min_size=1, max_size=4))
def test_ddmin_ends_at_a_minimum(items: list[int], causes: list[set[int]]) -> None:
    """Monotone predicate (it holds if one of some sets is there): the result is a sublist in order, it fails,
    and nothing can be left out; so it is one of the causes."""

    def fails(kept: list[int]) -> bool:
        return any(cause <= set(kept) for cause in causes)

    if not fails(items):
        return
    result = ddmin(items, fails)
    assert fails(result)
    assert result == [item for item in items if item in result]
    assert not any(fails(result[:i] + result[i + 1 :]) for i in range(len(result)))
    assert set(result) in causes


@given(NUMBERS, st.integers(0, 2**16))
def test_ddmin_keeps_its_promise_for_any_predicate(items: list[int], salt: int) -> None:
    """Also where a smaller list may not fail: the result does, no single item can go, and it is the last list
    for which the predicate held."""
    asked: list[list[int]] = []

    def fails(kept: list[int]) -> bool:
        held = kept == items or zlib.crc32(repr((salt, kept)).encode()) % 3 == 0
        if held:
            asked.append(kept)
        return held

    result = ddmin(items, fails)
    assert fails(result)
    assert result == (asked[-2] if len(asked) > 1 else items)
    assert not any(fails(result[:i] + result[i + 1 :]) for i in range(len(result)))


def test_ddmin_asks_few_questions_where_much_can_go() -> None:
    """One cause among a thousand items: a few dozen questions, not a thousand."""
    questions = 0

    def fails(kept: list[int]) -> bool:
        nonlocal questions
        questions += 1
        return 617 in kept

    assert ddmin(range(1000), fails) == [617]
    assert questions < 60


@given(st.integers(-50, 50), st.integers(0, 100), st.data())
def test_a_range_is_cut_to_what_is_needed(low: int, length: int, data: st.DataObject) -> None:
    """Two numbers that must stay: exactly the range between them is left."""
    high = low + length
    first = data.draw(st.integers(low, high))
    last = data.draw(st.integers(first, high))
    assert shrink_range(low, high, lambda a, b: a <= first and last <= b) == (first, last)


def test_only_the_finding_itself_is_followed() -> None:
    """Another path or site under the same invariant is another bug, and so is any other finding."""
    one = Violation(30, "recovery: log ends early")
    wanted = fingerprint_of(one, "redo")
    other = Violation(30, "recovery: no checkpoint is right")
    assert shows([other, one], wanted, "redo")
    assert not shows([other, Violation(5, "recovery: log ends early")], wanted, "redo")
    assert not shows([one], wanted, "page0")
    assert not shows([], wanted, "redo")


SCRIPT = """\
create table t1 a:bigint b:char(9) c:char(9) primary a
create table s1 a:bigint primary a
insert_seq - t1 1 40
begin T1
begin T2
insert T1 t1 a=100 b="x" c="y"
update T2 t1 a=3 set b="p" c="q"
commit T2
commit T1
begin T1
delete T1 t1 a=4
rollback T1
add index t1 ib(b) ic(c) id(b:2)
checkpoint
insert - s1 a=5
"""


def reduced(holds: Callable[[Script], bool]) -> str:
    """SCRIPT reduced as far as this holds."""

    def fails(items: Items) -> bool:
        assert [item.origin for item in items] == sorted(item.origin for item in items)
        script = Script.of(item.statement for item in items)
        if not holds(script):
            return False
        last.append(script.text)
        return True

    last: list[str] = []
    items = items_of(parse_script(SCRIPT))
    assert fails(items)
    result = reduce_script(items, lambda: 13, fails)
    text = Script.of(item.statement for item in result).text
    assert text == last[-1], "the last script that failed is the result"
    return text


def test_what_comes_behind_the_crash_goes_first() -> None:
    """Nothing wanted: nothing left."""
    assert reduced(lambda _: True) == ""


@pytest.mark.parametrize(
    ("wanted", "result"),
    [
        (["insert_seq - t1"], "insert_seq - t1 1 1\n"),
        (["checkpoint"], "checkpoint\n"),
        (["begin T1", "commit T1"], "begin T1\ncommit T1\n"),
        (["t1 a=3 set"], 'update T2 t1 a=3 set b="p"\n'),
        (["ic(c)"], "add index t1 ic(c)\n"),
        (["insert - s1 a=5"], "insert - s1 a=5\n"),
    ],
)
def test_statements_get_smaller(wanted: list[str], result: str) -> None:
    """Ranges, lists of indexes and values shrink to what must be found in the text."""
    assert reduced(lambda script: all(text in script.text for text in wanted)) == result


def test_a_transaction_becomes_single_statements() -> None:
    """A change that must succeed takes its table and its row along, but no begin and no commit."""

    def updated(script: Script) -> bool:
        steps = zip(Oracle(script).steps, script.statements, strict=True)
        return any(not step.error and item.verb is Verb.UPDATE for step, item in steps)

    assert reduced(updated) == (
        "create table t1 a:bigint b:char(9) c:char(9) primary a\n"
        "insert_seq - t1 3 3\n"
        'update - t1 a=3 set b="p"\n'
    )


def test_operations_count_the_rows_of_a_range() -> None:
    """A range of 40 rows is 40 operations, any other statement one."""
    script = parse_script(SCRIPT)
    assert operations(script) == len(script.statements) - 1 + 40


def test_a_script_given_in_full_is_a_workload() -> None:
    """What the generator makes and what comes back from the parameters are the same statements."""
    script = generate("smoke", {"rows": 20, "changes": 6}, 5)
    again = generate("inline", {"script": script.text}, 99)
    assert again == script
    assert any(item.verb is Verb.ADD_INDEX for item in again.statements)


def torn(page: int, file: str, model: str = "") -> Violation:
    """A refusal as the engine words it."""
    return Violation(
        5, f"recovery refused: torn page {page} of {file}: no copy (bad checksum){model}"
    )


def test_fingerprints_forget_names_and_numbers_of_the_run() -> None:
    """Page, file and crash model do not tell bugs apart; invariant, site and reason do."""
    first = fingerprint_of(torn(5, "ibdata1"), "page0")
    assert first == fingerprint_of(torn(71, "t1.ibd", " (model one-torn)"), "page0")
    assert first == Fingerprint(
        5, "page0", "recovery refused: torn page # of #: no copy (bad checksum)"
    )
    other = Violation(5, "recovery refused: torn page 5 of ibdata1: older copy (bad checksum)")
    assert fingerprint_of(other, "page0") != first
    assert fingerprint_of(torn(5, "ibdata1"), "data_page") != first
    assert fingerprint_of(Violation(5, "x", Site.REDO), "page0").site == "redo"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "rows are right, indexes are not: t1.ib is missing",
            "rows are right, indexes are not: t1.ic has 3 entries, 4 expected; t1.id must not exist",
        ),
        ("t1 (24 rows) equals no commit prefix", "s2 (3 rows) equals no commit prefix"),
        ("tables ['s1'] found, ['s1', 't1'] expected", "tables [] found, ['t1'] expected"),
    ],
)
def test_paths_of_the_oracle_leave_out_what_differs(one: str, other: str) -> None:
    """Which tables and indexes a mixture is made of is a matter of the script."""
    assert path_of(Violation(10, one)) == path_of(Violation(10, other))


def test_lists_of_pages_count_as_one() -> None:
    """A finding that lists three pages is the same as one that lists two."""
    text = "INDEX_LOAD of index 40 with {} unwritten non-logged pages in space 7: {}"
    one = path_of(Violation(16, text.format(3, "7:4 7:5 7:6")))
    assert one == path_of(Violation(16, text.format(2, "9:1 9:2")))


def test_lost_sectors_are_those_that_differ(tmp_path: Path) -> None:
    """By sectors of 512 bytes; a missing file counts as empty, and once for its name."""
    for name, extra in (("a", b""), ("b", b"tail")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "same").write_bytes(b"s" * 2000)
        (folder / "longer").write_bytes(b"x" * 1024 + extra)
    (tmp_path / "a" / "changed").write_bytes(b"p" * 512 + b"q" * 512)
    (tmp_path / "b" / "changed").write_bytes(b"p" * 512 + b"r" * 512)
    assert different_sectors(tmp_path / "a", tmp_path / "b") == 2
    (tmp_path / "b" / "new").write_bytes(b"")
    assert different_sectors(tmp_path / "a", tmp_path / "b") == 3
