"""The patches of tests/mutants: headers, invariants, what they touch, and that the tree takes them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tornpage.lab.harness_mutants import HARNESS_TABLE, HEADING
from tornpage.lab.harness_table import HarnessMutant
from tornpage.lab.mutant_table import Mutant, load_patches
from tornpage.lab.mutants import TABLE
from tornpage.vocabulary.paths import ROOT

MUTANTS = load_patches(Mutant, TABLE)
NAMES = [mutant.name for mutant in MUTANTS]
MODELS = {"kill", "powerloss", "io_error", "nested"}
FILE = re.compile(r"^\+\+\+ b/(\S+)$", re.MULTILINE)
ADDED = re.compile(r"^\+(?!\+\+ b/)(.*)$", re.MULTILINE)


def known_invariants() -> set[int]:
    """Numbers of the table in docs/INVARIANTS.md."""
    text = (ROOT / "docs" / "INVARIANTS.md").read_text(encoding="utf-8")
    return {int(number) for number in re.findall(r"^\| *I(\d+)\b", text, re.MULTILINE)}


def test_there_are_enough_of_them() -> None:
    """A score of a few says little."""
    assert len(NAMES) >= 100


def test_bugs_has_a_row_of_each() -> None:
    """Name, bug, mechanism and invariants of docs/BUGS.md are those of the patches; its header counts."""
    text = (ROOT / "docs" / "BUGS.md").read_text(encoding="utf-8").partition(HEADING)[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert [line.strip("| ").split(" | ")[:4] for line in lines] == [
        [f"`{m.name}`", m.bug, m.mechanism, ", ".join(f"I{n}" for n in m.invariants)]
        for m in MUTANTS
    ]
    header = re.search(r"\*\*\d+ of (\d+)", text)
    assert header is not None and int(header[1]) == len(lines)


def test_bugs_has_a_row_of_each_slip_in_the_harness() -> None:
    """Name, slip and verdict of its second table are those of the patches; what has killed one stands in its
    header, and the count is that of the rows."""
    text = (ROOT / "docs" / "BUGS.md").read_text(encoding="utf-8").partition(HEADING)[2]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    slips = load_patches(HarnessMutant, HARNESS_TABLE)
    assert len(slips) >= 60
    assert [row[:3] for row in rows] == [
        [f"`{m.name}`", *(text.replace("|", "\\|") for text in (m.slip, m.verdict))] for m in slips
    ]
    killed = 0
    for row, slip in zip(rows, slips, strict=True):
        told = [killer.text.replace("|", "\\|") for killer in slip.killers]
        by_tests = row[3].endswith(tuple(f"({killer})" for killer in told))
        assert by_tests or row[3] in ("*no*", "*no answer*"), row
        killed += by_tests
    assert f"**{killed} of {len(slips)} are killed**" in text


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_headers_are_complete(mutant: Mutant) -> None:
    """A mechanism of one sentence, known models and invariants, none twice."""
    assert re.fullmatch(r"[A-Z].*[^.]\.", mutant.mechanism)
    assert set(mutant.models) <= MODELS
    assert set(mutant.invariants) <= known_invariants()
    assert len(set(mutant.invariants)) == len(mutant.invariants)


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_the_tree_takes_the_patch(mutant: Mutant, tmp_path: Path) -> None:
    """It fits the sources as they are now: `git apply` neither fails nor has to guess, and what it calls is
    there."""
    touched = FILE.findall(mutant.diff)
    for path in touched:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    command = ["git", "apply", "-"]
    done = subprocess.run(
        command, input=mutant.diff, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    flags = ("-std=c17", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Werror")
    command = ["cc", *flags, "-Iengine", f"-I{ROOT / 'engine'}", "-x", "c", *touched]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_only_the_engine_is_wrong(mutant: Mutant) -> None:
    """The scanner and what it shares with the programs stay as they are, and no code tells of a mutant."""
    touched = FILE.findall(mutant.diff)
    assert touched and all(path.startswith("engine/") for path in touched)
    shared = [path for path in touched if path.split("/")[1] in {"check", "page", "api", "cli"}]
    assert set(shared) <= {"engine/api/bootstrap.c"}  # creates databases, which no judge does
    assert not [line for line in ADDED.findall(mutant.diff) if "mutant" in line.lower()]
