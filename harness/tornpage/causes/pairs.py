"""The causes of a whole run, by line of code: which write must be durable before which, which be whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tornpage.campaigns.fault_free import with_kept_image
from tornpage.causes.explain import explain_trial
from tornpage.store.rows import TrialRow
from tornpage.store.store import Store
from tornpage.vocabulary.cause import Cause, Explained, Kind, Operation
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.evidence import Frame
from tornpage.vocabulary.model import Source
from tornpage.vocabulary.paths import Paths

__all__ = ["Pair", "RunCauses", "explain_run"]

FRAMES = 3
"""Innermost ones by which causes are alike."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Causes that are alike. lost, relied: lines of code, else what was done, "" if nothing; trials: IDs;
    bugs: that these show."""

    kind: Kind
    lost: str
    relied: str
    trials: tuple[str, ...]
    bugs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunCauses:
    """pairs: the most frequent first; unexplained: by ID of a trial, why it could not be."""

    pairs: tuple[Pair, ...]
    unexplained: dict[str, str]


def explain_run(
    store: Store,
    run: int,
    paths: Paths,
    out: Path,
    folders: Sequence[Path],
    of_each: int,
    tell: Callable[[str], None],
    keep: Callable[[str, Explained], None],
) -> RunCauses:
    """Explains the first `of_each` broken states of each bug. out: folder of the kept images; folders, tell:
    as of explain_trial(); keep: gets each trial that was explained. ConfigError: no state of the run is
    broken."""
    store.run(run)  # there is one
    chosen = _chosen(store, run, of_each)
    if not chosen:
        raise ConfigError(f"run {run} has no broken state: nothing to explain")
    alike: dict[tuple[Kind, str, str], list[TrialRow]] = {}
    unexplained = {}
    for number, row in enumerate(chosen, 1):
        name = f"{row.run}.{row.number}"
        tell(f"{number} of {len(chosen)}: trial {name}")
        try:
            kept = with_kept_image(row, out)
            found = explain_trial(kept, paths, folders, lambda _: None)
        except ConfigError as error:
            unexplained[name] = str(error)
            continue
        keep(name, found)
        alike.setdefault(_key(found.cause), []).append(row)
    pairs = [_pair(key, rows) for key, rows in alike.items()]
    return RunCauses(tuple(sorted(pairs, key=lambda pair: -len(pair.trials))), unexplained)


def _chosen(store: Store, run: int, of_each: int) -> list[TrialRow]:
    """In the order of the trials."""
    counts: dict[int, int] = {}
    chosen = []
    for row in store.trials(run):
        broken = row.result.violations if row.result else ()
        bugs = {bug for bug in row.bugs if bug}
        if not any(one.source is Source.STATE for one in broken):
            continue
        if any(counts.get(bug, 0) < of_each for bug in bugs):
            chosen.append(row)
            counts |= {bug: counts.get(bug, 0) + 1 for bug in bugs}
    return chosen


def _key(cause: Cause) -> tuple[Kind, str, str]:
    relied = [cause.relied] if cause.relied else []
    return cause.kind, _place(cause.lost), _place(relied)


def _place(operations: Sequence[Operation]) -> str:
    """By its code, or that of the step of it that matters; an operation without a stack by what it did, and
    to which file."""
    places = [
        " ← ".join(map(str, _frames(one)[:FRAMES])) or f"{one.op} of {one.path}"
        for one in operations
    ]
    return ", ".join(dict.fromkeys(places))


def _frames(one: Operation) -> Sequence[Frame]:
    return one.change.frames if one.part and one.change else one.frames


def _pair(key: tuple[Kind, str, str], rows: Sequence[TrialRow]) -> Pair:
    trials = tuple(f"{row.run}.{row.number}" for row in rows)
    bugs = sorted({bug for row in rows for bug in row.bugs if bug})
    return Pair(*key, trials, tuple(bugs))
