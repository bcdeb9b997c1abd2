"""`tornpage report`: a run's summary and its HTML page once more."""

from __future__ import annotations

from typing import Annotated

import typer

from tornpage.campaigns.publish import bug_stacks, write_report
from tornpage.campaigns.runner import load_summary
from tornpage.cli.console import print_summary, tell_run
from tornpage.cli.options import (
    Annotate,
    DebugFilesOption,
    FailOn,
    JsonOption,
    JunitOption,
    OutOption,
    StoreOption,
)
from tornpage.cli.publish import publish
from tornpage.cli.terminal import make_console
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.outputs import output
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "report"]

EPILOG = "Example: [bold]tornpage report[/] · tornpage report --run 3"


def report(
    run_id: Annotated[
        int | None, typer.Option("--run", min=1, help="Run number; default: the newest.")
    ] = None,
    debug_files: DebugFilesOption = None,
    junit: JunitOption = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Prints a run's summary, and rewrites its HTML report and the index of all runs."""
    with Store(place_in(out, store_place), write=False) as store:
        found = store.latest_run() if run_id is None else store.run(run_id)
        summary = load_summary(store, found)
        folders = debug_files or ()
        try:
            with output(out):
                path = write_report(store, summary, find_paths(), out, folders)
        except ConfigError:
            if not json_output:
                print_summary(make_console(), summary, None)
            raise
        frames = bug_stacks(store, [summary], out, folders) if junit else {}
    verdict = tell_run(summary, store.name, path, json_output)
    publish([summary], junit, Annotate.NONE, FailOn.ANY, frames)
    return verdict.exit_code
