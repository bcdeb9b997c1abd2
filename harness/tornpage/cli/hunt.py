"""`tornpage hunt`: scripts of campaigns and mutations of them, those first that show what is new."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Any

import typer

from tornpage.campaigns.fitting import Opened, changed, open_campaign
from tornpage.campaigns.publish import write_report
from tornpage.campaigns.runner import load_summary
from tornpage.cli.console import bug_lines, print_verdict
from tornpage.cli.needs import with_needs
from tornpage.cli.options import (
    DEFAULT_JOBS,
    FetchOption,
    FsOption,
    JobsOption,
    JsonOption,
    OutOption,
    StoreOption,
    TargetOptions,
    options_of,
    seconds_of,
)
from tornpage.cli.progress import goes_on, make_progress
from tornpage.cli.terminal import make_console, print_object
from tornpage.hunting.hunt import Hunt, Hunted, hunt
from tornpage.plans.campaign import default_campaigns
from tornpage.plans.limits import BOUNDS, UNLIMITED
from tornpage.reports.summary import Summary
from tornpage.reports.verdict import Verdict, Word, verdict_of_runs
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.targets.registry import DEFAULT_TARGET
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import DEFAULT_OUT, Paths, find_paths
from tornpage.workers.context import RunContext

__all__ = ["EPILOG", "hunt_scripts"]

LOOKS = 400
"""Unless --looks or --for say how many."""

EPILOG = (
    "Examples: [bold]tornpage hunt --for 10m[/] · tornpage hunt mix storm --looks 2000 --seed 7 · "
    "tornpage hunt powerloss --target sqlite --for 5m --json"
)


def hunt_scripts(
    campaigns: Annotated[
        list[str] | None,
        typer.Argument(help="Campaigns of power loss, whose scripts come first; the default ones."),
    ] = None,
    target: Annotated[
        str, typer.Option(help="What to torture: a name, or a target file.")
    ] = DEFAULT_TARGET,
    seed: Annotated[
        int, typer.Option(min=0, max=BOUNDS["seed"].high, help="Derives everything.")
    ] = 1,
    looks: Annotated[
        int | None,
        typer.Option(min=1, help=f"Scripts to look at; left out: {LOOKS}, or those of --for."),
    ] = None,
    duration: Annotated[str, typer.Option("--for", metavar="TIME", help="As 90s, 30m, 8h.")] = "",
    fs: FsOption = None,
    options: TargetOptions = None,
    fetch: FetchOption = False,
    jobs: JobsOption = DEFAULT_JOBS,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Looks at a few crash states of each of many scripts: those of campaigns, and mutations of those that
    have shown something new. What breaks is kept as a run, for show, replay and shrink. The same command goes
    on after an interruption, and with a larger --looks."""
    paths = find_paths()
    seconds = seconds_of("--for", duration, bare=False) if duration else 0.0
    opened = with_needs(
        fetch, lambda: _opened(campaigns, target, seed, options_of(options, fs), paths)
    )
    asked = Hunt(seed, tuple(opened), looks or (0 if seconds else LOOKS))
    progress = make_progress(json_output)
    with Store(place_in(out, store_place)) as store:
        context = RunContext(paths, jobs, out, progress, opened[0].origin())
        if seconds:
            context = replace(context, stop_at=time.monotonic() + seconds)
        with progress, goes_on():
            came_to = hunt(store, asked, context)
        found = [load_summary(store, store.run(run)) for run in came_to.runs]
        reports = [write_report(store, summary, paths, out) for summary in found]
    verdict = _verdict(came_to, found, opened[0])
    if json_output:
        runs = [one.to_json(store.name, report) for one, report in zip(found, reports, strict=True)]
        data = {**_to_json(came_to), "seed": seed, "target": opened[0].name, "runs": runs}
        print_object({**data, **verdict.to_json()}, verdict.exit_code)
    else:
        console = make_console()
        for bug in (seen for summary in found for seen in summary.bugs):
            console.print(bug_lines(bug, "states"), highlight=False, soft_wrap=True)
    print_verdict(verdict, json_output)
    return verdict.exit_code


def _opened(
    names: list[str] | None, target: str, seed: int, options: dict[str, str], paths: Paths
) -> list[Opened]:
    """The campaigns, with this seed. ConfigError: one of them is not of power loss, or has no scripts that
    could be mutated."""
    if names is None:
        names = [one.name for one in default_campaigns(paths.workloads) if one.explore]
        names = names if target == DEFAULT_TARGET else ["powerloss"]
    opened = [open_campaign(name, target, paths) for name in names]
    for one in opened:
        if one.campaign.explore is None:
            raise ConfigError(f"{one.campaign.name}: a hunt is for campaigns of power loss")
        if one.campaign.workload == "own":
            raise ConfigError(f"{one.name} makes its work itself: there are no scripts to mutate")
    seeded = changed(opened, replace(UNLIMITED, seed=seed), options, paths)
    return list(seeded)


def _verdict(came_to: Hunted, found: list[Summary], opened: Opened) -> Verdict:
    """The worst of the runs that were kept; clean is said of all scripts."""
    if not found:
        return Verdict(Word.NOTHING, 3, "no script was looked at")
    kept = verdict_of_runs(found)
    if kept.exit_code == 1:
        return kept
    if came_to.lost:
        text = f"finds that did not repeat: {len(came_to.lost)}, the first in run {came_to.lost[0]}"
        return Verdict(Word.NONE, 2, text)
    if kept.exit_code:
        return kept
    text = f"{opened.name}, {came_to.looks:,} scripts, {came_to.states:,} states"
    text += f", {came_to.refused:,} scripts refused" if came_to.refused else ""
    return replace(kept, text=f"{text}; of the first script: {kept.text}")


def _to_json(came_to: Hunted) -> dict[str, Any]:
    return {
        "looks": came_to.looks,
        "by_source": dict(sorted(came_to.by_source.items())),
        "states": came_to.states,
        "marks": came_to.marks,
        "refused": came_to.refused,
        "lost": came_to.lost,
    }
