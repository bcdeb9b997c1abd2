"""What counts as the same finding at the same moment of another run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import make_result, make_spec
from fake_trace import FakeTrace

from tornpage.causes import confirm
from tornpage.causes.confirm import (
    Confirmed,
    OnDisk,
    confirm_trial,
    confirmed_lines,
    keep_confirmed,
    load_confirmed,
    moment_in,
    sorted_states,
)
from tornpage.oracle.fingerprint import kind_of
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import Exploration, loss_plan
from tornpage.store.rows import TrialRow
from tornpage.targets.option import UNDER
from tornpage.vocabulary.model import Violation
from tornpage.vocabulary.paths import find_paths

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


@pytest.mark.parametrize(("loss", "depth"), [("17.subset.2", 1), ("17.subset.2/9.one-torn.1", 2)])
def test_a_finding_is_looked_for_as_deep_as_it_was(
    loss: str, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On each file system."""
    asked: list[Limits] = []

    def on(_asked: object, name: str, limits: Limits, *_: object) -> OnDisk:
        asked.append(limits)
        return OnDisk(name)

    target = SimpleNamespace(name="x", on_shm=True, options=lambda: [SimpleNamespace(name=UNDER)])
    monkeypatch.setattr(confirm, "make_target", lambda *_: target)
    monkeypatch.setattr(confirm, "_statements", lambda *_: None)
    monkeypatch.setattr(confirm, "_on", on)
    spec = replace(make_spec(3), plan=loss_plan(loss))
    row = TrialRow(1, 3, spec, "redo", loss, replace(make_result(3, broken=1), violations=(LOST,)))
    found = confirm_trial(row, find_paths(), ["ext4", "xfs"], 40, 1, 1, lambda _: None)
    assert [disk.under for disk in found.disks] == ["ext4", "xfs"]
    assert asked == [Limits(states=40, depth=depth)] * 2


@pytest.mark.parametrize(("here", "shares"), [(50, [50, 50]), (10, [50, 90])])
def test_what_the_moment_leaves_is_spread(
    here: int, shares: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the states are of the moment of the finding, if it has as many; all are asked for."""
    asked: list[int] = []

    def explored(*given: Any) -> Exploration:
        limits, scope = given[3:]
        asked.append(limits.states)
        return Exploration({"states": here if scope.events else limits.states})

    monkeypatch.setattr(confirm, "explore", explored)
    monkeypatch.setattr(confirm.Trace, "load", lambda _: None)
    monkeypatch.setattr(confirm, "moment_in", lambda *_: (3, 6))
    finding = confirm._Asked(make_spec(3), cast(Any, None), frozenset(), (1, 1))
    recording = cast(Any, SimpleNamespace(trace=tmp_path, ready=0))
    found = confirm._explored(finding, recording, Limits(states=100), 1, tmp_path)
    assert (asked, found.states) == (shares, 100)


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
