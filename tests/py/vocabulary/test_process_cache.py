"""What a process keeps: the last few, each ended once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tornpage.vocabulary.process_cache import ProcessCache


def no_value() -> str:
    raise AssertionError("it is there")


def test_what_was_not_used_for_longest_goes() -> None:
    """Using one again keeps it; the one that goes is ended."""
    ended: list[str] = []
    cache: ProcessCache[int, str] = ProcessCache(2, ended.append)
    assert [cache.get(1, lambda: "one"), cache.get(2, lambda: "two")] == ["one", "two"]
    assert cache.get(1, no_value) == "one"
    assert cache.get(3, lambda: "three") == "three"
    assert ended == ["two"]
    assert cache.get(1, no_value) == "one"
    cache.clear()
    assert ended == ["two", "three", "one"]
    assert cache.get(1, lambda: "again") == "again"


def test_what_cannot_be_made_is_not_kept() -> None:
    """The next one tries again."""
    cache: ProcessCache[int, str] = ProcessCache(2)
    with pytest.raises(AssertionError):
        cache.get(1, no_value)
    assert cache.get(1, lambda: "one") == "one"


def test_who_takes_one_ends_it() -> None:
    """The cache does not, and has none any more."""
    ended: list[str] = []
    cache: ProcessCache[int, str] = ProcessCache(2, ended.append)
    cache.get(1, lambda: "one")
    assert [cache.take(1), cache.take(1)] == ["one", None]
    cache.clear()
    assert ended == []


def test_all_end_with_the_process() -> None:
    """Nobody has to clear it."""
    code = (
        "from tornpage.vocabulary.process_cache import ProcessCache;"
        "cache = ProcessCache(2, print); cache.get(1, lambda: 'one'); cache.get(2, lambda: 'two')"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert told.stdout.split() == ["one", "two"]
