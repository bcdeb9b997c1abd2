"""Looks for a live fault with a given fingerprint: takes a new golden run of the script and hits the
operations of the same site in turn, the nearest to the last crash first, then some of the others. A script
counts as harmless if none of these shows the finding.
"""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tornpage.faults.image import remove_image
from tornpage.faults.trace import FilePaths, Op, Trace
from tornpage.live.golden_run import Baseline, take_baseline
from tornpage.live.journal import Journal
from tornpage.live.trial import run_trial
from tornpage.oracle.fingerprint import RUN_SITE, fingerprint_of
from tornpage.shrinking.crashes import Crash, choose_violation, inline_spec, shows
from tornpage.shrinking.ddmin import ddmin
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import MachineError, TornpageError
from tornpage.vocabulary.model import (
    Action,
    Fault,
    FaultKind,
    FaultPlan,
    TrialResult,
    TrialSpec,
    Violation,
    WriteEvent,
)
from tornpage.workloads.script import Script

__all__ = ["KillSearch"]

NEAREST = 4
SPREAD = 3
"""Operations of a live fault that are tried per script: the nearest ones, and some of the others."""

_OPS = {
    FaultKind.WRITE: {Op.WRITE},
    FaultKind.FSYNC: {Op.FSYNC, Op.FDATASYNC},
    FaultKind.READ: {Op.READ},
    FaultKind.TRUNCATE: {Op.TRUNCATE},
    FaultKind.RENAME: {Op.RENAME},
    FaultKind.UNLINK: {Op.UNLINK},
}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an operation is: origin of its statement, file and offset."""

    origin: int
    file: str = ""
    offset: int = 0

    def distance(self, other: _Place) -> tuple[int, bool, int]:
        return (
            abs(self.origin - other.origin),
            self.file != other.file,
            abs(self.offset - other.offset),
        )


class KillSearch:
    """Faults that are played live: kills, I/O errors."""

    def __init__(
        self, spec: TrialSpec, script: Script, target: Target, scratch: Path, wanted: Violation
    ) -> None:
        """Plays the finding again, as it was, and without a stale log block or nested crashes if it
        does not need them. Raises TornpageError if it does not come back. wanted: the violation to
        follow."""
        self._spec = spec
        self._target = target
        self._scratch = scratch
        self._plan = spec.plan
        base = take_baseline(inline_spec(spec, script, spec.plan), target, scratch)
        self._names = base.names
        self._known = {violation.invariant for violation in base.golden_run.violations}
        result = self._run(base, script, spec.plan)
        violation = choose_violation(result.violations, wanted, spec)
        of_run = any(finding.violation == violation for finding in base.findings)
        site = RUN_SITE if of_run else result.site.value if result.site else ""
        self.fingerprint = fingerprint_of(violation, site)
        self._site = result.site
        self._near = _Place(0)
        self._follow(base, spec.plan, range(len(script.statements)))
        for simpler in _simplifications(spec.plan):
            plan = simpler(self._plan)
            if plan != self._plan and self._matches(base, script, plan):
                self._plan = plan
        self.start = Crash(self._plan, result.torn.kept.count("0") if result.torn else None)
        remove_image(base.script.parent)

    @property
    def origin(self) -> int:
        """See CrashSearch."""
        return self._near.origin

    def find(self, script: Script, origins: Sequence[int]) -> Crash | None:
        """Takes a golden run and hits the candidates."""
        try:
            base = self._baseline(script, self._plan)
        except MachineError:
            raise
        except TornpageError:
            return None  # the script does not run to its end: not the finding that is followed
        try:
            if {violation.invariant for violation in base.golden_run.violations} - self._known:
                return None
            for plan in self._plans(base, origins):
                result = self._matches(base, script, plan)
                if result is not None:
                    self._follow(base, plan, origins)
                    self._plan = plan
                    return Crash(plan, result.torn.kept.count("0") if result.torn else None)
        except MachineError:
            raise
        except TornpageError:
            return None
        finally:
            remove_image(base.script.parent)
        return None

    def kept(self, script: Script) -> None:
        """Its crash is one of any run."""

    def refine(self, script: Script, crash: Crash, deadline: float) -> Crash:
        """Keeps as many sectors of the torn write as possible."""
        fault = crash.plan.run[0]
        if fault.sectors is None or not crash.lost_sectors:
            return crash
        base = self._baseline(script, crash.plan)
        try:
            result = self._matches(base, script, crash.plan)
            if result is None or result.torn is None:
                return crash
            kept = result.torn.kept
            best = crash

            def fails(lost: list[int]) -> bool:
                nonlocal best
                if time.monotonic() > deadline:
                    return False
                mask = "".join("0" if i in lost else "1" for i in range(len(kept)))
                plan = _with_first(crash.plan, replace(fault, sectors=mask))
                if self._matches(base, script, plan) is None:
                    return False
                best = replace(crash, plan=plan, lost_sectors=len(lost))
                return True

            ddmin([i for i, state in enumerate(kept) if state == "0"], fails)
            return best
        finally:
            remove_image(base.script.parent)

    def _baseline(self, script: Script, plan: FaultPlan) -> Baseline:
        """Of a smaller script, whose files are named as those of the whole one."""
        spec = inline_spec(self._spec, script, plan)
        return take_baseline(spec, *self._where(), self._names)

    def _where(self) -> tuple[Target, Path]:
        return self._target, self._scratch

    def _run(self, base: Baseline, script: Script, plan: FaultPlan) -> TrialResult:
        spec = inline_spec(self._spec, script, plan)
        return run_trial(spec, *self._where(), self._scratch / "images", base)

    def _matches(self, base: Baseline, script: Script, plan: FaultPlan) -> TrialResult | None:
        result = self._run(base, script, plan)
        wanted = self.fingerprint
        site = RUN_SITE if wanted.site == RUN_SITE else result.site.value if result.site else ""
        return result if shows(result.violations, wanted, site) else None

    def _follow(self, base: Baseline, plan: FaultPlan, origins: Sequence[int]) -> None:
        """Remembers where the last crash was: up to its fault the run is that of the golden run."""
        for place, fault in _operations(base.trace, base.journal, plan.run[0], origins):
            if fault.nth == plan.run[0].nth:
                self._near = place

    def _plans(self, base: Baseline, origins: Sequence[int]) -> Iterator[FaultPlan]:
        """The plan moved to other operations; nested faults also to earlier ones."""
        if not self._plan.run:
            return
        for fault in _nearest(self._candidates(base, origins), self._near):
            plan = _with_first(self._plan, fault)
            yield plan
            divisor = 2
            while plan.recover and plan.recover[0][0].nth >= divisor and divisor <= 64:
                yield replace(plan, recover=_earlier(plan.recover, divisor))
                divisor *= 2

    def _candidates(self, base: Baseline, origins: Sequence[int]) -> list[tuple[_Place, Fault]]:
        fault = self._plan.run[0]
        if self.fingerprint.site == RUN_SITE:
            return self._behind_finding(base, origins)
        if fault.kind is FaultKind.WRITE and self._site in base.golden_run.by_site():
            return [
                (
                    _Place(_origin(origins, write.line), write.file, write.offset),
                    replace(fault, file=write.file, nth=write.nth, offset=None),
                )
                for write in base.golden_run.writes
                if write.site is self._site
            ]
        return _operations(base.trace, base.journal, fault, origins)

    def _behind_finding(self, base: Baseline, origins: Sequence[int]) -> list[tuple[_Place, Fault]]:
        """The first write behind the finding, all of it there: the crash adds nothing."""
        wanted = self.fingerprint
        seqs = [
            found.seq
            for found in base.findings
            if fingerprint_of(found.violation, RUN_SITE) == wanted
        ]
        for write in base.golden_run.writes if seqs else ():
            if write.seq > seqs[0]:
                place = _Place(_origin(origins, write.line), write.file, write.offset)
                return [(place, _kill_after(write))]
        return []


def _simplifications(plan: FaultPlan) -> Iterator[Callable[[FaultPlan], FaultPlan]]:
    """What can be left out of a plan; each is tried on what the ones before have made of it."""
    yield partial(replace, stale_log=False)
    yield partial(replace, run=plan.run[:1])
    for keep in range(len(plan.recover) - 1, -1, -1):
        yield partial(replace, recover=plan.recover[:keep])


def _kill_after(write: WriteEvent) -> Fault:
    return Fault(FaultKind.WRITE, write.nth, Action.KILL, file=write.file, sectors="all")


def _with_first(plan: FaultPlan, fault: Fault) -> FaultPlan:
    return replace(plan, run=(fault, *plan.run[1:]))


def _earlier(recover: tuple[tuple[Fault, ...], ...], divisor: int) -> tuple[tuple[Fault, ...], ...]:
    return tuple(
        tuple(replace(fault, nth=max(1, fault.nth // divisor)) for fault in faults)
        for faults in recover
    )


def _nearest(candidates: list[tuple[_Place, Fault]], near: _Place) -> list[Fault]:
    ordered = [fault for _place, fault in sorted(candidates, key=lambda c: c[0].distance(near))]
    rest = ordered[NEAREST:]
    spread = [rest[len(rest) * i // SPREAD] for i in range(SPREAD)] if rest else []
    return [*ordered[:NEAREST], *dict.fromkeys(spread)]


def _origin(origins: Sequence[int], line: int) -> int:
    """Place in the original script of the statement in flight. A target that makes its own work has no
    script: there it is the statement's number."""
    return origins[line - 1] if origins and line else line


def _operations(
    trace: Trace, journal: Journal, fault: Fault, origins: Sequence[int]
) -> list[tuple[_Place, Fault]]:
    """All operations that a fault counts, as the preload does."""
    paths = FilePaths()
    found: list[tuple[_Place, Fault]] = []
    for event in trace.events():
        if event.kind == Op.MARK:
            if fault.kind is not FaultKind.MARK or not trace.text(event).startswith(
                fault.text or ""
            ):
                continue
            file = ""
        else:
            paths.see(trace, event)
            if event.kind not in _OPS.get(fault.kind, ()):
                continue
            file = paths[event.file]
            if not fnmatch.fnmatchcase(file, fault.file):
                continue
            if fault.offset and not fault.offset[0] <= event.offset <= fault.offset[1]:
                continue
        line = journal.at(event.seq)[1]
        place = _Place(_origin(origins, line), file, event.offset)
        found.append((place, replace(fault, nth=len(found) + 1)))
    return found
