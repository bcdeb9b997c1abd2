"""A campaign in portions that are run, and pass or fail, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tornpage.plans.campaign import Campaign

__all__ = ["portions_of"]


def portions_of(
    campaign: Campaign, *, cells: bool, models: Sequence[str]
) -> list[tuple[str, Campaign]]:
    """The campaign as one portion per configuration, by its label; cells: per site and mask as well, for
    power loss per model. models: those that there are. Trials and fault-free runs are shared out, at least
    one trial each. What a whole campaign claims, no portion of it must show."""
    found = [
        (f"{label},{cell}" if cell else label, {**crossed, **part})
        for label, crossed in _configurations(campaign)
        for cell, part in (_cells(campaign, models) if cells else [("", {})])
    ]
    if len(found) == 1:
        return [(found[0][0], campaign)]
    shares = {
        "trials": max(1, campaign.trials // len(found)) if campaign.trials else 0,
        "fault_free": campaign.fault_free // len(found),
        "claims": [],
        "run_claims": [],
    }
    return [
        (label, campaign.changed({**part, **shares, "name": f"{campaign.name}[{label}]"}))
        for label, part in found
    ]


def _configurations(campaign: Campaign) -> Iterator[tuple[str, dict[str, Any]]]:
    """Label of each, and the crossed options that are left in it."""
    for config in campaign.configs():
        yield config.label, {"cross": {name: [config.options[name]] for name in campaign.cross}}


def _cells(campaign: Campaign, models: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    explore = campaign.explore
    if explore is not None:
        for model in explore.models or models:
            yield model, {"explore": explore.model_dump() | {"models": [model]}}
        return
    for hit in campaign.hit:
        for site, place in zip(hit.sites, hit.places(), strict=True):
            for mask in hit.masks:
                one = hit.model_dump() | {"sites": [site], "masks": [mask]}
                yield f"{place},{mask}", {"hit": [one]}
