"""A store that is filled with real trials, to measure what grows with their number."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.faults.process import launch_argv
from tornpage.lab.measured import spent
from tornpage.plans.campaign import load_campaign
from tornpage.store.file import FILE
from tornpage.store.store import Store
from tornpage.targets.registry import DEFAULT_TARGET
from tornpage.vocabulary.errors import TargetError
from tornpage.vocabulary.paths import Paths

__all__ = ["PATTERN_TRIALS", "Filled", "fill_store", "run_tornpage"]

DEADLINE_S = 3600
PATTERN_TRIALS = 100
"""Real trials of the control, which are stored again and again under other numbers."""


@dataclass(frozen=True, slots=True)
class Filled:
    """folder: of the store; seconds: that it took to store them."""

    folder: Path
    seconds: float


def fill_store(paths: Paths, folder: Path, trials: int) -> Filled:
    """A store with a finished run of so many trials, in the folder. Raises TargetError."""
    small, large = folder / "small", folder / "large"
    control = ("run", "smoke", "--option", "doublewrite=off", "--trials", str(PATTERN_TRIALS))
    run_tornpage((*control, "--scripts", "1", "--fault-free", "0", "--json", "--out", str(small)))
    with Store(small / FILE, write=False) as store:
        rows = list(store.trials(1))
    settings = load_campaign("smoke", paths.workloads).model_dump(mode="json")
    with Store(large / FILE) as store, spent() as taken:
        run = store.begin_run("smoke", DEFAULT_TARGET, 1, trials, settings).id
        for number in range(trials):
            row = rows[number % len(rows)]
            assert row.result is not None, "the run came to its end"
            store.start_trial(run, replace(row.spec, number=number), row.site, row.mask)
            store.finish_trial(run, replace(row.result, number=number))
        store.finish_run(run)
    return Filled(large, taken.wall)


def run_tornpage(arguments: Sequence[str]) -> None:
    """The command of this package; a control finds something, which is no failure. TargetError."""
    command = launch_argv([sys.executable, "-m", "tornpage", *arguments], DEADLINE_S)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise TargetError(f"tornpage {arguments[0]}: {done.stderr.strip().rpartition(chr(10))[2]}")
