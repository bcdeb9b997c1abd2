"""Campaigns as a target can have them, and the target that a campaign has.

May import: admission, campaign, paths, registry, target.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornpage.campaigns.admission import work_of
from tornpage.campaigns.campaign import DEFAULT_TARGET, Campaign, load_campaign
from tornpage.targets.registry import full_name, is_target_file, make_target
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.paths import Paths

__all__ = ["Opened", "campaign_of", "open_campaign"]


@dataclass(frozen=True, slots=True)
class Opened:
    """A campaign, what it tortures, and the name by which a store keeps that."""

    campaign: Campaign
    target: Target
    name: str


def open_campaign(campaign: str, target: str | None, paths: Paths) -> Opened:
    """The campaign of this name, or file, with `target`, else with its own."""
    name = full_name(_own_target(campaign, paths.workloads) if target is None else target)
    made = make_target(name, paths.build)
    return Opened(campaign_of(campaign, paths.workloads, made), made, name)


def _own_target(name: str, folder: Path) -> str:
    own = load_campaign(name, folder).target or DEFAULT_TARGET
    return str(Path(name).parent / own) if is_target_file(own) else own


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
