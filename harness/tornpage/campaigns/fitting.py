"""Campaigns as a target can have them.

May import: admission, campaign, registry, target.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tornpage.campaigns.admission import work_of
from tornpage.campaigns.campaign import Campaign, load_campaign
from tornpage.targets.registry import family_of
from tornpage.targets.target import Capability, Target

__all__ = ["campaign_of"]


def campaign_of(name: str, folder: Path, target: Target) -> Campaign:
    """The campaign of this name, or file, for this target. An observed target makes its own work, and
    hits what it has; power loss crosses what the target says."""
    campaign = load_campaign(name, folder, family_of(target.name))
    if Capability.OBSERVED not in target.capabilities:
        return campaign
    workload, params = work_of(target)
    if campaign.explore:
        given = campaign.options.keys() | campaign.cross.keys()
        crossed = {name: values for name, values in target.crossed.items() if name not in given}
        update: dict[str, Any] = {"cross": {**crossed, **campaign.cross}}
    else:
        update = {"hit": _hits(campaign, target)}
    return campaign.changed({"workload": workload, "params": params, **update})


def _hits(campaign: Campaign, target: Target) -> list[dict[str, Any]]:
    return [
        hit.model_dump() | {"sites": [site for site in hit.sites if site in target.sites]}
        for hit in campaign.hit
        if target.sites & set(hit.sites)
    ]
