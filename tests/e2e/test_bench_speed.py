"""`tornpage bench speed`: every table is made by a run of little of everything."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.extended


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`tornpage bench speed`."""
    command = [sys.executable, "-m", "tornpage", "bench", "speed", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)


def rows_of(name: str) -> list[dict[str, Any]]:
    """Of the only table."""
    done = bench("--rounds", "1", "--share", "1", "--only", name, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "cores, Linux" in told["machine"]
    (table,) = told["tables"]
    assert table["name"] == name
    return list(table["rows"])


def test_crashes_are_judged_on_one_worker_and_two() -> None:
    """The engine with three sizes of data, SQLite, kills, and what there is without Tornpage."""
    rows = rows_of("crashes")
    found = {(row["what"], row["workers"]): row["median per s"] for row in rows}
    both = [f"power loss, {n} rows" for n in (48, 192, 768)] + ["power loss, SQLite", "live kills"]
    assert {(what, workers) for what in both for workers in (1, 2)} <= found.keys()
    assert {("kill -9 in a loop", 1), ("recovery alone", 1)} <= found.keys()
    assert all(rate > 0 for rate in found.values())
    assert all(row["cpu ms of one"] > 0 for row in rows)


def test_a_cluster_is_measured_beside_worker_processes() -> None:
    """Of each one worker and two, for states and kills."""
    found = {(row["what"], row["workers"]): row["median per s"] for row in rows_of("cluster")}
    ways = [
        f"{what}, {who}"
        for what in ("power loss", "live kills")
        for who in ("processes", "cluster")
    ]
    assert found.keys() == {(way, workers) for way in ways for workers in (1, 2)}
    assert all(rate > 0 for rate in found.values())


def test_writes_cost_more_when_contents_are_recorded() -> None:
    """Each size, with and without fsync, by one thread and several."""
    rows = rows_of("recorder")
    cases = {(row["write"], row["fsync"], row["threads"]) for row in rows}
    assert cases == {(w, f, n) for w in ("4k", "16k") for f in ("no", "yes") for n in (1, 2, 8)}
    assert all(row["ns"] > 0 and row["cpu x contents"] > 1 for row in rows)
    assert all(row["cpu x stacks"] > 1 for row in rows)
    if "-" in {row["x fs"] for row in rows}:
        pytest.skip("the file system that records cannot be mounted")
    assert all(row["x fs"] > 1 for row in rows)


@pytest.mark.parametrize(
    ("name", "column"), [("load", "rows per cpu s"), ("owner", "per s"), ("report", "median s")]
)
def test_further_tables(name: str, column: str) -> None:
    """Index loads, what the owner of a run does alone, and the report of a large run."""
    assert all(row[column] > 0 for row in rows_of(name))


def test_an_unknown_table_is_refused() -> None:
    """With the names that there are."""
    done = bench("--only", "nothing")
    assert done.returncode == 2
    assert (
        "--only nothing: there are recorder, load, crashes, targets, cluster, owner, report"
        in done.stderr
    )
