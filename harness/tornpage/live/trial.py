"""One trial: run under a fault plan, crash, keep the image, recover, recover again, judge.

    stage   where it is played       crash   the run, and its verdict       recovered   what followed it
    verdict (pure)                   trial   all of it, as one result

A trial never raises for what the target does: that is in its TrialResult. Where the harness fails in its
middle, what was found until then is in the result.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tornpage.faults.aim import RecoveryAim
from tornpage.faults.image import copy_image, remove_image
from tornpage.faults.plan import format_plan
from tornpage.faults.stacks import copy_stacks
from tornpage.faults.trace import Trace
from tornpage.live.crash import Crash, RunVerdict, judge_crash, judge_unfired, make_crash
from tornpage.live.golden_run import TOLD, Baseline, golden_run_key, load_baseline
from tornpage.live.hit import mask_of, tears_nothing, torn_write
from tornpage.live.kept import keep_crash, keep_found
from tornpage.live.recovered import Recovered, recover_crash
from tornpage.live.stage import Spent, Stage, spent_on
from tornpage.live.verdict import Judged, judge_trial
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.state import state_digest
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import GoldenRunError
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec
from tornpage.vocabulary.process_cache import ProcessCache

__all__ = ["run_aimed", "run_trial"]

BASELINES_MAX = 64
"""That a worker keeps: a default campaign has up to 48, of six megabytes each, and their records mapped."""
_BASELINES: ProcessCache[tuple[Path, str], Baseline] = ProcessCache(BASELINES_MAX)
"""By scratch folder and fault-free run."""


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
    plan says that, and the trial is not exercised; if it fails without a fault, that is the verdict, and the
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
        load = partial(load_baseline, spec, target, scratch)
        baseline = _BASELINES.get((scratch, golden_run_key(spec)), load)
    work = scratch / f"trial-{os.getpid()}-{spec.number}"
    remove_image(work)
    work.mkdir(parents=True)
    began = time.monotonic()
    try:
        ended = _play_on(Stage(spec, target, baseline, work), aim)
        result = ended.result()
        if result.outcome is Outcome.VIOLATION:
            result = replace(result, image=ended.keep_image(images))
        seconds = {**result.seconds, "total": time.monotonic() - began}
        return ended.spec, replace(result, seconds=seconds)
    finally:
        remove_image(work)


def _play_on(stage: Stage, aim: RecoveryAim | None) -> _Ended:
    """The steps of a trial."""
    crash = make_crash(stage)
    hit = crash.hit
    if hit is None:
        found = judge_unfired(crash, deterministic=stage.deterministic)
        reason = f"the fault did not fire: {crash.child.describe()}"
        return _Ended(stage, crash, Judged(found, reason))
    try:
        run = judge_crash(stage, crash, hit)
    except GoldenRunError as error:
        return _Ended(stage, crash, Judged((), f"the killed run cannot be judged: {error}"))
    clock = time.monotonic()
    stale = None
    if stage.spec.plan.stale_log:
        stale = stage.target.plant_stale_log(stage.data, stage.spec.seed % 2)
    copy_image(stage.data, stage.image)
    copied = time.monotonic() - clock
    recovered = recover_crash(stage, aim, stale, run.allowed)
    whole = tears_nothing(crash.trace, hit.event, stage.spec.plan.run)
    judged = judge_trial(run, recovered, hit.site, ruled=stage.ruled, whole=whole)
    if recovered.failure is not None and not judged.violations:
        raise recovered.failure
    return _Ended(stage, crash, judged, run, recovered, copied)


@dataclass(frozen=True, slots=True)
class _Ended:
    """A trial that came to an end. run, recovered: None if the run did not crash, or cannot be judged;
    copied: seconds that the copy of the image took."""

    stage: Stage
    crash: Crash
    judged: Judged
    run: RunVerdict | None = None
    recovered: Recovered | None = None
    copied: float = 0.0

    @property
    def spec(self) -> TrialSpec:
        """With the fault that was drawn."""
        spec = self.stage.spec
        return spec if self.recovered is None else replace(spec, plan=self.recovered.plan)

    def result(self) -> TrialResult:
        """But for the image."""
        crash, hit, judged, recovered = self.crash, self.crash.hit, self.judged, self.recovered
        last = recovered.last.answer if recovered is not None and recovered.last else None
        spent = self._spent()
        torn = hit is not None and judged.outcome is not Outcome.CLEAN
        return TrialResult(
            number=self.spec.number,
            outcome=judged.outcome,
            reason=judged.reason,
            violations=judged.violations,
            site=hit.site if hit is not None else None,
            mask=mask_of(self.spec.plan),
            path=hit.write.file if hit is not None and hit.write else "",
            offset=hit.event.offset if hit is not None else None,
            page_no=hit.page_no if hit is not None else None,
            counters=recovered.counters() if recovered is not None else {},
            seconds=spent.seconds,
            peak_bytes=spent.peak_bytes,
            written_bytes=spent.written_bytes,
            events=crash.trace.events_declared,
            trace_hash=self._trace_hash(),
            digest=state_digest(last.state) if last is not None and last.state is not None else "",
            torn=torn_write(crash.trace, hit) if hit is not None and torn else None,
            answer=last.message if last is not None and not last.ok else "",
        )

    def _spent(self) -> Spent:
        spent = spent_on("run", self.crash.plays) + Spent({"copy": self.copied})
        found = self.recovered
        if found is None:
            return spent
        phases = {
            "fault_free": [found.fault_free],
            "recover": [*found.disturbed, found.last],
            "verify": [found.again],
        }
        for phase, recoveries in phases.items():
            spent += spent_on(phase, (one.child for one in recoveries if one is not None))
        return spent

    def _trace_hash(self) -> str:
        crash = self.crash
        if crash.bare and crash.hit is not None:
            return self.stage.base.contents.hash(crash.trace, crash.hit.event)
        return crash.trace.hash()

    def keep_image(self, images: Path) -> Path | None:
        """The crashed image with all that led to it, below `images`; None: there is none."""
        stage, crash = self.stage, self.crash
        if not stage.image.exists():
            return None
        place = images / str(self.spec.number)
        remove_image(place)
        place.mkdir(parents=True)
        copy_image(stage.image, place / "data")
        (place / "plan.toml").write_text(format_plan(self.spec.plan), "utf-8")
        (place / "script").write_bytes(stage.base.script.read_bytes())
        for trace in sorted(stage.work.glob("*.trace")):
            (place / trace.name).write_bytes(Trace.load(trace).data)
            copy_stacks(trace, place / trace.name)
        if crash.bare and crash.hit is not None:
            whole = stage.base.contents.fill(crash.trace, crash.hit.event)
            (place / "run.trace").write_bytes(whole)
        if crash.child.stdout and isinstance(stage.base.oracle, ObservedOracle):
            (place / TOLD).write_bytes(_told(stage, crash))
        keep_found(stage.base.found, place, self.judged.violations, stage.target)
        if self.run is not None:
            keep_crash(self.run.allowed, self.run.before_first, stage.data, place)
        return place.resolve()


def _told(stage: Stage, crash: Crash) -> bytes:
    """What the killed run has printed, behind what the golden run did if that is a part of it: the states of
    statements that it did not get to tell."""
    own, golden = crash.child.stdout, stage.base.found.with_name(TOLD)
    whole = golden.read_bytes() if golden.is_file() else b""
    alike = whole.startswith(own.rpartition(b"\n")[0])
    return whole + own if alike else own
