"""A file that is written in one step, whatever stands there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tornpage.reports.page import replace_file


def test_a_file_or_a_link_is_replaced(tmp_path: Path) -> None:
    """Where the link leads to stays as it is."""
    page, other = tmp_path / "page", tmp_path / "other"
    replace_file(page, "one")
    replace_file(page, "two")
    assert page.read_text() == "two"
    other.write_text("other")
    page.unlink()
    page.symlink_to(other)
    replace_file(page, "three")
    assert (page.read_text(), other.read_text()) == ("three", "other")


def test_what_is_no_file_stays(tmp_path: Path) -> None:
    """A folder, or a device such as /dev/null, which root could replace."""
    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(pipe)
    for place in (folder, pipe, Path()):
        with pytest.raises(FileExistsError, match="no file"):
            replace_file(place, "text")
    assert folder.is_dir() and pipe.is_fifo()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "pipe"]


def test_nothing_stays_of_one_that_cannot_be_written(tmp_path: Path) -> None:
    """As on a full disk."""
    with pytest.raises(UnicodeEncodeError):
        replace_file(tmp_path / "page", "\udc80")
    assert not list(tmp_path.iterdir())
