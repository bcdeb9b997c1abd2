"""The owner's side of slices: what fails, what is kept, and what is handed out again."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from builders import make_result, make_spec

from tornpage.live.fault_free import failed_run
from tornpage.plans.limits import Limits
from tornpage.powerloss import slices
from tornpage.powerloss.explorer import EVERYWHERE, Exploration
from tornpage.powerloss.parts import Broken, Part
from tornpage.powerloss.slice_files import Sliced, SliceFiles
from tornpage.powerloss.slices import Again, Slice, SlicedPart, slice_count
from tornpage.store.rows import GoldenRunRow
from tornpage.targets.registry import make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import ChildError, FailedRunError, MachineError, UnexploredError
from tornpage.vocabulary.model import Violation
from tornpage.vocabulary.paths import find_paths

GOLDEN_RUN = GoldenRunRow("a=1", True, "abc", 9, 0, (), {"commits": 3})
FAILED_RUN = failed_run("a=1", True, FailedRunError("the run met a deadline"))


@dataclass
class Answered:
    """Work that has ended."""

    answer: Any

    def done(self) -> bool:
        return True

    def result(self) -> Any:
        return self.answer


class Workers:
    """Answer for slice N with its number, but for those that fail. runs: what other slices recorded."""

    size = 2

    def __init__(
        self, failing: Mapping[int, Exception] | None = None, **runs: GoldenRunRow | None
    ) -> None:
        self.failing = failing or {}
        self.runs = {int(name.removeprefix("slice_")): row for name, row in runs.items()}
        self.handed: list[int] = []

    def submit(
        self, _work: Any, task: Any, failed: Callable[[Exception], Any] | None = None
    ) -> Answered:
        assert failed is not None
        if isinstance(task, Again):
            return Answered(Broken(task.found.spec, "", task.found.spec.plan.loss, make_result(0)))
        assert isinstance(task, Slice)
        self.handed.append(task.number)
        if task.number in self.failing:
            return Answered(failed(self.failing[task.number]))
        golden_run = self.runs.get(task.number, GOLDEN_RUN)
        if golden_run is None:
            return Answered(Sliced(FAILED_RUN, None))
        return Answered(Sliced(golden_run, zlib.compress(b"slice %d\n" % task.number)))


@pytest.fixture
def target() -> Target:
    """The engine; nothing of it runs."""
    return make_target("engine", find_paths().build)


def part(tmp_path: Path, limits: Limits) -> Part:
    """Of a campaign that has seen nothing yet."""
    paths = find_paths()
    return Part(
        make_spec(0), limits, EVERYWHERE, 0, frozenset(), paths, tmp_path, tmp_path / "images"
    )


def test_how_many(tmp_path: Path, target: Target) -> None:
    """By the states that are asked for; few stay with one worker, and time cannot be cut."""
    assert slice_count(part(tmp_path, Limits(states=2500)), target) == 0
    assert slice_count(part(tmp_path, Limits(states=5001)), target) == 3
    assert slice_count(part(tmp_path, Limits(states=0)), target) == 64
    assert slice_count(part(tmp_path, Limits(states=4001, budget_s=1)), target) == 0


@pytest.fixture
def merged(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the explorer was given to merge, in which it finds a broken state."""
    files: list[bytes] = []

    def merge(_spec: Any, _target: Any, file: Path) -> Exploration:
        files.append(file.read_bytes())
        return Exploration(
            {"states": 5000}, {"7.subset.1": (Violation(5, "torn"),)}, {"7.subset.1": 2}
        )

    monkeypatch.setattr(slices, "merge_slices", merge)
    return files


@dataclass
class Owner:
    """Has an exploration of three slices, kept in a folder."""

    target: Target
    tmp_path: Path

    @property
    def folder(self) -> Path:
        return self.tmp_path / "kept"

    def begin(self, executor: Workers) -> SlicedPart:
        some = part(self.tmp_path, Limits(states=7500))
        return SlicedPart(some, self.target, executor, self.folder, lambda _pending: None)

    def kept(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []


@pytest.fixture
def owner(target: Target, tmp_path: Path) -> Owner:
    """With nothing kept."""
    return Owner(target, tmp_path)


def test_one_fails_twice(owner: Owner, merged: list[bytes]) -> None:
    """It is named, the others are kept, and only that one is handed out the next time; what comes together
    then is all slices in their order."""
    lost = MachineError("KilledWorker: gone")
    executor = Workers({2: lost})
    with pytest.raises(UnexploredError, match="slice 2 of 3 failed on two workers: Kil") as caught:
        owner.begin(executor).result()
    assert caught.value.__cause__ is lost
    assert executor.handed == [1, 2, 3] and not merged
    executor = Workers()
    again = owner.begin(executor)
    explored = again.result()
    assert executor.handed == [2]
    assert merged == [b"slice 1\nslice 2\nslice 3\n"]
    assert explored.golden_run == GOLDEN_RUN and explored.any_broken
    assert [one.state for one in explored.broken] == ["7.subset.1"]
    again.forget()
    assert not owner.folder.exists()


def test_what_no_other_try_mends(owner: Owner) -> None:
    """An explorer that fails, or a mistake of the harness, is raised as it was, also where a worker was lost
    besides; the other slices are kept."""
    for error in (ChildError("the explorer failed: exit code 2"), KeyError("hash")):
        executor = Workers({1: MachineError("KilledWorker: gone"), 3: error})
        with pytest.raises(type(error)) as caught:
            owner.begin(executor).result()
        assert caught.value is error
        assert owner.kept() == ["2-of-3"]


def test_a_run_that_failed_here_and_not_there(owner: Owner, merged: list[bytes]) -> None:
    """The recorded run of slice 1 met a deadline, others recorded it: it is no verdict, and only that slice
    is handed out again."""
    with pytest.raises(UnexploredError, match=r"slice 1 of 3: the run failed.*a deadline"):
        owner.begin(Workers(slice_1=None)).result()
    assert owner.kept() == ["2-of-3", "3-of-3"]
    with pytest.raises(UnexploredError, match="slice 1 of 3"):  # the others are from before
        owner.begin(Workers(slice_1=None)).result()
    executor = Workers()
    summary = owner.begin(executor).result().summary
    assert summary is not None and summary["states"] == 5000 and "insert" in summary["statements"]
    assert executor.handed == [1] and len(merged) == 1


def test_a_run_that_failed_everywhere(owner: Owner) -> None:
    """It is a verdict on the target; not if a worker was lost, which might have recorded it."""
    runs = {"slice_1": None, "slice_2": None, "slice_3": None}
    explored = owner.begin(Workers(**runs)).result()
    assert (explored.golden_run, explored.summary, explored.any_broken) == (FAILED_RUN, None, True)
    with pytest.raises(UnexploredError, match="slice 2 of 3 failed on two workers"):
        owner.begin(Workers({2: MachineError("lost")}, **runs)).result()


def test_slices_of_different_runs(owner: Owner) -> None:
    """Nobody knows which of them are right: all go, and what differs is named."""
    other = replace(GOLDEN_RUN, events=8, counters={"commits": 3, "aborts": 1})
    with pytest.raises(UnexploredError) as caught:
        owner.begin(Workers(slice_1=other)).result()
    assert "slice 2 of 3 is of another run than slice 1" in str(caught.value)
    assert str(caught.value).endswith(": events (8 and 9), counters aborts")
    assert owner.kept() == []
    executor = Workers()
    owner.begin(executor).keep()
    assert executor.handed == [1, 2, 3]


@pytest.mark.parametrize("damage", ["empty", "cut", "changed"])
def test_a_kept_slice_is_damaged(owner: Owner, merged: list[bytes], damage: str) -> None:
    """It is handed out again, and the others are not."""
    owner.begin(Workers()).keep()
    file = owner.folder / "2-of-3"
    text = file.read_bytes()
    middle = len(text) // 2
    changed = text[:middle] + bytes([text[middle] ^ 1]) + text[middle + 1 :]
    file.write_bytes({"empty": b"", "cut": text[:-1], "changed": changed}[damage])
    executor = Workers()
    owner.begin(executor).result()
    assert executor.handed == [2]
    assert merged == [b"slice 1\nslice 2\nslice 3\n"]


def test_a_kept_slice_that_is_gone_is_no_empty_one(owner: Owner, merged: list[bytes]) -> None:
    """Lost between its coming and the merge: nothing is merged without it."""
    sliced = owner.begin(Workers())
    sliced.keep()
    (owner.folder / "3-of-3").unlink()
    with pytest.raises(UnexploredError, match="slice 3 of 3 was kept and cannot be read again"):
        sliced.result()
    assert merged == []


def test_a_kept_slice_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes before its name, its name before it counts as kept, and the folders that it lies in."""
    done: list[tuple[str, str]] = []
    fsync, replaced = os.fsync, Path.replace

    def sync(fd: int) -> None:
        done.append(("fsync", Path(f"/proc/self/fd/{fd}").readlink().name))
        fsync(fd)

    def rename(self: Path, target: Path) -> Path:
        done.append(("rename", target.name))
        return replaced(self, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", rename)
    files = SliceFiles(tmp_path / "7" / "key", 2)
    row = replace(GOLDEN_RUN, violations=(Violation(5, "torn\n"),))
    files.put(1, row, b"a\n\0b")
    assert done == [
        ("fsync", tmp_path.name),
        ("fsync", "7"),
        ("fsync", "new"),
        ("rename", "1-of-2"),
        ("fsync", "key"),
    ]
    assert files.get(1) == Sliced(row, b"a\n\0b")
    assert files.missing() == [2]
