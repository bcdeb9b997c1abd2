"""Runs a campaign: undisturbed runs of many scripts, a census per script that is to be crashed, then
trials on worker processes, verdicts into the store.

The owner process draws trials, writes each one's row before handing it to a worker, and stores its verdict
when it comes back. Workers share nothing but the censuses on disk; their number and the order in which
they finish change no verdict. At most WINDOW trials per worker are under way. A fault that is drawn only
when its crashed image is there comes back with the verdict, and goes into the row before it.

May import: aim, campaign, census, errors, lossrunner, model, paths, registry, report, store, summary, trial.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from tornpage.campaigns.campaign import Campaign, Draw, cells_of, draw_trial, undisturbed_spec
from tornpage.campaigns.census import failed_run, run_undisturbed
from tornpage.campaigns.lossrunner import loss_parts, replay_loss, run_losses
from tornpage.campaigns.trial import run_aimed, take_census
from tornpage.faults.aim import RecoveryAim
from tornpage.reports.report import render_report
from tornpage.reports.summary import Claims, Summary, summarise
from tornpage.store.store import CensusRow, Run, Store, TrialRow
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import FailedRunError, TornpageError
from tornpage.vocabulary.model import Census, Outcome, TrialResult, TrialSpec
from tornpage.vocabulary.paths import Paths, tmpfs_folder

__all__ = [
    "Progress",
    "QuietProgress",
    "load_summary",
    "replay_trial",
    "resume_campaign",
    "run_campaign",
    "scratch_folder",
    "worker_pool",
    "write_report",
]

_Played = tuple[TrialSpec, TrialResult]

WINDOW = 4
"""Trials handed to the pool ahead of time, per worker."""


class Progress(Protocol):
    """What the owner tells whoever watches."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def phase(self, text: str, total: int) -> None:
        """A new phase of `total` steps starts."""

    def advance(self, broken: bool) -> None:
        """One step is done; broken: it broke an invariant."""


class QuietProgress:
    """Tells nobody."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def phase(self, text: str, total: int) -> None:
        """Nothing to tell."""

    def advance(self, broken: bool) -> None:
        """Nothing to tell."""


def run_campaign(
    store: Store,
    campaign: Campaign,
    target: str,
    paths: Paths,
    jobs: int,
    out: Path,
    progress: Progress,
) -> Summary:
    """Runs a campaign from its first trial. jobs: worker processes; out: where crashed images are kept."""
    run = store.begin_run(
        campaign.name, target, campaign.seed, campaign.trials, campaign.model_dump(mode="json")
    )
    return _go_on(store, run, campaign, paths, jobs, out, progress)


def resume_campaign(
    store: Store, name: str, target: str, paths: Paths, jobs: int, out: Path, progress: Progress
) -> Summary:
    """Goes on with the newest interrupted run of a campaign, with the settings it was started with."""
    run = store.unfinished_run(name, target)
    campaign = Campaign.model_validate(run.settings)
    return _go_on(store, run, campaign, paths, jobs, out, progress)


def load_summary(store: Store, run: Run) -> Summary:
    """The summary of what the store holds of a run."""
    campaign = Campaign.model_validate(run.settings)
    sites = [place for hit in campaign.hit for place in hit.places()]
    return summarise(
        store.run(run.id),
        store.censuses(run.id),
        store.trials(run.id),
        store.explorations(run.id),
        Claims(campaign.claims, campaign.run_claims, sites),
    )


def write_report(summary: Summary, paths: Paths, out: Path) -> Path:
    """Writes out/report-RUN.html and returns its path."""
    path = out / f"report-{summary.run.id}.html"
    path.write_text(render_report(summary, paths.templates), encoding="utf-8")
    return path.resolve()


def replay_trial(row: TrialRow, paths: Paths, out: Path) -> tuple[TrialResult, bool]:
    """Runs one trial again, with a census of its own. The second value: same outcome, invariants and
    digest as the stored verdict (True if there is none)."""
    with scratch_folder() as scratch:
        job = _Job(row.spec, paths, scratch, out / "replay")
        if row.spec.plan.loss:
            target = make_target(row.spec.target, paths.build)
            result = replay_loss(row.spec, target, scratch, job.images)
        else:
            _take_census(job)
            _, result = _run_trial(job)
    return result, row.result is None or _verdict(result) == _verdict(row.result)


@dataclass(frozen=True, slots=True)
class _Job:
    """What a worker needs for a census or a trial. images: where a crashed image is kept; aim: the fault
    that is yet to be drawn."""

    spec: TrialSpec
    paths: Paths
    scratch: Path
    images: Path
    aim: RecoveryAim | None = None


def _go_on(
    store: Store,
    run: Run,
    campaign: Campaign,
    paths: Paths,
    jobs: int,
    out: Path,
    progress: Progress,
) -> Summary:
    with scratch_folder() as scratch:
        owner = _Owner(paths, jobs, scratch, out)
        with worker_pool(jobs) as pool:
            _run_undisturbed(store, run, campaign, owner, pool, progress)
            if campaign.crash_model != "power_loss":
                _kill(store, run, campaign, owner, pool, progress)
        if campaign.crash_model == "power_loss":
            progress.phase("runs explored", len(loss_parts(campaign)))
            run_losses(store, run, campaign, paths, jobs, scratch, out, progress.advance)
    store.finish_run(run.id)
    return load_summary(store, run)


@dataclass(frozen=True, slots=True)
class _Owner:
    """What the owner process works with."""

    paths: Paths
    jobs: int
    scratch: Path
    out: Path

    def job(self, spec: TrialSpec, run: int, aim: RecoveryAim | None = None) -> _Job:
        """What a worker is told."""
        return _Job(spec, self.paths, self.scratch, self.out / "images" / str(run), aim)


def _run_undisturbed(
    store: Store,
    run: Run,
    campaign: Campaign,
    owner: _Owner,
    pool: ProcessPoolExecutor,
    progress: Progress,
) -> None:
    """Runs and judges the scripts that nothing happens to, but for those that the store has."""
    done = {row.config for row in store.censuses(run.id)}
    scripts = [script for script in campaign.only_undisturbed() if script.label not in done]
    progress.phase("undisturbed", len(scripts))
    specs = (undisturbed_spec(campaign, run.target, script) for script in scripts)
    for future in [pool.submit(_judge_undisturbed, owner.job(spec, run.id)) for spec in specs]:
        row = future.result()
        store.put_census(run.id, row)
        progress.advance(bool(row.violations))


def _kill(
    store: Store,
    run: Run,
    campaign: Campaign,
    owner: _Owner,
    pool: ProcessPoolExecutor,
    progress: Progress,
) -> None:
    censuses = _take_censuses(store, run, campaign, owner, pool, progress)
    if not censuses:
        return  # nothing that could be disturbed
    cells = cells_of(campaign, censuses)
    done = store.finished_numbers(run.id)
    numbers = [number for number in range(run.trials) if number not in done]
    draws = (draw_trial(campaign, run.target, cells, number) for number in numbers)
    progress.phase("trials", len(numbers))
    _run_trials(store, run, draws, owner, pool, progress)


def worker_pool(jobs: int) -> ProcessPoolExecutor:
    """Worker processes that die with their owner."""
    # Spawned rather than forked: the owner has threads (progress, pool), which a fork would halve.
    return ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_die_with_owner
    )


def _take_censuses(
    store: Store,
    run: Run,
    campaign: Campaign,
    owner: _Owner,
    pool: ProcessPoolExecutor,
    progress: Progress,
) -> dict[str, Census]:
    scripts = campaign.scripted()
    progress.phase("census", len(scripts))
    specs = [undisturbed_spec(campaign, run.target, script) for script in scripts]
    futures = [pool.submit(_take_census, owner.job(spec, run.id)) for spec in specs]
    censuses = {}
    for script, future in zip(scripts, futures, strict=True):
        try:
            census = future.result()
        except FailedRunError as error:
            store.put_census(run.id, failed_run(script.label, True, error))
            progress.advance(True)
            continue
        censuses[script.label] = census
        row = CensusRow(
            config=script.label,
            crashed=True,
            hash=census.trace_hash,
            events=census.events,
            writes=len(census.writes),
            violations=census.violations,
            counters=census.counters,
        )
        store.put_census(run.id, row)
        progress.advance(bool(census.violations))
    return censuses


def _run_trials(
    store: Store,
    run: Run,
    draws: Iterator[Draw],
    owner: _Owner,
    pool: ProcessPoolExecutor,
    progress: Progress,
) -> None:
    pending: set[Future[_Played]] = set()
    drawn: dict[int, Draw] = {}
    clock = time.monotonic()

    def collect(finished: Sequence[Future[_Played]] | set[Future[_Played]]) -> None:
        nonlocal clock
        for future in finished:
            spec, result = future.result()
            draw = drawn.pop(spec.number)
            if spec != draw.spec:
                store.start_trial(run.id, spec, draw.cell.place, draw.cell.mask)
            store.finish_trial(run.id, result)
            progress.advance(result.outcome is Outcome.VIOLATION)
        now = time.monotonic()
        store.add_seconds(run.id, now - clock)
        clock = now

    try:
        for draw in draws:
            if len(pending) >= owner.jobs * WINDOW:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                collect(finished)
            store.start_trial(run.id, draw.spec, draw.cell.place, draw.cell.mask)
            drawn[draw.spec.number] = draw
            pending.add(pool.submit(_run_trial, owner.job(draw.spec, run.id, draw.aim)))
        while pending:
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            collect(finished)
    except BaseException:
        for future in pending:
            future.cancel()
        collect([f for f in pending if f.done() and not f.cancelled() and not f.exception()])
        raise


def _judge_undisturbed(job: _Job) -> CensusRow:
    """On a worker: a run without a fault and its verdict; nothing of it stays."""
    target = make_target(job.spec.target, job.paths.build)
    work = job.scratch / f"undisturbed-{os.getpid()}"
    try:
        run = run_undisturbed(job.spec, target, work)
    except FailedRunError as error:
        return failed_run(job.spec.config, False, error)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return CensusRow(
        config=job.spec.config,
        crashed=False,
        hash=run.trace.hash(),
        events=run.trace.events_declared,
        writes=0,
        violations=run.violations,
        counters=run.answer.status,
    )


def _take_census(job: _Job) -> Census:
    """On a worker: the undisturbed run of a configuration; its stream stays in scratch for trials."""
    target = make_target(job.spec.target, job.paths.build)
    return take_census(job.spec, target, job.scratch)


def _run_trial(job: _Job) -> _Played:
    """On a worker: one trial, and its plan in full. A failure of the harness is a result too, so that the
    rest goes on."""
    try:
        target = make_target(job.spec.target, job.paths.build)
        return run_aimed(job.spec, job.aim, target, job.scratch, job.images)
    except TornpageError as error:
        return job.spec, TrialResult(job.spec.number, Outcome.HARNESS_ERROR, reason=str(error))


def _verdict(result: TrialResult) -> tuple[Any, ...]:
    broken = sorted({violation.invariant for violation in result.violations})
    return (result.outcome, broken, result.digest, result.trace_hash)


def _die_with_owner() -> None:
    """On a worker: SIGKILL it when the owner dies, so that a killed harness leaves no process behind."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL))


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder on tmpfs for crash images, removed at the end whatever happens. Folders of owners that
    were killed before they could do that are removed now."""
    parent = tmpfs_folder()
    for stale in parent.glob("tornpage-*-*"):
        owner = stale.name.split("-")[1]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"tornpage-{os.getpid()}-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
