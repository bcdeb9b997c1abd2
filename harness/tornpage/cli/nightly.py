"""`tornpage nightly`: past findings again, then campaigns with new seeds until the time is up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from tornpage.campaigns.night import NightPlan, Team, names_of_campaigns, open_night, run_night
from tornpage.campaigns.prune import prune_runs
from tornpage.campaigns.publish import bug_stacks
from tornpage.campaigns.runner import load_summary
from tornpage.cli.console import print_night, print_verdict
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
    options_of,
    seconds_of,
    with_limits,
)
from tornpage.cli.progress import make_progress
from tornpage.cli.publish import publish
from tornpage.cli.terminal import make_console, print_object, told
from tornpage.plans.limits import BOUNDS, UNLIMITED, Limits
from tornpage.reports.verdict import looked_at, verdict_of_night
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.targets.registry import DEFAULT_TARGET, full_name, target_name
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "nightly"]

EPILOG = (
    "Examples: [bold]tornpage nightly --for 8h --fail-on new[/] · "
    "tornpage nightly smoke powerloss --for 30m · tornpage nightly --seed 20261121 · "
    "tornpage nightly --resume"
)


@with_limits()
def nightly(
    campaigns: Annotated[
        list[str] | None,
        typer.Argument(help="Campaigns of workloads/, or .toml files; the default ones."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="What to torture: a name, or a target file; left out: each campaign's, or the engine."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=BOUNDS["seed"].high,
            help="The night's seed; default: the date in UTC, such as 20261121.",
        ),
    ] = None,
    time: Annotated[
        str, typer.Option("--for", metavar="TIME", help="Such as 90s, 30m, 8h; default: one round.")
    ] = "",
    limits: Limits = UNLIMITED,
    fs: FsOption = None,
    options: TargetOptions = None,
    fetch: FetchOption = False,
    fail_on: FailOnOption = FailOn.ANY,
    jobs: JobsOption = DEFAULT_JOBS,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted night, with its plan.")
    ] = False,
    go_on: Annotated[
        bool,
        typer.Option(
            "--go-on", help="Like --resume, but start a new night if none can be resumed."
        ),
    ] = False,
    keep: KeepOption = None,
    junit: JunitOption = None,
    annotate: AnnotateOption = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Replays past findings, then runs campaigns in turn with new seeds until the time is up, and says which
    bugs are new, still present, or gone."""
    paths = find_paths()
    names = campaigns or names_of_campaigns(paths, target or DEFAULT_TARGET)
    plan = NightPlan(
        seed=int(datetime.now(UTC).strftime("%Y%m%d")) if seed is None else seed,
        target=target_name(target) if target else "",
        campaigns=tuple(full_name(name) for name in names),
        options=tuple(options_of(options, fs).items()),
        seconds=seconds_of("--for", time, bare=False) if time else 0.0,
        limits=limits,
    )
    named = {"seed": seed is not None, "target": target, "campaigns": campaigns, "seconds": time}
    said = {name for name, value in named.items() if value} | (
        {"options"} if plan.options else set()
    )
    console = make_console(stderr=True, quiet=json_output)
    progress = make_progress(json_output)
    team = Team(paths, jobs, out, progress, lambda line: console.print(told(line), highlight=False))
    with Store(place_in(out, store_place), create=not resume) as store:
        with progress:
            night = with_needs(
                fetch,
                lambda: open_night(
                    store, plan, paths, out, resume=resume or go_on, anew=not resume, said=said
                ),
            )
            summary = run_night(store, night, team)
        runs = [load_summary(store, store.run(facts.id)) for facts in summary.runs]
        frames = bug_stacks(store, runs, out) if junit else {}
        if keep is not None:
            prune_runs(store, paths, out, keep)
    verdict = verdict_of_night(summary, only_news=fail_on is FailOn.NEW)
    if json_output:
        about = {"looked_at": [looked_at(one).to_json() for one in runs]}
        print_object(
            {**summary.to_json(store.name), **about, **verdict.to_json()}, verdict.exit_code
        )
    else:
        print_night(make_console(), summary)
    publish(runs, junit, annotate, fail_on, frames)
    print_verdict(verdict, json_output)
    return verdict.exit_code
