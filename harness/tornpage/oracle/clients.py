"""Which states may a crash leave of several clients at work at once? Those of each client by itself, in any
combination: what it has is its own, and it has one statement at a time. explorer/judge/allowed_clients.c
judges the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from tornpage.oracle.state import State
from tornpage.vocabulary.model import Violation

__all__ = ["judge_clients"]


def judge_clients(
    parts: Sequence[tuple[str, State]], actual: State, low: int, high: int
) -> list[Violation]:
    """parts: by prefix, whose it is and what is this client's own (ObservedOracle.parts). Each client must
    be at its last prefix up to low, at a later one up to high, or at the next, which may be under way."""
    first: dict[str, State] = {}
    for client, part in parts:
        first.setdefault(client, part)
    ages = [
        _age(parts, client, {name: actual[name] for name in part if name in actual}, low, high)
        for client, part in first.items()
    ]
    found = [
        Violation(invariant, f"{what}: of {ages.count(invariant)} clients")
        for invariant, what in (
            (1, "acknowledged commits are missing"),
            (3, "commits that were never issued"),
            (2, "tables that equal no commit prefix of their client"),
        )
        if invariant in ages
    ]
    known = {name for part in first.values() for name in part}
    if not set(actual) <= known:
        found.append(Violation(3, f"{len(actual)} tables, {len(known)} expected"))
    return found


def _age(parts: Sequence[tuple[str, State]], client: str, own: State, low: int, high: int) -> int:
    """The invariant that one client's state breaks, 0: none."""
    mine = [(number, part == own) for number, (of, part) in enumerate(parts) if of == client]
    old = [same for number, same in mine if number <= low]
    new = [(number, same) for number, same in mine if number > low]
    if old[-1:] == [True] or any(
        same and (number <= high or place == 0) for place, (number, same) in enumerate(new)
    ):
        return 0
    if any(old):
        return 1
    return 3 if any(same for _number, same in new) else 2
