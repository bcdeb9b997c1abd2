"""What the end-to-end tests share: calls of `tornpage`, and how far a run has come."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from called import DEADLINE_S, called

from tornpage.store.place import place_of
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError, MachineError

PYTHON = [sys.executable, "-P", "-m", "tornpage"]
"""The command line."""
ONE_CONFIGURATION = (
    *("--scripts", "1", "--depth", "1", "--fault-free", "0"),
    *("--option", "log_optimize_ddl=on", "--option", "log_write_through=off"),
)
"""Of the campaign `powerloss` one run in place of sixteen: for what is done with any finding."""


@dataclass(frozen=True)
class Answer:
    """What a call of `tornpage` gave. data: the JSON object, if it printed one."""

    code: int
    data: dict[str, Any]
    text: str


Tornpage = Callable[..., Answer]


def call(
    folder: Path, *arguments: str, process: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command line as a person calls it, in a folder; what it prints is not cut by a narrow terminal.
    Tests run beside each other, so that a run has one worker process unless it says how many. process: it is
    a process of its own, not a call inside of this one."""
    words = [*arguments]
    if words[:1] in (["run"], ["try"], ["nightly"]) and "--jobs" not in words:
        words += ["--jobs", "1"]
    environment = {"COLUMNS": "400", **environment}
    if not process:
        return called(folder, *words, **environment)
    return subprocess.run(
        [*PYTHON, *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def verdicts(place: str | Path) -> int:
    """How many trials of a store have one; none where it is still being made. place: its file, or its URL."""
    try:
        with Store(place_of(place), create=False, write=False) as store:
            return sum(len(store.finished_numbers(run.id)) for run in store.runs())
    except (ConfigError, MachineError):
        return 0
