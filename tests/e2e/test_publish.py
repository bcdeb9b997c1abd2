"""What a run leaves for a CI system, and what its log looks like."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_support import Tornpage
from junitparser import Failure, JUnitXml

pytestmark = pytest.mark.extended

SMALL = ("--trials", "60", "--scripts", "1", "--fault-free", "2")


def test_a_run_that_fails_says_so_everywhere(tornpage: Tornpage, tmp_path: Path) -> None:
    """The control: exit code, JSON, JUnit and annotations tell the same bugs, and the line that replays each;
    the report of the store gives the same file again."""
    file, again = tmp_path / "junit.xml", tmp_path / "again.xml"
    answer = tornpage(
        "run",
        "smoke",
        "--option",
        "doublewrite=off",
        *SMALL,
        "--junit",
        str(file),
        GITHUB_ACTIONS="true",
    )
    assert answer.code == 1
    (suite,) = JUnitXml.fromfile(str(file))
    failures = [result for case in suite for result in case.result if isinstance(result, Failure)]
    assert suite.failures > 0
    bugs = answer.data["bugs"]
    assert {result.message.partition(",")[0] for result in failures} == {
        f"bug {bug['bug']}" for bug in bugs
    }
    for bug in bugs:
        assert any(
            f"fingerprint: {bug['fingerprint']}\n" in result.text
            and result.text.endswith(f"replay: {bug['replay']}")
            for result in failures
        )
    annotations = [line for line in answer.text.splitlines() if line.startswith("::error title=")]
    assert len(annotations) == len(bugs)
    assert tornpage("report", "--junit", str(again)).code == 1
    assert again.read_bytes() == file.read_bytes()


def test_a_log_has_lines_and_nothing_else(build: Path, tmp_path: Path) -> None:
    """Without a terminal: a line per phase on standard error, the summary on standard output, no control
    characters, no line cut in two."""
    done = subprocess.run(
        [sys.executable, "-m", "tornpage", "run", "smoke", *SMALL, "--out", str(tmp_path)],
        env={**os.environ, "TORNPAGE_BUILD": str(build), "GITHUB_ACTIONS": "", "COLUMNS": "40"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    phases = [line.split(" ", 1)[1].split(":")[0] for line in done.stderr.splitlines()]
    assert phases == ["golden runs", "fault-free runs", "trials"], done.stderr
    assert "trials: 60 of 60, " in done.stderr
    (paths,) = [line for line in done.stdout.splitlines() if line.startswith("recovery paths:")]
    assert len(paths) > 100 and "trx_rolled_back" in paths
    assert done.stdout.replace("\n", "").isprintable()
    assert done.stderr.replace("\n", "").isprintable()
