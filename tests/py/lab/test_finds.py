"""How long a find takes: medians over seeds, and the bugs that are measured by default."""

from __future__ import annotations

import pytest

from tornpage.lab.finds import FindRow, FindTable, median, sample
from tornpage.lab.mutant_table import Mutant, load_patches
from tornpage.lab.mutants import TABLE


def row(*states: float | None, alarms: tuple[float | None, ...] = (0.5,)) -> FindRow:
    """Of one bug."""
    return FindRow("bug", alarms, states, ("powerloss",))


@pytest.mark.parametrize(
    ("seconds", "middle"),
    [
        ((5.0, 1.0, 3.0), 3.0),
        ((5.0, None, 3.0), 5.0),
        ((None, None, 3.0), None),
        ((None, 3.0), None),
        ((4.0, 3.0), 4.0),
        ((None,), None),
    ],
)
def test_a_seed_without_a_find_counts_as_the_slowest(
    seconds: tuple[float | None, ...], middle: float | None
) -> None:
    """What most seeds do not find has no time, not that of the lucky one."""
    assert median(seconds) == middle


def test_the_sum_is_of_what_was_found() -> None:
    """And it says how many that are."""
    found = FindTable((row(2.0, 1.0, 3.0), row(None, None, 1.0), row(5.0)), 60.0).to_json()
    assert (found["mutants"], found["state"], found["alarm"]) == (
        3,
        {"found": 2, "total_s": 7.0},
        {"found": 3, "total_s": 1.5},
    )


def test_the_sample_is_a_few_of_each_kind() -> None:
    """By their names, which begin with the mechanism."""
    rows = load_patches(Mutant, TABLE)
    few = [mutant.name for mutant in sample(rows)]
    assert 8 <= len(few) <= 16
    assert len({name.partition("_")[0] for name in few}) > len(few) / 2
    assert few == [mutant.name for mutant in sample(rows)]
