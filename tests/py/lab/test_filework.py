"""What a crash may leave of work on files, and what it may not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

import pytest

from tornpage.lab.filesystem import qualify_file_systems
from tornpage.lab.filework import SECTOR, Do, Operation, contents, draw_work, why_illegal
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
    assert why_illegal(WORK, LEAST, found) == ""


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
    assert why_illegal(WORK, LEAST, found)


def test_work_is_drawn_by_its_seed() -> None:
    """The same again, and all kinds of operations in a few."""
    assert draw_work(3) == draw_work(3) != draw_work(4)
    assert {op.do for seed in range(9) for op in draw_work(seed)} == set(Do)


def test_file_systems_are_qualified_or_left_out() -> None:
    """Nothing computed is contradicted by a real crash; who cannot mount is told why nothing was tried."""
    found = qualify_file_systems(find_paths())
    assert [finding.name for finding in found] == ["file system ext4", "file system xfs"]
    assert all(finding.ok for finding in found), found
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        assert found[0].seen.startswith("left out")
