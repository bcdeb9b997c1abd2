"""The owner of a power-loss campaign on a cluster: what it keeps of the explorations under way, whatever ends
it, and what it hands out when it goes on."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from builders import make_result, make_spec

from tornpage.campaigns import runner
from tornpage.campaigns.runner import can_resume, go_on
from tornpage.plans.campaign import Campaign
from tornpage.powerloss import slices
from tornpage.powerloss.explorer import Exploration
from tornpage.powerloss.parts import Broken, Explored, Part
from tornpage.powerloss.slice_files import Sliced
from tornpage.powerloss.slices import Slice
from tornpage.store.origin import Origin
from tornpage.store.rows import GoldenRunRow, Run
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ChildError, Interrupted, MachineError, UnexploredError
from tornpage.vocabulary.paths import find_paths
from tornpage.workers.context import Pending, QuietProgress, RunContext

HERE = Origin(programs={"engine": "b1"})
TWO_SLICES, WHOLE = 2600, 30
"""States of an exploration."""
SUMMARY = {"states": 5, "distinct": 5}


@dataclass
class Task:
    """Handed over; done when it has an answer."""

    task: Slice | Part
    failed: Callable[[Exception], Any]
    answer: Any = None

    @property
    def name(self) -> str:
        number = f" {self.task.number}" if isinstance(self.task, Slice) else ""
        return self.task.spec.config.rpartition(",")[2] + number

    def finish(self) -> None:
        golden_run = GoldenRunRow(self.task.spec.config, True, "abc", 9, 0, (), {})
        if isinstance(self.task, Slice):
            self.answer = Sliced(golden_run, zlib.compress(b"told"))
        else:
            self.answer = Explored(golden_run, SUMMARY, (), False)

    def fail(self, error: Exception) -> None:
        self.answer = self.failed(error)

    def done(self) -> bool:
        return self.answer is not None

    def result(self) -> Any:
        if not self.done():  # for good: nothing else ends here
            raise Interrupted(2)
        return self.answer


class Workers:
    """Do nothing until the owner waits; then what comes next of `story`, and in the end it is interrupted."""

    size = 2

    def __init__(self, *story: Callable[[Workers], None]) -> None:
        self.story = list(story)
        self.handed: list[Task] = []

    def submit(
        self, _work: Any, task: Any, failed: Callable[[Exception], Any] | None = None
    ) -> Task:
        assert failed is not None
        self.handed.append(Task(task, failed))
        return self.handed[-1]

    def wait(self, pending: Sequence[Pending[Any]]) -> None:
        assert pending and not any(one.done() for one in pending)
        if not self.story:
            raise Interrupted(2)
        self.story.pop(0)(self)

    def names(self) -> list[str]:
        return [task.name for task in self.handed]

    def finish(self, *names: str) -> None:
        for task in self.handed:
            if task.name in names:
                task.finish()


def finishes(*names: str) -> Callable[[Workers], None]:
    """These tasks end."""
    return lambda workers: workers.finish(*names)


def all_end(workers: Workers) -> None:
    """All that are under way."""
    for task in workers.handed:
        if not task.done():
            task.finish()


@dataclass
class Owner:
    """Goes on with a run of explorations to depths 1, 2 and 3."""

    store: Store
    out: Path
    run: Run

    def goes_on(self, workers: Workers) -> None:
        context = RunContext(find_paths(), 1, self.out, QuietProgress(), HERE, cluster=workers)
        go_on(self.store, self.store.run(self.run.id), context)

    def kept(self) -> list[str]:
        return sorted(path.name for path in (self.out / "slices").glob("*/*/*-of-*"))

    def stored(self) -> list[str]:
        return sorted(row.config[-1] for row in self.store.golden_runs(self.run.id))

    def state(self) -> str:
        return self.store.run(self.run.id).state


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Owner]]:
    """Begins a run with so many states; nothing of the engine runs."""
    monkeypatch.setattr(runner, "check_parts", lambda *_: None)
    monkeypatch.setattr(slices, "merge_slices", lambda *_: Exploration(SUMMARY))
    with Store(tmp_path / "tornpage.db") as store:

        def begin(states: int) -> Owner:
            campaign = Campaign(
                name="losses",
                description="explorations of many states",
                workload="smoke",
                crash_model="power_loss",
                seed=7,
                explore={"states": states, "depths": [1, 2, 3]},  # type: ignore[arg-type]
            )
            settings = campaign.model_dump(mode="json")
            return Owner(store, tmp_path, store.begin_run("losses", "engine", 7, 0, settings, HERE))

        yield begin


def test_slices_are_kept_as_they_come(start: Callable[[int], Owner]) -> None:
    """While the first exploration is waited for, slices of any are on disk as soon as they are there, so that
    not even a SIGKILL loses them."""
    owner = start(TWO_SLICES)
    seen = []

    def look(_workers: Workers) -> None:
        seen.append(owner.kept())

    workers = Workers(finishes("depth=2 1", "depth=1 2"), look, finishes("depth=2 2"), look)
    with pytest.raises(Interrupted):
        owner.goes_on(workers)
    assert seen == [["1-of-2", "2-of-2"], ["1-of-2", "2-of-2", "2-of-2"]]


def test_an_interrupt_keeps_what_is_done(start: Callable[[int], Owner]) -> None:
    """Slices that ended in the moment of the interrupt are kept too, and who goes on hands out the others
    only. What is kept keeps nobody busy: the next exploration is handed out before any is waited for."""
    owner = start(TWO_SLICES)

    def ends(workers: Workers) -> None:
        workers.finish("depth=1 1", "depth=2 1", "depth=2 2")
        raise Interrupted(2)

    with pytest.raises(Interrupted) as stop:
        owner.goes_on(Workers(ends))
    assert stop.value.kept and owner.state() == "running"
    assert owner.kept() == ["1-of-2", "1-of-2", "2-of-2"] and not owner.stored()
    early = []
    workers = Workers(lambda workers: early.extend(workers.names()), all_end)
    workers.size = 1
    owner.goes_on(workers)
    assert early == workers.names() == ["depth=1 2", "depth=3 1", "depth=3 2"]
    assert owner.stored() == ["1", "2", "3"] and owner.state() == "finished"
    assert not (owner.out / "slices").exists()


def test_slices_of_another_run_are_not_its_own(
    start: Callable[[int], Owner], tmp_path: Path
) -> None:
    """One that had its number in a store that is no more, and other limits."""
    owner = start(TWO_SLICES)

    def ends(workers: Workers) -> None:
        workers.finish("depth=1 1", "depth=1 2", "depth=2 1")
        raise Interrupted(2)

    with pytest.raises(Interrupted):
        owner.goes_on(Workers(ends))
    assert len(owner.kept()) == 3
    (tmp_path / "new").mkdir()
    with Store(tmp_path / "new" / "tornpage.db") as store:
        settings = dict(owner.run.settings)
        settings["explore"] = {**settings["explore"], "states": TWO_SLICES + 1}
        run = store.begin_run("losses", "engine", 7, 0, settings, HERE)
        assert run.id == owner.run.id
        workers = Workers(all_end, all_end, all_end)
        Owner(store, owner.out, run).goes_on(workers)
    assert sorted(workers.names()) == [f"depth={n} {m}" for n in (1, 2, 3) for m in (1, 2)]


def test_an_interrupt_stores_what_is_done(start: Callable[[int], Owner]) -> None:
    """Of explorations that one worker makes each, those in front of the first that is not done."""
    owner = start(WHOLE)

    class Late(Task):
        """Ends in the moment of the interrupt."""

        def result(self) -> Any:
            if self.done() or not self.name.endswith("=1"):
                return super().result()
            self.finish()
            raise Interrupted(2)

    class LateWorkers(Workers):
        def submit(self, work: Any, task: Any, failed: Any = None) -> Task:
            made = super().submit(work, task, failed)
            self.handed[-1] = Late(made.task, made.failed)
            return self.handed[-1]

    with pytest.raises(Interrupted):
        owner.goes_on(LateWorkers())
    assert owner.stored() == ["1"] and owner.state() == "running"


def test_what_was_not_stored_whole_is_made_again(
    start: Callable[[int], Owner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An owner that dies amid the states of an exploration: that it is done is the last that is stored."""
    owner = start(WHOLE)
    broken = Broken(make_spec(0), "redo", "17.subset.2", make_result(0, broken=1))

    class Done(Workers):
        """Each exploration has that state."""

        def submit(self, work: Any, task: Any, failed: Any = None) -> Task:
            made = super().submit(work, task, failed)
            made.finish()
            made.answer = replace(made.answer, broken=(broken,), any_broken=True)
            return made

    def dies(*_: object) -> None:
        raise Interrupted(2)

    with monkeypatch.context() as patch:
        patch.setattr(owner.store, "finish_trial", dies)
        with pytest.raises(Interrupted):
            owner.goes_on(Done())
    assert not owner.store.explorations(owner.run.id)
    owner.goes_on(Done())
    assert len(owner.store.explorations(owner.run.id)) == 3 and owner.state() == "finished"
    assert [row.result is not None for row in owner.store.trials(owner.run.id)] == [True]


def test_a_lost_worker_is_no_end(start: Callable[[int], Owner]) -> None:
    """Of the exploration whose slice it had there is no result yet; the others are stored, its other slice is
    kept, and --resume makes the rest."""
    owner = start(TWO_SLICES)
    lost = MachineError("KilledWorker: gone")

    def loses(workers: Workers) -> None:
        all_end(workers)
        workers.handed[0].fail(lost)

    with pytest.raises(UnexploredError, match="slice 1 of 2 failed on two") as caught:
        owner.goes_on(Workers(loses, all_end))
    assert caught.value.kept and owner.state() == "running"
    (unexplored,) = caught.value.__cause__.exceptions  # type: ignore[union-attr]
    assert unexplored.__cause__ is lost
    assert owner.stored() == ["2", "3"] and owner.kept() == ["2-of-2"]
    workers = Workers(all_end)
    owner.goes_on(workers)
    assert workers.names() == ["depth=1 1"] and owner.state() == "finished"


def test_what_no_other_try_mends_fails_the_run(start: Callable[[int], Owner]) -> None:
    """As it does without a cluster: the explorations before it are stored, and no slice stays."""
    owner = start(TWO_SLICES)
    error = ChildError("the explorer failed: exit code 2")

    def fails(workers: Workers) -> None:
        all_end(workers)
        workers.handed[2].fail(error)

    with pytest.raises(ChildError) as caught:
        owner.goes_on(Workers(fails, all_end))
    assert caught.value is error
    assert owner.stored() == ["1"] and owner.state() == "failed"
    assert not (owner.out / "slices").exists()


def test_a_run_that_is_given_up_leaves_no_slices(start: Callable[[int], Owner]) -> None:
    """Other programs cannot go on with it."""
    owner = start(TWO_SLICES)
    with pytest.raises(Interrupted):
        owner.goes_on(Workers(finishes("depth=1 1")))
    assert owner.kept() == ["1-of-2"]
    others = replace(HERE, programs={"engine": "b2"})
    assert not can_resume(owner.store, "losses", "engine", others, owner.out)
    assert owner.state() == "failed"
    assert not (owner.out / "slices").exists()
