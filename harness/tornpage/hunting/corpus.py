"""Which script a hunt looks at next. It knows no target: scripts go out, and what a look shows comes back.

Sources take turns: each campaign with its next script, and mutation. Who has shown more that is new for its
work gets more turns, and nobody less than an eighth of the best. What is mutated is drawn by what scripts
have shown, the rarer the likelier, and is the one that showed it for the least work (as AFLFast does, whose
paths are marks here). It hangs on the seed and on what comes back, and on no clock.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tornpage.hunting.sense import sensible
from tornpage.live.fault_free import script_of
from tornpage.plans.limits import Limits
from tornpage.shrinking.crashes import inline_spec
from tornpage.vocabulary.model import FaultPlan, TrialSpec
from tornpage.vocabulary.seeds import derive_seed, make_rng
from tornpage.workloads.mutation import mutated
from tornpage.workloads.script import Script

__all__ = ["MUTATION", "Corpus", "Look", "Seen"]

MUTATION = "mutation"
"""The source that is no campaign."""
TRIES = 8
"""Mutations of which none makes sense, then the script is looked at again, as it is."""
AGAIN_SHARE = 0.2
"""Of the turns of mutation, those that look at other and more states of a script."""
AGAIN_STATES = 4
"""Times as many ..."""
AGAIN_MAX = 960
"""... and no more than so many."""
SHARE_MIN = 0.125
"""Of the best source's turns."""
MEMORY = 0.95
"""What a source has shown counts so much less with each of its turns."""


@dataclass(frozen=True, slots=True)
class Look:
    """A script to look at. source: a campaign or MUTATION; parent: the number of the look that it comes
    from."""

    number: int
    source: str
    spec: TrialSpec
    limits: Limits
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look came to. marks: what its run and its states have shown, as numbers; work: about as much
    time as it took, counted; states: that were judged."""

    marks: frozenset[int]
    work: int
    states: int


@dataclass(slots=True)
class _Source:
    """seeds: scripts that it has yet, None if it makes them; spent: work, more of it where it was worth
    little; work, new: of the last turns; ahead: turns of which nothing has come back yet."""

    seeds: Iterator[tuple[TrialSpec, Limits]] | None
    spent: float = 0.0
    work: float = 0.0
    new: float = 0.0
    ahead: int = 0

    @property
    def worth(self) -> float:
        """New marks for its work."""
        return self.new / self.work if self.work else 0.0


@dataclass(slots=True)
class Corpus:
    """What has been looked at. seed: of all that is drawn."""

    seed: int
    sources: dict[str, _Source]
    shown: Counter[int] = field(default_factory=Counter)
    """By mark, in how many looks."""
    cheapest: dict[int, tuple[int, Look]] = field(default_factory=dict)
    """By mark the look that showed it for the least work."""

    @classmethod
    def of(cls, seed: int, campaigns: Mapping[str, Iterator[tuple[TrialSpec, Limits]]]) -> Corpus:
        """Of the scripts of campaigns, by name, each in its order."""
        sources = {name: _Source(seeds) for name, seeds in campaigns.items()}
        return cls(seed, {**sources, MUTATION: _Source(None)})

    def next(self, number: int) -> Look | None:
        """The look of this number. None: all scripts of campaigns are out, and none that has come back can be
        mutated."""
        while (name := self._turn()) is not None:
            source = self.sources[name]
            source.ahead += 1
            if source.seeds is None:
                return self._mutation(number)
            found = next(source.seeds, None)
            if found is not None:
                return Look(number, name, *found)
            del self.sources[name]
        return None

    def learn(self, look: Look, seen: Seen) -> int:
        """Takes what a look has shown. How much of it was new."""
        new = sum(mark not in self.shown for mark in seen.marks)
        self.shown.update(seen.marks)
        for mark in seen.marks:
            if mark not in self.cheapest or seen.work < self.cheapest[mark][0]:
                self.cheapest[mark] = seen.work, look
        source = self.sources.get(look.source)
        if source is not None:
            source.ahead -= 1
            source.work = MEMORY * source.work + seen.work
            source.new = MEMORY * source.new + new
            source.spent += seen.work / self._share(source)
        return new

    def _share(self, source: _Source) -> float:
        """Of the turns of the best one."""
        best = max(one.worth for one in self.sources.values())
        return max(source.worth / best, SHARE_MIN) if best else 1.0

    def _turn(self) -> str | None:
        """The source whose turn it is: the one that has spent least, and mutation only if there is what it
        can mutate."""
        ready = [name for name in self.sources if name != MUTATION or self.cheapest]
        return min(ready, key=self._spent, default=None)

    def _spent(self, name: str) -> tuple[float, int]:
        """With what the turns that are ahead of it will take."""
        source = self.sources[name]
        typical = source.work * (1 - MEMORY) / self._share(source)
        return source.spent + source.ahead * typical, source.ahead

    def _mutation(self, number: int) -> Look:
        rng = make_rng(self.seed, "mutation", number)
        parent = self._drawn(rng)
        script = script_of(parent.spec)
        if rng.random() >= AGAIN_SHARE:
            for _ in range(TRIES):
                child = self._child(number, parent, script, rng)
                if child is not None:
                    return child
        states = min((parent.limits.states or AGAIN_MAX) * AGAIN_STATES, AGAIN_MAX)
        limits = replace(parent.limits, states=states)
        return self._of(number, parent, script, parent.spec, limits)

    def _drawn(self, rng: random.Random) -> Look:
        marks = sorted(self.cheapest)
        (mark,) = rng.choices(marks, [1 / self.shown[mark] for mark in marks])
        return self.cheapest[mark][1]

    def _child(self, number: int, parent: Look, script: Script, rng: random.Random) -> Look | None:
        donor = self._drawn(rng)
        spec = parent.spec
        pages = [look.spec.options.get("page_size") for look in (parent, donor)]
        if pages[0] == pages[1] and rng.random() < 0.25:
            spec = replace(spec, options=donor.spec.options)
        statements = mutated(script.statements, script_of(donor.spec).statements, rng)
        child = sensible(statements, spec.options)
        return self._of(number, parent, child, spec, parent.limits) if child else None

    def _of(
        self, number: int, parent: Look, script: Script, spec: TrialSpec, limits: Limits
    ) -> Look:
        """A look at a script of its own, and at states of its own."""
        label = f"{spec.config.partition(' ')[0]} hunt={number}"
        spec = replace(spec, config=label, seed=derive_seed(self.seed, "states", number) >> 20)
        return Look(number, MUTATION, inline_spec(spec, script, FaultPlan()), limits, parent.number)
