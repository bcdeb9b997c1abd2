"""What a look says of a run and its states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from tornpage.hunting import look as module
from tornpage.hunting.corpus import MUTATION, Look, Seen
from tornpage.hunting.look import FAILED, LOOK_STATES, Looked, look_at, scripts_of_campaign
from tornpage.plans.campaign import load_campaign
from tornpage.plans.limits import Limits
from tornpage.vocabulary.errors import FailedRunError, GoldenRunError, UnseenError
from tornpage.vocabulary.model import FaultPlan, Source, TrialSpec, Violation
from tornpage.vocabulary.paths import find_paths

SPEC = TrialSpec("c", "engine", "on", {}, "inline", {"script": ""}, 1, 1, 0, FaultPlan())
BROKEN = (Violation(5, "torn", source=Source.STATE),)
RULE = (Violation(13, "a copy is missing", source=Source.RULE),)


def looked(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    source: str = "one",
    *,
    error: Exception | None = None,
    broken: dict[str, tuple[Violation, ...]] | None = None,
    run: tuple[Violation, ...] = (),
    counts: Mapping[str, int] = MappingProxyType({}),
) -> Looked:
    """At a run with these counters. error: of the run."""

    @contextmanager
    def recorded(*_: object) -> Iterator[Any]:
        if error:
            raise error
        counters = {name: n for name, n in counts.items() if not name.startswith("torn_")}
        yield SimpleNamespace(events=900, counters=counters, suspect=(), violations=run)

    def explored(*_: object) -> Any:
        torn = {"data_page": {"first_flush": {"prefix": {"states": counts.get("torn_states", 0)}}}}
        return SimpleNamespace(
            summary={"states": 60, "torn_pages": torn, "paths": {}}, broken=broken or {}
        )

    monkeypatch.setattr(module, "recorded_run", recorded)
    monkeypatch.setattr(module, "explore", explored)
    return look_at(Look(0, source, SPEC, Limits()), SimpleNamespace(), folder)


def seen(monkeypatch: pytest.MonkeyPatch, folder: Path, **counts: int) -> Seen:
    """What the corpus learns."""
    return looked(monkeypatch, folder, counts=counts).seen


def test_marks_are_what_happened_and_about_how_often(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A counter that stays at zero is none; one more of many is nothing new, twice as many is."""
    assert seen(monkeypatch, tmp_path, splits=0).marks == frozenset()
    one, three, two = (seen(monkeypatch, tmp_path, splits=n).marks for n in (4, 8, 5))
    assert one == two and len(one) == 1 and not one & three
    assert len(seen(monkeypatch, tmp_path, splits=4, torn_states=4).marks) == 2


def test_work_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the events of the run and the states, not by a clock."""
    assert seen(monkeypatch, tmp_path).work == 900 + 60 * 40
    assert seen(monkeypatch, tmp_path).states == 60


def test_what_breaks_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By state, and of the run itself; a run that the target fails is a find too, mutated or not."""
    found = looked(monkeypatch, tmp_path, broken={"7.one-torn.1": BROKEN}, run=RULE)
    assert found.broken == {"": RULE, "7.one-torn.1": BROKEN}
    assert looked(monkeypatch, tmp_path).broken == {}
    for source in ("one", MUTATION):
        failed = looked(monkeypatch, tmp_path, source, error=FailedRunError("it crashed"))
        assert failed.seen == FAILED
        assert [one.what for one in failed.broken[""]] == ["it crashed"]


def test_a_mutation_that_cannot_be_run_says_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nobody has said that it can; the script of a campaign must."""
    error = GoldenRunError("syntax error")
    refused = looked(monkeypatch, tmp_path, MUTATION, error=error)
    assert refused == Looked(FAILED, {}, refused=True)
    with pytest.raises(GoldenRunError):
        looked(monkeypatch, tmp_path, error=error)


@pytest.mark.parametrize("source", ["one", MUTATION])
def test_what_a_recording_lacks_ends_the_hunt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str
) -> None:
    """It is no matter of the script."""
    with pytest.raises(UnseenError):
        looked(monkeypatch, tmp_path, source, error=UnseenError("io_uring"))


def test_scripts_of_a_campaign_are_looked_at_with_few_states() -> None:
    """All of them, in order, as deep as the campaign goes."""
    campaign = load_campaign("mix", find_paths().workloads)
    scripts = list(scripts_of_campaign(campaign, "engine"))
    assert len(scripts) == 2 * campaign.scripts * 4
    assert {limits.depth: limits.states for _, limits in scripts} == {
        1: LOOK_STATES,
        2: 2 * LOOK_STATES,
    }
    assert len({spec.config for spec, _ in scripts}) == len(scripts)
