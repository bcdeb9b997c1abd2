"""The owner's side of slices: what fails, what is kept, and what is handed out again."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from builders import make_result, make_spec

from tornpage.campaigns import slices
from tornpage.campaigns.parts import Broken, Part
from tornpage.campaigns.powerloss import Exploration, Limits
from tornpage.campaigns.slices import (
    Again,
    Slice,
    Sliced,
    SlicedPart,
    UnexploredError,
    slice_count,
)
from tornpage.store.rows import CensusRow
from tornpage.targets.registry import make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.model import Violation
from tornpage.vocabulary.paths import find_paths

CENSUS = CensusRow("a=1", True, "abc", 9, 0, (), {"commits": 3})


@dataclass
class Answered:
    """Work that has ended."""

    answer: Any

    def done(self) -> bool:
        return True

    def result(self) -> Any:
        return self.answer


class Workers:
    """Answer for slice N with its number, but for those that fail."""

    size = 2

    def __init__(self, failing: set[int]) -> None:
        self.failing = failing
        self.handed: list[int] = []
        self.hashes: dict[int, str] = {}

    def hand(self, _work: Any, task: Any, failed: Callable[[str], Any] | None = None) -> Answered:
        assert failed is not None
        if isinstance(task, Again):
            return Answered(Broken(task.found.spec, "", task.found.spec.plan.loss, make_result(0)))
        assert isinstance(task, Slice)
        self.handed.append(task.number)
        if task.number in self.failing:
            return Answered(failed("failed on two workers: KilledWorker"))
        census = replace(CENSUS, hash=self.hashes.get(task.number, CENSUS.hash))
        return Answered(Sliced(census, zlib.compress(b"slice %d\n" % task.number)))


@pytest.fixture
def target() -> Target:
    """The engine; nothing of it runs."""
    return make_target("engine", find_paths().build)


def part(tmp_path: Path, limits: Limits) -> Part:
    """Of a campaign that has seen nothing yet."""
    paths = find_paths()
    return Part(make_spec(0), limits, 0, frozenset(), paths, tmp_path, tmp_path / "images")


def test_how_many(tmp_path: Path, target: Target) -> None:
    """By the states that are asked for; few stay with one worker, and time cannot be cut."""
    assert slice_count(part(tmp_path, Limits(states=2500)), target) == 0
    assert slice_count(part(tmp_path, Limits(states=5001)), target) == 3
    assert slice_count(part(tmp_path, Limits(states=0)), target) == 64
    assert slice_count(part(tmp_path, Limits(states=4001, budget_s=1)), target) == 0


def test_one_fails_twice(tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, the others are kept, and only that one is handed out the next time; what comes together
    then is all slices in their order."""
    merged = []

    def merge(_spec: Any, _target: Any, file: Path) -> Exploration:
        merged.append(file.read_bytes())
        return Exploration(
            {"states": 5000}, {"7.subset.1": (Violation(5, "torn"),)}, {"7.subset.1": 2}
        )

    monkeypatch.setattr(slices, "merge_slices", merge)
    some = part(tmp_path, Limits(states=7500))
    hands = Workers({2})
    with pytest.raises(UnexploredError, match="slice 2 of 3 failed on two workers: KilledWorker"):
        SlicedPart(some, target, hands, tmp_path / "kept").result()
    assert hands.handed == [1, 2, 3] and not merged
    hands = Workers(set())
    again = SlicedPart(some, target, hands, tmp_path / "kept")
    explored = again.result()
    assert hands.handed == [2]
    assert merged == [b"slice 1\nslice 2\nslice 3\n"]
    assert explored.census == CENSUS and explored.any_broken
    assert [one.state for one in explored.broken] == ["7.subset.1"]
    again.forget()
    assert not (tmp_path / "kept").exists()


def test_a_run_that_differs_is_no_slice(tmp_path: Path, target: Target) -> None:
    """A worker that recorded something else than the others is refused, and its slice is not kept."""
    hands = Workers(set())
    hands.hashes = {3: "other"}
    some = part(tmp_path, Limits(states=7500))
    with pytest.raises(UnexploredError, match="slice 3 has the trace hash other"):
        SlicedPart(some, target, hands, tmp_path / "kept").result()
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["1-of-3", "2-of-3"]
