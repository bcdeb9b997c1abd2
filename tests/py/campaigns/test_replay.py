"""What a replay takes for the finding that was stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import make_result, make_spec

from tornpage.campaigns import replay
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import Exploration, loss_plan
from tornpage.store.rows import TrialRow
from tornpage.targets.target import Capability
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec, Violation

LOST = Violation(1, "acknowledged commits are missing: prefix 3 found (model subset)")
REFUSED = Violation(30, "refused: no such file x12 (model subset)")


def result(*violations: Violation) -> TrialResult:
    """A trial that broke these."""
    return replace(make_result(3, broken=1), violations=violations)


@pytest.mark.parametrize(
    ("stored", "found", "other"),
    [
        (result(LOST), result(LOST), False),
        (result(LOST), result(REFUSED, LOST), False),
        (result(LOST), result(REFUSED), True),
        (result(), result(REFUSED), False),
        (None, result(REFUSED), False),
    ],
)
def test_another_finding_is_told_from_the_stored_one(
    stored: TrialResult | None, found: TrialResult, other: bool
) -> None:
    """Where there was one."""
    assert replay._is_other(stored, found) is other


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"outcome": Outcome.CLEAN}, False),
        ({"violations": (REFUSED,)}, False),
        ({"violations": (LOST, REFUSED)}, False),
        ({"digest": "another"}, False),
        ({"trace_hash": "another"}, False),
        ({"violations": (LOST, replace(LOST, what="in other words"))}, True),
        ({"reason": "in other words", "seconds": {"run": 9.0}}, True),
    ],
)
def test_a_verdict_is_what_was_judged(change: dict[str, Any], same: bool) -> None:
    """The state that was found, the recording that led there, and what is broken; no words, no times."""
    stored = result(LOST)
    assert (replay._verdict(replace(stored, **change)) == replay._verdict(stored)) is same


def test_a_state_is_searched_for_as_it_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its models, to its depth; one with another finding is not it."""
    spec = replace(make_spec(3), plan=loss_plan("17.subset.2/9.one-torn.1"))
    asked: list[Limits] = []

    def explored(_spec: TrialSpec, _target: object, _of: object, limits: Limits) -> Exploration:
        asked.append(limits)
        return Exploration({}, {"5.subset.1": (REFUSED,), "7.subset.3": (LOST,)})

    monkeypatch.setattr(replay, "explore", explored)
    row = TrialRow(1, 3, spec, "redo", "17.subset.2/9.one-torn.1", result(LOST))
    assert replay._search(row, cast(Any, None), cast(Any, None)) == ("7.subset.3", True)
    (limits,) = asked
    assert (limits.models, limits.depth) == (("subset", "one-torn"), 2)


@pytest.mark.parametrize(
    ("complete", "repeats", "outcome"),
    [
        (True, True, Outcome.CLEAN),
        (False, True, Outcome.NOT_EXERCISED),
        (False, False, Outcome.CLEAN),
    ],
)
def test_a_search_that_was_cut_is_no_fix(
    complete: bool, repeats: bool, outcome: Outcome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the search is all that is asked; where runs differ, what was kept decides. The words say so."""
    monkeypatch.setattr(replay, "explore", lambda *_: Exploration({"complete": complete}))
    capabilities = {Capability.DETERMINISTIC} if repeats else set[Capability]()
    target = cast(Any, SimpleNamespace(capabilities=capabilities))
    recording = cast(Any, SimpleNamespace(trace_hash="another"))
    row = TrialRow(1, 3, replace(make_spec(3), plan=loss_plan("17.subset.2")), "", "", result(LOST))
    _, found, note = replay._replay_loss(row, target, recording, tmp_path, tmp_path)
    assert found.outcome is outcome
    assert (replay.LATE in (note, found.reason)) is not complete
