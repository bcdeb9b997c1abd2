"""One trial: run under a fault plan, crash, keep the image, recover, recover again, judge.

The run's trace must equal the census byte for byte up to the crash; then the census's verdicts apply. A
trial that disturbs a recovery first runs the same one undisturbed: the later ones must come to its state,
and a fault that is yet to be drawn is drawn from its writes. A trial never raises for what the target does:
that is in its TrialResult.

May import: aim, census, clients, errors, exports, hit, image, journal, judgement, kept, killed, model,
observed, paths, plan, preload, process, rules, state, stream, target, trace.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tornpage.campaigns.census import (
    Baseline,
    census_key,
    judge_run,
    list_writes,
    load_baseline,
)
from tornpage.campaigns.hit import (
    Hit,
    find_hit,
    has_fired,
    mask_of,
    tears_nothing,
    torn_write,
)
from tornpage.campaigns.journal import read_journal
from tornpage.campaigns.kept import keep_found
from tornpage.campaigns.killed import KilledRun, judge_by_own_run
from tornpage.faults.aim import RecoveryAim
from tornpage.faults.image import copy_image, remove_image
from tornpage.faults.plan import compile_plan, format_plan
from tornpage.faults.preload import BARE, EXIT_PRELOAD_REFUSED
from tornpage.faults.process import ChildResult, ended_from_outside
from tornpage.faults.stream import unseen_changes
from tornpage.faults.trace import HEADER_SIZE, Event, Op, Trace
from tornpage.oracle.clients import judge_clients
from tornpage.oracle.exports import exported_in
from tornpage.oracle.judgement import FoundBackup, judge, judge_backups
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.rules import ask_export, ask_rules
from tornpage.oracle.state import State, state_digest
from tornpage.targets.target import Capability, Planted, RecoveryAnswer, Target
from tornpage.vocabulary.errors import (
    CensusError,
    ChildError,
    MachineError,
    PlanError,
    TraceError,
)
from tornpage.vocabulary.model import (
    PAGE_SITES,
    Action,
    Fault,
    Outcome,
    Source,
    TrialResult,
    TrialSpec,
    Violation,
)
from tornpage.vocabulary.paths import require_floor

__all__ = ["run_aimed", "run_trial"]

NOTHING_TO_HIT: tuple[tuple[Fault, ...], ...] = ((),)
"""FaultPlan.recover of a trial for whose recovery no fault could be drawn."""
BASELINES_MAX = 64
"""That a worker keeps: a default campaign has up to 48, of six megabytes each, and their records mapped."""


def run_trial(
    spec: TrialSpec, target: Target, scratch: Path, images: Path, baseline: Baseline | None = None
) -> TrialResult:
    """Runs a trial in a folder of its own below scratch (tmpfs), which is gone afterwards.

    images: existing or new folder; a crashed image that is not clean is kept in images/NUMBER with the
    plan that made it. baseline: of this very run, if the caller has it already. Raises TornpageError
    when the harness itself is broken.
    """
    return _play(spec, None, target, scratch, images, baseline)[1]


def run_aimed(
    spec: TrialSpec, aim: RecoveryAim | None, target: Target, scratch: Path, images: Path
) -> tuple[TrialSpec, TrialResult]:
    """The same with a fault of the first recovery that is yet to be drawn. Also returns the trial with that
    fault in its plan: run_trial() with it gives the same result. If that recovery has no such write the
    plan says that, and the trial is not exercised; if it fails undisturbed, that is the verdict, and the
    plan stays as it was."""
    return _play(spec, aim, target, scratch, images, None)


def _play(
    spec: TrialSpec,
    aim: RecoveryAim | None,
    target: Target,
    scratch: Path,
    images: Path,
    baseline: Baseline | None,
) -> tuple[TrialSpec, TrialResult]:
    if baseline is None:
        baseline = _baseline(scratch, _Run(census_key(spec), spec, target))
    work = scratch / f"trial-{os.getpid()}-{spec.number}"
    remove_image(work)
    work.mkdir(parents=True)
    try:
        trial = _Trial(spec, aim, target, baseline, work, images)
        result = trial.run()
        return trial.spec, result
    finally:
        remove_image(work)


@dataclass(frozen=True, slots=True)
class _Run:
    """An undisturbed run: the same for all trials of one configuration."""

    key: str
    spec: TrialSpec = field(compare=False)
    target: Target = field(compare=False)


@functools.lru_cache(maxsize=BASELINES_MAX)
def _baseline(scratch: Path, run: _Run) -> Baseline:
    return load_baseline(run.spec, run.target, scratch)


class _Trial:
    """The steps of one trial and what they have found so far."""

    def __init__(
        self,
        spec: TrialSpec,
        aim: RecoveryAim | None,
        target: Target,
        baseline: Baseline,
        work: Path,
        images: Path,
    ) -> None:
        self.spec = spec
        self.aim = aim
        self.target = target
        self.base = baseline
        self.work = work
        self.data = work / "data"
        self.image = work / "image"
        self.images = images
        self.violations: list[Violation] = []
        self.counters: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.peak_bytes = 0
        self.written_bytes = 0
        self.started = time.monotonic()
        self.trace: Trace | None = None
        self.hit: Hit | None = None
        self.state: State | None = None
        self.backups: Mapping[str, FoundBackup] = {}
        self.undisturbed: State | None = None
        self.range = (0, 0)
        self.before_first = False
        self.stale: Planted | None = None
        self.answer = ""
        self.oracle = baseline.oracle
        self.own: KilledRun | None = None
        self.undecided = ""
        self.bare = False
        self.differed = False

    # -- steps ----------------------------------------------------------------------------------

    def run(self) -> TrialResult:
        """All of it."""
        child, trace = self._crash()
        if not trace.fired:
            reason = f"the fault did not fire: {child.describe()}"
            return self._not_exercised(reason, child.timed_out)
        self.hit = find_hit(trace, self.base, self.spec.plan, self.target, bare=self.bare)
        try:
            self._judge_run(trace, self.hit.event, child)
        except CensusError as error:
            return self._not_exercised(f"the killed run cannot be judged: {error}")
        self.whole = tears_nothing(trace, self.hit.event, self.spec.plan.run)
        clock = time.monotonic()
        self._plant_stale_block()
        copy_image(self.data, self.image)
        self.seconds["copy"] = time.monotonic() - clock
        if self.aim is not None or self.spec.plan.recover:
            self._recover_undisturbed()
        if self.spec.plan.recover == NOTHING_TO_HIT:
            return self._not_exercised("the recovery has no write of this site that fits the mask")
        reason = self._nested_recoveries()
        if not reason:
            reason = self._recover()
        if self.whole and not reason:
            return self._not_exercised("the mask leaves the whole write")
        if self.undecided and not self.violations:
            return self._not_exercised(self.undecided)
        if self.violations:
            return self._result(Outcome.VIOLATION, self.violations[0].what)
        return self._result(Outcome.VACUOUS if reason else Outcome.CLEAN, reason)

    def _crash(self) -> tuple[ChildResult, Trace]:
        """The disturbed run. Its contents are recorded only if they may not be those of the census."""
        copy_image(self.base.found, self.data)
        self.bare = self._deterministic and all(
            fault.action is Action.KILL for fault in self.spec.plan.run
        )
        child = self._child("run", self.spec.plan.run, bare=self.bare)
        trace = self.trace = self._load_trace("run", child)
        if self.bare and not self._equals_census(trace):
            self.bare = False
            self.differed = trace.fired
            remove_image(self.data)
            copy_image(self.base.found, self.data)
            child = self._child("run", self.spec.plan.run)
            trace = self.trace = self._load_trace("run", child)
        return child, trace

    def _equals_census(self, trace: Trace) -> bool:
        """Whether the KILL that ends a trace without contents is all that the census has not."""
        if not trace.fired:
            return False
        hit = find_hit(trace, self.base, self.spec.plan, self.target, bare=True).event
        return hit.kind == Op.KILL and self.base.contents.covers(trace, hit.at)

    @property
    def _deterministic(self) -> bool:
        return Capability.DETERMINISTIC in self.target.capabilities

    def _child(
        self, phase: str, faults: tuple[Fault, ...] | None, *, bare: bool = False
    ) -> ChildResult:
        """Runs or recovers; faults None: not even recorded; bare: recorded without contents."""
        options = self.spec.options
        if phase == "run":
            command = self.target.run_command(self.data, self.base.script, options)
        else:
            command = self.target.recover_command(self.data, options)
        env: dict[str, str] = {}
        if faults is not None:
            plan: Path | None = None
            if faults:
                plan = self.work / f"{phase}.plan"
                plan.write_text(compile_plan(faults), "ascii")
            env = self.target.preload_env(self.data, self.work / f"{phase}.trace", plan)
            env |= BARE if bare else {}
        killed = any(fault.action is Action.KILL for fault in faults or ())
        child = command.run(env, may_be_killed=killed)
        if child.exit_code == EXIT_PRELOAD_REFUSED:
            require_floor(self.work)  # it may be the trace that found no room
            raise PlanError(f"the preload refused: {child.last_line}")
        self.peak_bytes = max(self.peak_bytes, child.peak_bytes)
        self.written_bytes += child.written_bytes
        self.seconds[phase] = self.seconds.get(phase, 0.0) + child.seconds
        return child

    def _load_trace(self, phase: str, child: ChildResult) -> Trace:
        path = self.work / f"{phase}.trace"
        if child.from_outside and not has_fired(path):
            raise ended_from_outside(f"the {phase} of a trial", child.signal)
        if not path.exists():
            raise ChildError(f"no trace of the {phase}: {child.describe()}")
        try:
            trace = Trace.load(path)
        except TraceError:
            require_floor(self.work)  # it overflows where there is no room for it, too
            raise
        unseen = unseen_changes(trace, self.target.unrecorded)
        if unseen:
            raise ChildError(f"the preload cannot follow {unseen} in the {phase} of a trial")
        if trace.starved():
            raise MachineError(f"the {phase} of a trial failed by {trace.starved()}")
        return trace

    def _judge_run(self, trace: Trace, hit: Event, child: ChildResult) -> None:
        if isinstance(self.base.oracle, ObservedOracle):
            told = self.target.parse_run(child).told
            self.own = judge_by_own_run(trace, told or {}, self.base.oracle)
            self.oracle = self.own.oracle
        recorded = memoryview(trace.data)[HEADER_SIZE : hit.at]
        equal = self.bare or self.base.trace.begins_with(recorded)
        killed = hit.kind == Op.KILL
        if equal and killed:
            self._add(f.violation for f in self.base.findings if f.seq < hit.seq)
            finished, issued = self.base.journal.at(hit.seq)
        else:
            path = self.work / "run.trace"
            judged = judge_run(self.target, path, self.base.setting, self.base.found, live=True)
            self._add(finding.violation for finding in judged.findings)
            finished, issued = read_journal(trace).at(trace.events_declared + 1)
        if self._deterministic and (self.differed or not equal):
            self._add_of_run("the run differs from the census before the fault")
        if child.timed_out:
            self._add_of_run(f"the run hung: {child.describe()}")
        self.before_first = issued == 0
        self.acknowledged = self.oracle.after(finished)
        self.range = self._prefixes(finished, issued)

    def _prefixes(self, finished: int, issued: int) -> tuple[int, int]:
        """Commit prefixes that may be found: lowest and highest."""
        oracle = self.oracle
        high = oracle.newest(finished, issued)
        if not self.target.promise(self.spec.options).durable:
            durable = [s.prefix for s in oracle.steps if s.durable and s.line <= finished]
            return (durable[-1] if durable else 0), high
        return self.acknowledged, high

    def _plant_stale_block(self) -> None:
        if self.spec.plan.stale_log:
            self.stale = self.target.plant_stale_log(self.data, self.spec.seed % 2)
            self.counters |= {"stale_log": 1} if self.stale is not None else {}

    def _recover_undisturbed(self) -> None:
        """What the disturbed recoveries must come to. The fault that is yet to be drawn is drawn from its
        writes."""
        child = self._child("undisturbed", ())
        answer = self.target.parse_recovery(child)
        self.undisturbed = answer.state
        if self.aim is not None and answer.ok:
            trace = self._load_trace("undisturbed", child)
            setting = self.base.setting
            writes = list_writes(self.target, trace, setting.page_size, unit=setting.unit)
            faults = self.aim.draw(writes)
            self.spec = replace(self.spec, plan=replace(self.spec.plan, recover=(faults,)))
        remove_image(self.data)
        copy_image(self.image, self.data)

    def _nested_recoveries(self) -> str:
        """Recoveries that are disturbed as well; the reason if one was not, else ""."""
        for i, faults in enumerate(self.spec.plan.recover):
            found = self._found_files()
            child = self._child("recover", faults)
            trace = self._load_trace("recover", child)
            self._check_recovery(found)
            if not trace.fired:
                return f"recovery {i + 1} ended before its fault: {child.describe()}"
            self.whole |= tears_nothing(trace, trace.kill(), faults)
            errors = any(fault.action is Action.ERROR for fault in faults)
            if child.timed_out:
                self.violations.append(Violation(30, f"recovery {i + 1} hung"))
            elif errors and trace.kill() is None:
                self._judge_failed_io(f"recovery {i + 1}", child)
            name = "nested_errors" if errors else "nested_kills"
            self.counters[name] = self.counters.get(name, 0) + 1
            (self.work / "recover.trace").rename(self.work / f"recover-{i + 1}.trace")
        return ""

    def _judge_failed_io(self, name: str, child: ChildResult) -> None:
        """A recovery whose write or fsync failed must say so and stop."""
        answer = self.target.parse_recovery(child)
        if answer.ok:
            judged = Capability.RULES in self.target.capabilities
            if judged and not any(found.invariant == 23 for found in self.violations):
                self._add([Violation(23, f"{name} succeeds after a failed write or fsync")])
        elif not (answer.stopped or answer.refused):
            self._add([Violation(30, f"{name} failed without a clear message: {answer.message}")])

    def _recover(self) -> str:
        """The undisturbed recovery and the one after it; why the trial is vacuous, else ""."""
        found = self._found_files()
        child = self._child("recover", ())
        self._load_trace("recover", child)
        answer = self.target.parse_recovery(child)
        self.counters.update(answer.counters)
        self.answer = "" if answer.ok else answer.message
        clock = time.monotonic()
        traced = self._check_recovery(found)
        recovered = traced if answer.recovered is None else answer.recovered
        if answer.ok:
            self._judge_state(answer)
        else:
            self._judge_refusal(answer)
        self.seconds["judge"] = time.monotonic() - clock
        if answer.ok:
            self._judge_export()
            self._recover_again()
            return "" if recovered else "no recovery ran after the crash"
        return ""

    def _found_files(self) -> Path:
        """A copy of what the recovery that comes next finds."""
        if not (self.work / "recover-1.trace").exists():
            return self.image
        found = self.work / "found"
        remove_image(found)
        copy_image(self.data, found)
        return found

    def _check_recovery(self, found: Path) -> bool:
        """The rules over the recovery that was recorded last. Returns whether it found a log."""
        if Capability.RULES not in self.target.capabilities:
            return False
        argv = self.target.judge_command().argv
        trace = self.work / "recover.trace"
        judged = ask_rules(argv, trace, self.base.setting, base=found, live=True)
        self._add(finding.violation for finding in judged.findings)
        return judged.found

    def _judge_state(self, answer: RecoveryAnswer) -> None:
        self._add(answer.findings)
        if answer.state is None:
            raise ChildError("the target recovered without telling its state")
        self.state = answer.state
        self.backups = answer.backups
        parts = self.own.oracle.parts if self.own is not None else []
        found = (
            judge_clients(parts, answer.state, *self.range)
            if parts
            else judge(self.oracle.states, answer.state, *self.range)
        )
        if found and self.own is not None and self.own.unknown:
            self.undecided = self.own.unknown
        else:
            self._add(found)
        states, backups = self.oracle.states, self.oracle.backups
        self._add(judge_backups(states, backups, answer.backups, *self.range))
        if self.undisturbed is not None and answer.state != self.undisturbed:
            what = (
                "the recovery after a disturbed one ends in another state than an undisturbed one"
            )
            self._add([Violation(17, what)])

    def _judge_export(self) -> None:
        """The table that was exported, if one was, as somebody carries it away from the crashed image."""
        export = exported_in(self.oracle.exports, self.acknowledged, self.range[1])
        if export is None or Capability.RULES not in self.target.capabilities:
            return
        argv = self.target.judge_command().argv
        judged, found = ask_export(argv, self.image, export, self.spec.options)
        self.counters["exports_judged"] = int(judged)
        self._add(found)

    def _judge_refusal(self, answer: RecoveryAnswer) -> None:
        if answer.no_database and self.before_first:
            return
        if self.stale is not None and self._recovers_without(self.stale):
            what = f"a stale block behind the end of the log makes recovery fail: {answer.message}"
            self.violations.append(Violation(21, what, path=self.stale.file))
            return
        site = self.hit.site if self.hit is not None else None
        if not answer.refused:
            self.violations.append(Violation(30, f"recovery failed: {answer.message}", site))
            return
        number = answer.breaks or (5 if site in PAGE_SITES else 30)
        self.violations.append(Violation(number, f"recovery refused: {answer.message}", site))

    def _recovers_without(self, stale: Planted) -> bool:
        """Whether the same image recovers when the stale block is taken out again."""
        clean = self.work / "clean"
        copy_image(self.image, clean)
        stale.remove(clean)
        command = self.target.recover_command(clean, self.spec.options)
        return self.target.parse_recovery(command.run({})).ok

    def _recover_again(self) -> None:
        child = self._child("verify", None)
        answer = self.target.parse_recovery(child)
        if not answer.ok:
            what = f"the second recovery failed: {answer.message}"
            self.violations.append(Violation(17, what))
        elif answer.state != self.state or answer.backups != self.backups:
            self.violations.append(Violation(17, "the second recovery changed the logical state"))

    def _add(self, violations: Iterable[Violation]) -> None:
        """Adds violations once each."""
        for item in violations:
            if item not in self.violations:
                self.violations.append(item)

    def _add_of_run(self, what: str) -> None:
        self.violations.append(Violation(0, what, source=Source.RUN))

    # -- result ---------------------------------------------------------------------------------

    def _not_exercised(self, reason: str, hung: bool = False) -> TrialResult:
        if hung:
            self._add_of_run(f"the run hung: {reason}")
        if self.violations:
            return self._result(Outcome.VIOLATION, self.violations[0].what)
        return self._result(Outcome.NOT_EXERCISED, reason)

    def _result(self, outcome: Outcome, reason: str) -> TrialResult:
        hit, trace = self.hit, self.trace
        torn = None
        if hit is not None and trace is not None and outcome is not Outcome.CLEAN:
            torn = torn_write(trace, hit)
        self.seconds["total"] = time.monotonic() - self.started
        return TrialResult(
            number=self.spec.number,
            outcome=outcome,
            reason=reason,
            violations=tuple(self.violations),
            site=hit.site if hit is not None else None,
            mask=mask_of(self.spec.plan),
            path=hit.write.file if hit is not None and hit.write else "",
            offset=hit.event.offset if hit is not None else None,
            page_no=hit.page_no if hit is not None else None,
            counters=self.counters,
            seconds=self.seconds,
            peak_bytes=self.peak_bytes,
            written_bytes=self.written_bytes,
            events=trace.events_declared if trace is not None else 0,
            trace_hash=self._trace_hash(),
            digest=state_digest(self.state) if self.state is not None else "",
            image=self._keep_image() if outcome is Outcome.VIOLATION else None,
            torn=torn,
            answer=self.answer,
        )

    def _trace_hash(self) -> str:
        if self.trace is None:
            return ""
        if self.bare and self.hit is not None:
            return self.base.contents.hash(self.trace, self.hit.event)
        return self.trace.hash()

    def _keep_image(self) -> Path | None:
        if not self.image.exists():
            return None
        place = self.images / str(self.spec.number)
        remove_image(place)
        place.mkdir(parents=True)
        copy_image(self.image, place / "data")
        (place / "plan.toml").write_text(format_plan(self.spec.plan), "utf-8")
        (place / "script").write_bytes(self.base.script.read_bytes())
        for trace in sorted(self.work.glob("*.trace")):
            (place / trace.name).write_bytes(Trace.load(trace).data)
        if self.bare and self.trace is not None and self.hit is not None:
            whole = self.base.contents.fill(self.trace, self.hit.event)
            (place / "run.trace").write_bytes(whole)
        keep_found(self.base.found, place, self.violations, self.target)
        return place.resolve()
