"""What a hunt has looked at is there when it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.hunting.corpus import Seen
from tornpage.hunting.journal import FILE, Entry, Journal
from tornpage.vocabulary.errors import ConfigError

ONE = Entry(Seen(frozenset({3, 1}), 70, 60))
TWO = Entry(Seen(frozenset(), 5, 0), ("I5 at run: torn",), 2, lost=True)

REFUSED = Entry(Seen(frozenset(), 1000, 0), refused=True)


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    """All that they say."""
    journal = Journal(tmp_path / "new", "key")
    assert journal.entries == []
    for entry in (ONE, TWO, REFUSED):
        journal.put(entry)
    assert Journal(tmp_path / "new", "key").entries == [ONE, TWO, REFUSED]


def test_a_line_that_was_cut_off_is_not_there(tmp_path: Path) -> None:
    """And the next one is written in its place."""
    Journal(tmp_path, "key").put(ONE)
    with (tmp_path / FILE).open("a") as file:
        file.write('{"marks": [1,')
    journal = Journal(tmp_path, "key")
    assert journal.entries == [ONE]
    journal.put(TWO)
    assert Journal(tmp_path, "key").entries == [ONE, TWO]


def test_another_hunt_is_refused(tmp_path: Path) -> None:
    """Its looks were at other scripts."""
    Journal(tmp_path, "key").put(ONE)
    with pytest.raises(ConfigError, match="another hunt"):
        Journal(tmp_path, "other")
    assert Journal(tmp_path, "key").entries == [ONE]
