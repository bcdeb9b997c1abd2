"""`tornpage replay`: one trial of the store again, alone.

May import: options, console, and everything below cli.
"""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from tornpage.campaigns.runner import replay_trial
from tornpage.cli.console import print_trial
from tornpage.cli.options import USAGE_ERROR, JsonOption, OutOption, TrialArgument, trial_row
from tornpage.vocabulary.codec import to_json
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "replay"]

EPILOG = "Example: [bold]tornpage replay 3.117[/] runs that trial again, alone."


def replay(
    trial: TrialArgument, json_output: JsonOption = False, out: OutOption = Path("out")
) -> int:
    """Runs one trial of the store again and says whether the verdict is the same."""
    row = trial_row(trial, out)
    result, same = replay_trial(row, find_paths(), out)
    if json_output:
        print(json.dumps({"trial": trial, "same_verdict": same, "result": to_json(result)}))
    else:
        print_trial(Console(), trial, row.spec, result)
        if row.result is not None:
            print("the same verdict" if same else "NOT the same verdict as in the store")
    return 1 if result.violations else 0 if same else USAGE_ERROR
