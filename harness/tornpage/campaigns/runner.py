"""Runs a campaign: a census per configuration, then trials on worker processes, verdicts into the store.

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
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from tornpage.campaigns.campaign import Campaign, Draw, cells_of, draw_trial, undisturbed_spec
from tornpage.campaigns.lossrunner import loss_parts, replay_loss, run_losses
from tornpage.campaigns.trial import run_aimed, take_census
from tornpage.faults.aim import RecoveryAim
from tornpage.faults.process import ENDING
from tornpage.faults.scratch import scratch_folder
from tornpage.reports.report import render_report
from tornpage.reports.summary import Summary, summarise
from tornpage.store.store import Run, Store, TrialRow
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import ChildError, TornpageError
from tornpage.vocabulary.model import Census, Outcome, TrialResult, TrialSpec
from tornpage.vocabulary.paths import Paths

__all__ = [
    "Progress",
    "QuietProgress",
    "load_summary",
    "replay_trial",
    "resume_campaign",
    "run_campaign",
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
        store.census_hashes(run.id),
        store.trials(run.id),
        store.explorations(run.id),
        campaign.claims,
        sites,
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
        if campaign.crash_model != "power_loss":
            _kill(store, run, campaign, _Owner(paths, jobs, scratch, out), progress)
        else:
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


def _kill(store: Store, run: Run, campaign: Campaign, owner: _Owner, progress: Progress) -> None:
    with worker_pool(owner.jobs) as pool:
        first = undisturbed_spec(campaign, run.target, campaign.configs()[0])
        job = _Job(first, owner.paths, owner.scratch, owner.out / "images" / str(run.id))
        censuses = _take_censuses(store, run, campaign, job, pool, progress)
        cells = cells_of(campaign, censuses)
        done = store.finished_numbers(run.id)
        numbers = [number for number in range(run.trials) if number not in done]
        draws = (
            draw_trial(campaign, run.target, campaign.seed, cells, number) for number in numbers
        )
        progress.phase("trials", len(numbers))
        _run_trials(store, run, draws, job, pool, owner.jobs, progress)


@contextmanager
def worker_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes that die with their owner, and at once when what it does with them ends by an
    exception. Raises ChildError when somebody else has killed one."""
    # Spawned rather than forked: the owner has threads (progress, pool), which a fork would halve.
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_die_with_owner,
        initargs=(os.getpid(),),
    )
    try:
        yield pool
    except BaseException as error:
        for worker in multiprocessing.active_children():
            worker.kill()
        if isinstance(error, BrokenProcessPool):
            raise ChildError("a worker process died; --resume goes on") from error
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _take_censuses(
    store: Store,
    run: Run,
    campaign: Campaign,
    job: _Job,
    pool: ProcessPoolExecutor,
    progress: Progress,
) -> dict[str, Census]:
    configs = campaign.configs()
    progress.phase("census", len(configs))
    futures = {
        config.label: pool.submit(
            _take_census,
            _Job(
                undisturbed_spec(campaign, run.target, config), job.paths, job.scratch, job.images
            ),
        )
        for config in configs
    }
    censuses = {}
    for label, future in futures.items():
        census = future.result()
        censuses[label] = census
        store.put_census(
            run.id, label, census.trace_hash, census.events, len(census.writes), census.violations
        )
        progress.advance(bool(census.violations))
    return censuses


def _run_trials(
    store: Store,
    run: Run,
    draws: Iterator[Draw],
    job: _Job,
    pool: ProcessPoolExecutor,
    jobs: int,
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
            if len(pending) >= jobs * WINDOW:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                collect(finished)
            store.start_trial(run.id, draw.spec, draw.cell.place, draw.cell.mask)
            drawn[draw.spec.number] = draw
            pending.add(
                pool.submit(
                    _run_trial, _Job(draw.spec, job.paths, job.scratch, job.images, draw.aim)
                )
            )
        while pending:
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            collect(finished)
    except BaseException:
        for future in pending:
            future.cancel()
        collect([f for f in pending if f.done() and not f.cancelled() and not f.exception()])
        raise


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


def _die_with_owner(owner: int) -> None:
    """On a worker: SIGKILL it when the owner dies, so that a killed harness leaves no process behind. An
    owner that died before this worker got here is no longer its parent."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL))
    if os.getppid() != owner:
        os._exit(1)
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
