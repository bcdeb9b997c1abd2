"""The crash of a trial: the disturbed run, and what is wrong with that run whatever recovery makes of it.

The run's trace must equal the golden run byte for byte up to the crash; then the golden run's verdicts apply.
A run of a target that tells its own states is judged by what this very run told.
"""

from __future__ import annotations

from dataclasses import dataclass

from tornpage.faults.process import ChildResult
from tornpage.faults.trace import HEADER_SIZE, Op, Trace
from tornpage.live.fault_free import NOT_THE_TARGETS, judge_answers, judge_run
from tornpage.live.hit import Hit, find_hit
from tornpage.live.journal import read_journal
from tornpage.live.killed import judge_by_own_run
from tornpage.live.stage import Stage
from tornpage.oracle.allowed import Allowed, allowed_after
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.oracle import Oracle
from tornpage.vocabulary.model import Action, Source, Violation

__all__ = ["Crash", "RunVerdict", "judge_crash", "judge_unfired", "make_crash"]

RUN = "run"
"""Its name among the processes of a trial."""


@dataclass(frozen=True, slots=True)
class Crash:
    """A disturbed run. plays: of which `child` is the last; bare: `trace` is without contents, and its
    records are those of the golden run up to the fault; differed: that is not so, and it was played again for
    the contents; hit: None if the fault did not fire."""

    plays: tuple[ChildResult, ...]
    trace: Trace
    bare: bool
    differed: bool
    hit: Hit | None

    @property
    def child(self) -> ChildResult:
        """How it ended."""
        return self.plays[-1]


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What is wrong with the run, and what may be found after it. before_first: no statement was issued."""

    violations: tuple[Violation, ...]
    allowed: Allowed
    before_first: bool


def make_crash(stage: Stage) -> Crash:
    """Plays the run under the faults of the plan. Its contents are recorded only if they may not be those of
    the golden run. Raises as Stage.play()."""
    faults = stage.spec.plan.run
    bare = stage.deterministic and all(fault.action is Action.KILL for fault in faults)
    stage.put_in_place(stage.base.found)
    child, trace = stage.play(RUN, stage.run_command(), faults, bare=bare)
    plays, differed = [child], False
    if bare and not _equals_golden_run(stage, trace):
        bare, differed = False, trace.fired
        stage.put_in_place(stage.base.found)
        child, trace = stage.play(RUN, stage.run_command(), faults)
        plays.append(child)
    hit = _hit_of(stage, trace, bare=bare) if trace.fired else None
    return Crash(tuple(plays), trace, bare, differed, hit)


def _hit_of(stage: Stage, trace: Trace, *, bare: bool) -> Hit:
    return find_hit(trace, stage.base, stage.spec.plan, stage.target, bare=bare)


def _equals_golden_run(stage: Stage, trace: Trace) -> bool:
    """Whether the KILL that ends a trace without contents is all that the golden run has not."""
    if not trace.fired:
        return False
    hit = _hit_of(stage, trace, bare=True).event
    return hit.kind == Op.KILL and stage.base.contents.covers(trace, hit.at)


def judge_unfired(crash: Crash, *, deterministic: bool) -> tuple[Violation, ...]:
    """What is wrong with a run whose fault did not fire: nothing was done to it. One that always does the
    same ended well in the golden run."""
    child = crash.child
    if child.timed_out:
        return (_of_run(f"the run hung: the fault did not fire: {child.describe()}"),)
    died = child.signal != 0 or child.exit_code not in (0, *NOT_THE_TARGETS)
    if deterministic and died:
        return (_of_run(f"the run failed before its fault: {child.describe()}"),)
    return ()


def judge_crash(stage: Stage, crash: Crash, hit: Hit) -> RunVerdict:
    """Judges a run whose fault fired. Raises GoldenRunError if it cannot be judged: it was not ready."""
    base, trace, event = stage.base, crash.trace, hit.event
    oracle, unknown = base.oracle, ""
    if isinstance(oracle, ObservedOracle):
        told = stage.target.parse_run(crash.child).told
        own = judge_by_own_run(trace, told or {}, oracle)
        oracle, unknown = own.oracle, own.unknown
    recorded = memoryview(trace.data)[HEADER_SIZE : event.at]
    equal = crash.bare or base.trace.begins_with(recorded)
    if equal and event.kind == Op.KILL:
        found = [one.violation for one in base.findings if one.seq < event.seq]
        finished, issued = base.journal.at(event.seq)
    else:
        path = stage.trace_of(RUN)
        judged = judge_run(stage.target, path, base.setting, base.found, live=True)
        found = [one.violation for one in judged.findings]
        journal = read_journal(trace)
        finished, issued = journal.at(trace.events_declared + 1)
        if isinstance(oracle, Oracle):
            failures = sum(1 for _ in trace.events(kinds=(Op.FAULT,)))
            oracle = oracle.behind(journal.errors, failures)
            answered = [step for step in oracle.steps if step.line <= finished]
            found += judge_answers(answered, journal.errors)
    if stage.deterministic and (crash.differed or not equal):
        found.append(_of_run("the run differs from the golden run before the fault"))
    if crash.child.timed_out:
        found.append(_of_run(f"the run hung: {crash.child.describe()}"))
    promise = stage.target.promise(stage.spec.options)
    allowed = allowed_after(oracle, finished, issued, promise, unknown)
    return RunVerdict(tuple(found), allowed, issued == 0)


def _of_run(what: str) -> Violation:
    return Violation(0, what, source=Source.RUN)
