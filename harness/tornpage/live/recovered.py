"""The recoveries after the crash of a trial: those that are disturbed, the one that is not, and the one after
it. What they came to, as values; verdict.py judges them.

A trial that disturbs a recovery first plays the same one without a fault, on the same image: the later ones
must come to what it came to, and a fault that is yet to be drawn is drawn from its writes. If it fails, that
is what the crash came to, and none is disturbed.

A recovery that somebody ends says nothing, nor does one that calls its end the machine's. So all is played
again: if that comes of the same image each time, and the machine is short of nothing, the recovery ends
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tornpage.faults.aim import RecoveryAim
from tornpage.faults.image import copy_image, files_below, remove_image
from tornpage.faults.process import ChildResult
from tornpage.faults.shortage import is_short, oom_kills
from tornpage.faults.trace import Trace
from tornpage.live.hit import tears_nothing
from tornpage.live.stage import Stage
from tornpage.live.writes import list_operations, list_writes
from tornpage.oracle.allowed import Allowed
from tornpage.oracle.rules import ask_export, ask_rules
from tornpage.targets.target import Planted, RecoveryAnswer
from tornpage.vocabulary.errors import ChildError, EndedError, MachineError, TornpageError
from tornpage.vocabulary.model import Action, Fault, FaultKind, FaultPlan, Violation

__all__ = ["Recovered", "Recovery", "insisted", "recover_crash"]

ATTEMPTS = 3
"""As many as the explorer makes."""

NOTHING_TO_HIT: tuple[tuple[Fault, ...], ...] = ((),)
"""FaultPlan.recover of a trial for whose recovery no fault could be drawn."""
UNKNOWN = ChildResult(None, 0, False, 0.0, 0, 0, b"", b"")
"""How one of them has ended that was ended each time."""
FAULT_FREE, RECOVER = "fault_free", "recover"
"""Names of the processes."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """One recovery. rules: what it broke by its bytes; log_found: they say that there was a log to recover
    from. fired: its fault did; killed: by that; whole: its kill was to tear a write, and left all of it.
    EndedError: it says that the machine failed, and no fault of ours did that."""

    child: ChildResult
    answer: RecoveryAnswer
    faults: tuple[Fault, ...] = ()
    rules: tuple[Violation, ...] = ()
    log_found: bool = False
    fired: bool = False
    killed: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if self.answer.machine and not self.fired:
            raise EndedError(f"recover: {self.answer.message}")

    @property
    def with_errors(self) -> bool:
        """Its operations were to fail, not it."""
        return any(fault.action is Action.ERROR for fault in self.faults)

    @property
    def may_go_on(self) -> bool:
        """What failed is a read, or the removal of a file: that shows in what is there, if it matters."""
        failed = {fault.kind for fault in self.faults if fault.action is Action.ERROR}
        return failed <= {FaultKind.READ, FaultKind.UNLINK}


@dataclass(frozen=True, slots=True)
class Recovered:
    """What followed a crash. plan: of the trial, with the fault that was drawn. fault_free: what the others
    must come to, None if none was disturbed. disturbed: those whose fault fired, in order; last: the one that
    came to its end by itself; missed: it was to be disturbed. again: the one after it. stale: what was
    planted into the image; blamed: without it the image recovers. exported: findings of a table that was
    carried away, and whether there was one to judge; None: none was exported. failure: what ended it before
    its end, of the harness, or EndedError."""

    plan: FaultPlan
    fault_free: Recovery | None = None
    disturbed: tuple[Recovery, ...] = ()
    last: Recovery | None = None
    missed: bool = False
    again: Recovery | None = None
    stale: Planted | None = None
    blamed: bool = False
    exported: tuple[bool, tuple[Violation, ...]] | None = None
    failure: TornpageError | None = None

    def counters(self) -> dict[str, int]:
        """What took part in it, by the names of model.TrialResult."""
        found = {"stale_log": 1} if self.stale is not None else {}
        for one in self.disturbed:
            name = "nested_errors" if one.with_errors else "nested_kills"
            found[name] = found.get(name, 0) + 1
        found |= self.last.answer.counters if self.last is not None else {}
        return found | ({"exports_judged": int(self.exported[0])} if self.exported else {})


def recover_crash(
    stage: Stage, aim: RecoveryAim | None, stale: Planted | None, allowed: Allowed
) -> Recovered:
    """Plays the recoveries of a crashed image, which lies in stage.image and as a copy in stage.data. aim:
    the fault of the first one that is yet to be drawn; stale: what was planted; allowed: what may be found.
    Raises MachineError as Stage.play()."""

    def play(attempt: int) -> Recovered:
        if attempt:
            stage.put_in_place(stage.image)
        return _played(stage, aim, Recovered(stage.spec.plan, stale=stale), allowed)

    return insisted(play)


def insisted(play: Callable[[int], Recovered]) -> Recovered:
    """What the recoveries that play() makes come to; it gets the number of the attempt, from 0. Raises
    EndedError where one is ended, unless that comes each time and the machine is short of nothing."""
    killed_before = oom_kills()
    tried = [play(0)]
    first = tried[0].failure
    if not isinstance(first, EndedError):
        return tried[0]
    while len(tried) < ATTEMPTS and isinstance(tried[-1].failure, EndedError):
        tried.append(play(len(tried)))
    if not isinstance(tried[-1].failure, EndedError) or is_short(killed_before):
        raise first
    said = str(first).removeprefix("recover: ")  # as the explorer says it
    what = f"{ATTEMPTS} times in a row, on a machine with memory and space to spare: {said}"
    last = Recovery(UNKNOWN, RecoveryAnswer(False, message=what))
    return replace(tried[-1], last=last, again=None, failure=None)


def _played(stage: Stage, aim: RecoveryAim | None, found: Recovered, allowed: Allowed) -> Recovered:
    try:
        for step in _steps(stage, aim, found, allowed):
            found = step
    except TornpageError as error:
        if isinstance(error, MachineError) and not isinstance(error, EndedError):
            raise
        return replace(found, failure=error)
    return found


def _steps(
    stage: Stage, aim: RecoveryAim | None, found: Recovered, allowed: Allowed
) -> Iterator[Recovered]:
    """What is known after each step."""
    if aim is not None or found.plan.recover:
        fault_free, trace = _fault_free(stage)
        if not fault_free.answer.ok:
            yield from _ends(stage, replace(found, last=_with_rules(stage, fault_free)), allowed)
            return
        plan = found.plan
        if aim is not None:
            plan = replace(plan, recover=(_drawn(stage, aim, trace),))
        found = replace(found, plan=plan, fault_free=fault_free)
        yield found
        stage.put_in_place(stage.image)
    if found.plan.recover == NOTHING_TO_HIT:
        return
    for number, faults in enumerate((*found.plan.recover, ()), 1):
        one = _recovery(stage, faults, first=number == 1)
        if not one.fired:
            missed = number <= len(found.plan.recover)
            yield from _ends(stage, replace(found, last=one, missed=missed), allowed)
            return
        stage.trace_of(RECOVER).rename(stage.trace_of(f"{RECOVER}-{number}"))
        found = replace(found, disturbed=(*found.disturbed, one))
        yield found


def _ends(stage: Stage, found: Recovered, allowed: Allowed) -> Iterator[Recovered]:
    """With what follows the recovery that came to its end by itself."""
    answer = found.last.answer if found.last is not None else None
    if answer is None or not answer.ok:
        blamed = found.stale is not None and _recovers_without(stage, found.stale)
        yield replace(found, blamed=blamed)
        return
    if answer.state is None:
        raise ChildError("the target recovered without telling its state")
    yield found
    found = replace(found, exported=_export(stage, allowed))
    yield found
    child = stage.recover_command(stage.data).run({})
    yield replace(found, again=Recovery(child, stage.target.parse_recovery(child)))


def _fault_free(stage: Stage) -> tuple[Recovery, Trace]:
    child, trace = stage.play(FAULT_FREE, stage.recover_command(stage.data))
    return Recovery(child, stage.target.parse_recovery(child)), trace


def _drawn(stage: Stage, aim: RecoveryAim, trace: Trace) -> tuple[Fault, ...]:
    setting, names = stage.base.setting, stage.base.names
    if names is not None:  # of the image, on which the disturbed one is played
        names = names.with_stable(files_below(stage.image).keys())
    size = setting.page_size
    found = list_writes(stage.target, trace, size, unit=setting.unit, names=names)
    if names is None:
        found += list_operations(stage.target, trace, size, unit=setting.unit)
    return aim.draw(found)


def _with_rules(stage: Stage, fault_free: Recovery) -> Recovery:
    """It is the recovery of the trial, with its recording under that name."""
    stage.trace_of(FAULT_FREE).rename(stage.trace_of(RECOVER))
    rules, log_found = _rules(stage, first=True)
    return replace(fault_free, rules=rules, log_found=log_found)


def _recovery(stage: Stage, faults: tuple[Fault, ...], *, first: bool) -> Recovery:
    """first: it begins with the image."""
    if not first and stage.ruled:
        found = stage.work / "found"
        remove_image(found)
        copy_image(stage.data, found)
    child, trace = stage.play(RECOVER, stage.recover_command(stage.data), faults)
    rules, log_found = _rules(stage, first=first)
    kill = trace.kill()
    answer = RecoveryAnswer(False, message=child.describe())
    return Recovery(
        child=child,
        answer=answer if kill is not None else stage.target.parse_recovery(child),
        faults=faults,
        rules=rules,
        log_found=log_found,
        fired=trace.fired,
        killed=kill is not None,
        whole=bool(faults) and tears_nothing(trace, kill, faults),
    )


def _rules(stage: Stage, *, first: bool) -> tuple[tuple[Violation, ...], bool]:
    """What the rules say of the recovery that was recorded last, and whether it found a log."""
    if not stage.ruled:
        return (), False
    argv = stage.target.judge_command().argv
    base = stage.image if first else stage.work / "found"
    judged = ask_rules(argv, stage.trace_of(RECOVER), stage.base.setting, base=base, live=True)
    return tuple(finding.violation for finding in judged.findings), judged.found


def _export(stage: Stage, allowed: Allowed) -> tuple[bool, tuple[Violation, ...]] | None:
    """Of the table that was exported, if one was, as somebody carries it away from the crashed image."""
    export = allowed.export()
    if export is None or not stage.ruled:
        return None
    argv = stage.target.judge_command().argv
    judged, found = ask_export(argv, stage.image, export, stage.spec.options)
    return judged, tuple(found)


def _recovers_without(stage: Stage, stale: Planted) -> bool:
    """Whether the same image recovers when the stale block is taken out again."""
    clean = stage.work / "clean"
    remove_image(clean)
    copy_image(stage.image, clean)
    stale.remove(clean)
    return stage.target.parse_recovery(stage.recover_command(clean).run({})).ok
