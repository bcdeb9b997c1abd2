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
    """The next one tries again; and nothing has made room for it."""
    ended: list[str] = []
    cache: ProcessCache[int, str] = ProcessCache(1, ended.append)
    cache.get(2, lambda: "two")
    with pytest.raises(AssertionError):
        cache.get(1, no_value)
    assert ended == []
    assert cache.get(1, lambda: "one") == "one"
    assert ended == ["two"]


def test_what_is_not_wanted_any_more_goes() -> None:
    """All at once, each ended."""
    ended: list[str] = []
    cache: ProcessCache[int, str] = ProcessCache(3, ended.append)
    for key, value in {1: "one", 2: "two", 3: "three"}.items():
        cache.get(key, lambda value=value: value)
    cache.keep(lambda key: key == 2)
    assert ended == ["one", "three"]
    assert cache.get(2, no_value) == "two"


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
