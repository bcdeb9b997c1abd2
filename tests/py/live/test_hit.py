"""What a kill has left of the write that it hit."""

from __future__ import annotations

import pytest
from fake_trace import FakeTrace

from tornpage.faults.trace import Op
from tornpage.live.hit import tears_nothing
from tornpage.vocabulary.model import Action, Fault, FaultKind


@pytest.mark.parametrize(
    ("sectors", "kept", "whole"),
    [
        ("random", b"\1\1", True),
        ("random", b"\1\0", False),
        ("random", b"\0\1", False),
        ("none", b"\0\0", False),
        ("all", b"\1\1", False),
    ],
    ids=["whole", "first", "last", "none", "planned"],
)
def test_only_a_write_that_is_left_whole_is_not_torn(
    sectors: str, kept: bytes, whole: bool
) -> None:
    """Unless that was the plan."""
    trace = FakeTrace().kill("f", 0, kept, bytes(1024), b"x" * 1024).trace()
    (event,) = trace.events(kinds=(Op.KILL,))
    fault = Fault(FaultKind.WRITE, 1, Action.KILL, sectors=sectors)
    assert tears_nothing(trace, event, (fault,)) is whole
    assert not tears_nothing(trace, None, (fault,))
