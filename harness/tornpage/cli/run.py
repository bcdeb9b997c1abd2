"""`tornpage run`: a campaign from its first trial, or on from where it was interrupted.

May import: options, console, and everything below cli.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tornpage.campaigns.campaign import Campaign, load_campaign
from tornpage.campaigns.runner import QuietProgress, resume_campaign, run_campaign, write_report
from tornpage.cli.console import RichProgress, print_summary
from tornpage.cli.options import DEFAULT_JOBS, JobsOption, JsonOption, OutOption
from tornpage.store.store import Store
from tornpage.targets.registry import TARGETS
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "run"]

EPILOG = (
    "Examples: [bold]tornpage run smoke[/] · tornpage run smoke --seed 7 --trials 5000 · "
    "tornpage run powerloss --depth 2 --budget 60 · "
    "tornpage run smoke --set doublewrite=off · tornpage run smoke --resume"
)


def run(
    campaign: Annotated[str, typer.Argument(help="A campaign of workloads/, or a .toml file.")],
    target: Annotated[str, typer.Option(help="What to torture.")] = "engine",
    seed: Annotated[int | None, typer.Option(min=0, help="Derives everything.")] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="How many kills.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Power loss: only this model of crash states.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option(min=1, max=3, help="Power loss: 2 crashes the recovery too.")
    ] = None,
    states: Annotated[
        int | None, typer.Option(min=1, help="Power loss: states per configuration.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(min=1, help="Power loss: seconds per configuration.")
    ] = None,
    scripts: Annotated[
        int | None, typer.Option(min=1, help="Scripts per configuration, and per depth.")
    ] = None,
    undisturbed: Annotated[
        int | None, typer.Option(min=0, help="Further scripts, run and judged without a crash.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A target option, or params.NAME."),
    ] = None,
    jobs: JobsOption = DEFAULT_JOBS,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run.")
    ] = False,
    go_on: Annotated[
        bool, typer.Option("--go-on", help="As --resume, but a new run if there is none to resume.")
    ] = False,
    json_output: JsonOption = False,
    out: OutOption = Path("out"),
) -> int:
    """Runs a campaign: census, kills, recoveries, verdicts, report."""
    paths = find_paths()
    chosen = _campaign(campaign, target, paths.workloads, settings or [])
    sizes = {"seed": seed, "trials": trials, "undisturbed": undisturbed}
    if chosen.explore is None:
        sizes["scripts"] = scripts
    chosen = chosen.model_copy(update=_given(sizes))
    limits = {"models": model, "depth": depth, "states": states, "budget_s": budget}
    chosen = _with_limits(chosen, limits, scripts)
    if target not in TARGETS:
        raise ConfigError(f"no target {target!r}; there are: {', '.join(sorted(TARGETS))}")
    progress = QuietProgress() if json_output else RichProgress(Console(stderr=True))
    with Store(out / "tornpage.db") as store, progress:
        if resume or (go_on and store.has_unfinished(chosen.name, target)):
            if _given({**sizes, "scripts": scripts}) or settings:
                raise ConfigError(
                    "--resume takes seed, trials and options from the interrupted run"
                )
            summary = resume_campaign(store, chosen.name, target, paths, jobs, out, progress)
        else:
            summary = run_campaign(store, chosen, target, paths, jobs, out, progress)
        report = write_report(summary, paths, out)
    if json_output:
        print(json.dumps(summary.to_json(store.path, report)))
    else:
        print_summary(Console(), summary, report)
    return summary.exit_code()


def _campaign(name: str, target: str, folder: Path, settings: list[str]) -> Campaign:
    chosen = load_campaign(name, folder, target)
    pairs = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key or not equals or not value:
            raise ConfigError(f"--set {setting!r}: expected KEY=VALUE, as doublewrite=off")
        pairs[key] = value
    return chosen.with_settings(pairs)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _with_limits(chosen: Campaign, limits: dict[str, Any], scripts: int | None) -> Campaign:
    given = _given(limits)
    if chosen.explore is None:
        if given:
            what = next(iter(given))
            raise ConfigError(f"campaign {chosen.name} is no power-loss campaign: no {what}")
        return chosen
    if scripts is not None:
        given["seeds"] = scripts
    if "depth" in given:
        given["depths"] = []
    if "budget_s" in given and "states" not in given:
        given["states"] = 0
    return chosen.model_copy(update={"explore": chosen.explore.model_copy(update=given)})
