"""The admission test of a target file: one fault-free run, recorded, replayed in memory, compared with
the files, recovered; the same run once more under audit, so that nothing is changed unseen; one that stands
still at its acknowledgements; and recoveries of killed ones, under audit too.

What a crash state says is worth as much as this: a write that the recording does not show is in no state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.faults.image import remove_image
from tornpage.faults.trace import Op
from tornpage.live.fault_free import FaultFreeRun, run_fault_free
from tornpage.live.golden_run import golden_run_key
from tornpage.live.journal import acknowledged_in
from tornpage.live.recoveries import audit_recoveries
from tornpage.live.stopped import Compared, check_at_acknowledgements
from tornpage.targets.option import disk_of
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import GoldenRunError
from tornpage.vocabulary.model import FaultPlan, Source, TrialSpec
from tornpage.workloads.workload import fit_params

__all__ = ["Admission", "Audited", "admit", "audit_runs", "own_work", "work_of"]


@dataclass(frozen=True, slots=True)
class Audited:
    """How far runs were looked at from outside of the programs. missing: why a run, or a recovery, was not
    audited, "" if all were; compared: with their recordings; recoveries: images whose recovery was
    audited; mapped: files that one of them mapped to write."""

    missing: str
    compared: Compared
    recoveries: int
    mapped: tuple[str, ...] = ()

    def __add__(self, other: Audited) -> Audited:
        return Audited(
            self.missing or other.missing,
            self.compared + other.compared,
            self.recoveries + other.recoveries,
            tuple(sorted({*self.mapped, *other.mapped})),
        )


@dataclass(frozen=True, slots=True)
class Admission:
    """What the fault-free run showed. commits: acknowledged statements; repeatable: a second run came to the
    same states, so that kills can be judged; counters: what the judge of its bytes saw; audited: how far it
    was looked at from outside; left: programs of the processes that it left behind, which were ended."""

    commits: int
    events: int
    writes: int
    syncs: int
    files: int
    repeatable: bool
    counters: dict[str, int]
    audited: Audited
    left: tuple[str, ...] = ()


DISK = Audited("a disk's writes are the kernel's", Compared(0, 0), 0)


def own_work(target: Target, options: Mapping[str, str] | None = None) -> TrialSpec:
    """The work that a target file's run command makes, under these options of the target."""
    plan = FaultPlan(name="fault_free")
    chosen = dict(options or {})
    work, params = work_of(target, chosen)
    params = fit_params(work, params, chosen)
    return TrialSpec("try", target.name, "default", chosen, work, params, 1, 1, 0, plan)


def work_of(target: Target, options: Mapping[str, str]) -> tuple[str, dict[str, int | str]]:
    """The workload, and its parameters."""
    if target.lines is None:
        return "own", {}
    return "lines", {"path": str(target.lines_of(options))}


def audit_runs(target: Target, specs: Iterable[TrialSpec], scratch: Path) -> Audited:
    """Audits one fault-free run, and recoveries of it, for each set of options of these trials.
    GoldenRunError names the first call that is not recorded."""
    audited = Audited("", Compared(0, 0), 0)
    for spec in {tuple(sorted(spec.options.items())): spec for spec in specs}.values():
        if disk_of(spec.options):
            audited += DISK
            continue
        work = scratch / f"audit-{golden_run_key(spec)}"
        try:
            run = run_fault_free(spec, target, work, audit=True)
            audited += _audit(spec, target, work, run)
        finally:
            remove_image(work)
    return audited


def _audit(spec: TrialSpec, target: Target, work: Path, run: FaultFreeRun) -> Audited:
    """Of a run that was audited: at its acknowledgements, and its recoveries. One that stands still may end
    early: of how many it is, this one says."""
    compared = check_at_acknowledgements(spec, target, work)
    acknowledged = len(acknowledged_in(run.trace))
    compared = replace(compared, of=max(compared.of, acknowledged))
    if run.not_audited:
        return Audited(run.not_audited, compared, 0)
    missing, recoveries, mapped = audit_recoveries(spec, target, work, _writes(run))
    return Audited(missing, compared, recoveries, tuple(sorted({*run.mapped, *mapped})))


def admit(target: Target, scratch: Path, options: Mapping[str, str] | None = None) -> Admission:
    """Raises GoldenRunError with the first thing that is wrong."""
    spec = own_work(target, options)
    work = scratch / f"admission-{golden_run_key(spec)}"
    try:
        run = run_fault_free(spec, target, work)
        wrong = [found for found in run.violations if found.source is not Source.RULE]
        if wrong:  # what the rules say of its bytes is a verdict, which campaigns tell
            raise GoldenRunError(f"without any crash: {wrong[0].what}")
        on_disk = bool(disk_of(spec.options))
        again = run_fault_free(spec, target, work, audit=not on_disk)
        audited = DISK if on_disk else _audit(spec, target, work, again)
    finally:
        remove_image(work)
    kinds = Counter(event.kind for event in run.trace.events() if event.result >= 0)
    files = {event.file for event in run.trace.events() if event.kind == Op.WRITE}
    return Admission(
        commits=len(run.oracle.states) - 1,
        events=run.trace.events_declared,
        writes=_writes(run),
        syncs=sum(kinds[op] for op in (Op.FSYNC, Op.FDATASYNC, Op.SYNC_DIR, Op.SYNC_ALL)),
        files=len(files),
        repeatable=again.oracle.states == run.oracle.states,
        counters=dict(run.answer.status),
        audited=audited,
        left=run.left,
    )


def _writes(run: FaultFreeRun) -> int:
    return sum(event.kind == Op.WRITE and event.result >= 0 for event in run.trace.events())
