"""What a recorder costs a program that writes: the same writes without one; under the preload with hashes
recorded, with contents, and with call stacks; on the file system that records, with contents. By one thread
and by several, each with a file of its own.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tornpage.faults.preload import BARE, WHOLE, preload_environment, preload_path
from tornpage.faults.process import launch_argv
from tornpage.faults.recorder import fs_environment, fs_path, why_no_fs
from tornpage.faults.scratch import scratch_folder
from tornpage.faults.stacks import stacks_environment, stacks_path
from tornpage.lab.measured import Cell, Effort, Measured
from tornpage.vocabulary.errors import TargetError
from tornpage.vocabulary.paths import Paths

__all__ = ["write_costs"]

SIZES = (4096, 16_384)
THREADS = (1, 2, 8)
TURNS = 3
"""Of each way of writing per round, one after the other."""
DEADLINE_S = 600
COLUMNS = (
    "write",
    "fsync",
    "threads",
    "ns",
    "x hashes",
    "x contents",
    "x stacks",
    "x fs",
    "cpu ns",
    "cpu x hashes",
    "cpu x contents",
    "cpu x stacks",
)
STACKS = "stacks"
"""Hashes, and the call stack of each write and fsync."""
FS = "fs"
PRELOADED: Mapping[str, Mapping[str, str]] = {"hashes": BARE, "contents": WHOLE, STACKS: BARE}
"""The preload's variables."""


@dataclass(frozen=True, slots=True)
class _Cost:
    """Nanoseconds of one write: that its thread waits, and of processor time."""

    wall: float
    cpu: float


def write_costs(paths: Paths, effort: Effort) -> Measured:
    """Medians, and their ratios to the writes without a recorder; of the file system's processor time nothing
    is known to the program. Where that cannot be mounted, a note says so. TargetError: nothing is built."""
    program = paths.build / "faults" / "bench_preload"
    if not program.is_file():
        raise TargetError(f"{program}: no such program: run make build in the sources")
    why = why_no_fs(fs_path(preload_path(paths.build)))
    ways = ("", *PRELOADED) if why else ("", *PRELOADED, FS)
    rows: list[tuple[Cell, ...]] = []
    with scratch_folder() as scratch:
        (scratch / "data").mkdir()
        for size, fsync, threads in itertools.product(SIZES, (False, True), THREADS):
            words = [str(program), f"{scratch}/data/file", str(size), str(int(fsync)), str(threads)]
            turns = [
                {way: _cost(words, paths, scratch, way) for way in ways}
                for _ in range(effort.rounds * TURNS)
            ]
            middle = {way: _median([turn[way] for turn in turns]) for way in ways}
            plain = middle[""]
            rows.append(
                (
                    f"{size // 1024}k",
                    "yes" if fsync else "no",
                    threads,
                    plain.wall,
                    *(middle[way].wall / plain.wall for way in PRELOADED),
                    "-" if why else middle[FS].wall / plain.wall,
                    plain.cpu,
                    *(middle[way].cpu / plain.cpu for way in PRELOADED),
                )
            )
    notes = (f"fs: {why}",) if why else ()
    return Measured("recorder", "what a recorder costs a write, on tmpfs", COLUMNS, rows, notes)


def _cost(words: list[str], paths: Paths, scratch: Path, way: str) -> _Cost:
    """way: of PRELOADED, FS, or "": without a recorder."""
    library, trace = preload_path(paths.build), scratch / "trace"
    env = dict(os.environ)
    if way == FS:
        words = [str(fs_path(library)), *words]
        env |= fs_environment(scratch / "data", trace, None)
    elif way:
        env |= {**preload_environment(library, scratch / "data", trace, None), **PRELOADED[way]}
        env |= stacks_environment(trace) if way == STACKS else {}
    command = launch_argv(words, DEADLINE_S)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    for file in (trace, stacks_path(trace)):
        file.unlink(missing_ok=True)
    if done.returncode != 0:
        raise TargetError(f"{words[0]}: {' '.join(done.stderr.split())}")
    told = json.loads(done.stdout)
    return _Cost(told["ns_per_op"], told["cpu_ns_per_op"])


def _median(costs: list[_Cost]) -> _Cost:
    return _Cost(
        statistics.median(one.wall for one in costs), statistics.median(one.cpu for one in costs)
    )
