"""`tornpage bisect` names the commit that brought a finding, in a small repository whose fourth commit of six
has a bug; the checkout is as before."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from called import called

from tornpage.targets.command.skeleton import Language, write_skeleton

FEW = "--jobs 1 --fault-free 0"
POWER = f"run powerloss --states 60 --depth 1 {FEW}"
KILLS = f"run smoke --trials 8 {FEW}"
EQUAL, DIFFERENT = "1200", "{1200 + os.urandom(1)[0] % 64}"
FSYNC = ("        os.fsync(log)\n", "")
TORN = ("if line != line_of(line[9:-1]):", "if len(line.split()) != 3:")
"""A line that the crash has cut behind its key is taken for whole."""
BROKEN = ("def recover(folder):", "def recover(folder:")
COMMITS = 6
PLANTED = 4


def git(folder: Path, *words: str) -> str:
    """What it says."""
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def repository(
    folder: Path, width: str, bug: Sequence[str], broken: Sequence[int] = ()
) -> tuple[Path, list[str]]:
    """The store that comes along, in source.py, which a build copies to store.py. Its commits, the bug in the
    fourth; those in `broken` cannot be built."""
    file = write_skeleton("kv", Language.PYTHON, folder).file
    source, program = file.parent / "source.py", file.parent / "store.py"
    text = program.read_text("utf-8").replace("{n:01200}", f"{{n:0{width}}}")
    program.unlink()
    (file.parent / ".gitignore").write_text("store.py\n__pycache__\n", "ascii")
    git(file.parent, "init", "-q", "-b", "main")
    commits = []
    for number in range(1, COMMITS + 1):
        if number == PLANTED:
            assert bug[0] in text
            text = text.replace(*bug)
        told = text.replace(*BROKEN) if number in broken else text
        source.write_text(f"{told}\n# {number}\n", "utf-8")
        git(file.parent, "add", ".")
        git(file.parent, "commit", "-q", "-m", f"change {number}")
        commits.append(git(file.parent, "rev-parse", "HEAD"))
    return file, commits


BUILD = "cp source.py store.py && chmod +x store.py && python3 -m py_compile store.py"


def build(file: Path) -> None:
    """As bisect does."""
    subprocess.run(["/bin/sh", "-c", BUILD], cwd=file.parent, check=True, timeout=60)


def answer(folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the object of --json, and what went to standard error."""
    done = called(folder, *words)
    lines = done.stdout.splitlines()
    return done.returncode, json.loads(lines[-1]) if lines else {}, done.stderr


def bisect(folder: Path, trial: str, good: str, bad: str) -> tuple[int, dict[str, Any], str]:
    """The command, with the build as a shell's text."""
    ends = ("--good", good, "--bad", bad, "--source", "kv")
    return answer(folder, "bisect", trial, *ends, "--json", "--", BUILD)


@pytest.mark.parametrize(
    ("run", "width", "bug", "asked"),
    [
        (KILLS, DIFFERENT, TORN, "kept"),
        (POWER, EQUAL, FSYNC, "run"),
    ],
    ids=["kept", "run"],
)
@pytest.mark.extended
def test_the_first_bad_commit(
    run: str, width: str, bug: tuple[str, str], asked: str, tmp_path: Path
) -> None:
    """By what was kept if the recovery is wrong; by new runs if a write is, which no recording gets back."""
    file, commits = repository(tmp_path, width, bug)
    build(file)
    code, data, _ = answer(tmp_path, *run.split(), "--target", str(file), "--json")
    assert code == 1, data
    trial = data["bugs"][0]["trial"]
    code, data, said = bisect(tmp_path, trial, commits[0], "main")
    assert (code, data["exit_code"], data["asked"]) == (0, 0, asked), said
    assert (data["first_bad"], data["subject"]) == (commits[PLANTED - 1], "change 4")
    marks = {step["commit"]: step["mark"] for step in data["steps"]}
    assert marks[commits[3]] == "bad" and marks[commits[2]] == "good"
    assert git(file.parent, "symbolic-ref", "--short", "HEAD") == "main"
    assert git(file.parent, "status", "--porcelain") == ""
    text = called(tmp_path, *f"bisect {trial} --good {commits[2]} --bad {commits[3]}".split(),
                  "--source", "kv", "--", "sh", "-c", BUILD)  # fmt: skip
    assert text.returncode == 0 and f"first bad commit: {commits[3]} change 4" in text.stdout


@pytest.mark.extended
def test_commits_that_cannot_be_built_are_skipped(tmp_path: Path) -> None:
    """What is left is told; a search between ends that are alike is refused, and so is a checkout with
    changes, or none; nothing is checked out then."""
    file, commits = repository(tmp_path, DIFFERENT, TORN, broken=(3, 4))
    build(file)
    code, data, _ = answer(tmp_path, *KILLS.split(), "--target", str(file), "--json")
    trial = data["bugs"][0]["trial"]
    code, data, said = bisect(tmp_path, trial, commits[0], commits[5])
    assert (code, data["first_bad"]) == (3, ""), said
    assert {*data["candidates"]} == {*commits[2:5]}
    assert "it cannot be built" in said
    code, _, said = bisect(tmp_path, trial, commits[0], commits[1])
    assert code == 2 and f"{commits[1][:12]} should be bad, and new runs say good" in said
    (file.parent / "source.py").write_text("other", "ascii")
    code, _, said = bisect(tmp_path, trial, commits[0], commits[5])
    assert code == 2 and "has changes: commit or stash them" in said
    git(file.parent, "checkout", "-q", ".")
    code, _, said = bisect(tmp_path, trial, "nowhere", commits[5])
    assert code == 2 and "no commit 'nowhere'" in said
    code, _, said = answer(tmp_path, "bisect", trial, "--good", "a", "--bad", "b")
    assert code == 2 and "is in no Git checkout: --source DIR" in said
    assert git(file.parent, "symbolic-ref", "--short", "HEAD") == "main"
