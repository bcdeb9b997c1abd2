"""`tornpage try`: everything that is done to a target file, and what came of it in words.

May import: attempt, campaign, console, crew, options, origin, paths, progress, publish, registry, store,
target.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tornpage.campaigns.attempt import Attempt, attempt, campaigns_of
from tornpage.campaigns.campaign import SEED_MAX, STATES_MAX, TRIALS_MAX
from tornpage.campaigns.crew import Crew
from tornpage.campaigns.origin import origin_of
from tornpage.campaigns.publish import write_report
from tornpage.cli.console import bug_lines, make_console
from tornpage.cli.options import DEFAULT_JOBS, JobsOption, JsonOption, OutOption
from tornpage.cli.progress import make_progress
from tornpage.cli.target import target_file
from tornpage.store.store import Store
from tornpage.targets.registry import make_target
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "try_target"]

EPILOG = (
    "Exit codes: 0 nothing found, 1 the promise was broken, 2 the file or the machine, 3 the control found "
    "nothing. Example: [bold]tornpage try mydb/mydb.toml[/]"
)
EXIT_VACUOUS = 3


def try_target(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A target file.")],
    states: Annotated[
        int, typer.Option(min=1, max=STATES_MAX, help="Power-loss states per depth.")
    ] = 1000,
    trials: Annotated[int, typer.Option(min=1, max=TRIALS_MAX, help="How many kills.")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=SEED_MAX, help="Derives everything.")] = 1,
    jobs: JobsOption = DEFAULT_JOBS,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
) -> int:
    """Tortures the store of a target file: power loss, kills, and a control that must find something."""
    paths = find_paths()
    name = target_file(file)
    campaigns = campaigns_of(name, states, trials, seed, paths)
    origin = origin_of(campaigns[0], make_target(name, paths.build))
    progress = make_progress(json_output)
    with Store(out / "tornpage.db") as store, progress:
        done = attempt(store, name, campaigns, Crew(paths, jobs, out, progress, origin))
        reports = [write_report(store, summary, paths, out) for summary in done.summaries]
    if json_output:
        print(json.dumps(_to_json(done, out, reports)))
    else:
        for line in _lines(done, reports):
            make_console().print(line, highlight=False, soft_wrap=True)
    return _exit_code(done)


def _exit_code(done: Attempt) -> int:
    codes = [summary.exit_code() for summary in done.summaries]
    if 1 in codes:
        return 1
    return EXIT_VACUOUS if done.vacuous else max(codes, default=EXIT_VACUOUS)


def _to_json(done: Attempt, out: Path, reports: list[Path]) -> dict[str, Any]:
    return {
        "commits": done.admission.commits,
        "repeatable": done.admission.repeatable,
        "control": {"states": done.control_states, "kinds": done.control_kinds},
        "vacuous": done.vacuous,
        "runs": [
            summary.to_json(out / "tornpage.db", report)
            for summary, report in zip(done.summaries, reports, strict=True)
        ],
    }


def _lines(done: Attempt, reports: list[Path]) -> list[str]:
    """In rich's markup."""
    seen = done.admission
    lines = [
        f"admitted: {seen.commits} commits, {seen.writes} writes to {seen.files} files, {seen.syncs} syncs; "
        "the recording equals the files",
        _control_line(done),
    ]
    if not seen.repeatable:
        lines.append("[yellow]two runs come to different states: no kills[/]")
    for summary, report in zip(done.summaries, reports, strict=True):
        unit = "power-loss states" if summary.explored else "kills"
        lines.append(
            f"{summary.units} {unit}, {summary.exercised} exercised: "
            f"[bold]{summary.violations} broke the promise[/]"
        )
        lines += [
            bug_lines(bug, "states" if summary.explored else "trials") for bug in summary.bugs
        ]
        lines.append(f"report: {report}")
    return lines


def _control_line(done: Attempt) -> str:
    if done.vacuous:
        return (
            f"[red]vacuous:[/] on a disk whose every fsync is a lie none of {done.control_states} "
            "states broke the promise, so that this set-up cannot find anything: does the run change "
            "enough between its syncs, and does recover read what is there?"
        )
    return (
        f"control: on a disk whose every fsync is a lie, {done.control_kinds} kinds of "
        f"{done.control_states} states broke the promise, as they must"
    )
