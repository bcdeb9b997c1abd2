"""Runs a campaign: a golden run per script that is to be crashed, fault-free runs of many more, then trials
on worker processes, verdicts into the store.

The owner process draws trials, writes each one's row before handing it to a worker, and stores its verdict
when it has come back and those before it are stored. Workers share nothing but the golden runs on disk; their
number and the order in which they finish change nothing in the store. At most WINDOW trials, or fault-free
runs, per worker are under way. A fault that is drawn only when its crashed image is there comes back with the
verdict, and goes into the row before it.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from tornpage.campaigns.fault_free import (
    golden_runs_by_script,
    keep_accused,
    replay_line,
)
from tornpage.evidence.evidence import keep_evidence
from tornpage.evidence.images import KeptImages, images_of
from tornpage.faults.scratch import scratch_folder
from tornpage.live.fault_free import failed_run
from tornpage.plans.campaign import Campaign, fault_free_spec
from tornpage.plans.drawing import Draw, cells_of, draw_trial
from tornpage.plans.origin import command_line, difference, origin_under
from tornpage.powerloss.control import examine_runs, work_key, works_of
from tornpage.powerloss.runner import canary_places, check_parts, give_up, run_losses
from tornpage.reports.summary import Claims, Finding, Summary, summarise
from tornpage.store.origin import Examined, Origin
from tornpage.store.rows import GoldenRunRow, Run
from tornpage.store.store import Store
from tornpage.targets.registry import make_target
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.errors import (
    ConfigError,
    FailedRunError,
    Interrupted,
    MachineError,
    TornpageError,
)
from tornpage.vocabulary.model import GoldenRun, Outcome, TornWrite, TrialResult, TrialSpec
from tornpage.vocabulary.paths import require_floor, require_room
from tornpage.workers.canaries import play_canaries, require_hearing
from tornpage.workers.context import Executor, Pending, Progress, RunContext
from tornpage.workers.pool import (
    Job,
    Played,
    executor_of,
    failed_trial,
    machine_errors,
    play,
    play_fault_free,
    play_golden_run,
)

__all__ = [
    "begin_run",
    "can_resume",
    "go_on",
    "load_summary",
    "resumable",
    "resume_campaign",
    "run_campaign",
]

Begin = Callable[[Origin], Run]
"""Makes or finds the row of a run, once it is known that it can be run."""
WINDOW = 4
"""Trials or fault-free runs handed to the pool ahead of time, per worker."""


def run_campaign(store: Store, campaign: Campaign, target: str, context: RunContext) -> Summary:
    """Runs a campaign from its first trial. Its row is written when its fault-free runs have shown that it
    can be run."""

    def begin(origin: Origin) -> Run:
        return begin_run(store, campaign, target, replace(context, origin=origin))

    return _run(store, begin, campaign, target, context)


def begin_run(store: Store, campaign: Campaign, target: str, context: RunContext) -> Run:
    """The row of a run of this context's origin and night."""
    settings = campaign.model_dump(mode="json")
    trials = 0 if campaign.explore else campaign.trials
    return store.begin_run(
        campaign.name, target, campaign.seed, trials, settings, context.origin, context.night
    )


def resume_campaign(store: Store, name: str, target: str, context: RunContext) -> Summary:
    """Goes on with the newest interrupted run of a campaign. ConfigError if it was made by other programs."""
    return go_on(store, store.resume_run(name, target, resumable(store, context.origin)), context)


def go_on(store: Store, run: Run, context: RunContext) -> Summary:
    """Goes on with an interrupted run that the store owns, with the settings it was started with. ConfigError
    if it was made by other programs."""
    campaign = Campaign.model_validate(run.settings)
    made = make_target(run.target, context.paths.build)
    changed = difference(run.origin, origin_under(context.origin, made, campaign.options))
    if changed:
        raise ConfigError(
            f"run {run.id} was made with another {changed}: its verdicts and new ones do not go together; "
            "start a new run"
        )
    context = replace(context, examined=run.origin.examined)
    return _run(store, lambda _origin: run, campaign, run.target, context)


def resumable(store: Store, origin: Origin) -> Callable[[Origin], bool]:
    """Whose interrupted runs are gone on with: in a shared store those of this machine and programs."""
    if not store.place.shared:
        return lambda _old: True
    return lambda old: old.host == origin.host and not difference(old, origin)


def can_resume(store: Store, name: str, target: str, origin: Origin, out: Path) -> bool:
    """Whether there is an interrupted run of a campaign by the same programs. One of others is given up: it
    can never be resumed; but not in a store where they may be another machine's or branch's. ConfigError if
    its owner lives."""
    ours = resumable(store, origin)
    while store.has_unfinished(name, target, ours):
        run = store.resume_run(name, target, ours)
        if not difference(run.origin, origin):
            return True
        give_up(store, run.id, out)
    return False


def load_summary(store: Store, run: Run) -> Summary:
    """The summary of what the store holds of a run."""
    campaign = Campaign.model_validate(run.settings)
    sites = [place for hit in campaign.hit for place in hit.places()]
    return summarise(
        store.run(run.id),
        golden_runs_by_script(store, run),
        store.trials(run.id),
        store.explorations(run.id),
        Claims(campaign.claims, campaign.run_claims, sites),
        store.bugs_of(run.id),
        lambda line: command_line(line, store.place.options),
        lambda finding: replace(finding, torn=_whole_torn(store, finding)),
        partial(replay_line, store),
    )


def _whole_torn(store: Store, finding: Finding) -> TornWrite | None:
    """The torn write of a finding's trial, with its contents, which the rows of a whole run leave out."""
    if finding.torn is None:
        return None
    run, number = finding.trial.split(".")
    result = store.trial(int(run), int(number)).result
    return result.torn if result is not None else None


def _run(
    store: Store, begin: Begin, campaign: Campaign, target: str, context: RunContext
) -> Summary:
    context.out.mkdir(parents=True, exist_ok=True)
    require_room(
        context.out, "free some, or choose another --out; `tornpage prune` deletes old runs"
    )
    made = make_target(target, context.paths.build)
    context = replace(context, origin=origin_under(context.origin, made, campaign.options))
    with scratch_folder(made.on_shm) as scratch, machine_errors():
        examined = context.examined or _examine(store, campaign, target, context, scratch)
        context = replace(context, origin=replace(context.origin, examined=examined))
        if campaign.explore:
            run = _lose(store, begin, campaign, target, context, scratch)
        else:
            run = _kill(store, begin, campaign, target, context, scratch)
        keep_accused(store, run, scratch, made, context.out, context.is_late)
    if context.is_late():
        run = store.stop_run(run.id)
    summary = load_summary(store, run)
    store.set_verdict(run.id, summary.verdict)
    return summary


def _examine(
    store: Store, campaign: Campaign, target: str, context: RunContext, scratch: Path
) -> Examined | None:
    """Audit and control of a target file, once in a night. GoldenRunError if one of its runs changes what its
    recording does not show."""
    made = make_target(target, context.paths.build)
    if Capability.OBSERVED not in made.capabilities:
        return None
    works = works_of(campaign, target)
    of_night = [
        run for run in store.runs() if context.night is not None and run.night == context.night
    ]
    known = [run.origin.examined for run in of_night if run.origin.examined is not None]
    key = work_key(made, works)
    return next((one for one in known if one.work == key), None) or examine_runs(
        made, works, scratch, context
    )


def _job(campaign: Campaign, target: str, context: RunContext, scratch: Path) -> Job:
    """What all workers are told; each gets a trial of its own in it."""
    spec = fault_free_spec(campaign, target, campaign.configs()[0])
    return Job(spec, context.paths, scratch, context.out)


def _kill(
    store: Store,
    begin: Begin,
    campaign: Campaign,
    target: str,
    context: RunContext,
    scratch: Path,
) -> Run:
    with executor_of(context) as executor:
        job = _job(campaign, target, context, scratch)
        rows, golden_runs = _take_golden_runs(campaign, target, job, executor, context.progress)
        _try_judge(campaign, target, job, executor, golden_runs)
        cells = cells_of(campaign, golden_runs) if golden_runs else []
        run = begin(context.origin)
        with _ended(store, run, context.out):
            for row in rows:
                store.put_golden_run(run.id, row)
            _run_fault_free(store, run, campaign, job, executor, context)
            done = store.finished_numbers(run.id)
            # No cell: the target fails every script without a fault, or its runs write nothing; there is
            # nothing to disturb.
            numbers = [number for number in range(run.trials) if cells and number not in done]
            draws = (draw_trial(campaign, run.target, cells, number) for number in numbers)
            context.progress.phase("trials", len(numbers))
            job = replace(job, images=images_of(context.out, run.id))
            _run_trials(store, run, draws, job, executor, context)
    return store.finish_run(run.id, None if cells else 0)


def _lose(
    store: Store,
    begin: Begin,
    campaign: Campaign,
    target: str,
    context: RunContext,
    scratch: Path,
) -> Run:
    check_parts(campaign, target, context.paths, scratch)
    run = begin(context.origin)
    with _ended(store, run, context.out), executor_of(context) as executor:
        job = _job(campaign, target, context, scratch)
        _run_fault_free(store, run, campaign, job, executor, context)
        explored = run_losses(store, run, campaign, context, executor, scratch)
    return store.finish_run(run.id, explorations=explored)


def _run_fault_free(
    store: Store,
    run: Run,
    campaign: Campaign,
    job: Job,
    executor: Executor,
    context: RunContext,
) -> None:
    """Runs and judges the scripts that nothing happens to, but for those that the store has, until the time
    is up."""
    done = {row.config for row in store.golden_runs(run.id)}
    scripts = [script for script in campaign.only_fault_free() if script.label not in done]
    context.progress.phase("fault-free runs", len(scripts))
    pending: deque[Pending[GoldenRunRow]] = deque()

    def collect(left: int) -> None:
        while len(pending) > left:
            row = pending.popleft().result()
            store.put_golden_run(run.id, row)
            context.progress.advance(bool(row.violations))

    for script in scripts:
        if context.is_late():
            break
        collect(executor.size * WINDOW - 1)
        spec = fault_free_spec(campaign, run.target, script)
        pending.append(executor.submit(play_fault_free, replace(job, spec=spec)))
    collect(0)


@contextmanager
def _ended(store: Store, run: Run, out: Path) -> Iterator[None]:
    """A run that ends by an error has failed, unless it is the machine's, which --resume may find better.
    One that is interrupted goes on."""
    try:
        with machine_errors():
            yield
    except (MachineError, Interrupted) as stop:
        stop.kept = True
        raise
    except Exception:
        give_up(store, run.id, out)
        raise


def _take_golden_runs(
    campaign: Campaign, target: str, job: Job, executor: Executor, progress: Progress
) -> tuple[list[GoldenRunRow], dict[str, GoldenRun]]:
    """The rows of all scripts that are to be crashed, and the golden runs of those that can be."""
    scripts = campaign.scripted()
    progress.phase("golden runs", len(scripts))
    specs = [fault_free_spec(campaign, target, script) for script in scripts]
    futures = [executor.submit(play_golden_run, replace(job, spec=spec)) for spec in specs]
    rows, golden_runs = [], {}
    for script, future in zip(scripts, futures, strict=True):
        try:
            golden_run = future.result()
        except FailedRunError as error:
            rows.append(failed_run(script.label, True, error))
            progress.advance(True)
            continue
        golden_runs[script.label] = golden_run
        rows.append(_row_of(script.label, golden_run))
        progress.advance(bool(golden_run.violations))
    return rows, golden_runs


def _try_judge(
    campaign: Campaign,
    target: str,
    job: Job,
    executor: Executor,
    golden_runs: Mapping[str, GoldenRun],
) -> None:
    """Once for each configuration, by the first of its scripts that the target does not fail. DeafError."""
    scripts = [script for script in campaign.scripted() if script.label in golden_runs]
    tried = [scripts[place] for place in sorted(canary_places(scripts))]
    jobs = [replace(job, spec=fault_free_spec(campaign, target, script)) for script in tried]
    for answer in [executor.submit(play_canaries, one) for one in jobs]:
        require_hearing(answer.result())


def _row_of(label: str, golden_run: GoldenRun) -> GoldenRunRow:
    return GoldenRunRow(
        config=label,
        crashed=True,
        hash=golden_run.trace_hash,
        events=golden_run.events,
        writes=len(golden_run.writes),
        violations=golden_run.violations,
        counters=golden_run.counters,
    )


def _with_evidence(
    spec: TrialSpec, result: TrialResult, target: Target, scratch: Path
) -> TrialResult:
    """Keeps it. Where it cannot be made the finding stands, and says so."""
    try:
        keep_evidence(spec, result, target, scratch)
    except MachineError:
        raise
    except TornpageError as error:
        return replace(result, reason=f"{result.reason} (no evidence: {error})")
    return result


def _run_trials(
    store: Store,
    run: Run,
    draws: Iterator[Draw],
    job: Job,
    executor: Executor,
    context: RunContext,
) -> None:
    pending: deque[tuple[Draw, Pending[Played]]] = deque()
    kept = KeptImages.of(store, run)
    target = make_target(run.target, context.paths.build)
    clock = time.monotonic()

    def collect() -> None:
        """Stores the verdict of the first one; it is not lost if it is interrupted while it waits."""
        nonlocal clock
        draw, first = pending[0]
        spec, result = first.result()
        pending.popleft()
        result = kept.only_new(draw.cell.place, result)
        result = _with_evidence(spec, result, target, job.scratch)
        if spec != draw.spec:
            store.start_trial(run.id, spec, draw.cell.place, draw.cell.mask)
        now = time.monotonic()
        store.finish_trial(run.id, result, now - clock)
        clock = now
        broken = result.outcome is Outcome.VIOLATION
        context.progress.advance(broken)
        if broken or result.outcome is Outcome.CLEAN:
            context.progress.crashed(draw.cell.place, broken)

    try:
        for draw in draws:
            if context.is_late():
                break
            while pending and (pending[0][1].done() or len(pending) >= executor.size * WINDOW):
                collect()
            store.start_trial(run.id, draw.spec, draw.cell.place, draw.cell.mask)
            require_floor(context.out)
            task = replace(job, spec=draw.spec, aim=draw.aim)
            pending.append((draw, executor.submit(play, task, partial(failed_trial, draw.spec))))
        while pending:
            collect()
    except BaseException:
        # None is cancelled: the pool, whose workers are killed next, could not bear that.
        with contextlib.suppress(TornpageError, OSError):
            while pending and pending[0][1].done():
                collect()
        raise
