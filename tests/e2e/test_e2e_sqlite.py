"""SQLite under the preload: recorded, killed, recovered, judged; its verifier agrees with another reader."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from e2e_support import Tornpage
from sqlite_reader import examine

from tornpage.faults.preload import WHOLE
from tornpage.faults.trace import FilePaths, Op, Trace
from tornpage.oracle.oracle import Oracle
from tornpage.oracle.state import read_tables
from tornpage.targets.registry import make_target
from tornpage.targets.target import Recorded
from tornpage.workloads.workload import generate

OPTIONS = {"cache_size": "10", "wal_autocheckpoint": "40"}


def record(build: Path, folder: Path, options: dict[str, str], text: str) -> Trace:
    """Runs a script under the preload, with contents; folder/data stays."""
    folder.mkdir()
    (folder / "data").mkdir()
    (folder / "script").write_text(text, "ascii")
    target = make_target("sqlite", build)
    command = target.run_command(folder / "data", folder / "script", options)
    command = target.recorded(command, Recorded(folder / "data", folder / "trace", options))
    child = command.run(WHOLE)
    assert target.parse_run(child).ok, child.stderr
    return Trace.load(folder / "trace")


def files_after(trace: Trace, seq: int, folder: Path) -> None:
    """The files as they are in the page cache after event `seq`, -shm left out: a kill's image."""
    folder.mkdir()
    paths = FilePaths()
    contents: dict[str, bytearray] = {}
    for event in trace.events():
        if event.seq > seq:
            break
        paths.see(trace, event)
        path = paths[event.file]
        if event.kind == Op.OPEN and not event.flags & 2:
            contents.setdefault(trace.text(event), bytearray())
        elif event.kind == Op.WRITE:
            data = contents[path]
            end = event.offset + event.result
            data.extend(bytes(max(0, end - len(data))))
            data[event.offset : end] = trace.payload(event)[: event.result]
        elif event.kind == Op.TRUNCATE:
            data = contents[path]
            data.extend(bytes(max(0, event.offset - len(data))))
            del data[event.offset :]
        elif event.kind == Op.UNLINK and event.result == 0:
            contents.pop(trace.text(event), None)
    for path, data in contents.items():
        if not path.endswith("-shm"):
            (folder / path).write_bytes(data)


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_verifiers_agree_on_crashed_images(build: Path, tmp_path: Path, mode: str) -> None:
    """At instants all along a run, what Python and C recover is the same commit prefix."""
    script = generate("sqlite_smoke", {}, 3)
    oracle = Oracle(script)
    options = {**OPTIONS, "journal_mode": mode}
    trace = record(build, tmp_path / "run", options, script.text)
    folders = []
    for seq in range(1, trace.events_declared, trace.events_declared // 24):
        files_after(trace, seq, tmp_path / str(seq))
        shutil.copytree(tmp_path / str(seq), tmp_path / f"{seq}c")
        folders.append(tmp_path / str(seq))
    program = build / "explorer" / "targets" / "sqlite" / "verify_sqlite"
    answers = subprocess.run(
        [program],
        input="".join(f"{folder}c\n" for folder in folders).encode(),
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    found = []
    for folder, line in zip(folders, answers, strict=True):
        mine, theirs = examine(folder), json.loads(line)
        assert mine["ok"] and mine["check"] == theirs["check"]
        found.append(oracle.states.index(read_tables(mine["check"]["tables"])))
    assert found == sorted(found)
    assert len(set(found)) > 10


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_recording_is_deterministic(build: Path, tmp_path: Path, mode: str) -> None:
    """The same script gives the same events, log salts and journal checksums included."""
    script = generate("sqlite_smoke", {}, 7)
    options = {**OPTIONS, "journal_mode": mode}
    first, second = (record(build, tmp_path / n, options, script.text) for n in "ab")
    assert first.body == second.body


def test_synchronous_decides_how_often_is_synced(build: Path, tmp_path: Path) -> None:
    """The settings reach SQLite: off never syncs, full syncs the log more often than normal."""
    script = generate("sqlite_smoke", {}, 2)
    syncs = {}
    for level in ("off", "normal", "full"):
        trace = record(build, tmp_path / level, {**OPTIONS, "synchronous": level}, script.text)
        syncs[level] = sum(event.kind in (Op.FSYNC, Op.FDATASYNC) for event in trace.events())
    assert syncs["off"] == 0 < syncs["normal"] < syncs["full"]


def test_kills_inside_writes_lose_nothing(tornpage: Tornpage) -> None:
    """A kill loses nothing that was written: the last acknowledged commit is there, or the one in flight."""
    run = ("run", "smoke", "--target", "sqlite")
    answer = tornpage(*run, "--trials", "24", "--scripts", "1", "--fault-free", "1")
    assert answer.code == 0, answer.text
    assert answer.data["violations"] == 0
    assert answer.data["exercised"] > 21
    assert answer.data["claims_missed"] == answer.data["uncovered_sites"] == []


def test_power_loss_keeps_the_promises(tornpage: Tornpage) -> None:
    """WAL with full is clean under every model; with off it is caught, also as corruption."""
    clean = tornpage("run", "powerloss", "--target", "sqlite", "--states", "600", "--scripts", "1")
    assert clean.code == 0, clean.text
    assert clean.data["violations"] == 0
    off = ("--option", "synchronous=off")
    caught = tornpage(
        "run", "powerloss", "--target", "sqlite", "--states", "600", "--scripts", "1", *off
    )
    assert caught.code == 1, caught.text
    assert {"I1", "I30"} <= set(caught.data["by_invariant"])


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_recovery_may_be_crashed_too(mode: str, tornpage: Tornpage) -> None:
    """What SQLite writes when it opens a crashed database is recorded and crashed again."""
    answer = tornpage(
        *("run", "powerloss", "--target", "sqlite", "--depth", "2", "--scripts", "1"),
        *("--states", "1500", "--option", f"journal_mode={mode}", "--option", "synchronous=extra"),
    )
    assert answer.code == 0, answer.text
    assert answer.data["depth"] == 2 and answer.data["counters"]["second_crash"] > 150


@pytest.mark.extended
def test_rollback_journal_needs_extra_to_be_durable(tornpage: Tornpage) -> None:
    """Full does not sync the unlink of the journal, and may lose the last commit; extra is clean."""
    answers = [
        tornpage(
            *("run", "powerloss", "--target", "sqlite", "--states", "600", "--scripts", "1"),
            *("--option", "journal_mode=delete", "--option", f"synchronous={level}"),
        )
        for level in ("full", "extra")
    ]
    assert [answer.code for answer in answers] == [1, 0], answers[0].text + answers[1].text
    assert set(answers[0].data["by_invariant"]) == {"I1"}
