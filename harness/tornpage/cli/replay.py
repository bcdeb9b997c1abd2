"""`tornpage replay`: one trial of the store again, alone.

Exit codes: 1 a finding came, 0 none came, 2 it cannot be played.

May import: codec, console, memory, options, paths, replay.
"""

from __future__ import annotations

import json

from tornpage.campaigns.replay import replay_trial
from tornpage.cli.console import make_console, print_trial
from tornpage.cli.options import USAGE_ERROR, JsonOption, OutOption, TrialArgument, trial_row
from tornpage.store.memory import Answer
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "replay"]

EPILOG = "Example: [bold]tornpage replay 3.117[/] runs that trial again, alone."
_CODES = {Answer.REPRODUCED: 1, Answer.NOT_REPRODUCED: 0, Answer.NOT_PLAYED: USAGE_ERROR}


def replay(
    trial: TrialArgument, json_output: JsonOption = False, out: OutOption = DEFAULT_OUT
) -> int:
    """Runs one trial of the store again: reproduced (exit code 1), not reproduced (0), or cannot be
    played (2)."""
    row = trial_row(trial, out)
    done = replay_trial(row, find_paths(), out / "replay")
    if json_output:
        answer = {
            "trial": trial,
            "answer": done.answer,
            "note": done.note,
            "same_verdict": done.same,
            "result": to_plain(done.result),
        }
        print(json.dumps(answer))
    else:
        print_trial(make_console(), trial, row.spec, done.result)
        print(f"{done.answer}: {done.note}" if done.note else done.answer)
        if row.result is not None:
            print("the same verdict" if done.same else "NOT the same verdict as in the store")
    return _CODES[done.answer]
