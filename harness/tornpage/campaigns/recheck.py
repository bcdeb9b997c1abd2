"""Plays the reproducers of all bugs that are not ignored again, as a run of its own: a bug that shows is
there, and one that was fixed has come back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tornpage.campaigns.fault_free import row_of, with_kept_image
from tornpage.campaigns.replay import replay_trial
from tornpage.campaigns.runner import load_summary
from tornpage.faults.scratch import scratch_folder
from tornpage.plans.campaign import Campaign, Hit
from tornpage.store.bugs import Bug, BugStatus, Reproducer
from tornpage.store.memory import Answer, Replayed
from tornpage.store.rows import Run, TrialRow
from tornpage.store.store import Store
from tornpage.targets.registry import make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import MachineError, TornpageError
from tornpage.vocabulary.model import Site, TrialSpec
from tornpage.workers.context import RunContext

__all__ = ["REPLAY_RUN", "recheck_bugs"]

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


def recheck_bugs(
    store: Store,
    target: str,
    context: RunContext,
    run: Run | None = None,
    only: Collection[int] | None = None,
) -> Run | None:
    """Plays all of them, or of those with the numbers `only`, or until the time is up; goes on with `run` if
    there is one. target: the name or path, on this machine, of the target of the context's origin.
    Returns the run, None if there are none."""
    asked = _asked(store, {context.origin.target, target}, only)
    if not asked:
        return None
    if run is None:
        settings = _settings(len(asked)).model_dump(mode="json")
        run = store.begin_run(
            REPLAY_RUN, target, 0, len(asked), settings, context.origin, context.night
        )
    context.progress.phase("past findings", len(asked))
    for reproducer, bugs in asked.items():
        if context.is_late():
            break
        answers = store.replays(run.id)
        if not {bug.id for bug in bugs} <= {answer.bug for answer in answers}:
            answers = _recheck(store, run, target, reproducer, bugs, context)
        context.progress.advance(any(answer.answer is Answer.REPRODUCED for answer in answers))
    done = store.stop_run(run.id) if context.is_late() else store.finish_run(run.id, trials=0)
    store.set_verdict(run.id, load_summary(store, done).verdict)
    return done


def _asked(
    store: Store, names: Collection[str], only: Collection[int] | None
) -> dict[Reproducer, list[Bug]]:
    """Of a target by these names. One reproducer may show several bugs."""
    asked: dict[Reproducer, list[Bug]] = {}
    for bug in store.bugs():
        if only is not None and bug.id not in only:
            continue
        if bug.target in names and bug.status is not BugStatus.IGNORED:
            asked.setdefault(bug.reproducer, []).append(bug)
    return asked


def _recheck(
    store: Store,
    run: Run,
    target: str,
    reproducer: Reproducer,
    bugs: list[Bug],
    context: RunContext,
) -> list[Replayed]:
    try:
        row = with_kept_image(row_of(store, reproducer), context.out)
        row = replace(
            row, spec=_found_here(row.spec, make_target(target, context.paths.build), target)
        )
        shown = _play_again(store, run, row, bugs[0].id, context)
    except MachineError:
        raise
    except TornpageError as error:
        shown = _Shown(None, str(error))
    answers = [Replayed(run.id, bug.id, *shown.answer(bug)) for bug in bugs]
    for answer in answers:
        store.put_replay(answer)
    return answers


def _play_again(store: Store, run: Run, row: TrialRow, number: int, context: RunContext) -> _Shown:
    """Plays it; what is played becomes trial `number` of the run."""
    with scratch_folder() as scratch:
        play = replay_trial(row, context.paths, scratch, stacks=False)
    if play.answer is Answer.NOT_PLAYED:
        return _Shown(None, play.note)
    store.start_trial(run.id, replace(play.spec, number=number), row.site, row.mask)
    store.finish_trial(run.id, replace(play.result, number=number, image=None))
    return _Shown(frozenset(store.trial(run.id, number).bugs), play.note)


def _found_here(spec: TrialSpec, target: Target, name: str) -> TrialSpec:
    """The trial on the target as it is found here; its lines too, whose hash must be the same."""
    params = dict(spec.params)
    if target.lines is not None and "path" in params:
        params["path"] = str(target.lines_of(spec.options))
    return replace(spec, target=name, params=params)


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
