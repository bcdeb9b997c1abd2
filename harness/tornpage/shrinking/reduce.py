"""Makes a script smaller, statement by statement, while what the caller asks of it holds.

A statement keeps its place in the original script (Item.origin), so that whoever looks for the crash in the
smaller script knows what is near. Passes, until none of them finds anything more: the end of the script,
whole transactions, single statements (begin and its end together), then smaller statements: fewer rows,
indexes, clauses and values, a transaction turned into single statements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace

from tornpage.shrinking.ddmin import ddmin, shrink_range
from tornpage.workloads.script import AUTOCOMMIT, Script, Statement, Verb

__all__ = ["Item", "Items", "items_of", "operations", "reduce_script"]

_ENDS = (Verb.COMMIT, Verb.ROLLBACK)


@dataclass(frozen=True, slots=True)
class Item:
    """A statement and its place in the original script, from 0."""

    origin: int
    statement: Statement


Items = tuple[Item, ...]
Fails = Callable[[Items], bool]


def items_of(script: Script) -> Items:
    """All statements of a script."""
    return tuple(Item(i, statement) for i, statement in enumerate(script.statements))


def operations(script: Script) -> int:
    """Statements, and rows of the ranges among them."""
    return sum(
        max(0, s.bounds[1] - s.bounds[0] + 1) if s.verb is Verb.INSERT_SEQ else 1
        for s in script.statements
    )


def reduce_script(items: Items, crash: Callable[[], int], fails: Fails) -> Items:
    """The smallest script found. fails(items) must hold. crash(): origin of the statement in flight in the
    last failing script; what comes behind it is tried to be left out first."""
    end = crash()
    head = tuple(item for item in items if item.origin <= end)
    if len(head) < len(items) and fails(head):
        items = head
    items = _drop(_transactions(items, whole=True), fails)
    while True:
        before = items
        items = _drop(_transactions(items, whole=False), fails)
        items = _simplify(items, fails)
        if items == before:
            return items


def _drop(units: list[Items], fails: Fails) -> Items:
    return _flat(ddmin(units, lambda kept: fails(_flat(kept))))


def _flat(units: Iterable[Items]) -> Items:
    return tuple(sorted((item for unit in units for item in unit), key=lambda item: item.origin))


def _transactions(items: Items, *, whole: bool) -> list[Items]:
    """Units that go together: a transaction, or (whole = False) only its begin and its end."""
    units: dict[Hashable, list[Item]] = {}
    opened: dict[str, int] = {}
    for item in items:
        statement = item.statement
        if statement.verb is Verb.BEGIN:
            opened[statement.trx] = item.origin
        member = statement.verb is Verb.BEGIN or statement.verb in _ENDS or whole
        start = opened.get(statement.trx, item.origin) if member else item.origin
        units.setdefault(start, []).append(item)
        if statement.verb in _ENDS:
            opened.pop(statement.trx, None)
    return [tuple(unit) for unit in units.values()]


# -- smaller statements ----------------------------------------------------------------------


def _simplify(items: Items, fails: Fails) -> Items:
    for unit in _transactions(items, whole=True):
        single = _autocommitted(items, unit)
        if single is not None and fails(single):
            items = single
    for origin in [item.origin for item in items]:
        items = _simplify_one(items, origin, fails)
    return items


def _autocommitted(items: Items, unit: Items) -> Items | None:
    """Without begin and end of this transaction, its changes each committed at once."""
    if unit[0].statement.verb is not Verb.BEGIN:
        return None
    members = {item.origin for item in unit}
    out = []
    for item in items:
        if item.origin not in members:
            out.append(item)
        elif item.statement.verb is not Verb.BEGIN and item.statement.verb not in _ENDS:
            out.append(replace(item, statement=replace(item.statement, trx=AUTOCOMMIT)))
    return tuple(out)


def _simplify_one(items: Items, origin: int, fails: Fails) -> Items:
    at = next(i for i, item in enumerate(items) if item.origin == origin)
    best = items

    def attempt(statement: Statement) -> bool:
        nonlocal best
        changed = (*items[:at], replace(items[at], statement=statement), *items[at + 1 :])
        if not fails(changed):
            return False
        best = changed
        return True

    statement = items[at].statement
    if statement.verb is Verb.INSERT_SEQ:
        shrink_range(*statement.bounds, lambda *bounds: attempt(replace(statement, bounds=bounds)))
    elif statement.verb in (Verb.ADD_INDEX, Verb.START_INDEX) and len(statement.indexes) > 1:
        ddmin(
            statement.indexes,
            lambda kept: bool(kept) and attempt(replace(statement, indexes=tuple(kept))),
        )
    elif len(statement.clauses) > 1:
        ddmin(
            statement.clauses,
            lambda kept: bool(kept) and attempt(replace(statement, clauses=tuple(kept))),
        )
    elif statement.verb is Verb.RESTART and statement.options:
        ddmin(
            list(statement.options.items()),
            lambda kept: attempt(replace(statement, options=dict(kept))),
        )
    elif statement.verb in (Verb.INSERT, Verb.UPDATE) and len(statement.values or {}) > 1:
        # An insert keeps its first value, the key, and an update needs one.
        first, *rest = (statement.values or {}).items()
        ddmin(rest, lambda kept: attempt(replace(statement, values=dict([first, *kept]))))
    return best
