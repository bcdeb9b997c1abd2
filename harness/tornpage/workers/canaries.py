"""States that must be condemned, on the way that kills are judged: a run that nobody kills, its files
recovered by the target's own command, and the verdict on a trial. What the target said is changed on its way
to the judge, or its files are damaged before; a judge that lets one pass is deaf, and what it called right
says nothing.

    canary          breaks   made of
    never_issued    I3       the state at the end, where one commit less was issued
    lost_commit     I1       the newest state that lacks an acknowledged commit
    second_answer   I17      the second recovery tells the first state
    refusal         I30      the recovery refuses
    damaged_pages   I5       the files, where we know them: pages of a table damaged, and no copy left
    write_ahead,    I4 ...   the golden run: copies of its stream, each damaged in one thing, of which
    dblwr_skip, ...          the rule of that name must speak (explorer/judge/trace_canary.h)

Not tried here: the explorer (its own canaries: explorer/run/canary.h), crash masks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tornpage.faults.image import copy_image, remove_image
from tornpage.live.crash import RunVerdict
from tornpage.live.golden_run import load_baseline
from tornpage.live.journal import read_journal
from tornpage.live.killed import judge_by_own_run
from tornpage.live.recovered import Recovered, recover_crash
from tornpage.live.stage import Stage
from tornpage.live.verdict import judge_trial
from tornpage.oracle.allowed import Allowed, allowed_after
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.rules import ask_canaries
from tornpage.targets.registry import make_target
from tornpage.targets.target import RecoveryAnswer
from tornpage.vocabulary.errors import DeafError
from tornpage.vocabulary.model import Violation
from tornpage.workers.pool import Job, machine_errors

__all__ = ["Canary", "play_canaries", "require_hearing", "value_canaries"]


@dataclass(frozen=True, slots=True)
class Canary:
    """One that was judged. condemned: by the invariant that it breaks; None: it cannot be made here."""

    name: str
    invariant: int
    condemned: bool | None


def play_canaries(job: Job) -> tuple[Canary, ...]:
    """On a worker: runs the script of a golden run once more, to its end, and has the judge of trials look at
    what must be condemned. Where the files recover to no state that may be there, there is nothing to make a
    canary of: the trials will say so."""
    with machine_errors():
        spec = job.spec
        target = make_target(spec.target, job.paths.build)
        work = job.scratch / f"canaries-{os.getpid()}"
        remove_image(work)
        work.mkdir(parents=True)
        try:
            stage = Stage(spec, target, load_baseline(spec, target, job.scratch), work)
            return (*_rule_canaries(stage), *_play(stage))
        finally:
            remove_image(work)


def require_hearing(canaries: tuple[Canary, ...]) -> None:
    """DeafError if one was not condemned."""
    for canary in canaries:
        if canary.condemned is False:
            raise DeafError(
                f"the judge is deaf: {canary.name} (I{canary.invariant}) is not condemned"
            )


def _rule_canaries(stage: Stage) -> Iterator[Canary]:
    """Of the golden run; none where the rules cannot decode what it writes."""
    base = stage.base
    if stage.ruled:
        found = base.found if any(base.found.iterdir()) else None
        argv = stage.target.judge_command().argv
        for one in ask_canaries(argv, base.script.with_name("trace"), base.setting, base=found):
            yield Canary(one.name, one.invariant, one.condemned)


def _play(stage: Stage) -> Iterator[Canary]:
    allowed = _run(stage)
    copy_image(stage.data, stage.image)
    found = recover_crash(stage, None, None, allowed)
    if found.last is None or found.last.answer.state is None or found.again is None:
        return
    if _violations(allowed, found):
        return
    yield from value_canaries(allowed, found)
    if stage.target.damage_pages(stage.image, stage.base.setting.page_size):
        stage.put_in_place(stage.image)
        damaged = recover_crash(stage, None, None, allowed)
        yield _judged("damaged_pages", 5, allowed, damaged)


def _run(stage: Stage) -> Allowed:
    """Fault-free; what may be there at its end."""
    stage.put_in_place(stage.base.found)
    child, trace = stage.play("run", stage.run_command(), bare=True)
    oracle = stage.base.oracle
    if isinstance(oracle, ObservedOracle):
        oracle = judge_by_own_run(trace, stage.target.parse_run(child).told or {}, oracle).oracle
    finished, issued = read_journal(trace).at(trace.events_declared + 1)
    return allowed_after(oracle, finished, issued, stage.target.promise(stage.spec.options))


def value_canaries(allowed: Allowed, found: Recovered) -> Iterator[Canary]:
    """Of what recoveries of fault-free files have said, which is right: those that the promise condemns."""
    last, again = found.last, found.again
    assert last is not None and again is not None, "both came to an end"
    states, promise = allowed.oracle.states, allowed.promise
    first, others = states[0], states[allowed.low :]
    earlier = [k for k in range(allowed.low) if states[k] not in others]
    if promise.consistent and first not in others:
        known = [k for k, state in enumerate(states) if state == last.answer.state]
        without = known[0] - 1 if known else 0  # of several clients the state is made of parts
        yield _judged("never_issued", 3, replace(allowed, low=0, high=without), found)
        if promise.durable:
            lost = replace(last, answer=replace(last.answer, state=states[earlier[-1]]))
            yield _judged("lost_commit", 1, allowed, replace(found, last=lost, again=lost))
    if first != last.answer.state:
        second = replace(again, answer=replace(again.answer, state=first))
        yield _judged("second_answer", 17, allowed, replace(found, again=second))
    refused = RecoveryAnswer(False, refused=True, message="the canary")
    yield _judged(
        "refusal", 30, allowed, replace(found, last=replace(last, answer=refused), again=None)
    )


def _judged(name: str, invariant: int, allowed: Allowed, found: Recovered) -> Canary:
    broken = {violation.invariant for violation in _violations(allowed, found)}
    return Canary(name, invariant, invariant in broken)


def _violations(allowed: Allowed, found: Recovered) -> tuple[Violation, ...]:
    run = RunVerdict((), allowed, before_first=False)
    return judge_trial(run, found, None, ruled=False, whole=False).violations
