"""Runs on a cluster: a real scheduler, worker processes on the loopback, and a store that cannot be told from
that of a run on this machine alone."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from builders import make_spec
from e2e_support import verdicts
from kills import rows_of

from tornpage.campaigns.cluster import _Handed, open_cluster
from tornpage.campaigns.workers import Job, failed_trial
from tornpage.vocabulary.errors import ConfigError, MachineError
from tornpage.vocabulary.model import Outcome
from tornpage.vocabulary.paths import BUILD_VARIABLE

TORNPAGE = (sys.executable, "-m", "tornpage")
KILLS = ("run", "smoke", "--set", "doublewrite=off", "--trials", "24", "--scripts", "1")
LOSSES = ("run", "powerloss", "--set", "doublewrite=off", "--states", "30", "--depth", "1")
CAMPAIGN = """
description = "two explorations of many states"
workload = "smoke"
crash_model = "power_loss"
seed = 7
undisturbed = 2

[params]
rows = 24

[options]
page_size = "4k"
log_file_size = "256k"
doublewrite = "off"
buffer_pool_pages = "48"
dblwr_pages = "16"
sort_buffer_size = "64k"

[explore]
states = 2600
models = ["one-torn", "kill"]
depths = [1, 2]
"""
"""Two explorations, of two slices each."""
TABLES = ("trial", "violation", "census", "census_violation", "exploration", "bug", "sighting")
DEADLINE_S = 240.0


def command(*arguments: str, out: Path) -> list[str]:
    """`tornpage` with few undisturbed runs and one worker process."""
    few = ["--undisturbed", "2", "--jobs", "1", "--out", str(out)]
    return [*TORNPAGE, *arguments, *few]


def run(build: Path, *arguments: str, out: Path) -> subprocess.CompletedProcess[str]:
    """To its end."""
    return subprocess.run(
        command(*arguments, out=out),
        env={**os.environ, BUILD_VARIABLE: str(build)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def tables(out: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What a run left in its store, without times and places."""
    with contextlib.closing(sqlite3.connect(out / "tornpage.db")) as db:
        return {name: rows_of(db.execute(f"select * from {name}")) for name in TABLES}


def images(out: Path) -> set[str]:
    """Names of all files of kept images."""
    root = out / "images"
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@dataclass
class Machines:
    """A scheduler and the workers that were started for it."""

    address: str
    start: Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def machines(build: Path, tmp_path: Path) -> Iterator[Machines]:
    """A scheduler of its own; whatever was started is ended by its pid."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, **environment: str) -> subprocess.Popen[bytes]:
        with (tmp_path / f"dask-{len(started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words, "--no-dashboard"],
                env={**os.environ, BUILD_VARIABLE: str(build), **environment},
                cwd=tmp_path,
                stdout=log,
                stderr=log,
            )
        started.append(process)
        return process

    start("scheduler", "--host", "127.0.0.1", "--port", str(port))
    try:
        yield Machines(f"127.0.0.1:{port}", start)
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def worker(machines: Machines, threads: int = 1, **environment: str) -> subprocess.Popen[bytes]:
    """One more, which nobody starts again when it dies."""
    words = ("worker", f"tcp://{machines.address}", "--nthreads", str(threads), "--no-nanny")
    return machines.start(*words, **environment)


def wait_for(what: Callable[[], bool]) -> None:
    """Fails after a time."""
    until = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_worker_is_killed_in_the_middle(build: Path, machines: Machines, tmp_path: Path) -> None:
    """Three workers, one of which dies with a trial under way: every verdict, bug and image is that of a run
    on this machine, and nothing of the run is left on the workers."""
    alone, many = tmp_path / "alone", tmp_path / "many"
    assert run(build, *KILLS, out=alone).returncode == 1
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    workers = [worker(machines, TORNPAGE_TMP=str(scratch)) for _ in range(3)]
    owner = subprocess.Popen(
        command(*KILLS, "--cluster", f"dask://{machines.address}", out=many),
        env={**os.environ, BUILD_VARIABLE: str(build)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: verdicts(many / "tornpage.db") >= 4 or owner.poll() is not None)
    workers[0].send_signal(signal.SIGKILL)
    assert owner.poll() is None and verdicts(many / "tornpage.db") < 20, "the run was over too soon"
    told, errors = owner.communicate(timeout=DEADLINE_S)
    assert owner.returncode == 1, told + errors
    assert "cluster: " in errors and "tcp://127.0.0.1:" in errors and "dashboard: http" in errors
    assert tables(many) == tables(alone)
    assert images(many) == images(alone) != set()
    workers[0].wait()
    # What the killed one left is removed by the next that asks for a scratch folder.
    left = [path for path in scratch.iterdir() if path.name.startswith("tornpage-")]
    assert len(left) <= 1
    assert [
        child
        for child in psutil.Process().children(recursive=True)
        if "tornpage-launch" in child.name()
    ] == []


def test_explorations_on_local_workers(build: Path, tmp_path: Path) -> None:
    """Power loss: explorations that end in any order are stored as one after the other."""
    alone, many = tmp_path / "alone", tmp_path / "many"
    one, two = (
        run(build, *LOSSES, out=alone),
        run(build, *LOSSES, "--cluster", "local:2", out=many),
    )
    assert one.returncode == two.returncode == 1, one.stderr + two.stderr
    assert tables(many) == tables(alone)
    assert images(many) == images(alone) != set()


def sliced(build: Path, *arguments: str, out: Path) -> subprocess.Popen[str]:
    """A campaign of few explorations, each of many states, under way."""
    file = out.with_name("sliced.toml")
    file.write_text(CAMPAIGN)
    return subprocess.Popen(
        [
            *TORNPAGE,
            "run",
            str(file),
            "--json",
            "--go-on",
            "--jobs",
            "1",
            "--out",
            str(out),
            *arguments,
        ],
        env={**os.environ, BUILD_VARIABLE: str(build)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def slices(out: Path) -> list[Path]:
    """Those that have come back."""
    return sorted((out / "slices").glob("*/*/*-of-*"))


def summary_of(told: str, out: Path) -> dict[str, Any]:
    """What a run prints with --json, without times and places."""
    data = json.loads(told.splitlines()[-1].replace(str(out), ""))
    return {key: value for key, value in data.items() if not key.endswith("_per_s")}


def test_slices_of_states(build: Path, machines: Machines, tmp_path: Path) -> None:
    """One exploration is shared by three workers. One of them dies in the middle, then the owner; with
    --go-on the run goes on with the slices that are missing. Store, images and summary are those of a run on
    this machine."""
    alone, many = tmp_path / "alone" / "out", tmp_path / "many" / "out"
    for out in (alone, many):
        out.parent.mkdir()
    plain = sliced(build, out=alone)
    plain_told, errors = plain.communicate(timeout=DEADLINE_S)
    assert plain.returncode == 1, errors
    workers = [worker(machines) for _ in range(3)]
    cluster = ("--cluster", f"dask://{machines.address}")
    owner = sliced(build, *cluster, out=many)
    wait_for(lambda: len(slices(many)) >= 1 or owner.poll() is not None)
    workers[0].send_signal(signal.SIGKILL)
    wait_for(lambda: len(slices(many)) >= 2 or owner.poll() is not None)
    owner.kill()
    told, errors = owner.communicate(timeout=DEADLINE_S)
    assert not told, "the run was over too soon"
    assert slices(many)
    again = sliced(build, *cluster, out=many)
    told, errors = again.communicate(timeout=DEADLINE_S)
    assert again.returncode == 1, errors
    assert tables(many) == tables(alone)
    assert images(many) == images(alone) != set()
    assert summary_of(told, many) == summary_of(plain_told, alone)
    assert not (many / "slices").exists()


def test_others_than_the_owner_are_refused(build: Path, machines: Machines, tmp_path: Path) -> None:
    """Another program, several threads: exit code 2, the worker and what is other in one line, and no run."""
    other = tmp_path / "build"
    shutil.copytree(
        build / "engine", other / "engine", ignore=shutil.ignore_patterns("*.a", "CMakeFiles")
    )
    for part in ("faults", "explorer"):
        (other / part).symlink_to(build / part)
    with (other / "engine" / "engine").open("ab") as program:
        program.write(b"\0")
    first = worker(machines, **{BUILD_VARIABLE: str(other)})
    address = f"dask://{machines.address}"
    done = run(build, *KILLS, "--cluster", address, out=tmp_path / "out")
    assert done.returncode == 2 and "has another engine than" in done.stderr, done.stderr
    first.kill()
    first.wait()
    worker(machines, threads=2)
    done = run(build, *KILLS, "--cluster", address, out=tmp_path / "out")
    assert done.returncode == 2 and "--nthreads 1" in done.stderr, done.stderr
    for wrong in ("dask://nowhere", "local:0", "local:x"):
        with pytest.raises(ConfigError, match="expected dask://"), open_cluster(wrong, "engine"):
            pass
    assert not (tmp_path / "out" / "images").exists()


class Broken:
    """A future whose task failed for good."""

    def done(self) -> bool:
        return True

    def release(self) -> None:
        pass

    def result(self) -> None:
        raise type("KilledWorker", (Exception,), {"__module__": "distributed.scheduler"})


def test_what_fails_twice_is_a_failure_of_that_trial() -> None:
    """A trial that no worker could play is a harness failure with its reason; other work ends the run, which
    can go on."""
    spec = make_spec(number=7)
    job = Job(spec, None, Path(), Path())  # type: ignore[arg-type]
    told, result = _Handed(Broken(), job, partial(failed_trial, spec)).result()
    assert told == spec and result.number == 7
    assert result.outcome is Outcome.HARNESS_ERROR and "two workers" in result.reason
    with pytest.raises(MachineError):
        _Handed(Broken(), job, None).result()
