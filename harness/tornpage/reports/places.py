"""Where the calls of a picture begin and end, from left to right: in the order in which the recorder has seen
their begins and ends, as far apart as their times say, within bounds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

from tornpage.reports.drawing import Label
from tornpage.vocabulary.evidence import Fate, Step

__all__ = ["GAP", "GUTTER", "begin", "begun", "duration", "places"]

GUTTER = 112
"""Left of all: names."""
GAP, MARKS, GAP_MAX, BAR_MIN = 9, 33, 110, 52
"""Between two places, two marks, two that are far apart; width of a call at least."""


def begun(one: Step) -> int:
    """Number of the last call that had ended when it began."""
    return one.began if one.began >= 0 else one.seq - 1


def begin(one: Step) -> float:
    """Where it begins in the order of ends."""
    return begun(one) + 0.5


def places(
    calls: Sequence[Step], marks: Sequence[Step]
) -> tuple[Mapping[float, float], list[Label]]:
    """Where each begin, end and mark is, and what is left out between two of them."""
    ended = [one for one in calls if one.fate is not Fate.UNDER_WAY]
    keys = sorted({*map(begin, calls), *(one.seq for one in (*ended, *marks))})
    times = {begin(one): one.start_ns for one in calls if one.end_ns}
    times |= {one.seq: one.end_ns for one in ended if one.end_ns}
    spans = [max(times.get(b, 0) - times.get(a, times.get(b, 0)), 0) for a, b in pairwise(keys)]
    usual = median([one for one in spans if one] or [1])
    begins: dict[float, list[float]] = defaultdict(list)
    for one in ended:
        begins[one.seq].append(begin(one))
    marked = {one.seq for one in marks}
    at: dict[float, float] = {}
    cuts = []
    x = float(GUTTER)
    for before, key, span in zip(keys[:1] + keys, keys, [0, *spans], strict=False):
        gone, wide = _between(before, key), 4 * GAP * span / usual
        if at:
            least = MARKS if {before, key} <= marked else 3 * GAP if gone else GAP
            x += min(max(wide, least), GAP_MAX)
        x = max([x, *(at[one] + BAR_MIN for one in begins[key])])
        if before not in begins[key] and (gone or wide > GAP_MAX):
            cuts.append(Label(round((at[before] + x) / 2), 0, _cut_text(gone, span), "middle"))
        at[key] = x
    return at, cuts


def _between(before: float, key: float) -> int:
    """Events of the recording that are not drawn between two that are."""
    return max(0, math.ceil(key) - math.floor(before) - 1)


def _cut_text(gone: int, span: int) -> str:
    parts = [f"{gone:,} more event{'s' if gone > 1 else ''}"] if gone else []
    parts += [duration(span)] if span > 0 else []
    return ", ".join(parts)


def duration(ns: int) -> str:
    """For people, in three digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns / 1e3:.3g} us"
