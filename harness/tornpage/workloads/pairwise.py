"""Which scripts come first: those with kinds of statements, pairs of kinds, and pairs of a kind and a setting
that no script before them had. A bug that one such pair shows need not wait for the last script.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tornpage.workloads.script import Script, Statement

__all__ = ["NOTHING", "Pairwise", "covering_order", "kinds_of"]


@dataclass(frozen=True, slots=True)
class Pairwise:
    """The statements of one script, or of several. pairs: of kinds of one script, in the order of the
    alphabet; settings: a kind and one setting of its script."""

    kinds: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    settings: frozenset[tuple[str, tuple[str, str]]]

    @classmethod
    def of(cls, kinds: Iterable[str], settings: Mapping[str, str]) -> Pairwise:
        """Of one script."""
        each = sorted(set(kinds))
        return cls(
            frozenset(each),
            frozenset(itertools.combinations(each, 2)),
            frozenset(itertools.product(each, settings.items())),
        )

    def union(self, *others: Pairwise) -> Pairwise:
        """Of these and the others together."""
        return Pairwise(
            self.kinds.union(*(one.kinds for one in others)),
            self.pairs.union(*(one.pairs for one in others)),
            self.settings.union(*(one.settings for one in others)),
        )

    def __len__(self) -> int:
        return len(self.kinds) + len(self.pairs) + len(self.settings)

    def beyond(self, other: Pairwise) -> tuple[int, int, int]:
        """How many of each the other one lacks."""
        return (
            len(self.kinds - other.kinds),
            len(self.pairs - other.pairs),
            len(self.settings - other.settings),
        )


NOTHING = Pairwise(frozenset(), frozenset(), frozenset())


def kinds_of(script: Script) -> tuple[str, ...]:
    """What its statements do, each once: an ALTER with the algorithm and the lock that it asks for."""
    return tuple(sorted({_kind(statement) for statement in script.statements}))


def _kind(statement: Statement) -> str:
    words = (statement.verb.value, statement.algorithm.value, statement.lock.value)
    return " ".join(word for word in words if word)


def covering_order(scripts: Sequence[Pairwise]) -> list[int]:
    """Their positions. Next is always the one that adds most kinds to those before it, of these most pairs,
    of these most settings, and of these the first. What a script adds only becomes less: whoever is still
    ahead when that is counted anew is the next one.
    """
    had, order = NOTHING, []
    ahead = [(_negative(script.beyond(had)), place) for place, script in enumerate(scripts)]
    heapq.heapify(ahead)
    while ahead:
        _, place = heapq.heappop(ahead)
        now = (_negative(scripts[place].beyond(had)), place)
        if ahead and ahead[0] < now:
            heapq.heappush(ahead, now)
            continue
        order.append(place)
        had = had.union(scripts[place])
    return order


def _negative(counts: tuple[int, int, int]) -> tuple[int, int, int]:
    return (-counts[0], -counts[1], -counts[2])
