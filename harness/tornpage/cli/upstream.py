"""`tornpage upstream`: a finding as a report for the tracker of its engine."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tornpage.campaigns.fault_free import row_named, with_kept_image
from tornpage.causes.upstream import report_upstream
from tornpage.cli.options import (
    DebugFilesOption,
    JsonOption,
    OutOption,
    StoreOption,
    TrialArgument,
)
from tornpage.cli.terminal import make_console, print_object, say
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "upstream"]

EPILOG = "Example: [bold]tornpage upstream 3.17 for-the-tracker[/]"


def upstream(
    trial: TrialArgument,
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="The folder to make, with the report and the files."),
    ],
    debug_files: DebugFilesOption = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Writes a report for the engine's tracker: cause, calls with their stacks, file systems; with it the
    files of the crash and a program that starts the store on them without Tornpage."""
    place = place_in(out, store_place)
    row = with_kept_image(row_named(trial, place), out)
    with Store(place, write=False) as store:
        run = store.run(row.run)
        known = store.explanations(row.run).get(trial)
    with make_console(stderr=True, quiet=json_output).status(f"trial {trial}") as status:
        folders, tell = debug_files or (), status.update
        made = report_upstream(row, run, find_paths(), folders, folder, known, tell)
    if json_output:
        files = {"report": str(made.report), "script": str(made.script)}
        return print_object({**asdict(made), **files})
    say(f"{made.report}: " + ("with its cause" if made.explained else "its cause is not in it"))
    say(shlex.join(["sh", str(made.script)]))
    return 0
