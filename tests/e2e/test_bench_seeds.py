"""The tables of the documents that the engine grew from: what is counted comes out in their ratio."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tornpage.faults.scratch import scratch_folder
from tornpage.lab.statements import find_server

pytestmark = pytest.mark.extended

ROWS = 4000


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page of `figures` is."""
    return tmp_path_factory.mktemp("bench") / "figures.html"


@pytest.fixture(scope="module")
def figures(page: Path) -> dict[int, dict[str, float]]:
    """Ours, by the number of the table and what it is."""
    with scratch_folder() as folder:
        command = [
            sys.executable,
            "-m",
            "tornpage",
            "bench",
            "seeds",
            "--rows",
            str(ROWS),
            "--json",
        ]
        command += ["--dir", str(folder), "--no-server", "--report", str(page)]
        left = set(folder.iterdir())
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        assert set(folder.iterdir()) == left
    found = json.loads(done.stdout)
    assert found["rows"] == ROWS
    return {t["number"]: {row["what"]: row["ours"] for row in t["rows"]} for t in found["tables"]}


@pytest.fixture(scope="module")
def published() -> dict[str, float]:
    """Redo of the documents in MB, for our number of rows."""
    logged = {"ADD INDEX": 25.724276, "FORCE": 219.959416}
    return {what: value * ROWS / 100_000 for what, value in logged.items()}


def test_redo(figures: dict[int, dict[str, float]], published: dict[str, float]) -> None:
    """Contents that are not logged save what the documents say; both formats log about the same."""
    redo = figures[3]
    for what, limit in published.items():
        logged = redo[f"{what}, 10.4, log_optimize_ddl=off"]
        assert logged <= limit
        assert redo[f"{what}, 10.4, log_optimize_ddl=on"] <= logged / 7
        assert 0.5 * logged <= redo[f"{what}, 10.5, log_optimize_ddl=off"] <= 1.5 * logged


def test_redo_of_the_server_stands_beside() -> None:
    """As the documents': of a build MariaDB logs more than the engine, of FORCE about the same, and that is
    several times as much."""
    if find_server() is None:
        pytest.skip("MariaDB, or its client, is not installed")
    command = [sys.executable, "-m", "tornpage", "bench", "seeds", "--only", "3", "--rows", "1000"]
    done = subprocess.run(
        [*command, "--json", "--dir", "/var/tmp"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    (table,) = json.loads(done.stdout)["tables"]
    rows = {row["what"].partition(",")[0]: row for row in table["rows"] if "10.5" in row["what"]}
    add, force = rows["ADD INDEX"], rows["FORCE"]
    for who in ("published", "ours", "server"):
        assert add[who] < force[who] / 4
    assert add["ours"] < add["server"]
    assert 0.7 < force["ours"] / force["server"] < 1.3


def test_copy_logs_what_force_logs(figures: dict[int, dict[str, float]]) -> None:
    """Undo and redo of single rows, or a load: the log is about the same."""
    assert 0.9 <= figures[5]["copy, redo"] / figures[5]["inplace, redo"] <= 1.2


def test_the_skip_saves_half_of_the_writes(figures: dict[int, dict[str, float]]) -> None:
    """With MDEV-19738 as with doublewrite off: half of the writes, none to the doublewrite area."""
    writes = figures[6]
    twice = writes["data_writes, each page doublewritten"]
    assert writes["dblwr_writes, each page doublewritten"] * 2 == twice
    for once in ("first write skips (MDEV-19738)", "doublewrite off"):
        assert writes[f"data_writes, {once}"] * 2 == twice
        assert writes[f"dblwr_writes, {once}"] == 0


def test_memory_and_flush_have_a_bound(figures: dict[int, dict[str, float]]) -> None:
    """32 indexes take no more memory than one; a larger pool is not looked through."""
    assert max(figures[7].values()) <= 1.048576  # 1 MiB
    assert len(set(figures[8].values())) == 1


def test_an_alter_tells_how_far_it_is(figures: dict[int, dict[str, float]]) -> None:
    """Each change is in the log, which has as much of it as the documents' has; the build is half done."""
    told = figures[9]
    assert told["rows in the log of row changes"] == 2003
    assert 20 < told["% of that log used"] < 25
    assert 50 < told["% done"] < 70


@pytest.mark.parametrize("name", ["linkbench", "tpcc"])
def test_compression_saves_space_and_no_page(
    figures: dict[int, dict[str, float]], name: str
) -> None:
    """The same pages go home, many of them compressed, and their files take less of the disk."""
    told = figures[10]
    assert 99 <= told[f"{name}, pages written"] <= 101
    assert told[f"{name}, of these compressed"] > 10
    assert 25 < told[f"{name}, bytes on the disk"] < 75


def test_the_page_draws_every_table(figures: dict[int, dict[str, float]], page: Path) -> None:
    """A chart of each, with a bar per figure and whoever has it, and the same as a table."""
    text = page.read_text("utf-8")
    assert text.count("<svg") == len(figures)
    for number, rows in figures.items():
        assert f"<figcaption>{number}. " in text
        for what, ours in rows.items():
            assert f"<td>{what}</td>" in text
            assert f"{ours:,.2f}" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "11"), "tornpage: --only 11: there are 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"),
        (("--rows", "1"), "tornpage: Invalid value for '--rows'"),
        (("--dir", "/nowhere"), "tornpage: Invalid value for '--dir'"),
    ],
)
def test_refusals(arguments: tuple[str, ...], message: str) -> None:
    """One line, exit code 2."""
    command = [sys.executable, "-m", "tornpage", "bench", "seeds", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.startswith(message)) == (2, True), done.stderr
