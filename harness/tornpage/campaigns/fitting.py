"""Campaigns as a target can have them.

May import: admission, campaign, target.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tornpage.campaigns.admission import work_of
from tornpage.campaigns.campaign import Campaign, load_campaign
from tornpage.targets.target import Capability, Target

__all__ = ["campaign_of"]


def campaign_of(name: str, folder: Path, target: Target) -> Campaign:
    """The campaign of this name, or file, for this target. It hits sites that the target has, power loss
    crosses what the target says, and an observed one makes its own work."""
    campaign = load_campaign(name, folder, target.name)
    update: dict[str, Any] = {}
    if campaign.explore:
        given = campaign.options.keys() | campaign.cross.keys()
        crossed = {name: values for name, values in target.crossed.items() if name not in given}
        update = {"cross": {**crossed, **campaign.cross}}
    elif any(not target.sites.issuperset(hit.sites) for hit in campaign.hit):
        update = {"hit": _hits(campaign, target)}
    if Capability.OBSERVED in target.capabilities:
        workload, params = work_of(target)
        update |= {"workload": workload, "params": params}
    return campaign.changed(update) if update else campaign


def _hits(campaign: Campaign, target: Target) -> list[dict[str, Any]]:
    return [
        hit.model_dump() | {"sites": [site for site in hit.sites if site in target.sites]}
        for hit in campaign.hit
        if target.sites & set(hit.sites)
    ]
