"""A hunt from look to look, with a target that is only pretended."""

from __future__ import annotations

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
from tornpage.hunting.look import Looked
from tornpage.plans.campaign import Campaign, fault_free_spec
from tornpage.plans.limits import UNLIMITED, Limits
from tornpage.powerloss.runner import loss_limits
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
    """breaks: by number of a look what its states break; made: looks that it was asked for; kept: those that
    became a run."""

    breaks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    made: list[int] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    kept: list[Campaign] = field(default_factory=list)

    def look(self, task: Task) -> Looked:
        """In place of work()."""
        self.made.append(task.look.number)
        self.scripts.append(f"{task.look.source} {task.look.spec.config}")
        invariants = self.breaks.get(task.look.number, ())
        broken = {f"{n}.one-torn.1": (violation(n),) for n in invariants}
        marks = frozenset({task.look.number % 7, task.look.number})
        return Looked(Seen(marks, 100, 60), broken)

    def run(self, _store: object, campaign: Campaign, *_: object) -> Any:
        """In place of run_campaign()."""
        self.kept.append(campaign)
        return SimpleNamespace(run=SimpleNamespace(id=len(self.kept)))


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

    def hunts(target: Target, looks: int, late_after: int = 1000) -> Hunted:
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
        context = Late(PATHS, 2, tmp_path, QuietProgress(), OPENED[0].origin())
        return hunt(SimpleNamespace(), Hunt(3, tuple(OPENED), looks), context)  # type: ignore[arg-type]

    return hunts


def test_what_is_new_is_kept_once(hunted: Callable[..., Hunted]) -> None:
    """A look that breaks something that an earlier one broke and something else is kept for that."""
    target = Target({2: (5,), 4: (5,), 9: (5, 12), 15: (12,)})
    came_to = hunted(target, 20)
    assert came_to.runs == [1, 2]
    assert len(target.kept) == 2
    assert (came_to.looks, came_to.states) == (20, 20 * 60)
    assert came_to.by_source["powerloss"] + came_to.by_source[MUTATION] == 20


def test_it_goes_on_where_it_was(hunted: Callable[..., Hunted]) -> None:
    """The same looks, none of them made twice, and what was found before is told again."""
    parts = Target({2: (5,), 35: (12,)})
    first = hunted(parts, 40, late_after=20)
    assert 20 <= first.looks <= 20 + WINDOW and first.runs == [1]
    second = hunted(parts, 40)
    assert (second.looks, second.runs) == (40, [1, 2])
    assert sorted(parts.made) == list(range(40))
    assert hunted(parts, 40) == second and len(parts.made) == 40
    assert len(parts.kept) == 2


def test_nothing_hangs_on_who_is_done_first(tmp_path: Path, hunted: Callable[..., Hunted]) -> None:
    """The scripts are those that the journal of any other hunt of this seed has."""
    target = Target()
    hunted(target, 60)
    again = Target()
    (tmp_path / "hunt.jsonl").unlink()
    hunted(again, 60)
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
