"""A few states of every script before any is explored whole: what they are for is what is made first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tornpage.campaigns import runner as campaigns
from tornpage.campaigns.runner import go_on
from tornpage.plans.campaign import Campaign
from tornpage.powerloss import runner
from tornpage.powerloss.explorer import Scope
from tornpage.powerloss.parts import Explored, Part
from tornpage.powerloss.runner import LOOK_STATES, STATES_MAX, look_scope
from tornpage.store.origin import Origin
from tornpage.store.rows import GoldenRunRow, Run
from tornpage.store.store import Store
from tornpage.vocabulary.paths import find_paths
from tornpage.workers.context import QuietProgress, RunContext

HERE = Origin(programs={"engine": "b1"})
SUMMARY = {"states": 5, "distinct": 5}


@dataclass
class Engine:
    """Three scripts. shows: those that show something at first look; looks, explored: which were made, with
    so many states; late_after: so many calls, and the time is up."""

    store: Store
    out: Path
    run: Run
    shows: tuple[int, ...] = ()
    late_after: int = 100
    looks: list[tuple[int, int | None]] = field(default_factory=list)
    explored: list[tuple[int, int | None]] = field(default_factory=list)

    def look(self, part: Part) -> bool:
        """In place of first_look()."""
        self.looks.append((part.first // STATES_MAX, part.limits.states))
        return part.first // STATES_MAX in self.shows

    def explore(self, part: Part, _tell: object) -> Explored:
        """In place of explore_part()."""
        self.explored.append((part.first // STATES_MAX, part.limits.states))
        row = GoldenRunRow(part.spec.config, True, "abc", 9, 0, (), {})
        return Explored(row, SUMMARY, (), False)

    def calls(self) -> int:
        """So far."""
        return len(self.looks) + len(self.explored)

    def goes(self) -> None:
        """Until the run's end."""
        engine = self

        class Context(RunContext):
            """Late after so many calls."""

            def is_late(self) -> bool:
                return engine.calls() >= engine.late_after

        context = Context(
            find_paths(), 1, self.out, QuietProgress(), HERE, stop_at=time.monotonic()
        )
        go_on(self.store, self.store.run(self.run.id), context)


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Engine]]:
    """A run with so many states of each script; nothing of the engine runs."""
    monkeypatch.setattr(campaigns, "check_parts", lambda *_: None)
    with Store(tmp_path / "tornpage.db") as store:

        def begin(states: int, depth: int = 1, workload: str = "smoke", scripts: int = 3) -> Engine:
            campaign = Campaign(
                name="looks",
                description="explorations of many states",
                workload=workload,
                crash_model="power_loss",
                seed=7,
                scripts=scripts,
                explore={"states": states, "depth": depth},  # type: ignore[arg-type]
            )
            settings = campaign.model_dump(mode="json")
            run = store.begin_run("looks", "engine", 7, 0, settings, HERE)
            engine = Engine(store, tmp_path, run)
            monkeypatch.setattr(runner, "first_look", engine.look)
            monkeypatch.setattr(runner, "explore_part", engine.explore)
            return engine

        yield begin


def test_what_shows_something_is_explored_first(begun: Callable[..., Engine]) -> None:
    """All are looked at before, and all are explored whole."""
    engine = begun(1000)
    engine.shows = (2,)
    engine.goes()
    assert engine.looks == [(0, LOOK_STATES), (1, LOOK_STATES), (2, LOOK_STATES)]
    assert engine.explored == [(2, 1000), (0, 1000), (1, 1000)]


def test_a_look_is_a_sample() -> None:
    """Also where the exploration has to judge all states of some models."""
    assert look_scope(Scope(jobs=2, aim=True, whole=True, canaries=True)) == Scope(jobs=2, aim=True)


def test_where_nothing_shows_the_order_is_that_of_the_campaign(
    begun: Callable[..., Engine],
) -> None:
    """As without a look."""
    engine = begun(1000)
    engine.goes()
    assert engine.explored == [(0, 1000), (1, 1000), (2, 1000)]


def test_a_run_that_goes_on_has_the_order_of_one_that_was_not_ended(
    begun: Callable[..., Engine],
) -> None:
    """The order is by what scripts add to those before them, also to those that were explored before."""
    whole = begun(100, workload="mix", scripts=12)
    whole.goes()
    order = [place for place, _ in whole.explored]
    assert sorted(order) == list(range(12)) != order
    ended = begun(100, workload="mix", scripts=12)
    ended.late_after = 3
    ended.goes()
    assert [place for place, _ in ended.explored] == order[:3]
    ended.late_after = 100
    ended.goes()
    assert [place for place, _ in ended.explored] == order


def test_few_states_need_no_look(begun: Callable[..., Engine]) -> None:
    """They are hardly more."""
    engine = begun(4 * LOOK_STATES - 1)
    engine.goes()
    assert not engine.looks and len(engine.explored) == 3


def test_crashes_of_recoveries_need_no_look(begun: Callable[..., Engine]) -> None:
    """A few states hardly reach them."""
    engine = begun(1000, depth=2)
    engine.goes()
    assert not engine.looks and len(engine.explored) == 3


def test_what_was_seen_is_told_even_if_the_time_is_up(begun: Callable[..., Engine]) -> None:
    """A run must not say less than it has seen: the state is found again, and stored."""
    engine = begun(1000)
    engine.shows, engine.late_after = (1, 2), 3
    engine.goes()
    assert engine.explored == [(1, LOOK_STATES)]


def test_looks_end_with_the_time(begun: Callable[..., Engine]) -> None:
    """Without anything seen there is nothing to tell."""
    engine = begun(1000)
    engine.shows, engine.late_after = (2,), 1
    engine.goes()
    assert engine.looks == [(0, LOOK_STATES)] and not engine.explored
