"""What a crash may leave of work on files, and what it may not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tornpage.lab.filesystem import REAL
from tornpage.lab.filework import (
    SECTOR,
    Do,
    Operation,
    contents,
    draw_work,
    name_spaces,
    why_illegal,
)
from tornpage.lab.fsprobes import PROBES
from tornpage.targets.filesystems import file_systems
from tornpage.targets.registry import explorer_path
from tornpage.vocabulary.paths import find_paths

FIRST = Operation(2, Do.WRITE, 1, "a", "", 0, 4096)
SECOND = Operation(4, Do.WRITE, 1, "a", "", 2048, 4096)
WORK = [
    Operation(1, Do.CREATE, 1, "a"),
    FIRST,
    Operation(3, Do.FSYNC, 1, "a"),
    SECOND,
    Operation(5, Do.RENAME, 1, "a", "b"),
    Operation(6, Do.CREATE, 2, "c"),
]
LEAST = {"a": contents(FIRST)}
TORN = contents(FIRST)[:2048] + contents(SECOND)[:SECTOR] + contents(FIRST)[: 2048 - SECTOR]


@pytest.mark.parametrize(
    "found",
    [LEAST, {"a": TORN}, {"b": TORN}, {"b": contents(FIRST), "c": b""}, {"a": TORN + bytes(512)}],
)
def test_states_of_a_crash(found: Mapping[str, bytes]) -> None:
    """What waited is there or not, by sectors; of the changes of names a beginning."""
    assert why_illegal(WORK, WORK, LEAST, found) == ""


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"a": b""},
        {"a": bytes(4096)},
        {"a": contents(FIRST), "c": b""},
        {"b": TORN, "c": contents(FIRST)},
        {"a": contents(SECOND)},
        {"a": b"x" + contents(FIRST)[1:]},
    ],
)
def test_what_no_crash_leaves(found: Mapping[str, bytes]) -> None:
    """Durable content or names are gone, names are out of order, sectors are in the wrong place."""
    assert why_illegal(WORK, WORK, LEAST, found)


def test_only_what_has_ended_is_durable_and_only_what_has_begun_is_there() -> None:
    """An fsync that is under way may have done nothing yet; a later write has."""
    begun = WORK[:3]
    assert why_illegal(begun, WORK[:2], {}, {}) == ""
    assert why_illegal(begun, begun, LEAST, LEAST) == ""
    assert why_illegal(begun, begun, LEAST, {})
    assert why_illegal(begun, begun, LEAST, {"a": TORN})


def test_work_is_drawn_by_its_seed() -> None:
    """The same again, and all kinds of operations in a few."""
    assert draw_work(3) == draw_work(3) != draw_work(4)
    assert {op.do for seed in range(9) for op in draw_work(seed)} == set(Do)


def test_every_profile_but_the_weakest_is_held_against_a_real_one() -> None:
    """The explorer's table has no row that nobody qualifies."""
    assert [*file_systems(explorer_path(find_paths().build))] == ["posix", *REAL]


ROWS = {
    "strong": {"fsync": "earlier names", "size_first": "never", "replace_flushes": True},
    "weak": {"fsync": "nothing", "size_first": "zeros or old bytes", "replace_flushes": False},
}
FOUND = [
    (0, {"a": b"a", "log": b""}, "lost", "both"),
    (1, {"a": b"a", "log": b""}, "lost", "weak"),
    (3, {"a": b"a", "log": b""}, "lost", ""),
    (3, {"b": b"a", "log": b""}, "kept", "both"),
    (4, {"f": b"o" * 128 + bytes(128)}, "zeros", "weak"),
    (4, {"f": b"o" * 128 + b"x" * 128}, "old bytes", "weak"),
    (4, {"f": b"o" * 128}, "nothing", "both"),
    (5, {"cur": b""}, "0 bytes, not all there", "weak"),
    (5, {"cur": b"n" * 5000}, "new", "both"),
    (6, {"f": b"n" * 100 + b"o" * 8092}, "a mixture", ""),
    (6, {"f": b""}, "empty", "both"),
    (7, {"f": b"o" * 100 + b"n" + b"o" * 3995}, "the second alone", ""),
    (7, {"f": b"n" + b"o" * 4095}, "the first", "both"),
    (9, {"f": b"o" * 4096}, "lost", ""),
    (10, {"f": b"o" * 128 + b"x"}, "old bytes", ""),
]


@pytest.mark.parametrize(("number", "files", "answer", "allowed"), FOUND)
def test_answers_of_a_crash(
    number: int, files: Mapping[str, bytes], answer: str, allowed: str
) -> None:
    """What each question makes of files, and which profiles promise otherwise."""
    probe = PROBES[number]
    assert probe.answer(files) == answer
    for name, row in ROWS.items():
        assert (answer in probe.allowed(row)) == (allowed in ("both", name)), name


def test_names_that_an_fsync_takes_along() -> None:
    """Those that are older than the newest change of the file's size or name; bytes alone take none."""
    grown = Operation(7, Do.WRITE, 1, "b", "", 4096, 4096)
    bytes_alone = Operation(7, Do.WRITE, 1, "b", "", 0, 4096)
    for last, durable in ((grown, 3), (bytes_alone, 2)):
        work = [*WORK, last, Operation(8, Do.FSYNC, 1, "b")]
        assert name_spaces(work)[1] == durable


def test_work_without_renames_may_leave_any_of_its_names() -> None:
    """Where names are in no one order, all that is asked is that the durable ones are there."""
    work = draw_work(5, renames=False)
    assert not {Do.RENAME, Do.UNLINK} & {op.do for op in work}
    one = [Operation(1, Do.CREATE, 1, "a"), Operation(2, Do.CREATE, 2, "b")]
    assert why_illegal(one, one, {}, {"b": b""}, in_order=False) == ""
    assert why_illegal(one, one, {"a": b""}, {"b": b""}, in_order=False)
    assert why_illegal(one, one, {}, {"c": b""}, in_order=False)
