"""Looks for a crash with a given fingerprint in a script that has changed since the finding was made.

Live faults: a new census, then the operations of the same site (nearest to the last crash first, and some
spread over the rest) are hit in turn. Power loss: the states near the last crash, then all over the run,
simple models before random subsets. Both bounded: a script counts as harmless if no try shows the finding.

May import: census, errors, fingerprint, image, model, oracle, powerloss, script, target, trace, trial.
"""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from tornpage.census import Baseline, Journal, census_key, read_journal, take_baseline
from tornpage.ddmin import ddmin
from tornpage.errors import TornpageError
from tornpage.fingerprint import RUN_SITE, Fingerprint, fingerprint_of
from tornpage.image import remove_image
from tornpage.model import (
    Action,
    Fault,
    FaultKind,
    FaultPlan,
    TrialResult,
    TrialSpec,
    Violation,
    WriteEvent,
)
from tornpage.powerloss import Limits, Recording, explore, record_run, replay_state
from tornpage.script import Script
from tornpage.target import Target
from tornpage.trace import FilePaths, Op, Trace
from tornpage.trial import run_trial

__all__ = ["Crash", "CrashSearch", "KillSearch", "LossSearch", "inline_spec"]

NEAREST = 4
SPREAD = 3
"""Operations of a live fault that are tried per script: the nearest ones, and some of the others."""
STATES_NEAR = 60
STATES_ALL = 120
"""Power-loss states that are tried per script: close to the last crash, and anywhere."""
STATES_LAST = 600
"""States per model when the script is final and the simplest state is wanted."""

JOBS = min(os.cpu_count() or 1, 4)
"""Workers of an exploration; their number changes no result."""

SIMPLE = ("all-persisted", "ordered", "one-dropped", "one-torn", "one-persisted", "none-persisted")
SUBSET = "subset"

_OPS = {
    FaultKind.WRITE: {Op.WRITE},
    FaultKind.FSYNC: {Op.FSYNC, Op.FDATASYNC},
    FaultKind.READ: {Op.READ},
    FaultKind.TRUNCATE: {Op.TRUNCATE},
    FaultKind.RENAME: {Op.RENAME},
    FaultKind.UNLINK: {Op.UNLINK},
}


@dataclass(frozen=True, slots=True)
class Crash:
    """A crash with the wanted fingerprint. lost_sectors: written, but not in the crashed image; None if that
    is not known of it."""

    plan: FaultPlan
    lost_sectors: int | None


class CrashSearch(Protocol):
    """One of the two searches. A crash that find() returns is the next one's neighbour.

    origin: place in the original script of the statement that was in flight at the last crash.
    start: the crash of the original script, without a stale log block or nested faults if not needed.
    """

    fingerprint: Fingerprint
    start: Crash

    @property
    def origin(self) -> int: ...

    def find(self, script: Script, origins: Sequence[int]) -> Crash | None:
        """A crash of this script; origins: place of each statement in the original."""

    def refine(self, script: Script, crash: Crash, deadline: float) -> Crash:
        """The same with as little lost as possible; deadline: on time.monotonic()."""


def inline_spec(spec: TrialSpec, script: Script, plan: FaultPlan) -> TrialSpec:
    """The trial with its script in full, so that it needs no generator."""
    params: dict[str, int | str] = {"script": script.text}
    return replace(spec, number=0, workload="inline", params=params, plan=plan)


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
        """Plays the finding again, as it was, and without a stale log block or nested crashes if it does not
        need them. Raises TornpageError if it does not come back. wanted: the violation to follow."""
        self._spec = spec
        self._target = target
        self._scratch = scratch
        self._plan = spec.plan
        base = take_baseline(inline_spec(spec, script, spec.plan), target, scratch)
        self._known = {violation.invariant for violation in base.census.violations}
        result = self._run(base, script, spec.plan)
        violation = _choose(result.violations, wanted, spec)
        of_run = any(finding.violation == violation for finding in base.findings)
        site = RUN_SITE if of_run else result.site.value if result.site else ""
        self.fingerprint = fingerprint_of(violation, site)
        self._site = result.site
        self._near = _Place(0)
        self._follow(base, spec.plan, range(len(script.statements)))
        for plan in _simpler(spec.plan):
            if self._matches(base, script, plan):
                self._plan = plan
        self.start = Crash(self._plan, result.torn.kept.count("0") if result.torn else None)
        remove_image(base.script.parent)

    @property
    def origin(self) -> int:
        """See CrashSearch."""
        return self._near.origin

    def find(self, script: Script, origins: Sequence[int]) -> Crash | None:
        """Takes a census and hits the candidates."""
        try:
            base = take_baseline(inline_spec(self._spec, script, self._plan), *self._where())
        except TornpageError:
            return None  # the script does not run to its end: not the finding that is followed
        try:
            if {violation.invariant for violation in base.census.violations} - self._known:
                return None
            for plan in self._plans(base, origins):
                result = self._matches(base, script, plan)
                if result is not None:
                    self._follow(base, plan, origins)
                    self._plan = plan
                    return Crash(plan, result.torn.kept.count("0") if result.torn else None)
        except TornpageError:
            return None
        finally:
            remove_image(base.script.parent)
        return None

    def refine(self, script: Script, crash: Crash, deadline: float) -> Crash:
        """Keeps as many sectors of the torn write as possible."""
        fault = crash.plan.run[0]
        if fault.sectors is None or not crash.lost_sectors:
            return crash
        base = take_baseline(inline_spec(self._spec, script, crash.plan), *self._where())
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

    def _where(self) -> tuple[Target, Path]:
        return self._target, self._scratch

    def _run(self, base: Baseline, script: Script, plan: FaultPlan) -> TrialResult:
        spec = inline_spec(self._spec, script, plan)
        return run_trial(spec, *self._where(), self._scratch / "images", base)

    def _matches(self, base: Baseline, script: Script, plan: FaultPlan) -> TrialResult | None:
        result = self._run(base, script, plan)
        wanted = self.fingerprint
        site = RUN_SITE if wanted.site == RUN_SITE else result.site.value if result.site else ""
        found = any(fingerprint_of(item, site) == wanted for item in result.violations)
        return result if found else None

    def _follow(self, base: Baseline, plan: FaultPlan, origins: Sequence[int]) -> None:
        """Remembers where the last crash was: up to its fault the run is that of the census."""
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
        if fault.kind is FaultKind.WRITE and self._site in base.census.by_site():
            return [
                (
                    _Place(origins[write.line - 1], write.file, write.offset),
                    replace(fault, file=write.file, nth=write.nth, offset=None),
                )
                for write in base.census.writes
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
        for write in base.census.writes if seqs else ():
            if write.seq > seqs[0]:
                place = _Place(origins[write.line - 1], write.file, write.offset)
                return [(place, _kill_after(write))]
        return []


class LossSearch:
    """Power-loss states of a recorded run."""

    def __init__(
        self, spec: TrialSpec, script: Script, target: Target, scratch: Path, wanted: Violation
    ) -> None:
        """Plays the state again; arguments and errors as for KillSearch."""
        self._spec = spec
        self._target = target
        self._scratch = scratch
        recording = self._record(script)
        levels = spec.plan.loss.split("/")
        result = self._replay(script, recording, spec.plan.loss)
        violation = _choose(result.violations, wanted, spec)
        self.fingerprint = fingerprint_of(violation, "")
        self._depth = len(levels)
        models = {level.split(".")[1] for level in levels}
        self._models = (*SIMPLE, SUBSET) if SUBSET in models else tuple(sorted(models))
        self.origin = max(0, self._line(recording, spec.plan.loss) - 1)
        self.start = Crash(spec.plan, self._lost(script, recording, spec.plan.loss))
        remove_image(recording.trace.parent)

    def find(self, script: Script, origins: Sequence[int]) -> Crash | None:
        """Records a run and explores it: near the last crash, then all over."""
        try:
            recording = self._record(script)
        except TornpageError:
            return None
        try:
            for depth in range(1, self._depth + 1):
                for limits in self._limits(recording, origins, depth):
                    state = self._first(self._explore(script, recording, limits))
                    if state:
                        line = self._line(recording, state)
                        self.origin = origins[line - 1] if line else 0
                        self._depth = depth
                        return Crash(_loss_plan(state), None)
        except TornpageError:
            return None
        finally:
            remove_image(recording.trace.parent)
        return None

    def refine(self, script: Script, crash: Crash, deadline: float) -> Crash:
        """The state of any model in which the fewest sectors are lost."""
        recording = self._record(script)
        try:
            best = replace(crash, lost_sectors=self._lost(script, recording, crash.plan.loss))
            for model in (*SIMPLE, SUBSET):
                if best.lost_sectors == 0 or time.monotonic() > deadline:
                    break
                limits = Limits((model,), STATES_LAST, depth=self._depth, jobs=JOBS)
                state = self._first(self._explore(script, recording, limits))
                if not state:
                    continue
                lost = self._lost(script, recording, state)
                if best.lost_sectors is None or lost < best.lost_sectors:
                    best = Crash(_loss_plan(state), lost)
            return best
        finally:
            remove_image(recording.trace.parent)

    def _record(self, script: Script) -> Recording:
        spec = inline_spec(self._spec, script, FaultPlan())
        folder = self._scratch / f"recording-{census_key(spec)}"
        try:
            return record_run(spec, self._target, self._scratch)
        except TornpageError:
            remove_image(folder)
            raise

    def _explore(
        self, script: Script, recording: Recording, limits: Limits
    ) -> dict[str, tuple[Violation, ...]]:
        spec = inline_spec(self._spec, script, FaultPlan())
        return dict(explore(spec, self._target, recording, limits, self._scratch).broken)

    def _replay(self, script: Script, recording: Recording, state: str) -> TrialResult:
        spec = inline_spec(self._spec, script, _loss_plan(state))
        image = self._image(state)
        return replay_state(spec, self._target, recording, state, image, self._scratch)

    def _image(self, state: str) -> Path:
        image = self._scratch / "states" / state.replace("/", "-")
        remove_image(image)
        image.mkdir(parents=True)
        return image

    def _limits(self, recording: Recording, origins: Sequence[int], depth: int) -> list[Limits]:
        """Near: the crash points of the statement that is closest to the last crash."""
        everywhere = Limits(self._models, STATES_ALL * depth, depth=depth, jobs=JOBS)
        if not origins:
            return [everywhere]
        at = min(range(len(origins)), key=lambda i: abs(origins[i] - self.origin))
        journal = read_journal(Trace.load(recording.trace))
        starts = [seq for seq, _line in journal.issued]
        if at >= len(starts):
            return [everywhere]
        last = starts[at + 1] if at + 1 < len(starts) else recording.events
        near = replace(everywhere, states=STATES_NEAR * depth, events=(starts[at], last))
        return [near, everywhere]

    def _first(self, broken: dict[str, tuple[Violation, ...]]) -> str:
        """The first state with the wanted fingerprint, "" if there is none."""
        for state, violations in broken.items():
            if any(fingerprint_of(item, "") == self.fingerprint for item in violations):
                return state
        return ""

    def _line(self, recording: Recording, state: str) -> int:
        seq = int(state.split(".", 1)[0])
        return read_journal(Trace.load(recording.trace)).at(seq + 1)[1]

    def _lost(self, script: Script, recording: Recording, state: str) -> int:
        """Sectors in which the image differs from the one with everything persisted, over all levels."""
        total = 0
        levels = state.split("/")
        for depth in range(1, len(levels) + 1):
            part = "/".join(levels[:depth])
            whole = "/".join(
                [*levels[: depth - 1], f"{levels[depth - 1].split('.')[0]}.{SIMPLE[0]}.0"]
            )
            images = []
            for each in (part, whole):
                self._replay(script, recording, each)
                images.append(self._scratch / "states" / each.replace("/", "-"))
            total += _different_sectors(*images)
            for image in images:
                remove_image(image)
        return total


def _loss_plan(state: str) -> FaultPlan:
    return FaultPlan(name=f"power loss {state}", loss=state)


def _choose(violations: Sequence[Violation], wanted: Violation, spec: TrialSpec) -> Violation:
    """The violation to follow: of the same fingerprint as `wanted`, else of the same invariant."""
    path = fingerprint_of(wanted, "").path
    same = [item for item in violations if item.invariant == wanted.invariant]
    exact = [item for item in same if fingerprint_of(item, "").path == path]
    if not same:
        raise TornpageError(
            f"trial {spec.number} of {spec.campaign} does not break I{wanted.invariant} when it is run again"
        )
    return (exact or same)[0]


def _simpler(plan: FaultPlan) -> Iterator[FaultPlan]:
    if plan.stale_log:
        plan = replace(plan, stale_log=False)
        yield plan
    for keep in range(len(plan.recover) - 1, -1, -1):
        yield replace(plan, recover=plan.recover[:keep])


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
        place = _Place(origins[line - 1] if line else 0, file, event.offset)
        found.append((place, replace(fault, nth=len(found) + 1)))
    return found


def _different_sectors(one: Path, other: Path) -> int:
    """512-byte sectors that differ; a file that one of them lacks counts as empty, and for one more."""
    count = 0
    names = {path.relative_to(folder) for folder in (one, other) for path in folder.rglob("*")}
    for name in sorted(names):
        if (one / name).is_dir() or (other / name).is_dir():
            continue
        count += (one / name).exists() != (other / name).exists()
        a, b = (p.read_bytes() if p.exists() else b"" for p in (one / name, other / name))
        count += sum(
            a[at : at + 512] != b[at : at + 512] for at in range(0, max(len(a), len(b)), 512)
        )
    return count
