"""What a play of an old finding says of its bug."""

from __future__ import annotations

import pytest
from builders import make_bug

from tornpage.campaigns.recheck import _Shown
from tornpage.store.memory import Answer


@pytest.mark.parametrize(
    ("shown", "answer", "note"),
    [
        (frozenset({7}), Answer.REPRODUCED, ""),
        (frozenset({7, 8}), Answer.REPRODUCED, ""),
        (frozenset({8, None}), Answer.NOT_REPRODUCED, "bug 8 instead"),
        (frozenset(), Answer.NOT_REPRODUCED, ""),
        (None, Answer.NOT_PLAYED, ""),
    ],
)
def test_only_a_play_without_the_bug_is_one(
    shown: frozenset[int | None] | None, answer: Answer, note: str
) -> None:
    """What could not be played is not fixed; another bug is not this one."""
    assert _Shown(shown).answer(make_bug(7)) == (answer, note)
