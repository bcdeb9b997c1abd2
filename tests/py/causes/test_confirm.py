"""What counts as the same finding at the same moment of another run."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_trace import FakeTrace

from tornpage.causes.confirm import (
    Confirmed,
    OnDisk,
    confirmed_lines,
    keep_confirmed,
    load_confirmed,
    moment_in,
    sorted_states,
)
from tornpage.oracle.fingerprint import kind_of
from tornpage.powerloss.explorer import Exploration
from tornpage.vocabulary.model import Violation

LOST = Violation(1, "acknowledged commits are missing: prefix 3 found (model subset)")
REFUSED = Violation(30, "refused: no such file x12 (model one-lost)")


def run() -> FakeTrace:
    """Three statements, each with a write and a sync before its acknowledgement; the disk is written between
    them too."""
    trace = FakeTrace().open("disk").mark("ready")  # 1, 2
    for n in (1, 2, 3):
        trace.mark(f"issue n={n}").write("disk", 0, b"x").fsync("disk").mark(f"ack n={n}")
    return trace.write("disk", 0, b"x")


@pytest.mark.parametrize(
    ("ended", "issued", "events"),
    [
        (0, 1, (3, 6)),
        (1, 1, (5, 8)),  # nothing happens between the two marks
        (1, 2, (7, 10)),
        (3, 3, (13, 15)),
        (9, 9, (13, 15)),  # of a run with more statements
    ],
)
def test_the_moment(ended: int, issued: int, events: tuple[int, int]) -> None:
    """Between two marks; where the disk is not changed between them, what it has come to by then is found
    from the last change before to the first one behind."""
    assert moment_in(run().trace(), ended, issued) == events


def test_another_finding_confirms_nothing() -> None:
    """The same invariant and words are the same finding, whatever the model and the names; others are told
    beside it."""
    again = Violation(30, "refused: no such file y7 (model subset)")
    found = Exploration({}, {"5.a.0": (LOST,), "7.b.0": (again,)}, {"5.a.0": 2, "7.b.0": 3})
    shown, other = sorted_states(found, frozenset({kind_of(REFUSED)}))
    assert shown == ["7.b.0"]
    assert other == ["I1: acknowledged commits are missing: prefix 3 found"]


def test_answers_are_kept_by_file_system(tmp_path: Path) -> None:
    """A new one takes the place of an older one of the same file system and no other; none takes no place."""
    assert load_confirmed(tmp_path) is None
    keep_confirmed(Confirmed("x", (OnDisk("ext4", 10), OnDisk("xfs", 10, 2))), tmp_path)
    keep_confirmed(Confirmed("x", (OnDisk("ext4", 20), OnDisk("xfs", missing="no mkfs"))), tmp_path)
    kept = load_confirmed(tmp_path)
    assert kept == Confirmed("x", (OnDisk("ext4", 20), OnDisk("xfs", 10, 2)))
    assert kept.is_shown


def test_the_words() -> None:
    """How many states were asked is in each."""
    shown = OnDisk("xfs", 400, 3, True, "9.subset.1", "rows are lost", 4, 9, 7, 2, 1)
    ended = OnDisk("ext4", 40, missing="the run failed")
    found = Confirmed("x", (OnDisk("ext4", 1200), shown, OnDisk("btrfs", missing="no mkfs"), ended))
    assert confirmed_lines(found) == [
        "on ext4: not in 1,200 states",
        "on xfs: the same finding at the same statement, in 3 of 400 states: behind flush 4 of 9, "
        "of 7 writes since then 2 lost, 1 torn: rows are lost",
        "on btrfs: no answer: no mkfs",
        "on ext4: not in 40 states; then no more recordings: the run failed",
    ]
