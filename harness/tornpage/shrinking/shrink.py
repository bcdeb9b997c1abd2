"""Shrinks a finding: a smaller script and a smaller crash with the same fingerprint, stored as a trial
of its own that holds its script and replays like any other.

The search is a function of the finding, except that it ends early when its time is up: the best so far is
then the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.campaigns.fault_free import fault_free_row, keep_accused
from tornpage.campaigns.replay import play_trial
from tornpage.evidence.images import images_of
from tornpage.faults.scratch import scratch_folder
from tornpage.live.fault_free import judge_fault_free
from tornpage.oracle.fingerprint import Fingerprint
from tornpage.plans.campaign import Campaign, PowerLoss, hit_of_place
from tornpage.plans.origin import command_line, origin_of
from tornpage.shrinking.crashes import Crash, CrashSearch, inline_spec
from tornpage.shrinking.crashes_live import KillSearch
from tornpage.shrinking.crashes_loss import LossSearch
from tornpage.shrinking.crashes_run import RunSearch
from tornpage.shrinking.reduce import Items, items_of, operations, reduce_script
from tornpage.store.bugs import Reproducer
from tornpage.store.rows import SHRINK, TrialRow
from tornpage.store.store import Store
from tornpage.targets.registry import make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Fault, FaultPlan, TrialSpec
from tornpage.vocabulary.paths import Paths
from tornpage.workloads.script import Script
from tornpage.workloads.workload import generate

__all__ = ["Shrunk", "Size", "shrink_trial"]

SCRIPT_SHARE = 0.9
"""Of the time for the script; the rest is for the crash."""


@dataclass(frozen=True, slots=True)
class Size:
    """statements of the script; operations: the same with every row of a range counted; lost_sectors:
    written and not in the crashed image, None if the fault loses none."""

    statements: int
    operations: int
    lost_sectors: int | None


@dataclass(frozen=True, slots=True)
class Shrunk:
    """trial, shrunk: ids in the store. probes: scripts that were tried; complete: the search ended by
    itself, so that no single statement can be left out. replay: the line that repeats it."""

    trial: str
    shrunk: str
    fingerprint: Fingerprint
    before: Size
    after: Size
    script: str
    crash: str
    probes: int
    seconds: float
    complete: bool
    replay: str


def shrink_trial(
    store: Store,
    row: TrialRow,
    paths: Paths,
    out: Path,
    budget_s: float,
    tell: Callable[[str], None],
    *,
    stacks: bool,
) -> Shrunk:
    """Shrinks the first violation of a stored trial for about budget_s seconds and stores the result.

    tell gets a line about the progress from time to time. stacks: what is stored has call stacks. Raises
    ConfigError if there is nothing to shrink, TornpageError if the violation does not come back.
    """
    clock = time.monotonic()
    spec = replace(row.spec, stacks=False)
    if row.result is None or not row.result.violations:
        raise ConfigError(f"trial {row.run}.{row.number} broke no invariant: nothing to shrink")
    target = make_target(spec.target, paths.build)
    original = generate(spec.workload, spec.params, spec.workload_seed)
    items = items_of(original)
    whole = Script.of(original.statements)
    with scratch_folder(target.on_shm) as scratch:
        search = _search(row, whole, target, scratch)
        probe = _Probe(search, clock + budget_s * SCRIPT_SHARE, tell)
        probe.keep(items, search.start)
        reduce_script(items, lambda: search.origin, probe.fails)
        script = _script_of(probe.items)
        crash = search.refine(script, probe.crash, clock + budget_s)
        shrunk = replace(inline_spec(spec, script, crash.plan), stacks=stacks)
        if spec.plan.crashes:
            kept = search.kept(script)
            number = _store(store, row, shrunk, target, scratch, out, kept)
        else:
            number = _store_run(store, row, shrunk, target, scratch, out)
    return Shrunk(
        trial=f"{row.run}.{'' if spec.plan.crashes else 's'}{row.number}",
        shrunk=number,
        fingerprint=search.fingerprint,
        before=Size(len(items), operations(whole), search.start.lost_sectors),
        after=Size(len(script.statements), operations(script), crash.lost_sectors),
        script=script.text,
        crash=_describe(crash.plan),
        probes=probe.probes,
        seconds=round(time.monotonic() - clock, 2),
        complete=not probe.late,
        replay=command_line(f"tornpage replay {number}", store.place.options),
    )


def _search(row: TrialRow, script: Script, target: Target, scratch: Path) -> CrashSearch:
    """The one that goes with the plan."""
    assert row.result is not None, "the caller has looked"
    found = (row.spec, script, target, scratch, row.result.violations[0])
    if row.spec.plan.loss:
        return LossSearch(*found, row.result.image)
    return KillSearch(*found) if row.spec.plan.run else RunSearch(*found)


class _Probe:
    """Asks whether a script still fails, and remembers the last one that did."""

    def __init__(self, search: CrashSearch, deadline: float, tell: Callable[[str], None]) -> None:
        self._search = search
        self._deadline = deadline
        self._tell = tell
        self._known: dict[str, Crash | None] = {}
        self.items: Items = ()
        self.crash = search.start
        self.probes = 0
        self.late = False

    def fails(self, items: Items) -> bool:
        """Whether a crash of this script has the fingerprint; False when the time is up."""
        script = _script_of(items)
        if script.text not in self._known:
            if time.monotonic() > self._deadline:
                self.late = True
                return False
            self.probes += 1
            origins = [item.origin for item in items]
            self._known[script.text] = self._search.find(script, origins)
        crash = self._known[script.text]
        if crash is not None:
            self.keep(items, crash)
        return crash is not None

    def keep(self, items: Items, crash: Crash) -> None:
        """This is the smallest one so far."""
        self.items, self.crash = items, crash
        self._tell(f"{len(items)} statements left, {self.probes} scripts tried")


def _script_of(items: Items) -> Script:
    return Script.of(item.statement for item in items)


def _store(
    store: Store,
    row: TrialRow,
    spec: TrialSpec,
    target: Target,
    scratch: Path,
    out: Path,
    kept: Path | None,
) -> str:
    """Plays the smaller trial once more, for the store, and makes it the reproducer of its bug; its id. kept:
    as of play_trial()."""
    settings = _settings(Campaign.model_validate(store.run(row.run).settings), row, spec)
    origin = origin_of(settings, target)
    run = store.begin_run(
        SHRINK, spec.target, spec.workload_seed, 1, settings.model_dump(mode="json"), origin
    )
    images = images_of(out, run.id)
    spec = replace(spec, campaign=SHRINK)
    result = play_trial(spec, target, scratch, images, kept)
    store.start_trial(run.id, spec, row.site, result.mask)
    store.finish_trial(run.id, result)
    store.finish_run(run.id)
    shrunk = store.trial(run.id, spec.number)
    for bug in {*shrunk.bugs} & {*row.bugs}:
        if bug is not None:
            store.set_reproducer(bug, Reproducer(run.id, spec.number, spec.config))
    return f"{run.id}.{spec.number}"


def _store_run(
    store: Store, row: TrialRow, spec: TrialSpec, target: Target, scratch: Path, out: Path
) -> str:
    """The same of a finding without a crash: the run of the smaller script."""
    settings = _settings(Campaign.model_validate(store.run(row.run).settings), row, spec)
    run = store.begin_run(
        SHRINK,
        spec.target,
        spec.workload_seed,
        0,
        settings.model_dump(mode="json"),
        origin_of(settings, target),
    )
    label = settings.scripted()[0].label
    spec = replace(spec, campaign=SHRINK, config=label)
    played = judge_fault_free(spec, target, scratch / "shrunk")
    store.put_golden_run(run.id, replace(played, crashed=True))
    store.finish_run(run.id, 0)
    keep_accused(store, store.run(run.id), scratch, target, out)
    shrunk = fault_free_row(store, run.id, 0)
    for bug in {*shrunk.bugs} & {*row.bugs}:
        if bug is not None:
            store.set_reproducer(bug, Reproducer(run.id, None, label))
    return f"{run.id}.s0"


def _settings(campaign: Campaign, row: TrialRow, spec: TrialSpec) -> Campaign:
    """A campaign of this one trial and of nothing else, so that the report treats its run like any other."""
    hits = campaign.hit[:1]
    if spec.plan.crashes:
        hits = [hit_of_place(row.site, hit.masks[:1]) for hit in hits]
    depth = spec.plan.loss.count("/") + 1
    return Campaign(
        name=SHRINK,
        description=f"trial {row.run}.{row.number}, shrunk",
        workload=spec.workload,
        params=dict(spec.params),
        crash_model=campaign.crash_model,
        options=dict(spec.options),
        seed=spec.workload_seed,
        trials=1,
        hit=hits,
        explore=PowerLoss(states=1, depth=depth) if campaign.explore else None,
    )


def _describe(plan: FaultPlan) -> str:
    """The crash in one line."""
    if not plan.crashes:
        return "none is needed: the run itself shows it"
    if plan.loss:
        return f"power loss, state {plan.loss}"
    words = "; then ".join(_describe_fault(fault) for fault in plan.run)
    words += ", stale log block" if plan.stale_log else ""
    for level, faults in enumerate(plan.recover, start=1):
        words += "".join(f"; recovery {level}: {_describe_fault(fault)}" for fault in faults)
    return words


def _describe_fault(fault: Fault) -> str:
    shape = f", sectors {fault.sectors}" if fault.sectors is not None else ""
    return f"{fault.action} at {fault.kind} {fault.nth} of {fault.file}{shape}"
