"""What the replay of a stream refuses to follow."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_trace import FakeTrace

from tornpage.faults.stream import RENAME_EXCHANGE, stream_difference
from tornpage.faults.trace import Op


@pytest.mark.parametrize(
    ("old", "new", "flags", "told"),
    [
        ("", "f", 0, "a rename of a file from outside into f in the folder is not followed"),
        ("f", "", 0, "a rename of f out of the folder is not followed"),
        ("f", "g", RENAME_EXCHANGE, "an exchange of f and g is not followed"),
    ],
)
def test_renames_that_are_not_followed(
    tmp_path: Path, old: str, new: str, flags: int, told: str
) -> None:
    """Whatever the files hold in the end; but a rename among files of which nothing is wanted is nothing."""
    names = old.encode() + b"\0" + new.encode()
    trace = FakeTrace().record(Op.RENAME, flags=flags, payload=names).trace()
    assert stream_difference(trace, tmp_path, ()) == told
    assert stream_difference(trace, tmp_path, ("f", "g")) == ""
