"""A hunt from look to look, with a target that is only pretended."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tornpage.campaigns.fitting import changed, open_campaign
from tornpage.hunting import hunt as module
from tornpage.hunting.corpus import MUTATION, Look, Seen
from tornpage.hunting.hunt import WINDOW, Hunt, Hunted, Task, hunt, one_script
from tornpage.hunting.look import FAILED, Looked, scripts_of_campaign
from tornpage.plans.campaign import Campaign, fault_free_spec
from tornpage.plans.limits import UNLIMITED, Limits
from tornpage.powerloss.runner import loss_limits
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import FaultPlan, Source, TrialSpec, Violation
from tornpage.vocabulary.paths import find_paths
from tornpage.workers.context import QuietProgress, RunContext

PATHS = find_paths()
OPENED = changed(
    [open_campaign("powerloss", "engine", PATHS)], replace(UNLIMITED, seed=3), {}, PATHS
)


def violation(invariant: int) -> Violation:
    """Of a state."""
    return Violation(invariant, f"broken {invariant}", source=Source.STATE)


@dataclass
class Target:
    """breaks: by number of a look what its states break; refuses: those whose script cannot be run; unsteady:
    by number of a run what its look has shown and it does not; dies: runs in which the hunt is ended; made:
    looks that it was asked for; kept: those that became a run."""

    breaks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    refuses: frozenset[int] = frozenset()
    unsteady: dict[int, tuple[int, ...]] = field(default_factory=dict)
    made: list[int] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    kept: list[Campaign] = field(default_factory=list)
    dies: list[int] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    place: Any = field(default_factory=lambda: SimpleNamespace(shared=False))

    def look(self, task: Task) -> Looked:
        """In place of work()."""
        self.made.append(task.look.number)
        self.scripts.append(f"{task.look.source} {task.look.spec.config}")
        invariants = self.breaks.get(task.look.number, ())
        broken = {f"{n}.one-torn.1": (violation(n),) for n in invariants}
        if task.look.number in self.refuses:
            return Looked(FAILED, {}, refused=True)
        marks = frozenset({task.look.number % 7, task.look.number})
        return Looked(Seen(marks, 100, 60), broken)

    def run(self, _store: object, campaign: Campaign, _target: str, context: RunContext) -> Any:
        """In place of run_campaign()."""
        if len(self.kept) + 1 in self.dies:
            self.dies.remove(len(self.kept) + 1)
            self.kept.append(campaign)
            raise KeyboardInterrupt
        self.kept.append(campaign)
        self.ends.append(context.stop_at)
        row = self.runs()[-1]
        return SimpleNamespace(run=row, findings=self._findings(row.id))

    def interrupted(self, name: str, target: str, fits: Callable[[Any], bool]) -> list[Any]:
        """In place of the store's: each run that has not ended."""
        assert (name, target) == ("hunt", "engine") and fits(OPENED[0].origin())
        return self.runs()[len(self.ends) :]

    def own_run(self, number: int) -> Any:
        """In place of the store's."""
        return self.runs()[number - 1]

    def go_on(self, _store: object, run: Any, context: RunContext) -> Any:
        """In place of the runner's."""
        self.ends.append(context.stop_at)
        return SimpleNamespace(run=run, findings=self._findings(run.id))

    def _findings(self, run: int) -> list[Violation]:
        """Of this run: what its look has broken, but for what is unsteady."""
        number = int(self.kept[run - 1].description.split()[1])
        unsteady = self.unsteady.get(run, ())
        return [violation(n) for n in self.breaks.get(number, ()) if n not in unsteady]

    def runs(self) -> list[Any]:
        """In place of the store's."""
        return [
            SimpleNamespace(id=number, settings=campaign.model_dump(mode="json"))
            for number, campaign in enumerate(self.kept, start=1)
        ]


@dataclass
class _Answer:
    """Of work that is done when it is asked for, or at once."""

    make: Callable[[], Looked]

    def done(self) -> bool:
        """Not before."""
        return False

    def result(self) -> Looked:
        """Does it."""
        return self.make()


@pytest.fixture(params=["at once", "when asked for"])
def hunted(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Hunted]:
    """Hunts with a Target for so many looks; results come at once, or late."""

    def hunts(
        target: Target, looks: int, late_after: int = 1000, store: Target | None = None
    ) -> Hunted:
        class Late(RunContext):
            def is_late(self) -> bool:
                return len(target.made) >= late_after

        class Worker:
            size = 2

            def submit(self, work: object, task: Task) -> _Answer:
                assert work is module.work
                if request.param == "when asked for":
                    return _Answer(lambda: target.look(task))
                looked = target.look(task)
                return _Answer(lambda: looked)

        @contextmanager
        def workers(_: object) -> Iterator[Worker]:
            yield Worker()

        monkeypatch.setattr(module, "executor_of", workers)
        monkeypatch.setattr(module, "run_campaign", target.run)
        monkeypatch.setattr(module, "go_on", target.go_on)
        context = Late(PATHS, 2, tmp_path, QuietProgress(), OPENED[0].origin(), stop_at=7.0)
        return hunt(store or target, Hunt(3, tuple(OPENED), looks), context)  # type: ignore[arg-type]

    return hunts


def test_what_is_new_is_kept_once(hunted: Callable[..., Hunted]) -> None:
    """A look that breaks something that an earlier one broke and something else is kept for that."""
    target = Target({2: (5,), 4: (5,), 9: (5, 12), 15: (12,)})
    came_to = hunted(target, 20)
    assert came_to.runs == [1, 2, 3] and not came_to.lost
    assert [one.description for one in target.kept] == [
        f"script {number} of a hunt" for number in (0, 2, 9)
    ]
    assert (came_to.looks, came_to.states) == (20, 20 * 60)
    assert came_to.by_source["powerloss"] + came_to.by_source[MUTATION] == 20


def test_it_goes_on_where_it_was(hunted: Callable[..., Hunted]) -> None:
    """The same looks, none of them made twice, and what was found before is told again."""
    parts = Target({2: (5,), 35: (12,)})
    first = hunted(parts, 40, late_after=20)
    assert 20 <= first.looks <= 20 + WINDOW and first.runs == [1, 2]
    second = hunted(parts, 40)
    assert (second.looks, second.runs) == (40, [1, 2, 3])
    assert sorted(parts.made) == list(range(40))
    assert hunted(parts, 40) == second and len(parts.made) == 40
    assert len(parts.kept) == 3


def test_another_result_database_is_refused(hunted: Callable[..., Hunted]) -> None:
    """The runs of the journal are not there, or others have their numbers."""
    hunted(Target({2: (5,)}), 20)
    other = Target()
    with pytest.raises(ConfigError, match="run 1 of this hunt is not in the result database"):
        hunted(other, 20, store=other)
    other.kept.append(OPENED[0].campaign)
    with pytest.raises(ConfigError, match="run 1 of this hunt is not in the result database"):
        hunted(other, 20, store=other)


def test_the_first_script_is_kept_whatever_it_shows(hunted: Callable[..., Hunted]) -> None:
    """A clean hunt has a run with audit, control and canaries."""
    target = Target()
    came_to = hunted(target, 3)
    assert came_to.runs == [1] and not came_to.lost
    assert target.kept[0].description == "script 0 of a hunt"


@pytest.mark.parametrize("number", [0, 2])
def test_a_find_that_its_run_does_not_show_is_lost(
    hunted: Callable[..., Hunted], number: int
) -> None:
    """That of the first script too; and when the hunt goes on."""
    run = 1 if number == 0 else 2
    target = Target({number: (5,)}, unsteady={run: (5,)})
    assert hunted(target, 4).lost == [run]
    assert hunted(target, 8).lost == [run]


def test_each_new_kind_must_come_again(hunted: Callable[..., Hunted]) -> None:
    """A run that shows one of two is not enough, unless the other was known before."""
    target = Target({2: (5, 12), 9: (5, 27)}, unsteady={2: (12,), 3: (5,)})
    came_to = hunted(target, 12)
    assert (came_to.runs, came_to.lost) == ([1, 2, 3], [2])


def test_the_run_of_a_find_is_made_whole(hunted: Callable[..., Hunted]) -> None:
    """Whatever time it is."""
    target = Target({2: (5,)})
    hunted(target, 10)
    assert target.ends == [math.inf, math.inf]


@pytest.mark.parametrize("died", [1, 2])
def test_a_run_that_was_interrupted_goes_on(hunted: Callable[..., Hunted], died: int) -> None:
    """It is not made anew."""
    target = Target({2: (5,)}, dies=[died])
    with pytest.raises(KeyboardInterrupt):
        hunted(target, 10)
    assert hunted(target, 10).runs == [1, 2]
    assert len(target.kept) == 2


def test_scripts_that_the_target_refuses_are_counted(hunted: Callable[..., Hunted]) -> None:
    """When the hunt goes on too."""
    target = Target(refuses=frozenset({3, 4}))
    assert hunted(target, 10).refused == 2
    assert hunted(target, 12).refused == 2


@pytest.mark.parametrize(("refuses", "mutations"), [(frozenset(), 10), (frozenset({0, 1}), 0)])
def test_what_is_under_way_is_waited_for(
    hunted: Callable[..., Hunted],
    monkeypatch: pytest.MonkeyPatch,
    refuses: frozenset[int],
    mutations: int,
) -> None:
    """Where a campaign has fewer scripts than are handed out at once, mutation begins with the first that
    comes back; if none can be mutated, the hunt is over."""
    monkeypatch.setattr(
        module,
        "scripts_of_campaign",
        lambda *of: itertools.islice(scripts_of_campaign(*of), 2),
    )
    came_to = hunted(Target(refuses=refuses), 12)
    assert (came_to.by_source["powerloss"], came_to.by_source[MUTATION]) == (2, mutations)


def test_a_look_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that are under way may be at one script; nothing of it stays."""
    seen = []

    def look_in(_look: Look, _target: object, folder: Path) -> Looked:
        (folder / "recording").mkdir()
        seen.append(folder)
        return Looked(FAILED, {})

    monkeypatch.setattr(module, "look_at", look_in)
    spec, limits = next(scripts_of_campaign(OPENED[0].campaign, "engine"))
    for number in (1, 2):
        look = Look(number, MUTATION, spec, limits)
        module.work(Task(look, PATHS, tmp_path, tmp_path))
    assert len(set(seen)) == 2
    assert not list(tmp_path.iterdir())


def test_nothing_hangs_on_who_is_done_first(tmp_path: Path, hunted: Callable[..., Hunted]) -> None:
    """The scripts are those that the journal of any other hunt of this seed has."""
    target = Target()
    hunted(target, 32)
    again = Target()
    (tmp_path / "hunt.jsonl").unlink()
    hunted(again, 32)
    assert target.scripts == again.scripts
    assert sum(one.startswith(MUTATION) for one in target.scripts) > 10


@pytest.mark.parametrize("depth", [1, 2])
def test_a_find_is_a_campaign_of_its_script_alone(depth: int) -> None:
    """With the same script, options, seed of its states, and as many of them, as deep."""
    spec = TrialSpec(
        "mix",
        "engine",
        "on hunt=7",
        {"page_size": "4k"},
        "inline",
        {"script": "checkpoint\n"},
        4,
        99,
        0,
        FaultPlan(),
    )
    campaign = one_script(Look(7, MUTATION, spec, Limits(states=240, depth=depth)))
    assert len(campaign.scripted()) == 1
    made = fault_free_spec(campaign, "engine", campaign.scripted()[0])
    for name in ("options", "workload", "params", "seed"):
        assert getattr(made, name) == getattr(spec, name)
    limits = loss_limits(campaign, campaign.parts()[0])
    assert (limits.states, limits.depth, limits.models) == (240, depth, ())
