"""What an item of pytest says of the bugs that earlier sessions have found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import make_bug

from tornpage import torture_items
from tornpage.store.bugs import Bug, BugStatus
from tornpage.store.memory import Answer, Replayed
from tornpage.torture_items import Found, TortureItem

REPLAY_RUN = 9


def play_past(
    bugs: Sequence[Bug], answers: Sequence[Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an item does that knows these bugs, each of which was played with one of the answers."""
    replays = [
        Replayed(REPLAY_RUN, bug.id, answer, "") for bug, answer in zip(bugs, answers, strict=True)
    ]
    store = SimpleNamespace(
        replays=lambda run: replays if run == REPLAY_RUN else [],
        bug={bug.id: bug for bug in bugs}.__getitem__,
        trial=lambda *_: SimpleNamespace(spec=SimpleNamespace(params={})),
    )
    item = SimpleNamespace(
        known_bugs=lambda _store: {bug.id for bug in bugs}, _opened=SimpleNamespace(name="engine")
    )
    run = SimpleNamespace(id=REPLAY_RUN)
    monkeypatch.setattr(torture_items, "recheck_bugs", lambda *_, only: run if only else None)
    monkeypatch.setattr(torture_items, "replay_line", lambda *_: "tornpage replay 1.0")
    TortureItem._play_past(cast(Any, item), cast(Any, store), cast(Any, None))


@pytest.mark.parametrize("status", BugStatus)
def test_a_bug_that_still_shows_fails_whatever_was_said_of_it(
    status: BugStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is marked as known or fixed too; only one that is ignored does not."""
    bug = replace(make_bug(4), status=status)
    if status is BugStatus.IGNORED:
        play_past([bug], [Answer.REPRODUCED], monkeypatch)
        return
    with pytest.raises(Found) as found:
        play_past([bug], [Answer.REPRODUCED], monkeypatch)
    assert found.value.lines == [
        "still there, bug 4: state page torn",
        "replay: tornpage replay 1.0",
    ]


def test_only_bugs_that_still_show_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind those that do not, and those that are ignored, too."""
    play_past([], [], monkeypatch)
    bugs = [make_bug(number) for number in range(1, 5)]
    bugs[1] = replace(bugs[1], status=BugStatus.IGNORED)
    gone = Answer.NOT_REPRODUCED
    play_past(bugs, [gone, Answer.REPRODUCED, Answer.NOT_PLAYED, gone], monkeypatch)
    with pytest.raises(Found) as found:
        play_past(bugs, [gone, Answer.REPRODUCED, gone, Answer.REPRODUCED], monkeypatch)
    assert found.value.lines[::2] == ["still there, bug 4: state page torn"]
