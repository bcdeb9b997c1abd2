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
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from builders import make_spec
from e2e_support import DEADLINE_S, PYTHON, call, verdicts
from kills import rows_of

from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError, MachineError
from tornpage.vocabulary.model import Outcome
from tornpage.vocabulary.paths import BUILD_VARIABLE
from tornpage.workers.cluster import _Handed, open_cluster
from tornpage.workers.pool import Job, failed_trial

pytestmark = pytest.mark.extended

KILLS = ("run", "smoke", "--option", "doublewrite=off", "--trials", "24", "--scripts", "1")
LOSSES = ("run", "powerloss", "--option", "doublewrite=off", "--states", "30", "--depth", "1")
CAMPAIGN = """
description = "two explorations of many states"
workload = "smoke"
crash_model = "power_loss"
seed = 7
fault_free = 2

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
EXPLORATIONS, SLICES = 2, 2
"""So many, of so many slices each."""
TABLES = (
    "trial",
    "violation",
    "golden_run",
    "golden_run_violation",
    "exploration",
    "bug",
    "sighting",
)
TASKS = """
from pathlib import Path
from distributed.diagnostics.plugin import SchedulerPlugin

class Tasks(SchedulerPlugin):
    def transition(self, key, start, finish, *args, **kwargs):
        with Path(__file__).with_suffix(".log").open("a") as file:
            file.write(f"{key} {finish}\\n")

def dask_setup(scheduler):
    scheduler.add_plugin(Tasks())
"""
"""What a scheduler loads here: it tells what becomes of each task, in a file that only grows."""


def few(*arguments: str, out: Path) -> list[str]:
    """A command with few fault-free runs and one worker process."""
    return [*arguments, "--fault-free", "2", "--jobs", "1", "--out", str(out)]


def run(build: Path, *arguments: str, out: Path) -> subprocess.CompletedProcess[str]:
    """To its end."""
    return call(Path.cwd(), *few(*arguments, out=out), **{BUILD_VARIABLE: str(build)})


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
    """A scheduler and the workers that were started for it. log: what became of its tasks."""

    address: str
    start: Callable[..., subprocess.Popen[bytes]]
    log: Path

    def tasks(self, work: str, became: str) -> dict[str, int]:
        """How many tasks of this work have ever become so, by the run that handed them out, in the order of
        the runs."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        keys = dict.fromkeys(line.split()[0] for line in lines if line.endswith(f" {became}"))
        ours = [key.split("-") for key in keys if key.startswith(f"{work}-")]
        return dict(Counter(run for _, run, _ in ours))


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

    tasks = tmp_path / "tasks.py"
    tasks.write_text(TASKS, "utf-8")
    start("scheduler", "--host", "127.0.0.1", "--port", str(port), "--preload", str(tasks))
    try:
        yield Machines(f"127.0.0.1:{port}", start, tasks.with_suffix(".log"))
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
        [*PYTHON, *few(*KILLS, "--cluster", f"dask://{machines.address}", out=many)],
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
    of_the_killed = [str(workers[0].pid)]  # a launcher's first argument: whom it works for
    assert [
        child.pid
        for child in psutil.process_iter(["cmdline"])
        if (child.info["cmdline"] or [])[1:2] == of_the_killed
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
    words = ["run", str(file), "--json", "--go-on", "--jobs", "1", "--out", str(out), *arguments]
    return subprocess.Popen(
        [*PYTHON, *words],
        env={**os.environ, BUILD_VARIABLE: str(build)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def explored(out: Path) -> set[str]:
    """The explorations of a store."""
    with Store(out / "tornpage.db", create=False, write=False) as store:
        return set(store.explorations(1))


def slices(out: Path) -> list[Path]:
    """Those that are kept, of explorations that are not done."""
    kept = sorted((out / "slices").glob("*/*/*-of-*"))
    done = explored(out) if kept else set()
    return [path for path in kept if golden_run_of(path)["config"] not in done]


def golden_run_of(path: Path) -> dict[str, Any]:
    """What stands behind the hash of a slice that is kept."""
    golden_run: dict[str, Any] = json.loads(path.read_bytes().split(b"\n", 2)[1])
    return golden_run


def killed_with_slices(owner: subprocess.Popen[str], out: Path) -> list[Path]:
    """Kills the owner when it has kept some, whatever it does next with them: it stands still while they are
    looked for. Those that it leaves."""
    process = psutil.Process(owner.pid)
    kept: list[Path] = []
    try:
        while not kept:
            wait_for(lambda: any(out.glob("slices/*/*/*-of-*")) or owner.poll() is not None)
            assert owner.poll() is None, "the run was over too soon"
            process.suspend()
            wait_for(lambda: process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE))
            kept = slices(out)
            if not kept:
                process.resume()
    finally:
        owner.kill()
    told, _ = owner.communicate(timeout=DEADLINE_S)
    assert not told, "the run was over too soon"
    return kept


def summary_of(told: str, out: Path) -> dict[str, Any]:
    """What a run prints with --json, without times and places."""
    data = json.loads(told.splitlines()[-1].replace(str(out), ""))
    return {key: value for key, value in data.items() if not key.endswith("_per_s")}


def test_slices_of_states(build: Path, machines: Machines, tmp_path: Path) -> None:
    """One exploration is shared by three workers. One of them dies in the middle, then the owner; with
    --go-on the run goes on with the slices that are missing, and hands out no other. Store, images and
    summary are those of a run on this machine."""
    alone, many = tmp_path / "alone" / "out", tmp_path / "many" / "out"
    for out in (alone, many):
        out.parent.mkdir()
    plain = sliced(build, out=alone)
    plain_told, errors = plain.communicate(timeout=DEADLINE_S)
    assert plain.returncode == 1, errors
    workers = [worker(machines) for _ in range(3)]
    cluster = ("--cluster", f"dask://{machines.address}")
    owner = sliced(build, *cluster, out=many)
    wait_for(lambda: bool(machines.tasks("run_slice", "memory")) or owner.poll() is not None)
    workers[0].send_signal(signal.SIGKILL)
    kept = killed_with_slices(owner, many)
    missing = SLICES * (EXPLORATIONS - len(explored(many))) - len(kept)
    assert 0 < missing < SLICES * EXPLORATIONS
    again = sliced(build, *cluster, out=many)
    told, errors = again.communicate(timeout=DEADLINE_S)
    assert again.returncode == 1, errors
    _, handed = machines.tasks("run_slice", "waiting").values()
    assert handed == missing
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
