"""A hunt on the programs of a planted bug, one look after the other."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tornpage.hunting.corpus import Corpus, Look
from tornpage.hunting.hunt import WINDOW
from tornpage.hunting.look import look_at, scripts_of_campaign
from tornpage.lab.tryout import Tried
from tornpage.plans.campaign import default_campaigns
from tornpage.powerloss.explorer import loss_plan
from tornpage.targets.registry import DEFAULT_TARGET
from tornpage.targets.target import Target
from tornpage.vocabulary.paths import Paths

__all__ = ["try_hunt"]


def try_hunt(seed: int, target: Target, paths: Paths, scratch: Path) -> Iterator[Tried]:
    """What `tornpage hunt` looks at with this seed, in its order."""
    campaigns = [one for one in default_campaigns(paths.workloads) if one.explore]
    seeded = [one.model_copy(update={"seed": seed}) for one in campaigns]
    corpus = Corpus.of(seed, {one.name: scripts_of_campaign(one, DEFAULT_TARGET) for one in seeded})
    numbers = itertools.count()
    ahead: deque[Look] = deque()
    while True:
        while len(ahead) < WINDOW and (following := corpus.next(next(numbers))) is not None:
            ahead.append(following)
        if not ahead:
            return
        look = ahead.popleft()
        looked = look_at(look, target, scratch)
        corpus.learn(look, looked.seen)
        yield Tried("golden_run", 1, look.spec, looked.broken.get("", ()))
        yield Tried("power_loss", looked.seen.states, look.spec)
        for state, violations in sorted(looked.broken.items()):
            if state:
                yield Tried("power_loss", 0, replace(look.spec, plan=loss_plan(state)), violations)
