"""A script is harmless if its crashes do not show the finding; what the machine did says nothing of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import make_golden_run, make_spec

from tornpage.oracle.fingerprint import Fingerprint
from tornpage.shrinking import crashes_live
from tornpage.shrinking.crashes import Crash, choose_violation
from tornpage.shrinking.crashes_live import KillSearch
from tornpage.shrinking.crashes_loss import LossSearch
from tornpage.shrinking.crashes_run import RunSearch
from tornpage.shrinking.reduce import Items, items_of
from tornpage.shrinking.shrink import _Probe
from tornpage.vocabulary.errors import MachineError, TornpageError
from tornpage.vocabulary.model import FaultPlan, Violation
from tornpage.workloads.parse import parse_script

SCRIPT = parse_script("checkpoint\ncheckpoint\n")
FINDING = Violation(1, "acknowledged commits are missing")
FOUND = Crash(FaultPlan(name="found"), 3)
BASE = SimpleNamespace(golden_run=make_golden_run(), script=Path("nowhere/script"))


def bare(kind: type[Any], **fields: Any) -> Any:
    """A search that has not played its finding."""
    search = object.__new__(kind)
    for name, value in fields.items():
        setattr(search, name, value)
    return search


def raises(error: Exception) -> Callable[..., Any]:
    """What raises it whatever it is asked."""

    def fail(*_args: object, **_named: object) -> Any:
        raise error

    return fail


@contextmanager
def recorded(_script: object) -> Any:
    """A recording of which nothing is asked."""
    yield None


PLAN = make_spec(0).plan
KILL = {
    "_plan": PLAN,
    "_known": set[int](),
    "_baseline": lambda *_: BASE,
    "_plans": lambda *_: [PLAN],
}
STEPS = {
    "the run of a kill": (KillSearch, KILL, "_baseline"),
    "a kill": (KillSearch, KILL, "_matches"),
    "the run of a power loss": (LossSearch, {}, "_recorded"),
    "a power loss": (LossSearch, {"_recorded": recorded}, "_find"),
    "a run": (RunSearch, {}, "_run"),
}


@pytest.mark.parametrize("step", STEPS)
def test_what_the_machine_did_is_no_answer(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that could not be tried is not left out as harmless; one that the target fails is."""
    monkeypatch.setattr(crashes_live, "remove_image", lambda _folder: None)
    kind, fields, fails = STEPS[step]
    full = bare(kind, **{**fields, fails: raises(MachineError("no space"))})
    with pytest.raises(MachineError):
        full.find(SCRIPT, range(2))
    refused = bare(kind, **{**fields, fails: raises(TornpageError("refused"))})
    assert refused.find(SCRIPT, range(2)) is None


def test_a_run_that_breaks_another_rule_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smaller script whose run by itself is broken in a new way shows nothing of the finding."""
    monkeypatch.setattr(crashes_live, "remove_image", lambda _folder: None)
    result = SimpleNamespace(torn=None)
    search = bare(KillSearch, **KILL, _matches=lambda *_: result, _follow=lambda *_: None)
    assert search.find(SCRIPT, range(2)) == Crash(PLAN, None)
    broken = replace(BASE.golden_run, violations=(Violation(20, "a log block"),))
    search._baseline = lambda *_: SimpleNamespace(golden_run=broken, script=BASE.script)
    assert search.find(SCRIPT, range(2)) is None
    search._known = {20}
    assert search.find(SCRIPT, range(2)) is not None


class Answers:
    """Of find(), in turn."""

    fingerprint = Fingerprint(1, "", "")
    start = FOUND
    origin = 0

    def __init__(self, *crashes: Crash | None) -> None:
        self.crashes = list(crashes)

    def find(self, _script: object, _origins: object) -> Crash | None:
        """The next one."""
        return self.crashes.pop(0)


def probe(search: Answers, seconds: float) -> tuple[_Probe, list[Items]]:
    """With so much time; and what it has told."""
    told: list[Any] = []
    return _Probe(search, time.monotonic() + seconds, told.append), told  # type: ignore[arg-type]


def test_a_script_is_tried_once() -> None:
    """The last one that showed it is kept, with its crash."""
    whole = items_of(SCRIPT)
    asked, _ = probe(Answers(None, FOUND), 60)
    assert not asked.fails(whole) and not asked.fails(whole)
    assert asked.fails(whole[:1])
    assert (asked.items, asked.crash, asked.probes, asked.late) == (whole[:1], FOUND, 2, False)


def test_a_search_without_time_says_so() -> None:
    """Nothing is known of what it did not try."""
    asked, _ = probe(Answers(), -1)
    assert not asked.fails(items_of(SCRIPT))
    assert asked.late and asked.probes == 0


@pytest.mark.parametrize(
    ("shown", "followed"),
    [
        ([Violation(1, "other words"), FINDING], FINDING),
        ([Violation(1, "other words")], Violation(1, "other words")),
        ([Violation(5, FINDING.what)], None),
        ([], None),
    ],
)
def test_what_is_followed_has_the_invariant(
    shown: list[Violation], followed: Violation | None
) -> None:
    """The finding itself if it is there, and never one of another invariant."""
    if followed is not None:
        assert choose_violation(shown, FINDING, make_spec(3)) == followed
        return
    with pytest.raises(TornpageError, match="no longer breaks I1"):
        choose_violation(shown, FINDING, make_spec(3))
