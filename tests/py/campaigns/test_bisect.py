"""What a bisection asks, and what it makes of the answers: a file of the repository is what a replay says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tornpage.campaigns.bisect import Bisected, Step, bisect_find
from tornpage.campaigns.replay import Asked
from tornpage.vocabulary.errors import ConfigError

REPLAY = ("/bin/sh", "-c", 'cat "$0/$2"')
"""Of a folder: the file `kept` or `run`, as is asked."""
BAD, GOOD, OTHER, UNPLAYED = "bad", "good", "other", "unplayed"
ANSWERS = {
    BAD: "reproduced",
    OTHER: "reproduced",
    GOOD: "not reproduced",
    UNPLAYED: "cannot be played",
}


def told(says: str) -> str:
    """As replay --json."""
    data = {"answer": ANSWERS[says], "other_finding": says == OTHER, "kept": [], "new_run": "met"}
    return json.dumps({**data, "note": says}) + "\n"


def bisected(folder: Path, kept: Sequence[str], run: Sequence[str]) -> tuple[Bisected, list[Step]]:
    """Between the first commit and the last one, by what each of them says."""

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *who, *words],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    for number, says in enumerate(zip(kept, run, strict=True)):
        for name, what in zip(("kept", "run"), says, strict=True):
            (folder / name).write_text(told(what), "ascii")
        (folder / "number").write_text(str(number), "ascii")
        git("add", ".")
        git("commit", "-q", "-m", str(number))
    steps: list[Step] = []
    first = git("rev-list", "--max-parents=0", "HEAD")
    try:
        replay = (*REPLAY, str(folder))
        found = bisect_find("1.0", replay, folder, (first, "main"), (), steps.append)
    finally:
        assert git("symbolic-ref", "--short", "HEAD") == "main"
    return found, steps


NEVER = [UNPLAYED] * 6


@pytest.mark.parametrize(
    ("kept", "run", "asked", "first"),
    [
        ([GOOD, GOOD, GOOD, BAD, BAD, BAD], NEVER, Asked.KEPT, "3"),
        ([BAD] * 6, [GOOD, GOOD, GOOD, GOOD, BAD, BAD], Asked.RUN, "4"),
        (NEVER, [GOOD, BAD, BAD, BAD, BAD, BAD], Asked.RUN, "1"),
        ([GOOD, OTHER, GOOD, BAD, OTHER, BAD], NEVER, Asked.KEPT, "3"),
    ],
)
def test_what_tells_the_ends_apart_decides(
    kept: Sequence[str], run: Sequence[str], asked: Asked, first: str, tmp_path: Path
) -> None:
    """The first commit that shows this finding is named; one that shows another says nothing."""
    found, _ = bisected(tmp_path, kept, run)
    assert (found.asked, found.subject) == (asked, first)


def test_other_findings_on_both_sides_leave_several(tmp_path: Path) -> None:
    """None of them is the first bad one for sure."""
    found, steps = bisected(tmp_path, [GOOD, GOOD, OTHER, OTHER, BAD, BAD], NEVER)
    assert found.first_bad == "" and len(found.candidates) == 3
    assert {step.subject for step in steps if step.mark == "skip"} == {"2", "3"}


@pytest.mark.parametrize(("says", "said"), [(GOOD, "should be bad"), (BAD, "should be good")])
def test_ends_that_are_alike_are_refused(says: str, said: str, tmp_path: Path) -> None:
    """Any commit between them would be named."""
    with pytest.raises(ConfigError, match=said):
        bisected(tmp_path, [says] * 6, [says] * 6)
