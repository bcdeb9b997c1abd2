"""New scripts from old ones, by what every script allows: statements go, come again, change places, come from
another script, or are asked for in another way. Whether a statement still makes sense is not known here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tornpage.workloads.script import Algorithm, Lock, Statement, Verb

__all__ = ["mutated"]

STEPS = (1, 1, 2, 4)
"""Changes of one mutation, each equally likely."""
RUN_MAX = 8
"""Statements that go, come or move together."""
PAUSES = (
    Statement(0, Verb.CHECKPOINT),
    Statement(0, Verb.CHECKPOINT, full=True),
    Statement(0, Verb.CLEAN, number=3),
    Statement(0, Verb.FLUSH_LOG),
    Statement(0, Verb.PURGE, number=-1),
)
"""What can stand between any two statements."""

Statements = list[Statement]


def mutated(
    script: Sequence[Statement], donor: Sequence[Statement], rng: random.Random
) -> Statements:
    """A new script from the statements of one, and of another that gives."""
    out = list(script)
    ours = not any(one.verb is Verb.LINE for one in (*script, *donor))
    changes = _CHANGES + _OF_THE_ENGINE if ours else _CHANGES
    for _ in range(rng.choice(STEPS)):
        out = rng.choice(changes)(out, donor, rng)
    return out


def _some(among: Sequence[Statement], rng: random.Random) -> slice:
    """A run of them."""
    first = rng.randrange(len(among) + 1)
    return slice(first, first + rng.randint(1, RUN_MAX))


def _leave_out(script: Statements, _: Sequence[Statement], rng: random.Random) -> Statements:
    gone = _some(script, rng)
    return script[: gone.start] + script[gone.stop :]


def _repeat(script: Statements, _: Sequence[Statement], rng: random.Random) -> Statements:
    at = rng.randrange(len(script) + 1)
    return script[:at] + script[_some(script, rng)] + script[at:]


def _move(script: Statements, _: Sequence[Statement], rng: random.Random) -> Statements:
    moved = _some(script, rng)
    rest = script[: moved.start] + script[moved.stop :]
    at = rng.randrange(len(rest) + 1)
    return rest[:at] + script[moved] + rest[at:]


def _take(script: Statements, donor: Sequence[Statement], rng: random.Random) -> Statements:
    at = rng.randrange(len(script) + 1)
    return script[:at] + list(donor[_some(donor, rng)]) + script[at:]


def _splice(script: Statements, donor: Sequence[Statement], rng: random.Random) -> Statements:
    """The beginning of one, and what the other ends with."""
    share = rng.random()
    return script[: round(share * len(script))] + list(donor[round(share * len(donor)) :])


def _pause(script: Statements, _: Sequence[Statement], rng: random.Random) -> Statements:
    at = rng.randrange(len(script) + 1)
    return [*script[:at], rng.choice(PAUSES), *script[at:]]


def _otherwise(script: Statements, _: Sequence[Statement], rng: random.Random) -> Statements:
    """One that alters a table, by another algorithm and under another lock."""
    places = [at for at, one in enumerate(script) if one.verb in _ALTERS]
    if not places:
        return script
    at = rng.choice(places)
    changed = replace(
        script[at], algorithm=rng.choice(list(Algorithm)), lock=rng.choice(list(Lock))
    )
    return [*script[:at], changed, *script[at + 1 :]]


_ALTERS = (Verb.ADD_INDEX, Verb.DROP_INDEX, Verb.REBUILD_TABLE, Verb.ALTER_TABLE)

_CHANGES: tuple[Callable[[Statements, Sequence[Statement], random.Random], Statements], ...] = (
    _leave_out,
    _repeat,
    _move,
    _take,
    _splice,
)
_OF_THE_ENGINE: tuple[
    Callable[[Statements, Sequence[Statement], random.Random], Statements], ...
] = (
    _pause,
    _otherwise,
)
"""What lines in a target's own language have not."""
