"""The walks of FINDINGS.md and LOST_KEY.md: every command runs as it stands and ends as the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tornpage.vocabulary.paths import ROOT

pytestmark = pytest.mark.extended

FENCE = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"# exit code (\d)")
FOUND = (
    "bug 3, new, always with bug 1: page torn: torn page # of #: no doublewrite copy (bad checksum)",
    "torn page 7 of ibdata1: no doublewrite copy",
    "trial 1.1",
    "reproduced",
    "accused write ib_logfile0",
    "skip_drain: INDEX_LOAD of index 34",
    "doublewrite copy of page 1:40: none: nothing was written to the area before",
    "redo records of page 1:40: since the checkpoint",
    "255 -> 1",
    "torn    write ibdata1, page 4, system page 11000000",
    "5 operations were not synced",
    "bad checksum",
    "not reproduced: fixed?",
)
LOST = (
    "1057 broke the promise",
    "100 kills, 100 exercised: 0 broke the promise",
    "VIOLATIONS (exit 1): 1 new bug",
    "        6 lost    write store.log, 1,215 bytes at 0, redo",
    "        7         ack 1",
    "- rows: key1=1",
    "lost: acknowledged at operation 7 (statement 1), no fsync of store.log since operation 6",
    "not reproduced: fixed?",
    "CLEAN (exit 0)",
)
"""What the pages say that the commands print, in this order."""


def test_from_a_red_row_to_the_cause(tmp_path: Path, build: Path) -> None:
    """With a planted bug of the engine; the report names it, and later that it is gone."""
    walk("FINDINGS.md", FOUND, tmp_path, build)
    report = (tmp_path / "out" / "report-1.html").read_text("utf-8")
    assert "bad checksum" in report
    gone = (tmp_path / "out" / "report-3.html").read_text("utf-8").partition("<h3>Gone</h3>")[2]
    assert "bad checksum" in gone


def test_from_a_lost_key_to_the_missing_fsync(tmp_path: Path, build: Path) -> None:
    """With a store of somebody's own; the report has what `show` has."""
    walk("LOST_KEY.md", LOST, tmp_path, build)
    report = (tmp_path / "out" / "report-1.html").read_text("utf-8")
    assert "no fsync of store.log since operation 6" in report


def walk(page: str, said: Sequence[str], tmp_path: Path, build: Path) -> None:
    """In a folder of its own that has the programs; one shell, as a person's."""
    (tmp_path / "build").symlink_to(build.parent)
    text = (ROOT / "docs" / page).read_text("utf-8")
    lines = [line for block in FENCE.findall(text) for line in block.splitlines()]
    assert len(lines) >= 7
    program = f'tornpage() {{ "{sys.executable}" -m tornpage "$@"; }}'
    checked = [program]
    for line in lines:
        code = CODE.search(line)
        wanted = code[1] if code else "0"
        checked.append(f'{line}\n[ $? = {wanted} ] || {{ echo "not {wanted}: {line}"; exit 9; }}')
    env = {name: value for name, value in os.environ.items() if name != "TORNPAGE_BUILD"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(checked)],
        cwd=tmp_path,
        env=env | {"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    at = 0
    for text in said:
        at = done.stdout.find(text, at)
        assert at >= 0, text
