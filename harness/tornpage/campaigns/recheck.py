"""Plays the reproducers of all bugs that are not ignored again, as a run of its own: a bug that shows is
there, and one that was fixed has come back.

May import: bugs, campaign, crew, errors, lossrunner, memory, model, origin, replay, runner, scratch, store,
summary, workers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tornpage.campaigns.campaign import Campaign, Hit, undisturbed_spec
from tornpage.campaigns.crew import Crew
from tornpage.campaigns.lossrunner import loss_parts
from tornpage.campaigns.origin import command_line
from tornpage.campaigns.replay import replay_trial
from tornpage.campaigns.runner import load_summary
from tornpage.campaigns.workers import Job, play_undisturbed
from tornpage.faults.scratch import scratch_folder
from tornpage.reports.summary import undisturbed_run_line
from tornpage.store.bugs import Bug, BugStatus, Reproducer
from tornpage.store.memory import Answer, Replayed
from tornpage.store.store import Run, Store
from tornpage.vocabulary.errors import ConfigError, MachineError, TornpageError
from tornpage.vocabulary.model import Site, TrialSpec

__all__ = ["REPLAY_RUN", "recheck_bugs", "replay_line"]

REPLAY_RUN = "replay"
"""Name of the runs of findings that are played again."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a play showed: bugs by id, None if it could not be played."""

    bugs: frozenset[int | None] | None
    note: str = ""

    def answer(self, bug: Bug) -> tuple[Answer, str]:
        """What that says of a bug."""
        if self.bugs is None:
            return Answer.NOT_PLAYED, self.note
        if bug.id in self.bugs:
            return Answer.REPRODUCED, self.note
        others = ", ".join(f"bug {other}" for other in sorted(filter(None, self.bugs)))
        return Answer.NOT_REPRODUCED, f"{others} instead" if others else self.note


def recheck_bugs(store: Store, target: str, crew: Crew, run: Run | None = None) -> Run | None:
    """Plays all of them, or until the time is up; goes on with `run` if there is one. Returns the run, None
    if there are none."""
    asked = _asked(store, target)
    if not asked:
        return None
    if run is None:
        settings = _settings(len(asked)).model_dump(mode="json")
        run = store.begin_run(REPLAY_RUN, target, 0, len(asked), settings, crew.origin, crew.night)
    crew.progress.phase("past findings", len(asked))
    for reproducer, bugs in asked.items():
        if crew.is_late():
            break
        answers = store.replays(run.id)
        if not {bug.id for bug in bugs} <= {answer.bug for answer in answers}:
            answers = _recheck(store, run, reproducer, bugs, crew)
        crew.progress.advance(any(answer.answer is Answer.REPRODUCED for answer in answers))
    done = store.stop_run(run.id) if crew.is_late() else store.finish_run(run.id, trials=0)
    store.set_verdict(run.id, load_summary(store, done).verdict)
    return done


def replay_line(store: Store, bug: Bug) -> str:
    """The command that shows the bug again, "" if its run has been deleted."""
    try:
        run = store.run(bug.reproducer.run)
    except ConfigError:
        return ""
    trial = bug.reproducer.name
    line = f"tornpage replay {trial}" if trial else undisturbed_run_line(run, bug.reproducer.config)
    return command_line(line, store.path.parent)


def _asked(store: Store, target: str) -> dict[Reproducer, list[Bug]]:
    """One reproducer may show several bugs."""
    asked: dict[Reproducer, list[Bug]] = {}
    for bug in store.bugs():
        if bug.target == target and bug.status is not BugStatus.IGNORED:
            asked.setdefault(bug.reproducer, []).append(bug)
    return asked


def _recheck(
    store: Store, run: Run, reproducer: Reproducer, bugs: list[Bug], crew: Crew
) -> list[Replayed]:
    try:
        if reproducer.trial is None:
            shown = _run_again(store, run, reproducer, crew)
        else:
            shown = _play_again(store, run, reproducer.run, reproducer.trial, bugs[0].id, crew)
    except MachineError:
        raise
    except TornpageError as error:
        shown = _Shown(None, str(error))
    answers = [Replayed(run.id, bug.id, *shown.answer(bug)) for bug in bugs]
    for answer in answers:
        store.put_replay(answer)
    return answers


def _play_again(store: Store, run: Run, of_run: int, trial: int, number: int, crew: Crew) -> _Shown:
    """Plays a trial; it becomes trial `number` of the run."""
    row = store.trial(of_run, trial)
    with scratch_folder() as scratch:
        play = replay_trial(row, crew.paths, scratch)
    if play.answer is Answer.NOT_PLAYED:
        return _Shown(None, play.note)
    store.start_trial(run.id, replace(play.spec, number=number), row.site, row.mask)
    store.finish_trial(run.id, replace(play.result, number=number, image=None))
    return _Shown(frozenset(store.trial(run.id, number).bugs), play.note)


def _run_again(store: Store, run: Run, reproducer: Reproducer, crew: Crew) -> _Shown:
    """Runs a script undisturbed."""
    spec = _spec_of(store, reproducer)
    with scratch_folder() as scratch:
        row = play_undisturbed(Job(spec, crew.paths, scratch, scratch))
    # Scripts of several campaigns may have one label.
    row = replace(row, config=f"{row.config} {spec.campaign}")
    store.put_census(run.id, row)
    (bugs,) = [stored.bugs for stored in store.censuses(run.id) if stored.config == row.config]
    return _Shown(frozenset(bugs))


def _spec_of(store: Store, reproducer: Reproducer) -> TrialSpec:
    run = store.run(reproducer.run)
    campaign = Campaign.model_validate(run.settings)
    crashed = [script for script, _depth in loss_parts(campaign)] if campaign.explore else None
    for script in [*(crashed or campaign.scripted()), *campaign.only_undisturbed()]:
        if script.label == reproducer.config:
            return undisturbed_spec(campaign, run.target, script)
    raise ConfigError(f"run {run.id} has no script {reproducer.config}")


def _settings(count: int) -> Campaign:
    """A campaign of these trials, so that the report treats the run like any other."""
    return Campaign(
        name=REPLAY_RUN,
        description="past findings, played again",
        workload="smoke",
        crash_model="kill",
        trials=max(1, count),
        seed=0,
        hit=[Hit(sites=[Site.OTHER], masks=["all"])],
    )
