"""What a hunt says at its end: the worst of its runs, and clean of all scripts alone."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from tornpage.cli import hunt as module
from tornpage.hunting.hunt import Hunted
from tornpage.reports.verdict import Verdict, Word

CLEAN = Verdict(Word.CLEAN, 0, "mydb 0123, 60 states")
BROKEN = Verdict(Word.VIOLATIONS, 1, "1 new bug")
BLIND = Verdict(Word.NOTHING, 3, "vacuous")
SOME = Hunted(Counter({"powerloss": 2, "mutation": 8}), states=540, refused=3, runs=[4])
LOST = Hunted(Counter({"powerloss": 2}), states=120, runs=[4, 7], lost=[7])


@pytest.mark.parametrize(
    ("came_to", "kept", "code", "text"),
    [
        (SOME, CLEAN, 0, "mydb, 10 scripts, 540 states, 3 scripts refused; of the first script: "),
        (SOME, BROKEN, 1, "1 new bug"),
        (SOME, BLIND, 3, "vacuous"),
        (LOST, CLEAN, 2, "finds that did not repeat: 1, the first in run 7"),
        (LOST, BLIND, 2, "finds that did not repeat: 1, the first in run 7"),
        (LOST, BROKEN, 1, "1 new bug"),
    ],
)
def test_the_worst_is_said(
    monkeypatch: pytest.MonkeyPatch, came_to: Hunted, kept: Verdict, code: int, text: str
) -> None:
    """Bugs before finds that are lost, these before what a run did not come to."""
    monkeypatch.setattr(module, "verdict_of_runs", lambda _: kept)
    opened = SimpleNamespace(name="mydb")
    verdict = module._verdict(came_to, [SimpleNamespace()], opened)  # type: ignore[list-item, arg-type]
    assert (verdict.exit_code, verdict.text[: len(text)]) == (code, text)


def test_a_hunt_without_a_look_says_nothing() -> None:
    """Its time was up."""
    verdict = module._verdict(Hunted(), [], SimpleNamespace(name="mydb"))  # type: ignore[arg-type]
    assert (verdict.word, verdict.exit_code) == (Word.NOTHING, 3)
