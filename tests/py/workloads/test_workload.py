"""Parameters of a workload that the options of the target decide."""

from __future__ import annotations

import pytest

from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.workload import fit_params


@pytest.mark.parametrize(
    ("text", "number"),
    [("4096", 4096), ("4k", 4096), ("16K", 16384), ("1m", 1 << 20), ("2G", 2 << 30)],
)
def test_a_size_is_read_as_the_target_reads_it(text: str, number: int) -> None:
    """With k, m, g in either case, or none."""
    assert fit_params("mix", {}, {"page_size": text, "doublewrite": "on"}) == {"page_size": number}


def test_what_is_told_wins_and_what_is_not_wanted_is_left_out() -> None:
    """A parameter of the campaign goes before the target's option; smoke asks for neither."""
    assert fit_params("mix", {"page_size": 8192}, {"page_size": "4k"}) == {"page_size": 8192}
    assert fit_params("smoke", {"rows": 1}, {"page_size": "4k"}) == {"rows": 1}


@pytest.mark.parametrize("text", ["abc", "", "k", "4kk", "-4k", "4 k", "٤k", "1e3"])
def test_what_is_no_number_is_refused_by_name(text: str) -> None:
    """Option and value are in the message."""
    with pytest.raises(WorkloadError, match=f"page_size={text}: expected a number"):
        fit_params("mix", {}, {"page_size": text})
