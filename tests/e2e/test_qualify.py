"""The fault layer before an independent judge: fio finds every fault, and nothing where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tornpage.lab.qualify import CASES, ENGINES, Case, Finding, qualify
from tornpage.vocabulary.model import Action, Fault, FaultKind
from tornpage.vocabulary.paths import Paths, data_folder, tmpfs_folder

DEADLINE_S = 240
CLEAN, DROPPED = CASES[:2]


@pytest.fixture
def paths(build: Path) -> Paths:
    """The checkout's jobs and the build under test."""
    return Paths(build, data_folder("workloads"), data_folder("reports"), Path("out"))


def run_one(paths: Paths, case: Case, engine: str = "psync") -> Finding:
    """One case on one engine of fio."""
    told: list[str] = []
    checks = qualify(paths, told.append, [engine], [case])
    assert told == [checks[0].name]
    return checks[0]


def test_fio_finds_every_fault(build: Path) -> None:
    """Both engines, all cases, through the command line; one JSON object, exit code 0."""
    done = subprocess.run(
        [sys.executable, "-m", "tornpage", "qualify", "--json"],
        env={**os.environ, "TORNPAGE_BUILD": str(build)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    data = json.loads(done.stdout)
    checks = data["checks"]
    assert [check for check in checks if not check["ok"]] == []
    wanted = [f"fio {engine}: {case.name}" for engine in ENGINES for case in CASES]
    assert [check["name"] for check in checks] == wanted
    assert data["ok"], done.stdout
    assert done.returncode == 0


def test_a_fault_that_never_fires_fails(paths: Paths) -> None:
    """The clean file alone is no proof."""
    late = Fault(FaultKind.WRITE, 100_000, Action.DROP, file="data")
    check = run_one(paths, Case("late", late))
    assert not check.ok
    assert "0 hits" in check.seen
    assert check.remedy


def with_jobs(paths: Paths, folder: Path, *lines: str) -> Paths:
    """The jobs with other lines where they ask for verification."""
    jobs = folder / "fio"
    jobs.mkdir()
    for job in (paths.workloads / "fio").glob("*.fio"):
        text = job.read_text("utf-8").replace("verify=crc32c\n", "".join(f"{x}\n" for x in lines))
        (jobs / job.name).write_text(text, "utf-8")
    return replace(paths, workloads=folder)


def test_a_job_that_does_not_verify_fails(paths: Paths, tmp_path: Path) -> None:
    """Also where nothing was damaged; a damaged block goes unnoticed and that is said."""
    blind = with_jobs(paths, tmp_path)
    assert "0 reads" in run_one(blind, CLEAN).seen
    check = run_one(blind, DROPPED)
    assert not check.ok
    assert "did not find the damage" in check.seen


def test_verification_that_cannot_see_the_damage_fails(paths: Paths, tmp_path: Path) -> None:
    """verify=null reads every block and compares nothing: all counts agree, only the finding is missing."""
    blind = with_jobs(paths, tmp_path, "verify=null")
    assert run_one(blind, CLEAN).ok
    check = run_one(blind, DROPPED)
    assert not check.ok
    assert check.seen.startswith("fio did not find the damage")


def test_an_engine_that_the_preload_cannot_see_fails(paths: Paths) -> None:
    """mmap writes without a call: fio is content, the record is empty."""
    check = run_one(paths, CLEAN, "mmap")
    assert not check.ok
    assert "the preload saw 0 writes" in check.seen
    assert "fio tells" not in check.seen


def test_a_hung_job_is_ended_and_fails(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fio's job is a session of its own: it must not outlive the deadline of the program that was started."""
    monkeypatch.setattr("tornpage.lab.qualify.DEADLINE_S", 1.0)
    check = run_one(with_jobs(paths, tmp_path, "verify=crc32c", "rate_iops=1"), CLEAN)
    assert not check.ok
    assert "hung" in check.seen
    wait_until_no_fio(str(tmpfs_folder() / f"tornpage-{os.getpid()}-"))


def wait_until_no_fio(prefix: str) -> None:
    """Until no process works in such a folder; killed ones are reaped by init in their own time."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        folders = [process.info["cwd"] or "" for process in psutil.process_iter(["cwd"])]
        if not any(folder.startswith(prefix) for folder in folders):
            return
        time.sleep(0.02)
    raise AssertionError("a job of fio lives on")


def test_a_broken_surrounding_is_a_failed_check(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No preload, an unknown engine of fio, no fio: a line with what to do, never an exception."""
    assert run_one(paths, CLEAN, "nosuch").ok is False
    [check] = qualify(replace(paths, build=tmp_path), lambda _: None)
    assert (check.ok, check.remedy) == (False, "make build")
    monkeypatch.setenv("PATH", str(tmp_path))
    [check] = qualify(paths, lambda _: None)
    assert (check.ok, check.remedy) == (False, "make setup-all")
