"""Every option of the engine is varied by some default campaign, or a page says why not."""

from __future__ import annotations

import re
from functools import cache

from tornpage.plans.campaign import default_campaigns
from tornpage.targets.registry import make_target
from tornpage.vocabulary.paths import ROOT, data_folder, find_paths

SECTION = "## Options that no default campaign varies"


@cache
def varied() -> dict[str, set[str]]:
    """By option, the values that scripts of default campaigns are run with."""
    found: dict[str, set[str]] = {}
    for campaign in default_campaigns(data_folder("workloads")):
        for config in campaign.scripted():
            for name, value in config.options.items():
                found.setdefault(name, set()).add(value)
    return found


def test_every_option_is_varied_or_has_a_reason() -> None:
    """And no reason is given for one that is."""
    page = (ROOT / "docs" / "FEATURES.md").read_text("utf-8")
    section = page.partition(SECTION)[2].partition("\n## ")[0]
    reasons = dict(re.findall(r"^- `(\w+)`: (.+)$", section, re.MULTILINE))
    engine = make_target("engine", find_paths().build, ready=False)
    options = {option.name for option in engine.options()}
    fixed = {name for name in options if len(varied().get(name, set())) < 2}
    assert set(reasons) == fixed
    assert all(len(reason.split()) > 3 for reason in reasons.values())


def test_every_size_of_page_is_crashed() -> None:
    """From the least to the largest, in campaigns that planted bugs are measured by."""
    assert varied()["page_size"] == {"4k", "8k", "16k", "32k", "64k"}
