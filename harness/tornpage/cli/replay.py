"""`tornpage replay`: one trial of the store again, alone, or its run under another plan.

Exit codes: 1 a finding came, 0 none came, 2 it cannot be played.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tornpage.campaigns.fault_free import row_named, with_kept_image
from tornpage.campaigns.replay import Asked, replay_trial
from tornpage.cli.console import print_trial, print_verdict
from tornpage.cli.options import (
    DebugFilesOption,
    JsonOption,
    OutOption,
    StacksOption,
    StoreOption,
    TrialArgument,
)
from tornpage.cli.terminal import make_console, print_object, say
from tornpage.faults.plan import load_plan
from tornpage.plans.origin import command_line
from tornpage.reports.verdict import verdict_of_replay
from tornpage.store.memory import Answer
from tornpage.store.place import place_in
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.outputs import output
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "replay"]

EPILOG = (
    "Examples: [bold]tornpage replay 3.117[/] runs that trial again, alone · "
    "tornpage replay 3.117 --plan plan.toml plays these faults in place of its own · "
    "tornpage replay 3.117 --ask kept asks only what was kept"
)


def replay(
    trial: TrialArgument,
    plan: Annotated[
        Path | None, typer.Option(help="A file with a plan that replaces the trial's own.")
    ] = None,
    asked: Annotated[
        Asked, typer.Option("--ask", help="Judge the kept evidence, new runs, or both.")
    ] = Asked.ALL,
    tries: Annotated[
        int, typer.Option(min=1, max=100, help="At most this many new runs, until one shows it.")
    ] = 1,
    stacks: StacksOption = True,
    debug_files: DebugFilesOption = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Judges the kept evidence of a trial again, then repeats it: reproduced (exit code 1), not reproduced
    (0), or cannot be played (2)."""
    row = with_kept_image(row_named(trial, place_in(out, store_place)), out)
    if plan is not None:
        row = replace(row, spec=replace(row.spec, plan=load_plan(plan)), result=None)
        if asked is Asked.KEPT:
            raise ConfigError("--plan is for a new run: no --ask kept")
    images = out / "replay"
    with output(images):
        done = replay_trial(row, find_paths(), images, asked, tries, stacks=stacks)
    verdict = verdict_of_replay(done.answer, done.result, done.note)
    if json_output:
        answer = {
            "trial": trial,
            "answer": done.answer,
            "note": done.note,
            "kept": [str(one) for one in done.kept],
            "new_run": done.fresh,
            "same_verdict": done.same,
            "other_finding": done.other,
            "result": to_plain(done.result),
            **verdict.to_json(),
        }
        print_object(answer, verdict.exit_code)
    else:
        line = command_line(f"tornpage replay {trial}", place_in(out, store_place).options)
        folders = debug_files or ()
        print_trial(make_console(), trial, row.spec, done.result, line, debug_files=folders)
        for one in done.kept:
            say(str(one))
        if done.kept and done.fresh:
            say(f"a new run: {done.fresh}")
        say(f"{done.answer}: {done.note}" if done.note else done.answer)
        if row.result is not None and done.fresh and done.answer is Answer.REPRODUCED:
            print("the same verdict" if done.same else "not the same verdict to the byte")
        print_verdict(verdict)
    return verdict.exit_code
