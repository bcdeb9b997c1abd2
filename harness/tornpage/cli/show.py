"""`tornpage show`: what the store knows of a trial.

May import: codec, console, options, paths.
"""

from __future__ import annotations

import json

from tornpage.cli.console import make_console, print_trial
from tornpage.cli.options import JsonOption, OutOption, TrialArgument, trial_row
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.paths import DEFAULT_OUT

__all__ = ["EPILOG", "show"]

EPILOG = "Example: [bold]tornpage show 3.117[/]"


def show(
    trial: TrialArgument, json_output: JsonOption = False, out: OutOption = DEFAULT_OUT
) -> int:
    """Prints what the store knows of a trial: plan, write hit, verdict, paths taken."""
    row = trial_row(trial, out)
    if json_output:
        print(
            json.dumps({"trial": trial, "spec": to_plain(row.spec), "result": to_plain(row.result)})
        )
    elif row.result is None:
        print(f"trial {trial} was interrupted; tornpage run {row.spec.campaign} --resume goes on")
    else:
        print_trial(make_console(), trial, row.spec, row.result)
    return 0
