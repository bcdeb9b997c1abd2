"""The patches of tests/mutants/harness: headers, what they touch, that the tree takes them, and that their
tests are there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tornpage.lab.harness_mutants import HARNESS_TABLE
from tornpage.lab.harness_table import HarnessMutant
from tornpage.lab.mutant_table import load_patches
from tornpage.vocabulary.paths import ROOT

MUTANTS = load_patches(HarnessMutant, HARNESS_TABLE)
FILE = re.compile(r"^\+\+\+ b/(\S+)$", re.MULTILINE)
ADDED = re.compile(r"^\+(?!\+\+ b/)(.*)$", re.MULTILINE)
JUDGING = (
    "disk/",
    "engine/check/",
    "engine/log/",
    "engine/page/",
    "explorer/",
    "faults/",
    "harness/tornpage/",
    "marking/",
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_slip_is_told_and_applies(mutant: HarnessMutant, tmp_path: Path) -> None:
    """Sentences; a patch that fits the sources as they are now without a guess, touches what judges and no
    test, and tells nobody; paths of tests that exist."""
    assert mutant.slip.endswith(".") and mutant.verdict.endswith(".")
    touched = FILE.findall(mutant.diff)
    assert touched and all(path.startswith(JUDGING) for path in touched)
    assert not [path for path in touched if "tests" in Path(path).parts or "/lab/mutant" in path]
    assert not [line for line in ADDED.findall(mutant.diff) if "mutant" in line.lower()]
    for path in touched:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    command = ["git", "apply", "--check", "-"]
    done = subprocess.run(
        command, input=mutant.diff, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for killer in mutant.killers:
        for argument in killer.arguments if killer.runner == "pytest" else ():
            path, _, test = argument.partition("::")
            text = (ROOT / path).read_text("utf-8")
            assert f"def {test.partition('[')[0]}" in text if test else "def test_" in text
