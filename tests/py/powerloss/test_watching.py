"""How far explorations are, by the files that the explorer writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.plans.limits import Limits
from tornpage.powerloss.watching import Watch, far, states_of


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (Limits(states=400), ("100 states of 400, 10/s, 2 findings", 0.25)),
        (Limits(budget_s=40), ("100 states, 10/s, 30 s left, 2 findings", 0.25)),
        (Limits(states=50), ("100 states of 50, 10/s, 2 findings", 1.0)),
        (Limits(), ("100 states, 10/s, 2 findings", 0.0)),
    ],
)
def test_one_is_told_by_its_limit(limits: Limits, told: tuple[str, float], tmp_path: Path) -> None:
    """By that which comes first; nothing before the explorer has written."""
    heard: list[tuple[str, float]] = []
    seconds = iter((0.0, 10.0))
    watch = Watch(
        tmp_path / "p", limits, lambda *words: heard.append(words), clock=lambda: next(seconds)
    )
    watch.look()
    assert heard == []
    watch.file.write_text("100 2\n", "ascii")
    watch.look()
    assert heard == [told]


def test_several_are_told_together(tmp_path: Path) -> None:
    """Each counts as far as it is; of one without a limit that is not known."""
    files = [tmp_path / str(number) for number in range(4)]
    for file, text in zip(files, ("50 0", "30 1", "", "9 0"), strict=True):
        file.write_text(text, "ascii")
    limits = [Limits(states=100), Limits(states=20), Limits(states=100), Limits()]
    assert far(zip(files, limits, strict=True)) == ("89 states, 1 finding", 1.5)
    assert far([]) == ("", 0.0)
    assert states_of(tmp_path / "none") == (0, 0)
