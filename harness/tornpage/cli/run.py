"""`tornpage run`: a campaign from its first trial, or on from where it was interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Annotated

import typer

from tornpage.campaigns.fitting import changed, open_campaign
from tornpage.campaigns.prune import prune_runs
from tornpage.campaigns.publish import bug_stacks, write_report
from tornpage.campaigns.runner import (
    can_resume,
    resume_campaign,
    run_campaign,
)
from tornpage.cli.console import tell_run
from tornpage.cli.needs import with_needs
from tornpage.cli.options import (
    DEFAULT_JOBS,
    AnnotateOption,
    FailOn,
    FailOnOption,
    FetchOption,
    FsOption,
    JobsOption,
    JsonOption,
    JunitOption,
    KeepOption,
    OutOption,
    StoreOption,
    TargetOptions,
    UnderOption,
    options_of,
    with_limits,
)
from tornpage.cli.progress import make_progress
from tornpage.cli.publish import publish
from tornpage.cli.terminal import make_console
from tornpage.lab.neighbour import fio_beside
from tornpage.plans.limits import UNLIMITED, Limits
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths
from tornpage.workers.cluster import Cluster, open_cluster
from tornpage.workers.context import RunContext

__all__ = ["EPILOG", "run"]

EPILOG = (
    "Examples: [bold]tornpage run smoke[/] · tornpage run smoke --seed 7 --trials 5000 · "
    "tornpage run powerloss --depth 2 --budget 60s · "
    "tornpage run smoke --option doublewrite=off · tornpage run smoke --resume · "
    "tornpage run smoke --junit out/smoke.xml · tornpage run smoke --cluster dask://10.0.0.5:8786"
)


@with_limits()
def run(
    campaign: Annotated[str, typer.Argument(help="A campaign of workloads/, or a .toml file.")],
    target: Annotated[
        str | None,
        typer.Option(
            help="What to torture: a name, or a target file; left out: the campaign's, or the engine."
        ),
    ] = None,
    limits: Limits = UNLIMITED,
    fs: FsOption = None,
    under: UnderOption = None,
    options: TargetOptions = None,
    fetch: FetchOption = False,
    stacks: Annotated[
        bool | None,
        typer.Option(
            "--stacks/--no-stacks",
            help="Record the call stack of each operation; default: as in the campaign, else not.",
        ),
    ] = None,
    fail_on: FailOnOption = FailOn.ANY,
    jobs: JobsOption = DEFAULT_JOBS,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="In place of worker processes: the workers of dask://HOST:PORT, or local:N.",
        ),
    ] = None,
    contention: Annotated[
        bool,
        typer.Option(
            "--contention", help="fio writes and syncs beside it, on the same file systems."
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    go_on: Annotated[
        bool,
        typer.Option("--go-on", help="Like --resume, but start a new run if none can be resumed."),
    ] = False,
    keep: KeepOption = None,
    junit: JunitOption = None,
    annotate: AnnotateOption = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Runs a campaign: golden run, kills, recoveries, verdicts, report."""
    paths = find_paths()
    opened = with_needs(fetch, lambda: open_campaign(campaign, target, paths))
    loaded, name = opened.campaign, opened.name
    origin = opened.origin()
    chosen_options = options_of(options, fs, under)
    (chosen,) = with_needs(fetch, lambda: changed([opened], limits, chosen_options, paths))
    if stacks is not None:
        chosen = replace(chosen, campaign=chosen.campaign.changed({"stacks": stacks}))
    progress = make_progress(json_output)
    with (
        _cluster(cluster, name, json_output) as executor,
        Store(place_in(out, store_place), create=not resume) as store,
        fio_beside(paths.workloads / "fio", [out]) if contention else nullcontext(),
        progress,
    ):
        context = RunContext(paths, jobs, out, progress, origin, cluster=executor)
        if resume or (go_on and can_resume(store, loaded.name, name, origin, out)):
            if limits.given() or chosen_options or stacks is not None:
                raise ConfigError(
                    "--resume takes seed, trials, limits, options and stacks from the interrupted run"
                )
            summary = resume_campaign(store, loaded.name, name, context)
        else:
            summary = run_campaign(store, chosen.campaign, name, context)
        report = write_report(store, summary, paths, out)
        frames = bug_stacks(store, [summary], out) if junit else {}
        if keep is not None:
            prune_runs(store, paths, out, keep)
    verdict = tell_run(summary, store.name, report, json_output, fail_on is FailOn.NEW)
    publish([summary], junit, annotate, fail_on, frames)
    return verdict.exit_code


@contextmanager
def _cluster(address: str | None, target: str, quiet: bool) -> Iterator[Cluster | None]:
    """Tells which workers there are, and where to watch them."""
    if address is None:
        yield None
        return
    with open_cluster(address, target) as cluster:
        console = make_console(stderr=True, quiet=quiet)
        names = ", ".join(cluster.workers)
        console.print(f"cluster: {cluster.size} workers: {names}", highlight=False, soft_wrap=True)
        console.print(f"dashboard: {cluster.dashboard}", highlight=False, soft_wrap=True)
        yield cluster
