"""What the preload did not see refuses a campaign, and names file and range."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tornpage.faults.preload import preload_environment, preload_path
from tornpage.faults.stream import WHAT_TO_DO, stream_difference, unseen_changes
from tornpage.faults.trace import Trace
from tornpage.live.fault_free import run_fault_free
from tornpage.live.golden_run import take_golden_run
from tornpage.plans.campaign import fault_free_spec, load_campaign
from tornpage.targets.engine.target import EngineTarget
from tornpage.targets.registry import make_target
from tornpage.targets.target import Command, Recorded
from tornpage.vocabulary.errors import GoldenRunError
from tornpage.vocabulary.model import TrialSpec
from tornpage.vocabulary.paths import data_folder


def _spec(target: str = "engine") -> TrialSpec:
    campaign = load_campaign("smoke", data_folder("workloads"), target)
    return fault_free_spec(campaign, target, campaign.configs()[0])


def _record(build: Path, folder: Path, *operations: str, killed: bool = False) -> Trace:
    """What the test program does in folder/data, with contents. killed: as soon as a write behind the first
    4096 bytes is in the file."""
    data = folder / "data"
    data.mkdir()
    env = preload_environment(preload_path(build), data, folder / "trace", None)
    program = build / "faults" / "tests" / "faults_io_program"
    if killed:
        env["LD_PRELOAD"] += f" {build / 'faults' / 'tests' / 'libfaults_signal_write.so'}"
        env["TORNPAGE_TEST_SIGNAL"] = str(int(signal.SIGKILL))
    done = subprocess.run(
        [program, *operations],
        cwd=data,
        env={**env, "TORNPAGE_PAYLOAD": "full"},
        capture_output=True,
    )
    assert done.returncode == (-signal.SIGKILL if killed else 0)
    return Trace.load(folder / "trace")


def test_a_stream_gives_the_files(build: Path, tmp_path: Path) -> None:
    """Appends, holes, cuts, renames over files and of folders, names that are used again, removed files."""
    trace = _record(
        build,
        tmp_path,
        "mkdir d",
        "open 0 d/a wc",
        "write 0 5000 a",
        "pwrite 0 7 9000 b",
        "ftruncate 0 8000",
        "open 1 b wca",
        "write 1 100 c",
        "write 1 50 d",
        "rename d e",
        "rename b e/a",
        "pwrite 0 10 0 z",
        "open 2 b wc",
        "write 2 3000 f",
        "unlink b",
        "open 3 b wct",
        "write 3 20 g",
        "truncate b 7",
    )
    assert stream_difference(trace, tmp_path / "data", ()) == ""
    assert (tmp_path / "data" / "e" / "a").read_bytes() == b"c" * 100 + b"d" * 50


def test_an_exchange_is_in_it(build: Path, tmp_path: Path) -> None:
    """Each file has the other's name from then on, also for who has it open."""
    trace = _record(
        build,
        tmp_path,
        "open 0 f wc",
        "write 0 9 a",
        "open 1 e wc",
        "write 1 9 b",
        "renameat2 e f",
        "write 0 9 c",
    )
    assert stream_difference(trace, tmp_path / "data", ()) == ""
    assert (tmp_path / "data" / "e").read_bytes() == b"a" * 9 + b"c" * 9


def test_links_and_streams_are_in_it(build: Path, tmp_path: Path) -> None:
    """A further name, of which the first goes; a sync of everything changes nothing."""
    trace = _record(
        build,
        tmp_path,
        "open 0 f wc",
        "write 0 9 a",
        "link f g",
        "unlink f",
        "write 0 9 b",
        "sync_all",
    )
    assert stream_difference(trace, tmp_path / "data", ()) == ""
    assert (tmp_path / "data" / "g").read_bytes() == b"a" * 9 + b"b" * 9


@pytest.mark.parametrize(
    ("rename", "told"),
    [
        (
            "rename ../made f",
            "a rename of a file from outside into f in the folder is not followed",
        ),
        ("rename f ../gone", "a rename of f out of the folder is not followed"),
    ],
)
def test_a_rename_that_is_not_followed_is_refused(
    build: Path, tmp_path: Path, rename: str, told: str
) -> None:
    """Also over a file with the same bytes: what was written outside is not in the stream. Unless nothing is
    wanted of the file."""
    (tmp_path / "made").write_bytes(b"a" * 512)
    trace = _record(
        build, tmp_path, "open 0 f wc", "write 0 512 a", "open 1 e wc", "write 1 512 a", rename
    )
    assert stream_difference(trace, tmp_path / "data", ()) == f"{told}: {WHAT_TO_DO}"
    assert stream_difference(trace, tmp_path / "data", ("[ef]",)) == ""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: _overwrite(data / "f", 4097, b"xy"), "f differs in bytes 4097-4098"),
        (lambda data: os.truncate(data / "f", 10), "f has 10 bytes, and its stream gives 8192"),
        (lambda data: (data / "f").unlink(), "f is not there"),
        (lambda data: (data / "g").touch(), "g was not seen to be created"),
    ],
)
def test_a_change_that_is_not_in_the_stream_is_named(
    build: Path, tmp_path: Path, change: object, told: str
) -> None:
    """File and range; but nothing of files that are declared to change unseen."""
    trace = _record(build, tmp_path, "open 0 f wc", "write 0 8192 a")
    change(tmp_path / "data")  # type: ignore[operator]
    assert stream_difference(trace, tmp_path / "data", ()) == told
    assert stream_difference(trace, tmp_path / "data", ("[fg]",)) == ""


@pytest.mark.parametrize("offset", [5000, 9000], ids=["within", "behind the end"])
def test_a_write_that_a_kill_left_without_a_record_is_excused(
    build: Path, tmp_path: Path, offset: int
) -> None:
    """Its own bytes alone: what else differs is told as ever."""
    writes = ("pwrite 0 0 4000 a", "ftruncate 0 8192", f"pwrite 0 {offset} 7 b")
    trace = _record(build, tmp_path, "open 0 f wc", *writes, killed=True)
    file = tmp_path / "data" / "f"
    assert [(call.offset, call.length) for call in trace.under_way] == [(offset, 7)]
    assert file.read_bytes()[offset:] == b"b" * 7 + bytes(max(0, 8192 - offset - 7))
    assert stream_difference(trace, tmp_path / "data", ()) == ""
    _overwrite(file, offset - 1, b"x")
    told = stream_difference(trace, tmp_path / "data", ())
    assert told == f"f differs in bytes {offset - 1}-{offset - 1}"


def test_a_shared_mapping_is_told(build: Path, tmp_path: Path) -> None:
    """The preload marks it; the mark is read."""
    trace = _record(build, tmp_path, "open 0 f wc", "ftruncate 0 4096", "mmap 0")
    assert unseen_changes(trace, ()) == "mmap of f"
    assert unseen_changes(trace, ("f",)) == ""


def test_contents_are_all_that_is_left_out(build: Path, tmp_path: Path) -> None:
    """A trace without its contents is the one of the same run that did not ask for them."""
    target, spec = make_target("sqlite", build), _spec("sqlite")
    whole = run_fault_free(spec, target, tmp_path / "whole", contents=True).trace
    bare = run_fault_free(spec, target, tmp_path / "bare").trace
    data = tmp_path / "data"
    data.mkdir()
    command = target.run_command(data, tmp_path / "bare" / "script", spec.options)
    command = target.recorded(command, Recorded(data, tmp_path / "trace", spec.options))
    subprocess.run(command.argv, env=command.env, check=True, capture_output=True)
    plain = Trace.load(tmp_path / "trace")
    assert len(bare.data) < len(whole.data) // 4
    assert bare.data[64:] == plain.data[64:]
    assert Trace.load(tmp_path / "bare" / "trace").data == bare.data


class _Meddled(EngineTarget):
    """The engine, and a program that the preload is not loaded into writes to ibdata1 after it."""

    def run_command(self, data: Path, script: Path, options: Mapping[str, str]) -> Command:
        command = super().run_command(data, script, options)
        code = (
            "import os, subprocess, sys\n"
            "done = subprocess.run(sys.argv[2:])\n"
            "fd = os.open(sys.argv[1], os.O_WRONLY)\n"
            "os.pwrite(fd, b'meddled', 5000)\n"
            "sys.exit(done.returncode)\n"
        )
        env = {**command.env, "LD_PRELOAD": "", "MEDDLE": "1"}
        wrapper = (sys.executable, "-c", code, str(data / "ibdata1"), "/usr/bin/env")
        inner = [f"LD_PRELOAD={self.preload}", *command.argv]
        return replace(command, argv=(*wrapper, *inner), env=env, fork=None)

    def recorded(self, command: Command, how: Recorded) -> Command:
        recorded = super().recorded(command, how)
        return replace(recorded, env={**recorded.env, "LD_PRELOAD": ""})


def test_a_golden_run_that_somebody_else_wrote_to_is_refused(build: Path, tmp_path: Path) -> None:
    """Another process, a mapping, io_uring: whatever the way, the bytes are not in the stream."""
    made = make_target("engine", build)
    assert isinstance(made, EngineTarget)
    target = _Meddled(made.program, made.preload)
    with pytest.raises(GoldenRunError, match=r"ibdata1 differs in bytes 50\d\d-50\d\d"):
        take_golden_run(_spec(), target, tmp_path)
    shutil.rmtree(tmp_path / "data", ignore_errors=True)


def _overwrite(path: Path, offset: int, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, data, offset)
    os.close(fd)
