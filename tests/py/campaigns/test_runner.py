"""What the owner of a run of kills makes of its golden runs, and by which of them it tries its judge."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import make_golden_run

from tornpage.campaigns import runner
from tornpage.campaigns.runner import _kill, _run_fault_free, _take_golden_runs, _try_judge
from tornpage.plans.campaign import Campaign, Hit, fault_free_spec
from tornpage.store.origin import Origin
from tornpage.store.rows import GoldenRunRow
from tornpage.store.store import Store
from tornpage.vocabulary.errors import DeafError, FailedRunError
from tornpage.vocabulary.model import Site, Source, Violation
from tornpage.vocabulary.paths import find_paths
from tornpage.workers.canaries import Canary
from tornpage.workers.context import QuietProgress
from tornpage.workers.pool import Job


class Ended:
    """A task that came to this, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def result(self) -> Any:
        """As of a future."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Workers:
    """Each task has the next answer at once."""

    size = 1

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.handed: list[str] = []

    def submit(self, _work: Callable[[Any], Any], task: Job) -> Ended:
        """Ends at once."""
        self.handed.append(task.spec.config)
        return Ended(self.answers.pop(0))


CAMPAIGN = Campaign(
    name="kills",
    description="of scripts",
    workload="smoke",
    crash_model="kill",
    trials=1,
    seed=7,
    scripts=2,
    cross={"doublewrite": ["on", "off"]},
    hit=[Hit(sites=[Site.PAGE0], masks=["all"])],
)
LABELS = [script.label for script in CAMPAIGN.scripted()]


def job() -> Job:
    """What all tasks are made of."""
    paths = find_paths()
    spec = fault_free_spec(CAMPAIGN, "engine", CAMPAIGN.scripted()[0])
    return Job(spec, paths, paths.build, paths.build)


def test_each_configuration_tries_the_judge() -> None:
    """By its first script that the target does not fail; one that is deaf ends the run, whichever it is."""
    heard, deaf = (Canary("lost_commit", 1, condemned) for condemned in (True, False))
    golden_runs = {label: make_golden_run() for label in LABELS[1:]}
    tried = {label.partition(" ")[0]: label for label in reversed(LABELS[1:])}
    workers = Workers((heard,), (heard,))
    _try_judge(CAMPAIGN, "engine", job(), cast(Any, workers), golden_runs)
    assert sorted(workers.handed) == sorted(tried.values()) and len(tried) == 2
    for answers in (((heard,), (heard, deaf)), ((deaf,), (heard,))):
        with pytest.raises(DeafError, match="lost_commit"):
            _try_judge(CAMPAIGN, "engine", job(), cast(Any, Workers(*answers)), golden_runs)


def test_what_is_under_way_when_the_time_is_up_is_told(tmp_path: Path) -> None:
    """No further script runs, and what those that run come to is stored."""
    campaign = CAMPAIGN.changed({"fault_free": 5})
    labels = [script.label for script in campaign.only_fault_free()]
    broken = (Violation(0, "run died by SIGSEGV", source=Source.RUN),)
    workers = Workers(*(GoldenRunRow(label, False, "h", 1, 0, broken, {}) for label in labels))
    context = SimpleNamespace(progress=QuietProgress(), is_late=lambda: len(workers.handed) == 3)
    with Store(tmp_path / "s.db") as store:
        run = store.begin_run("kills", "engine", 7, 1, {})
        _run_fault_free(store, run, campaign, job(), cast(Any, workers), cast(Any, context))
        rows = store.golden_runs(run.id)
    assert workers.handed == labels[:3]
    assert [row.config for row in rows] == sorted(labels[:3])
    assert all(row.violations == broken for row in rows)


@pytest.mark.parametrize(("cells", "state"), [(["a cell"], "running"), ([], "finished")])
def test_kills_are_finished_with_their_trials(
    cells: list[str], state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None was played: the run goes on another time, or its time was up. Without anything to disturb there is
    none to play."""
    golden_runs = {LABELS[0]: make_golden_run()}
    monkeypatch.setattr(runner, "executor_of", lambda _context: nullcontext(Workers()))
    monkeypatch.setattr(runner, "_take_golden_runs", lambda *_: ([], golden_runs))
    monkeypatch.setattr(runner, "_try_judge", lambda *_: None)
    monkeypatch.setattr(runner, "cells_of", lambda *_: cells)
    monkeypatch.setattr(runner, "_run_fault_free", lambda *_: None)
    monkeypatch.setattr(runner, "_run_trials", lambda *_: None)
    context = SimpleNamespace(
        progress=QuietProgress(), paths=find_paths(), out=tmp_path, origin=Origin()
    )
    with Store(tmp_path / "s.db") as store:
        run = _kill(
            store,
            lambda origin: store.begin_run("kills", "engine", 7, 1, {}, origin),
            CAMPAIGN,
            "engine",
            cast(Any, context),
            tmp_path,
        )
    assert run.state == state


def test_a_script_that_the_target_fails_has_its_row() -> None:
    """It is a finding of the run; only the others can be crashed."""
    error = FailedRunError("run died by SIGSEGV")
    answers = [error if number == 1 else make_golden_run() for number in range(len(LABELS))]
    rows, golden_runs = _take_golden_runs(
        CAMPAIGN, "engine", job(), cast(Any, Workers(*answers)), QuietProgress()
    )
    assert [row.config for row in rows] == LABELS
    assert list(golden_runs) == [LABELS[0], *LABELS[2:]]
    (broken,) = rows[1].violations
    assert (broken.source, broken.what) == (Source.RUN, "run died by SIGSEGV")
    assert not any(row.violations for row in (rows[0], *rows[2:]))
