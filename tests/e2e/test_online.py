"""LOCK=NONE: the engine does what the oracle predicts, to the byte, and tells of it as MariaDB does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.oracle.state import read_tables
from tornpage.workloads.parse import parse_script
from tornpage.workloads.script import Script
from tornpage.workloads.workload import fit_params, generate

SMALL = {"sort_buffer_size": "64k", "online_alter_log_max_size": "64k"}


def run(build: Path, folder: Path, text: str, options: dict[str, str]) -> list[dict[str, Any]]:
    """The answers of a run: each `status`, then what came of the statements."""
    (script := folder.with_suffix(".txt")).write_text(text, encoding="ascii")
    sets = [word for key, value in options.items() for word in ("--option", f"{key}={value}")]
    done = subprocess.run(
        [build / "engine" / "engine", "run", folder, script, "--json", *sets],
        capture_output=True,
        timeout=300,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_predicted(build: Path, folder: Path, script: Script, options: dict[str, str]) -> None:
    """Every error, and the tables at the end, are the oracle's; the scanner finds nothing."""
    oracle = Oracle(script, options)
    answer = run(build, folder, script.text, options)[-1]
    failed = {item["line"]: item["error"] for item in answer["failed"]}
    assert failed == {step.line: step.error for step in oracle.steps if step.error}
    done = subprocess.run(
        [build / "engine" / "engine", "check", "--json", folder],
        capture_output=True,
        timeout=60,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["findings"] == []
    assert read_tables(found["tables"]) == oracle.states[-1]


@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.parametrize("what", ["index t i(v)", "index t i(v) j(k)", "rebuild t"])
def test_a_log_overflows_where_the_oracle_says(
    build: Path, tmp_path: Path, what: str, spare: int
) -> None:
    """One byte decides: entries of 1 + 10 + 8 bytes, or rows of 1 + 18, in 65536, rollbacks included."""
    inserts = 65536 // 19 + spare
    text = (
        "create table t k:bigint v:char(10) primary k\n"
        f"start {what} lock=none\n"
        "begin T\ninsert_seq T t 1 100\ninsert T t k=1\nrollback T\n"
        f"insert_seq - t 1 {inserts - (200 if 'index' in what else 148)}\n"
        "step index t 9 999\nfinish index t\n"
    )
    script = parse_script(text)
    errors = [step.error for step in Oracle(script, SMALL).steps if step.error]
    assert errors == ["DB_DUPLICATE_KEY"] + ["DB_ONLINE_LOG_TOO_BIG"] * spare
    assert_predicted(build, tmp_path / "db", script, SMALL)


@pytest.mark.parametrize("seed", range(40, 52))
def test_scripts_of_the_mix_come_to_what_the_oracle_says(
    build: Path, tmp_path: Path, seed: int
) -> None:
    """Builds beside changes of several sessions, rollbacks, duplicates, overflows."""
    script = generate("mix", fit_params("mix", {}, SMALL), seed)
    assert_predicted(build, tmp_path / "db", script, SMALL)


def test_the_status_of_an_online_alter(build: Path, tmp_path: Path) -> None:
    """MariaDB's example in kind: 150,000 rows are altered; 2,003 changes are in the log while that goes on,
    which are 23 % of it; progress is told in every phase, the merge sort's too, and never falls."""
    changes = "insert - t a=-1\ndelete - t a=149999\n" + "".join(
        f'update - t a={a} set b="changed {a}"\n' for a in range(1, 2002)
    )
    step = "step index t 1 9000\nstatus\n"
    first, second = step * 25, step * 95
    text = (
        "create table t a:bigint b:char(90) c:bigint primary a\ninsert_seq - t 1 150000\n"
        f"add index t ib(b)\nstart rebuild t lock=none\n{first}{changes}status\n{second}"
        "finish index t\nstatus\nscan t ib\n"
    )
    options = {"online_alter_log_max_size": "960k", "sort_buffer_size": "192k"}
    options |= {"buffer_pool_pages": "4096", "log_file_size": "64m", "flush_log_at_trx_commit": "0"}
    *answers, last = run(build, tmp_path / "db", text, options)
    assert last["failed"] == []
    statuses = [answer["status"] for answer in answers if "status" in answer]
    progress = [status["onlineddl_pct_progress"] for status in statuses[:-1]]
    assert progress == sorted(progress)
    assert progress[-1] == 10000
    assert len(set(progress)) > 20
    during_merge = {
        status["onlineddl_pct_progress"] for status in statuses if status["sort_merges"] > 0
    }
    assert len(during_merge) > 3
    status = statuses[25]
    assert status["onlineddl_rowlog_rows"] == 2003
    records = 2002 * (1 + 106) + 1 + 8
    assert status["onlineddl_rowlog_pct_used"] == records * 10000 // (960 * 1024)
    assert 2000 < status["onlineddl_rowlog_pct_used"] < 2500
    assert 0 < status["onlineddl_pct_progress"] < 10000
    assert statuses[-1]["rowlog_applied"] == 2003
    assert statuses[-1]["onlineddl_pct_progress"] == statuses[-1]["onlineddl_rowlog_rows"] == 0
