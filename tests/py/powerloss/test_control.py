"""What comes before a verdict on a target file: a control of as few states as show a break, once in a
night. What the explorer says of a lying disk is that of tests/e2e/test_target_file.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import make_spec

from tornpage.campaigns import runner
from tornpage.campaigns.fitting import Opened, open_campaign
from tornpage.live.admission import Audited
from tornpage.live.stopped import Compared
from tornpage.plans.limits import Limits
from tornpage.powerloss import control
from tornpage.powerloss.control import LIE, PORTIONS, examine_runs, work_key
from tornpage.powerloss.explorer import Exploration, Scope
from tornpage.store.origin import Examined, Origin
from tornpage.store.store import Store
from tornpage.targets.command.skeleton import Language, write_skeleton
from tornpage.targets.target import Target
from tornpage.vocabulary.model import TrialSpec
from tornpage.vocabulary.paths import find_paths
from tornpage.workers.context import QuietProgress, RunContext

PATHS = find_paths()


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Power loss of a target file."""
    return open_campaign(
        "powerloss", str(write_skeleton("mydb", Language.PYTHON, tmp_path).file), PATHS
    )


@pytest.fixture
def context(tmp_path: Path) -> RunContext:
    """Of no night."""
    return RunContext(PATHS, 1, tmp_path, QuietProgress(), Origin())


@pytest.mark.parametrize(
    ("first", "asked", "kinds"),
    [(1, PORTIONS[:1], 1), (PORTIONS[1], PORTIONS[:2], 1), (10_000, PORTIONS, 0)],
)
def test_more_states_only_where_none_was_broken(
    first: int,
    asked: Sequence[int],
    kinds: int,
    opened: Opened,
    context: RunContext,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """first: of so many states one breaks the promise. Every fsync is a lie in all of them."""
    seen: list[int] = []

    @contextmanager
    def recorded(*_: object) -> Iterator[None]:
        yield None

    def explored(
        _spec: TrialSpec,
        _target: Target,
        _recording: None,
        limits: Limits,
        scope: Scope,
        _tell: object,
    ) -> Exploration:
        assert scope.ignored_fsyncs == (LIE,) and limits.states is not None
        seen.append(limits.states)
        broken: dict[str, Any] = {"1-a": ()} if limits.states >= first else {}
        return Exploration({"states": limits.states}, broken)

    monkeypatch.setattr(control, "recorded_run", recorded)
    monkeypatch.setattr(control, "explore", explored)
    monkeypatch.setattr(control, "audit_runs", lambda *_: Audited("no ptrace", Compared(7, 8), 3))
    works = [make_spec(0)]
    found = examine_runs(opened.target, works, tmp_path, context)
    assert (tuple(seen), found.kinds, found.states) == (tuple(asked), kinds, asked[-1])
    assert bool(found.vacuous) is (kinds == 0)
    assert found.blind == (() if kinds else (works[0].config,))
    assert found.not_audited == "no ptrace"
    assert (found.compared, found.acknowledgements, found.recoveries) == (7, 8, 3)
    before = Audited("", Compared(1, 1), 4)
    assert examine_runs(opened.target, works, tmp_path, context, before).not_audited == ""


def test_each_work_has_a_control_of_its_own(
    opened: Opened, context: RunContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What one shows says nothing of the others: each that showed nothing is named."""
    works = [make_spec(number, f"sync={number}") for number in range(4)]

    @contextmanager
    def recorded(*_: object) -> Iterator[None]:
        yield None

    def explored(spec: TrialSpec, *_: object) -> Exploration:
        broken: dict[str, Any] = {"1-a": ()} if spec.number % 2 else {}
        return Exploration({"states": 25}, broken)

    monkeypatch.setattr(control, "recorded_run", recorded)
    monkeypatch.setattr(control, "explore", explored)
    found = examine_runs(opened.target, works, tmp_path, context, Audited("", Compared(1, 1), 1))
    assert (found.states, found.kinds) == (100, 2)
    assert found.blind == ("sync=0", "sync=2")


def test_a_control_without_a_state_is_none() -> None:
    """Nothing was as it must be where nothing was looked at."""
    assert Examined("w").control_text == "control: none, as there were no power-loss states"
    assert not Examined("w").vacuous
    assert Examined("w", 25, 2).control_text == (
        "control: 25 states of a disk that ignores every fsync broke the promise in 2 ways, as they must"
    )


def test_options_and_work_are_controlled_each(opened: Opened) -> None:
    """The seed is none of them."""
    spec = make_spec(0)
    key = work_key(opened.target, [spec])
    assert key == work_key(opened.target, [replace(spec, seed=9, workload_seed=9)])
    others = (replace(spec, options={"sync": "off"}), replace(spec, params={"rows": 7}))
    assert len({key, *(work_key(opened.target, [other]) for other in others)}) == 3


def test_a_night_has_one_control_of_a_target(
    opened: Opened, context: RunContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The next night, a single run and other options have their own."""
    made: list[str] = []

    def examined(target: Target, works: list[TrialSpec], *_: object) -> Examined:
        made.append(work_key(target, works))
        return Examined(made[-1], 25, 1)

    monkeypatch.setattr(runner, "examine_runs", examined)
    other = opened.campaign.with_options({"fs": "xfs"})
    with Store(tmp_path / "s.db") as store:
        for night, campaign, count in (
            (1, opened.campaign, 1),
            (1, opened.campaign, 1),
            (1, other, 2),
            (2, opened.campaign, 3),
            (None, opened.campaign, 4),
            (None, opened.campaign, 5),
        ):
            ours = replace(context, night=night)
            found = runner._examine(store, campaign, opened.name, ours, tmp_path)
            assert len(made) == count
            origin = replace(opened.origin(), examined=found)
            run = store.begin_run("x", opened.name, 1, 1, {}, origin, night)
            assert store.run(run.id).origin.examined == found
