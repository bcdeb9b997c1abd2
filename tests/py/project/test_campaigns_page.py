"""docs/CAMPAIGNS.md and the models of a campaign file say the same."""

from __future__ import annotations

import re

import campaigns_page

from tornpage.plans.campaign import Campaign, Hit, PowerLoss
from tornpage.vocabulary.documented import keys_of
from tornpage.workloads.workload import params_of, workload_names

MODELS = [Campaign, Hit, PowerLoss, *(params_of(name) for name in workload_names())]


def test_the_page_is_what_make_docs_writes() -> None:
    """A change of a key or of its meaning comes with the page."""
    assert campaigns_page.PAGE.read_text("utf-8") == campaigns_page.page()


def test_every_key_has_a_meaning_and_a_row() -> None:
    """Its docstring, and the row that tells it."""
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .+ \| (.+) \|$", campaigns_page.page(), re.MULTILINE)
    keys = [key for model in MODELS for key in keys_of(model)]
    assert len(keys) > 30
    assert all(key.what for key in keys)
    assert {key.name for key in keys} == {name for name, _ in rows}


def test_a_bar_does_not_end_a_cell() -> None:
    """It would be another column."""
    for line in campaigns_page.page().splitlines():
        if line.startswith("|"):
            assert len(re.split(r"(?<!\\)\|", line)) == 6, line
