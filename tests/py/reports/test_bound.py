"""What a run of enumerated sequences says that it is complete for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from builders import make_summary

from tornpage.reports.bound import Bound, bound_of
from tornpage.reports.summary import Summary
from tornpage.reports.verdict import looked_at, verdict_of
from tornpage.store.origin import Origin
from tornpage.store.rows import Run
from tornpage.workloads.bounded import sequences_of
from tornpage.workloads.places import places_of

SINGLES, ALL = len(sequences_of(1)), len(sequences_of(2))
SETTINGS = {"workload": "bounded", "params": {}, "crash_model": "power_loss"}
RUN = Run(2, "bounded", "engine", 1, 0, SETTINGS, "finished", 2.0, Origin())
WHOLE = {"all-persisted": (5, 5), "log-cut": (3, 3), "one-torn": (2, 40), "kill": (0, 0)}


def part(models: Mapping[str, tuple[int, int]] = WHOLE, depth: int = 1) -> dict[str, object]:
    """Of an exploration: by model the states that were judged, and all that there are."""
    by_model = {name: {"states": n, "possible": of} for name, (n, of) in models.items()}
    states = sum(n for n, _ in models.values())
    return {"states": states, "distinct": 3, "depth": depth, "fs": "posix", "by_model": by_model}


def summary(
    sequences: Iterable[int], config: str = "default", other: Mapping[str, object] | None = None
) -> Summary:
    """Of a run that has explored these. other: what the last one came to."""
    parts = {f"{config} seed={n}001,sequence={n}": part() for n in sequences}
    if other is not None:
        parts[list(parts)[-1]] = dict(other)
    return make_summary(RUN, explored=parts)


@pytest.mark.parametrize(
    ("sequences", "length"),
    [
        (range(ALL), 2),
        (range(ALL - 1), 1),
        (range(SINGLES), 1),
        (range(1, SINGLES), 0),
        (range(1, ALL), 0),
        (range(SINGLES, ALL), 0),
    ],
)
def test_complete_is_what_was_explored_to_the_last_one(sequences: range, length: int) -> None:
    """One that is missing is one too many, whichever."""
    bound = bound_of(summary(sequences))
    assert bound == Bound(length, len(sequences), ALL, ("all-persisted", "log-cut"))


def test_a_configuration_that_lacks_one_counts() -> None:
    """Of several all must have it."""
    found = summary(range(SINGLES))
    found.explored |= summary(range(SINGLES - 1), "scrub=on").explored
    bound = bound_of(found)
    assert bound is not None and (bound.length, bound.explored) == (0, SINGLES - 1)


@pytest.mark.parametrize(
    ("other", "whole"),
    [
        (part({**WHOLE, "log-cut": (2, 3)}), ("all-persisted",)),
        (part({"one-torn": (9, 9)}), ("all-persisted", "log-cut")),
        (part(depth=2), ()),
        ({**part(), "unfinished": 1}, ()),
    ],
)
def test_a_model_is_whole_if_each_exploration_judged_all_its_states(
    other: dict[str, object], whole: tuple[str, ...]
) -> None:
    """Crashes of recoveries have states that nobody counts beforehand."""
    bound = bound_of(summary(range(SINGLES), other=other))
    assert bound is not None and bound.whole == whole
    said = f"all states of {', '.join(whole)}" if whole else "a sample of the states of each"
    assert bound.text.endswith(f"complete to length 1: {said}")


@pytest.mark.parametrize("reached", [True, False])
@pytest.mark.parametrize(("left_out", "said"), [(0, "complete: all states"), (1, "not complete")])
def test_places_have_no_length(left_out: int, said: str, reached: bool) -> None:
    """All of them, or not all. One that was not reached has no crash state, and was not looked at."""
    every = len(places_of())
    found = summary(range(every - (left_out if reached else 0)))
    if left_out and not reached:
        found.explored[next(iter(found.explored))] |= part({"log-cut": (0, 0)})
    run = replace(RUN, settings={**SETTINGS, "workload": "places"})
    bound = bound_of(make_summary(run, explored=found.explored))
    assert bound is not None
    assert bound.text.startswith(f"{every - left_out:,} of {every:,} places, {said}")


def test_the_verdict_says_so() -> None:
    """Of enumerated scripts, and of no others."""
    found = summary(range(SINGLES))
    said = f"{SINGLES} of {ALL:,} sequences, complete to length 1: all states of all-persisted, log-cut;"
    assert said in verdict_of(found).line
    assert looked_at(found).to_json()["bound"]["complete_to_length"] == 1
    drawn = replace(RUN, settings={**SETTINGS, "workload": "mix"})
    assert bound_of(make_summary(drawn, explored=found.explored)) is None
    assert "sequences, complete to no length" in verdict_of(summary([3])).line
