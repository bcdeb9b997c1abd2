"""`tornpage try`: everything that is done to a target file, and what came of it in words."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from tornpage.campaigns.attempt import campaigns_of, examine, may_go_below, torture
from tornpage.campaigns.fitting import Opened
from tornpage.campaigns.publish import bug_stacks, write_report
from tornpage.cli.console import bug_lines, print_verdict
from tornpage.cli.needs import with_needs
from tornpage.cli.options import (
    DEFAULT_JOBS,
    Annotate,
    FailOn,
    FailOnOption,
    FetchOption,
    FsOption,
    JobsOption,
    JsonOption,
    JunitOption,
    OutOption,
    StacksOption,
    StoreOption,
    TargetOptions,
    options_of,
    with_limits,
)
from tornpage.cli.progress import make_progress
from tornpage.cli.publish import publish
from tornpage.cli.target import audit_text, target_file
from tornpage.cli.terminal import make_console, print_object, say, told
from tornpage.faults.recorder import Recorder
from tornpage.live.admission import Admission
from tornpage.plans.limits import BOUNDS, UNLIMITED, Limits
from tornpage.reports.summary import Summary
from tornpage.reports.verdict import looked_at, not_exercised, verdict_of_runs
from tornpage.store.origin import Examined
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.targets.option import RECORDER
from tornpage.vocabulary.errors import UnseenError
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths
from tornpage.workers.context import RunContext

__all__ = ["EPILOG", "try_target"]

EPILOG = (
    "Exit codes: 0 nothing found, 1 the promise was broken, 2 the file or the machine, 3 the control found "
    "nothing. Example: [bold]tornpage try mydb/mydb.toml[/]"
)
INSTEAD = "recorded by a file system instead, as --option recorder=fs does"
STATES = 1000
"""Power-loss states per depth, unless it is said how far to go."""


@with_limits(seed=1, trials=100)
def try_target(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A target file, or the name of one.")],
    states: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=BOUNDS["states"].high,
            help=f"Power-loss states per depth; left out: {STATES}, or as many as --budget allows.",
        ),
    ] = None,
    limits: Limits = UNLIMITED,
    fs: FsOption = None,
    options: TargetOptions = None,
    fetch: FetchOption = False,
    stacks: StacksOption = True,
    fail_on: FailOnOption = FailOn.ANY,
    jobs: JobsOption = DEFAULT_JOBS,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted try with the same options.")
    ] = False,
    junit: JunitOption = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Tortures the store of a target file: power loss, kills, and a control that must find something."""
    paths = find_paths()
    place = place_in(out, store_place)
    if states is None and limits.budget_s is None:
        states = STATES
    limits = replace(limits, states=states)
    name, chosen = target_file(file), options_of(options, fs)

    def opened(options: dict[str, str]) -> list[Opened]:
        return with_needs(fetch, lambda: campaigns_of(name, limits, options, paths, stacks=stacks))

    campaigns = opened(chosen)
    progress = make_progress(json_output)
    context = RunContext(paths, jobs, out, progress, campaigns[0].origin())
    with progress:
        try:
            admission, seen = examine(campaigns[0], context)
        except UnseenError as error:
            if not may_go_below(campaigns[0].target, chosen):
                raise
            say(f"tornpage: {error}; {INSTEAD}", sys.stderr)
            campaigns = opened({**chosen, RECORDER: Recorder.FS})
            context = replace(context, origin=campaigns[0].origin())
            admission, seen = examine(campaigns[0], context)
        with Store(place, create=not resume) as store:
            summaries = torture(store, campaigns, seen, context, resume=resume)
            reports = [write_report(store, summary, paths, out) for summary in summaries]
            frames = bug_stacks(store, summaries, out) if junit else {}
    verdict = verdict_of_runs(summaries, only_news=fail_on is FailOn.NEW)
    if json_output:
        parts = [looked_at(summary) for summary in summaries]
        about = {
            "looked_at": [part.to_json() for part in parts],
            "not_exercised": not_exercised(parts),
        }
        data = _to_json(admission, seen, summaries, place.name, reports)
        print_object({**data, **about, **verdict.to_json()}, verdict.exit_code)
    else:
        for line in _lines(admission, seen, summaries, reports):
            make_console().print(line, highlight=False, soft_wrap=True)
    publish(summaries, junit, Annotate.NONE, fail_on, frames)
    print_verdict(verdict, json_output)
    return verdict.exit_code


def _to_json(
    admission: Admission,
    seen: Examined,
    summaries: list[Summary],
    store: str,
    reports: list[Path],
) -> dict[str, Any]:
    return {
        "commits": admission.commits,
        "repeatable": admission.repeatable,
        "not_audited": admission.audited.missing,
        "left": list(admission.left),
        "control": seen.control,
        "vacuous": bool(seen.vacuous),
        "runs": [
            summary.to_json(store, report)
            for summary, report in zip(summaries, reports, strict=True)
        ],
    }


def _lines(
    run: Admission, seen: Examined, summaries: list[Summary], reports: list[Path]
) -> list[str]:
    """In rich's markup."""
    lines = [
        f"admitted: {run.commits} commits, {run.writes} writes to {run.files} files, {run.syncs} syncs; "
        f"the recording equals the files, {escape(audit_text(run))}",
        f"[red]{seen.vacuous}[/]" if seen.vacuous else seen.control_text,
    ]
    if not run.repeatable:
        lines.append(
            "two runs reach different states, so a kill is judged by what its own run printed"
        )
    for summary, report in zip(summaries, reports, strict=True):
        unit = "power-loss states" if summary.explored else "kills"
        lines.append(
            f"{summary.units} {unit}, {summary.exercised} exercised: "
            f"[bold]{summary.violations} broke the promise[/]"
        )
        lines += [
            bug_lines(bug, "states" if summary.explored else "trials") for bug in summary.bugs
        ]
        lines.append(f"report: {told(str(report))}")
    return lines
