"""Runs that stand still at their acknowledgements: whatever is not as it should be there is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tornpage.live.admission import Audited
from tornpage.live.stopped import Compared, _Pauses
from tornpage.vocabulary.errors import TraceError


def raises(error: Exception) -> Callable[..., str]:
    """In place of a look at the files."""

    def look(*_: object, **__: object) -> str:
        raise error

    return look


@pytest.mark.parametrize(
    ("follows", "differs", "problem"),
    [
        (lambda _: "", lambda *_, **__: "", ""),
        (lambda _: "a rename out of the folder", lambda *_, **__: "", "a rename out of the folder"),
        (lambda _: "", lambda *_, **__: "f differs", "f differs"),
        (raises(TraceError("trace: cut record")), lambda *_, **__: "", "trace: cut record"),
        (lambda _: "", raises(OSError(5, "f: input/output error")), "[Errno 5] f: input/output"),
    ],
    ids=["nothing", "recording", "files", "damaged", "unread"],
)
def test_what_is_wrong_at_an_acknowledgement_is_told(
    follows: Callable[..., str], differs: Callable[..., str], problem: str, tmp_path: Path
) -> None:
    """What the recording cannot have, what the files have besides, and that nobody could look."""
    files = SimpleNamespace(read_bytes=0, follow=follows, difference=differs)
    pauses = _Pauses(
        f"tornpage-test-{tmp_path.name}-{tmp_path.parent.name}", tmp_path, cast(Any, files)
    )
    pauses._trace = cast(Any, SimpleNamespace(more=lambda: None, under_way=list))
    try:
        pauses._pause()
    finally:
        pauses._listener.close()
    assert pauses.problem.startswith(problem) and bool(pauses.problem) is bool(problem)
    assert pauses.compared == Compared(1, 1)


def test_one_run_that_was_not_audited_is_told_of_all() -> None:
    """Whichever of them it was."""
    there, missing = Audited("", Compared(1, 2), 3), Audited("no ptrace", Compared(4, 5), 0)
    for one, other in ((there, missing), (missing, there)):
        assert one + other == Audited("no ptrace", Compared(5, 7), 3)
