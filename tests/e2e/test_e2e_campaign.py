"""Whole campaigns: clean on the product engine, deterministic, resumable; a control that must fail."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from e2e_support import Tornpage


def test_the_clean_engine_raises_no_alarm(tornpage: Tornpage) -> None:
    """Every site is hit, every claimed recovery path is taken, and nothing is broken."""
    answer = tornpage("run", "smoke", "--trials", "240", "--scripts", "2", "--fault-free", "8")
    assert answer.code == 0, answer.text
    data = answer.data
    assert data["violations"] == 0
    assert data["exercised"] + data["not_exercised"] == data["trials"] == 240
    assert data["not_exercised"] < 24 and data["vacuous"] == 0
    assert (data["scripts"], data["fault_free"]) == (4, 8)
    assert data["uncovered_sites"] == data["claims_missed"] == []
    for path in ("dblwr_restored", "index_load_reads", "indexes_dropped"):
        assert data["counters"][path] > 0
    assert Path(data["report"]).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_failed_writes_and_fsyncs_raise_no_alarm(tornpage: Tornpage) -> None:
    """The engine stops, acknowledges nothing more, and recovers what it had acknowledged."""
    answer = tornpage("run", "io_error", "--trials", "240", "--scripts", "2")
    assert answer.code == 0, answer.text
    data = answer.data
    assert data["exercised"] + data["not_exercised"] == data["trials"] == 240
    assert data["vacuous"] == 0
    assert data["uncovered_sites"] == []
    in_recovery = sum(n for site, n in data["by_site"].items() if site.startswith("recovery:"))
    assert data["counters"]["nested_errors"] == in_recovery > 30


def test_a_fault_in_recovery_replays_from_the_store(tornpage: Tornpage, tmp_path: Path) -> None:
    """The plan in the store is the one that was played: the kill, and the fault of the recovery after it;
    behind a failed operation there may be a kill."""
    campaigns = (("smoke", "60", {1}), ("io_error", "40", {1, 2}))
    for number, (campaign, trials, expected) in enumerate(campaigns, start=1):
        tornpage("run", campaign, "--trials", trials, "--scripts", "1", "--fault-free", "0")
        with sqlite3.connect(tmp_path / "out" / "tornpage.db") as db:
            rows = db.execute(
                "select number, json_array_length(spec, '$.plan.recover[0]') from trial"
                " where run = ? and site like 'recovery:%' and outcome = 'clean'",
                (number,),
            ).fetchall()
        assert {faults for _, faults in rows} == expected
        for trial, _ in rows[:2]:
            again = tornpage("replay", f"{number}.{trial}")
            assert again.code == 0, again.text
            assert again.data["same_verdict"]


def test_the_same_seed_gives_the_same_verdicts(tornpage: Tornpage, tmp_path: Path) -> None:
    """trace_hash does not depend on the number of workers; another seed gives another one."""
    runs = []
    short = ("--scripts", "1", "--fault-free", "2", "--option", "params.phases=5")
    run = ("run", "mix_kill", "--trials", "16", *short)
    for seed, jobs in [("5", "1"), ("5", "2"), ("6", "2")]:
        out = tmp_path / f"{seed}-{jobs}"
        runs.append(tornpage(*run, "--seed", seed, "--jobs", jobs, out=out))
    hashes = [run.data["trace_hash"] for run in runs]
    assert hashes[0] == hashes[1] != hashes[2]
    assert runs[0].data["counters"] == runs[1].data["counters"]


def test_without_doublewrite_torn_pages_are_found_and_replay(
    tornpage: Tornpage, tmp_path: Path
) -> None:
    """The control: exit code 1, only I5, and each of the first findings replays from its line."""
    small = ("run", "smoke", "--scripts", "1", "--fault-free", "0", "--trials")
    answer = tornpage(*small, "40", "--option", "doublewrite=off")
    assert answer.code == 1, answer.text
    assert set(answer.data["by_invariant"]) == {"I5"}
    with sqlite3.connect(tmp_path / "out" / "tornpage.db") as db:
        numbers = [row[0] for row in db.execute("select distinct trial from violation limit 3")]
    assert len(numbers) == 3
    for number in numbers:
        again = tornpage("replay", f"1.{number}")
        assert again.code == 1, again.text
        assert again.data["same_verdict"]
        assert again.data["result"]["torn"]["kept"]


def test_a_killed_harness_loses_no_verdict(tornpage: Tornpage, tmp_path: Path, build: Path) -> None:
    """SIGKILL in the middle, then --resume: the result equals that of a fault-free run."""
    out = tmp_path / "killed"
    size = ("--trials", "30", "--scripts", "1", "--fault-free", "2", "--jobs", "1")
    command = [
        sys.executable,
        "-m",
        "tornpage",
        "run",
        "smoke",
        *size,
        "--json",
    ]
    with subprocess.Popen(
        [*command, "--out", str(out)],
        env={**os.environ, "TORNPAGE_BUILD": str(build)},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:
        finished = wait_for_verdicts(out / "tornpage.db", 10)
        os.killpg(child.pid, signal.SIGKILL)
    resumed = tornpage("run", "smoke", "--resume", out=out)
    whole = tornpage("run", "smoke", *size, out=tmp_path / "whole")
    assert 10 <= finished < 30
    assert resumed.data["trials"] == 30
    assert resumed.data["trace_hash"] == whole.data["trace_hash"]


def wait_for_verdicts(store: Path, count: int) -> int:
    """Polls the store until so many verdicts are in it; returns their number."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if store.exists():
            try:
                with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
                    found = int(
                        db.execute(
                            "select count(*) from trial where outcome is not null"
                        ).fetchone()[0]
                    )
            except sqlite3.OperationalError:
                found = 0
            if found >= count:
                return found
        time.sleep(0.02)
    raise AssertionError("the campaign made no progress")


def test_a_configuration_whose_run_fails_is_a_finding(
    tornpage: Tornpage, tmp_path: Path, build: Path
) -> None:
    """The target fails with nothing done to it: a violation with a line that repeats it; the others go on."""
    folder = tmp_path / "build"
    (folder / "engine").mkdir(parents=True)
    for part in ("faults", "explorer"):
        (folder / part).symlink_to(build / part)
    program = folder / "engine" / "engine"
    program.write_text(
        '#!/bin/sh\ncase "$*" in *log_optimize_ddl=off*) exit 1;; esac\n'
        f'exec {build}/engine/engine "$@"\n'
    )
    program.chmod(0o755)
    few = ("--scripts", "1", "--fault-free", "2")
    kills = tornpage("run", "smoke", *few, "--trials", "4", TORNPAGE_BUILD=str(folder))
    losses = tornpage("run", "powerloss", *few, "--states", "20", TORNPAGE_BUILD=str(folder))
    assert kills.data["trials"] == 4 and losses.data["states"] > 0
    for answer in (kills, losses):
        assert answer.code == 1, answer.text
        assert set(answer.data["by_invariant"]) == {"I0"}
        report = Path(answer.data["report"]).read_text("utf-8")
        line = re.search(r"tornpage (replay \d+\.s\d+) --out", report)
        assert line is not None
        again = tornpage(*line[1].split(), TORNPAGE_BUILD=str(folder))
        assert again.code == 1 and again.data["same_verdict"], again.text


def test_usage_errors_are_one_line_and_exit_2(tornpage: Tornpage, tmp_path: Path) -> None:
    """Unknown campaign, bad setting, unknown option value, unknown trial."""
    cases = [
        (("run", "nothing"), "there are: "),
        (("run", "smoke", "--option", "oops"), "NAME=VALUE"),
        (("run", "smoke", "--option", "page_size=5k", "--trials", "1"), "page_size"),
        (("run", "smoke", "--target", "oracle9"), "no target"),
        (("run", "smoke-command"), "tornpage run smoke --target FILE"),
        (("run", "nothing-command"), "no campaign 'nothing-command'; did you mean "),
        (("try", "sqlite"), "tornpage run smoke --target sqlite"),
        (("run", "powerloss", "--models", "half-torn"), "there are: all-persisted, "),
        (("replay", "1.1"), "no result database"),
        (("replay", "x"), "RUN.NUMBER"),
    ]
    for number, (arguments, message) in enumerate(cases):
        answer = tornpage(*arguments, out=tmp_path / str(number))
        assert answer.code == 2, answer.text
        assert message in answer.text
        assert "Traceback" not in answer.text
