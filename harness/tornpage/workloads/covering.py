"""Which scripts come first: those with kinds of statements, pairs of kinds, and pairs of a kind and a setting
that no script before them had. A bug that one such pair shows need not wait for the last script.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tornpage.workloads.script import Script, Statement

__all__ = ["Had", "covering_order", "kinds_of"]


@dataclass(frozen=True, slots=True)
class Had:
    """What one script has, or several have together. pairs: of kinds of one script, in the order of the
    alphabet; settings: a kind and one setting of its script."""

    kinds: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    settings: frozenset[tuple[str, tuple[str, str]]]

    @classmethod
    def of(cls, kinds: Iterable[str], settings: Mapping[str, str]) -> Had:
        """Of one script."""
        each = sorted(set(kinds))
        return cls(
            frozenset(each),
            frozenset(itertools.combinations(each, 2)),
            frozenset(itertools.product(each, settings.items())),
        )

    def __or__(self, other: Had) -> Had:
        return Had(
            self.kinds | other.kinds, self.pairs | other.pairs, self.settings | other.settings
        )

    def __len__(self) -> int:
        return len(self.kinds) + len(self.pairs) + len(self.settings)

    def beyond(self, other: Had) -> tuple[int, int, int]:
        """How many of each the other one lacks."""
        return (
            len(self.kinds - other.kinds),
            len(self.pairs - other.pairs),
            len(self.settings - other.settings),
        )


_NOTHING = Had(frozenset(), frozenset(), frozenset())


def kinds_of(script: Script) -> tuple[str, ...]:
    """What its statements do, each once: an ALTER with the algorithm and the lock that it asks for."""
    return tuple(sorted({_kind(statement) for statement in script.statements}))


def _kind(statement: Statement) -> str:
    words = (statement.verb.value, statement.algorithm.value, statement.lock.value)
    return " ".join(word for word in words if word)


def covering_order(scripts: Sequence[Had]) -> list[int]:
    """Their positions. Next is always the one that adds most kinds to those before it, of these most pairs,
    of these most settings, and of these the first. What a script adds only becomes less: whoever is still
    ahead when that is counted anew is the next one.
    """
    had, order = _NOTHING, []
    ahead = [(_negative(script.beyond(had)), place) for place, script in enumerate(scripts)]
    heapq.heapify(ahead)
    while ahead:
        _, place = heapq.heappop(ahead)
        now = (_negative(scripts[place].beyond(had)), place)
        if ahead and ahead[0] < now:
            heapq.heappush(ahead, now)
            continue
        order.append(place)
        had |= scripts[place]
    return order


def _negative(counts: tuple[int, int, int]) -> tuple[int, int, int]:
    return (-counts[0], -counts[1], -counts[2])
