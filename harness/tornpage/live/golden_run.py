"""The golden run: one run without a fault, recorded, counted by site, and checked like any other.

A trial is compared with it event by event, so that its verdicts need not be computed again. It lies in
a folder of its own (script, trace, facts.json), from which every worker process loads it once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import xxhash

from tornpage.faults.image import files_below, remove_image
from tornpage.faults.trace import Trace
from tornpage.live.contents import KnownContents
from tornpage.live.fault_free import FaultFreeRun, oracle_of, run_fault_free, script_of
from tornpage.live.journal import Journal, read_journal
from tornpage.live.writes import Names, list_operations, list_writes, names_of, written_names
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.oracle import Oracle
from tornpage.oracle.rules import Finding, Setting
from tornpage.oracle.state import State
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import (
    TargetError,
)
from tornpage.vocabulary.model import (
    GoldenRun,
    TrialSpec,
    WriteEvent,
)

__all__ = [
    "TOLD",
    "Baseline",
    "golden_run_key",
    "load_baseline",
    "take_baseline",
    "take_golden_run",
]


TOLD = "told"
"""Beside a recording: what its run has printed, if it tells its states."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """All that a trial needs of the golden run.

    by_seq: its writes by event number; contents: those of the trace, for runs that equal it; found: folder
    with what was there before the run; names: of a target whose runs may have
    other ones, None: they have not.
    """

    golden_run: GoldenRun
    script: Path
    found: Path
    oracle: Oracle | ObservedOracle
    trace: Trace
    setting: Setting
    journal: Journal
    findings: tuple[Finding, ...]
    by_seq: dict[int, WriteEvent]
    contents: KnownContents
    names: Names | None = None


@dataclass(frozen=True, slots=True)
class _Facts:
    """facts.json: of a golden run, for the processes that load it."""

    golden_run: GoldenRun
    told: Mapping[int, State] | None
    findings: tuple[Finding, ...]
    names: Names | None
    agreed: tuple[int, ...] | None = None


def golden_run_key(spec: TrialSpec) -> str:
    """Names the fault-free run that a trial belongs to: equal for trials of one configuration."""
    parts = {
        "target": spec.target,
        "options": dict(sorted(spec.options.items())),
        "workload": spec.workload,
        "params": dict(sorted(spec.params.items())),
        "seed": spec.workload_seed,
    }
    return xxhash.xxh3_64_hexdigest(json.dumps(parts, sort_keys=True).encode())


def take_golden_run(spec: TrialSpec, target: Target, scratch: Path) -> GoldenRun:
    """Runs the workload of `spec` fault-free and keeps the record in scratch for trials.

    Raises GoldenRunError when the run fails, TargetError when the target cannot be judged this way.
    """
    golden_run, run, work, names = _take(spec, target, scratch, None)
    facts = _Facts(golden_run, run.answer.told, run.findings, names, _agreed(run.oracle))
    (work / "facts.json").write_text(to_json(facts), "utf-8")
    _put_in_place(work, _folder(spec, scratch))
    return golden_run


def take_baseline(
    spec: TrialSpec, target: Target, scratch: Path, names: Names | None = None
) -> Baseline:
    """The same, with all that a trial needs of it, and for this process alone. names: of its files, if
    another script has shown which ones all runs have."""
    golden_run, run, work, names = _take(spec, target, scratch, names)
    folder = _folder(spec, scratch)
    _put_in_place(work, folder)
    return _baseline(golden_run, folder, run.oracle, run.trace, run.setting, run.findings, names)


def _folder(spec: TrialSpec, scratch: Path) -> Path:
    """Where a golden run and its record are kept."""
    return scratch / f"golden-run-{golden_run_key(spec)}"


def _put_in_place(work: Path, folder: Path) -> None:
    remove_image(folder)
    work.rename(folder)


def _take(
    spec: TrialSpec, target: Target, scratch: Path, names: Names | None
) -> tuple[GoldenRun, FaultFreeRun, Path, Names | None]:
    """Also the folder that the record lies in, for this process alone until it is put in place."""
    _check_capable(target)
    work = _folder(spec, scratch).with_suffix(f".{os.getpid()}")
    run = run_fault_free(spec, target, work)
    if run.output:
        (work / TOLD).write_bytes(run.output)
    setting = run.setting
    violations = run.violations
    if names is None and Capability.DETERMINISTIC not in target.capabilities:
        names, again = _compare(spec, target, run, work)
        violations = violations or again.violations
        if isinstance(run.oracle, ObservedOracle):
            run.oracle.agree(again.answer.told or {})
    golden_run = GoldenRun(
        key=golden_run_key(spec),
        writes=tuple(
            list_writes(
                target, run.trace, setting.page_size, issued=True, unit=setting.unit, names=names
            )
        ),
        operations=tuple(
            list_operations(target, run.trace, setting.page_size, issued=True, unit=setting.unit)
        )
        if names is None
        else (),
        trace_hash=run.hash,
        events=run.trace.events_declared,
        statements=len(run.oracle.steps) or len(run.oracle.states) - 1,
        violations=violations,
        counters=run.answer.status,
    )
    return golden_run, run, work, names


def _compare(
    spec: TrialSpec, target: Target, run: FaultFreeRun, work: Path
) -> tuple[Names, FaultFreeRun]:
    """Which of the names that a run has written another one has too, and that one."""
    before = files_below(work / "found").keys()
    written = written_names(run.trace)
    folder = work.with_name(f"{work.name}-again")
    try:
        again = run_fault_free(spec, target, folder)
        others = written if written <= before else written_names(again.trace)
        return names_of(written, others, before), again
    finally:
        remove_image(folder)


def _agreed(oracle: Oracle | ObservedOracle) -> tuple[int, ...] | None:
    return tuple(sorted(oracle.agreed)) if isinstance(oracle, ObservedOracle) else None


def _check_capable(target: Target) -> None:
    """A trial needs acknowledgements, and a run that comes to the same again, or tells its own states."""
    enough = {Capability.DETERMINISTIC, Capability.OBSERVED} & target.capabilities
    if Capability.ACKS not in target.capabilities or not enough:
        raise TargetError(f"target {target.name} lacks acks or deterministic: no golden run of it")


def load_baseline(spec: TrialSpec, target: Target, scratch: Path) -> Baseline:
    """The golden run of this trial's configuration, taken now if scratch does not hold it."""
    folder = _folder(spec, scratch)
    if not (folder / "facts.json").exists():
        take_golden_run(spec, target, scratch)
    facts = from_json(_Facts, (folder / "facts.json").read_bytes())
    trace = Trace.load(folder / "trace", mapped=True)
    setting = target.judge_setting(spec.options)
    oracle = oracle_of(spec, script_of(spec), facts.told, trace)
    if isinstance(oracle, ObservedOracle) and facts.agreed is not None:
        oracle.agreed = frozenset(facts.agreed)
    return _baseline(facts.golden_run, folder, oracle, trace, setting, facts.findings, facts.names)


def _baseline(
    golden_run: GoldenRun,
    folder: Path,
    oracle: Oracle | ObservedOracle,
    trace: Trace,
    setting: Setting,
    findings: tuple[Finding, ...],
    names: Names | None,
) -> Baseline:
    return Baseline(
        golden_run=golden_run,
        script=folder / "script",
        found=folder / "found",
        oracle=oracle,
        trace=trace,
        setting=setting,
        journal=read_journal(trace),
        findings=findings,
        by_seq={one.seq: one for one in (*golden_run.writes, *golden_run.operations)},
        contents=KnownContents(trace),
        names=names,
    )
