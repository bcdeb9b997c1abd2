"""Delta debugging: makes an input smaller while a property of it holds.

Chunks are taken out from the end to the start, first all of it, then halves, quarters, at last single
items, until no single one can go. That is the part of Zeller's ddmin that pays for scripts, where what
comes later depends on what comes before; parts that fail alone are found as the complement of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["ddmin", "shrink_range"]

T = TypeVar("T")


def ddmin(items: Sequence[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """A sublist that fails and of which no single item can be left out.

    fails(items) must hold; it is not asked again. Every list for which `fails` says True is kept, so that
    the last one of them is the result.
    """
    kept = list(items)
    size = len(kept)
    while kept:
        before = len(kept)
        end = before
        while end > 0:
            start = max(0, end - size)
            rest = kept[:start] + kept[end:]
            if fails(rest):
                kept = rest
            end = start
        if size == 1 and len(kept) == before:
            break
        size = max(1, min((size + 1) // 2, len(kept)))
    return kept


def shrink_range(low: int, high: int, fails: Callable[[int, int], bool]) -> tuple[int, int]:
    """The range [low, high], cut at both ends as long as it fails; at least one number is left."""
    step = (high - low + 1) // 2
    while step > 0:
        if high - step >= low and fails(low, high - step):
            high -= step
        elif low + step <= high and fails(low + step, high):
            low += step
        else:
            step //= 2
    return low, high
