"""What the owner of a cluster makes of the end of a task."""

from __future__ import annotations

from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import pytest
from builders import make_result, make_spec

from tornpage.powerloss.slices import Failed
from tornpage.vocabulary.errors import (
    ChildError,
    ConfigError,
    Interrupted,
    MachineError,
    TornpageError,
    UnexploredError,
)
from tornpage.vocabulary.model import TrialResult
from tornpage.workers import remote
from tornpage.workers.canaries import Canary
from tornpage.workers.cluster import _Handed
from tornpage.workers.remote import Delivery, changed_results


class KilledWorkerError(Exception):
    """As Dask has one."""

    __module__ = "distributed.scheduler"


@dataclass
class Future:
    """Ends as it is told to; an answer is gone when it is released."""

    ends: list[Any]
    released: bool = False

    def done(self) -> bool:
        return True

    def release(self) -> None:
        self.released = True

    def result(self) -> Delivery:
        assert not self.released
        end = self.ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        return Delivery(end, b"")


def failure(error: BaseException) -> Exception:
    """What the task says that failed so."""
    answer = _Handed(Future([error]), None, Failed).result()
    assert isinstance(answer, Failed)
    return answer.of("slice 1")


def test_only_a_machine_or_a_lost_worker_is_tried_again() -> None:
    """Another try may end otherwise then; what else was raised comes back as it was, with or without --debug
    to show where."""
    lost, full = KilledWorkerError("gone"), MachineError("no space")
    for error in (lost, full):
        again = failure(error)
        assert isinstance(again, UnexploredError) and isinstance(again, MachineError)
        assert "slice 1 failed on two workers: " in str(again) and str(error) in str(again)
        assert again.__cause__ is full or again.__cause__.__cause__ is lost  # type: ignore[union-attr]
    for other in (ChildError("the explorer failed"), TornpageError("other"), KeyError("hash")):
        assert failure(other) is other
        with pytest.raises(type(other)) as caught:
            _Handed(Future([other]), None, None).result()
        assert caught.value is other
    with pytest.raises(MachineError, match="KilledWorkerError: gone"):
        _Handed(Future([lost]), None, None).result()


def test_a_worker_with_other_programs_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same names and other bytes, too; it names them."""
    here = {"version": "1", "engine": "abc", "preload": "def"}
    monkeypatch.setattr(remote, "describe", lambda _target: here)
    remote._check(remote.Order("run", "engine", dict(here), str, None))
    for other, told in (({"engine": "xyz"}, "another engine than"), ({"judge": "1"}, "judge")):
        with pytest.raises(ConfigError, match=told):
            remote._check(remote.Order("run", "engine", {**here, **other}, str, None))
    with pytest.raises(ConfigError, match="another preload than"):
        remote._check(remote.Order("run", "engine", {"version": "1", "engine": "abc"}, str, None))


class FutureCancelledError(Exception):
    """As Dask calls it."""


class CommClosedError(OSError):
    """As well."""


def test_what_is_not_of_one_task_ends_the_run() -> None:
    """A cluster that is gone, and a worker with other programs."""
    for error in (CancelledError(), FutureCancelledError(), CommClosedError()):
        with pytest.raises(MachineError, match="the cluster is gone"):
            _Handed(Future([error]), None, Failed).result()
    with pytest.raises(ConfigError):
        _Handed(Future([ConfigError("another engine")]), None, Failed).result()


def test_a_wait_that_is_interrupted_loses_nothing() -> None:
    """The answer is there when it is asked for again."""
    future = Future([Interrupted(2), "answer"])
    handed = _Handed(future, None, Failed)
    with pytest.raises(Interrupted):
        handed.result()
    assert not future.released
    assert handed.result() == "answer"
    assert future.released


def test_only_results_of_trials_are_changed() -> None:
    """On their way: what has none, as what a judge made of its canaries, comes as it is."""
    seen: list[TrialResult] = []

    def look(result: TrialResult) -> TrialResult:
        seen.append(result)
        return result

    played = (make_spec(1), make_result(1))
    canaries = (Canary("lost_commit", 1, True), Canary("second_answer", 17, False))
    for answer in (played, canaries, canaries[:1], ()):
        assert changed_results(answer, look) == answer
    assert seen == [played[1]]
