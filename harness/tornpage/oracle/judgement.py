"""Which commit prefix is a recovered state? What it breaks if it is none that may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tornpage.oracle.backups import Backup
from tornpage.oracle.state import State
from tornpage.vocabulary.model import Violation

__all__ = ["FoundBackup", "judge", "judge_backups"]


@dataclass(frozen=True, slots=True)
class FoundBackup:
    """A finished backup that was prepared. state: None if that was refused; wrong: why, or what the scanner
    found."""

    state: State | None
    wrong: str = ""


def judge_backups(
    states: list[State],
    backups: Mapping[int, Backup],
    found: Mapping[str, FoundBackup],
    low: int,
    high: int,
) -> Iterable[Violation]:
    """Judges the finished backups that were found (I28): one that was issued may be there, one that was
    acknowledged must, and what is there equals the prefix at its end. low, high: as of judge()."""
    for prefix, backup in backups.items():
        if prefix > high:
            continue
        name = f"backup {backup.name}"
        actual = found.get(backup.name)
        if actual is None:
            if backup.sure and prefix <= low:
                yield Violation(28, f"{name}: acknowledged, but not finished")
        elif actual.wrong:
            yield Violation(28, f"{name}: {actual.wrong}")
        elif actual.state != states[prefix]:
            yield Violation(28, f"{name}: another state than that of prefix {prefix}")


def judge(states: list[State], actual: State, low: int, high: int) -> list[Violation]:
    """Judges a recovered state: it must equal states[p] for a p in [low, high].

    low: prefix at the last acknowledgement that promised durability; high: prefix if the statement in
    flight has committed. An older prefix breaks I1, a newer or mixed one I3, part of a transaction I2
    (recognised when one table alone equals no prefix), right rows under wrong indexes I10.
    """
    if any(actual == states[p] for p in range(high, low - 1, -1)):
        return []
    for p in range(low - 1, -1, -1):
        if actual == states[p]:
            what = (
                f"acknowledged commits are missing: prefix {p} found, at least {low} acknowledged"
            )
            return [Violation(1, what)]
    for p in range(high + 1, len(states)):
        if actual == states[p]:
            return [Violation(3, f"prefix {p} found, but only {high} commits were ever issued")]
    rows = _rows(actual)
    for p in range(high, low - 1, -1):
        if rows == _rows(states[p]):
            return [Violation(10, _index_difference(actual, states[p]))]
    return [_judge_mixture(states, actual, low, high)]


def _rows(state: State) -> dict[str, tuple[int, int]]:
    return {name: (table[0], table[1]) for name, table in state.items()}


def _index_difference(actual: State, wanted: State) -> str:
    parts = []
    for name, table in sorted(wanted.items()):
        found = {item[0]: item for item in actual[name][2]}
        for item in table[2]:
            other = found.pop(item[0], None)
            if other is None:
                parts.append(f"{name}.{item[0]} is missing")
            elif other != item:
                parts.append(f"{name}.{item[0]} has {other[1]} entries, {item[1]} expected")
        parts.extend(f"{name}.{extra} must not exist" for extra in sorted(found))
    return "rows are right, indexes are not: " + "; ".join(parts)


def _judge_mixture(states: list[State], actual: State, low: int, high: int) -> Violation:
    wanted = states[high]
    if set(actual) != set(wanted) and set(actual) != set(states[low]):
        what = f"tables {sorted(actual)} found, {sorted(wanted)} expected"
        return Violation(3, what)
    places = []
    for name, table in sorted(actual.items()):
        found = [p for p, state in enumerate(states) if name in state and state[name] == table]
        if not found:
            what = (
                f"{name} ({table[0]} rows) equals no commit prefix: part of a transaction is there"
            )
            return Violation(2, what)
        places.append(f"{name} at prefix {found[0]}..{found[-1]}")
    return Violation(
        3, f"a mixture of commit prefixes: {', '.join(places)}; {low}..{high} expected"
    )
