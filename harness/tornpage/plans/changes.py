"""What somebody changes of campaigns before they run: how far they go, and with which options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tornpage.plans.campaign import Campaign
from tornpage.plans.limits import BOUNDS, Has, Limits
from tornpage.targets.option import FS, UNDER
from tornpage.vocabulary.errors import ConfigError

__all__ = ["change", "change_all", "command_words", "has", "own"]

NONE: Mapping[str, str] = {}


def change(campaign: Campaign, limits: Limits, options: Mapping[str, str] = NONE) -> Campaign:
    """The campaign with these limits and options (the target's, and params.NAME). ConfigError for one that
    it cannot have."""
    return change_all([campaign], limits, options)[0]


def change_all(
    campaigns: Sequence[Campaign], limits: Limits, options: Mapping[str, str] = NONE
) -> list[Campaign]:
    """The same for several that are one question: each takes what it has. ConfigError for what none of them
    has."""
    for name in limits.given():
        if not any(has(campaign, name) for campaign in campaigns):
            raise ConfigError(_refusal(campaigns, BOUNDS[name].option, BOUNDS[name].has))
    lossless = not any(campaign.explore for campaign in campaigns)
    for name in (UNDER, FS):
        if name in options and lossless:
            raise ConfigError(_refusal(campaigns, f"--{name}", Has.LOSS))
    return [_limited(one.with_options(options), limits) for one in campaigns]


def has(campaign: Campaign, limit: str) -> bool:
    """Whether the campaign has this limit, by its name."""
    kind = BOUNDS[limit].has
    return kind is Has.ALL or (kind is Has.LOSS) == (campaign.explore is not None)


def own(campaign: Campaign, limits: Limits) -> Limits:
    """Those of the limits that the campaign has."""
    return Limits(**{name: value for name, value in limits.given().items() if has(campaign, name)})


def command_words(limits: Limits, options: Mapping[str, str] = NONE) -> list[str]:
    """The options of `tornpage run` that say the same."""
    pairs = [("--option", f"{name}={value}") for name, value in options.items()]
    return [*(word for pair in pairs for word in pair), *limits.words()]


def _refusal(campaigns: Sequence[Campaign], option: str, kind: Has) -> str:
    names = ", ".join(campaign.name for campaign in campaigns)
    subject = f"campaign {names} is" if len(campaigns) == 1 else f"each of {names} is"
    if kind is Has.LIVE:
        return f"{subject} a power-loss campaign: --states, no {option}"
    return f"{subject} no power-loss campaign: no {option}"


def _limited(campaign: Campaign, limits: Limits) -> Campaign:
    given = own(campaign, limits).given()
    if campaign.explore is None:
        return campaign.changed(given)
    explore: dict[str, Any] = {
        name: given.pop(name) for name in list(given) if BOUNDS[name].has is Has.LOSS
    }
    if "depth" in explore:
        explore["depths"] = []
    if "budget_s" in explore:
        explore.setdefault("states", 0)
    return campaign.changed({**given, "explore": campaign.explore.model_dump() | explore})
