"""What a hunt has looked at is there when it goes on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tornpage.hunting.corpus import Seen
from tornpage.hunting.journal import FILE, Entry, Journal
from tornpage.vocabulary.errors import ConfigError

ONE = Entry(Seen(frozenset({3, 1}), 70, 60))
TWO = Entry(Seen(frozenset(), 5, 0), ("I5 at run: torn",), 2, lost=True)

REFUSED = Entry(Seen(frozenset(), 1000, 0), refused=True)


def entries_of(folder: Path, *entries: Entry) -> list[Entry]:
    """Of the journal there, to which these are added."""
    with closing(Journal(folder, "key")) as journal:
        for entry in entries:
            journal.put(entry)
        return journal.entries


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    """All that they say."""
    assert entries_of(tmp_path / "new", ONE, TWO, REFUSED) == []
    assert entries_of(tmp_path / "new") == [ONE, TWO, REFUSED]


def test_a_line_that_was_cut_off_is_not_there(tmp_path: Path) -> None:
    """And the next one is written in its place."""
    entries_of(tmp_path, ONE)
    with (tmp_path / FILE).open("a") as file:
        file.write('{"marks": [1,')
    assert entries_of(tmp_path, TWO) == [ONE]
    assert entries_of(tmp_path) == [ONE, TWO]


def test_another_hunt_is_refused(tmp_path: Path) -> None:
    """Its looks were at other scripts. The one that it is of goes on."""
    entries_of(tmp_path, ONE)
    with pytest.raises(ConfigError, match="another hunt"):
        Journal(tmp_path, "other")
    assert entries_of(tmp_path) == [ONE]


def test_a_journal_has_one_owner(tmp_path: Path) -> None:
    """Two at once would write into each other's hunt."""
    owned = pytest.raises(ConfigError, match=f"the hunt in {tmp_path} has a running owner")
    with closing(Journal(tmp_path, "key")), owned:
        Journal(tmp_path, "key")
    assert entries_of(tmp_path) == []
