"""The `tornpage` command. Parses arguments, shows progress, prints summaries; decides nothing itself.

Exit codes: 0 clean, 1 violations, 2 usage or harness failure, 3 nothing (or not what was claimed) exercised.

May import: everything below it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tornpage.campaigns.campaign import Campaign, load_campaign
from tornpage.campaigns.runner import (
    QuietProgress,
    load_summary,
    replay_trial,
    resume_campaign,
    run_campaign,
    write_report,
)
from tornpage.cli.console import RichProgress, print_shrunk, print_summary, print_trial
from tornpage.lab.doctor import Finding, examine
from tornpage.lab.mutant_table import choose_mutants, load_mutants
from tornpage.lab.mutants import TABLE, Effort, bugs_page, mutants_table, run_mutants
from tornpage.lab.qualify import qualify
from tornpage.shrinking.shrink import shrink_trial
from tornpage.store.store import Store, TrialRow
from tornpage.targets.registry import TARGETS
from tornpage.vocabulary.codec import to_json
from tornpage.vocabulary.errors import ConfigError, TornpageError
from tornpage.vocabulary.paths import find_paths

__all__ = ["main"]

USAGE_ERROR = 2
DEFAULT_JOBS = min(os.cpu_count() or 1, 8)

app = typer.Typer(
    name="tornpage",
    help="Tortures the crash recovery of page-based storage engines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

OutOption = Annotated[Path, typer.Option("--out", help="Folder of the result store and reports.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, last.")]
JobsOption = Annotated[int, typer.Option("--jobs", min=1, max=64, help="Worker processes.")]
TrialArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Trial as RUN.NUMBER, from a report or summary.")
]


@app.command(
    epilog="Examples: [bold]tornpage run smoke[/] · tornpage run smoke --seed 7 --trials 5000 · "
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
    chosen = _campaign(campaign, target, paths.workloads, seed, trials, settings or [])
    chosen = _with_limits(
        chosen, {"models": model, "depth": depth, "states": states, "budget_s": budget}
    )
    if target not in TARGETS:
        raise ConfigError(f"no target {target!r}; there are: {', '.join(sorted(TARGETS))}")
    progress = QuietProgress() if json_output else RichProgress(Console(stderr=True))
    with Store(out / "tornpage.db") as store, progress:
        if resume or (go_on and store.has_unfinished(chosen.name, target)):
            if seed is not None or trials is not None or settings:
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


@app.command(epilog="Example: [bold]tornpage replay 3.117[/] runs that trial again, alone.")
def replay(
    trial: TrialArgument, json_output: JsonOption = False, out: OutOption = Path("out")
) -> int:
    """Runs one trial of the store again and says whether the verdict is the same."""
    row = _trial_row(trial, out)
    result, same = replay_trial(row, find_paths(), out)
    if json_output:
        print(json.dumps({"trial": trial, "same_verdict": same, "result": to_json(result)}))
    else:
        print_trial(Console(), trial, row.spec, result)
        if row.result is not None:
            print("the same verdict" if same else "NOT the same verdict as in the store")
    return 1 if result.violations else 0 if same else USAGE_ERROR


@app.command(epilog="Example: [bold]tornpage show 3.117[/]")
def show(
    trial: TrialArgument, json_output: JsonOption = False, out: OutOption = Path("out")
) -> int:
    """Prints what the store knows of a trial: plan, write hit, verdict, paths taken."""
    row = _trial_row(trial, out)
    if json_output:
        print(
            json.dumps({"trial": trial, "spec": to_json(row.spec), "result": to_json(row.result)})
        )
    elif row.result is None:
        print(f"trial {trial} was interrupted; tornpage run {row.spec.campaign} --resume goes on")
    else:
        print_trial(Console(), trial, row.spec, row.result)
    return 0


@app.command(epilog="Example: [bold]tornpage shrink 3.117[/] · tornpage shrink 3.117 --budget 20")
def shrink(
    trial: TrialArgument,
    budget: Annotated[float, typer.Option(min=1, help="Seconds for the search.")] = 60,
    json_output: JsonOption = False,
    out: OutOption = Path("out"),
) -> int:
    """Finds a smaller script and a smaller crash with the same finding, and stores them as a trial."""
    row = _trial_row(trial, out)
    console = Console(stderr=True, quiet=json_output)
    with (
        Store(out / "tornpage.db", create=False) as store,
        console.status(f"trial {trial}") as status,
    ):
        result = shrink_trial(store, row, find_paths(), out, budget, status.update)
    if json_output:
        print(json.dumps(to_json(result)))
    else:
        print_shrunk(Console(), result)
    return 0


@app.command(epilog="Example: [bold]tornpage report[/] · tornpage report --run 3")
def report(
    run_id: Annotated[
        int | None, typer.Option("--run", help="Run number; the newest if left out.")
    ] = None,
    json_output: JsonOption = False,
    out: OutOption = Path("out"),
) -> int:
    """Prints a run's summary and writes its HTML report again."""
    with Store(out / "tornpage.db", create=False) as store:
        found = store.latest_run() if run_id is None else store.run(run_id)
        summary = load_summary(store, found)
        path = write_report(summary, find_paths(), out)
    if json_output:
        print(json.dumps(summary.to_json(store.path, path)))
    else:
        print_summary(Console(), summary, path)
    return summary.exit_code()


@app.command(
    epilog="Examples: [bold]tornpage mutants[/] · tornpage mutants --only dblwr_off --only ckpt_partial"
)
def mutants(
    only: Annotated[list[str] | None, typer.Option(help="Only this mutant; repeatable.")] = None,
    states: Annotated[
        int, typer.Option(min=1, help="Power-loss states per mutant.")
    ] = Effort().states,
    kills: Annotated[
        int, typer.Option(min=0, help="Random kills per mutant of the base line.")
    ] = Effort().strikes,
    table: Annotated[Path | None, typer.Option(help="Write docs/BUGS.md here.")] = None,
    jobs: JobsOption = DEFAULT_JOBS,
    json_output: JsonOption = False,
    out: OutOption = Path("out/mutants"),
) -> int:
    """Runs the campaigns on every planted bug (mutant build) and says which they catch. Finished mutants
    are kept in --out, so that the same command goes on after an interruption."""
    rows = load_mutants(TABLE)
    chosen = choose_mutants(rows, only or [])
    if table is not None and len(chosen) < len(rows):
        raise ConfigError("--table needs all mutants, no --only")
    progress = QuietProgress() if json_output else RichProgress(Console(stderr=True))
    with progress:
        paths = find_paths(default_build="mutants")
        score = run_mutants(chosen, Effort(states, kills), paths, jobs, out, progress)
    if table is not None:
        table.write_text(bugs_page(rows, score), encoding="utf-8")
    if json_output:
        print(json.dumps(score.to_json()))
    else:
        console = Console()
        console.print(mutants_table(score))
        for row in score.rows:
            if row.caught:
                console.print(f"{row.name}: {row.replay}", soft_wrap=True, highlight=False)
    return score.exit_code()


@app.command(epilog="Examples: [bold]tornpage doctor[/] · tornpage doctor --qualify")
def doctor(
    with_fio: Annotated[
        bool, typer.Option("--qualify", help="Let fio judge the fault layer too (some seconds).")
    ] = False,
    json_output: JsonOption = False,
) -> int:
    """Checks that everything a run needs is here, and says what to do if not."""
    paths = find_paths()
    findings: list[Finding] = [*examine(paths)]
    if with_fio:
        console = Console(stderr=True, quiet=json_output)
        findings += qualify(paths, lambda name: console.print(f"qualify: {name}", highlight=False))
    if json_output:
        print(json.dumps({"ok": all(f.ok for f in findings), "checks": to_json(findings)}))
    else:
        table = Table("check", "", "seen", "remedy")
        for finding in findings:
            mark = "[green]ok[/]" if finding.ok else "[red]bad[/]"
            table.add_row(finding.name, mark, finding.seen, "" if finding.ok else finding.remedy)
        Console().print(table)
    return 0 if all(finding.ok for finding in findings) else USAGE_ERROR


def _campaign(
    name: str, target: str, folder: Path, seed: int | None, trials: int | None, settings: list[str]
) -> Campaign:
    chosen = load_campaign(name, folder, target)
    pairs = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key or not equals or not value:
            raise ConfigError(f"--set {setting!r}: expected KEY=VALUE, as doublewrite=off")
        pairs[key] = value
    changes = {"seed": seed, "trials": trials}
    update = {key: value for key, value in changes.items() if value is not None}
    return chosen.with_settings(pairs).model_copy(update=update)


def _with_limits(chosen: Campaign, limits: dict[str, Any]) -> Campaign:
    given = {name: value for name, value in limits.items() if value is not None}
    if not given:
        return chosen
    if chosen.explore is None:
        raise ConfigError(
            f"campaign {chosen.name} is no power-loss campaign: no {next(iter(given))}"
        )
    if "budget_s" in given and "states" not in given:
        given["states"] = 0
    return chosen.model_copy(update={"explore": chosen.explore.model_copy(update=given)})


def _trial_row(trial: str, out: Path) -> TrialRow:
    run_text, dot, number_text = trial.partition(".")
    if not (dot and run_text.isdigit() and number_text.isdigit()):
        raise ConfigError(f"{trial!r}: a trial is named RUN.NUMBER, as 3.117")
    with Store(out / "tornpage.db", create=False) as store:
        return store.trial(int(run_text), int(number_text))


def main() -> None:
    """Entry point: every error of ours is one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except TornpageError as error:
        print(f"tornpage: {error}", file=sys.stderr)
        code = USAGE_ERROR
    except KeyboardInterrupt:
        print(
            "tornpage: interrupted; finished verdicts are kept, --resume goes on", file=sys.stderr
        )
        code = USAGE_ERROR
    except typer.Exit as stop:
        code = stop.exit_code
    except Exception as error:
        if hasattr(error, "format_message"):  # usage errors of the command-line library
            print(f"tornpage: {error.format_message()}", file=sys.stderr)
            code = USAGE_ERROR
        else:
            raise
    sys.exit(code or 0)


if __name__ == "__main__":
    main()
