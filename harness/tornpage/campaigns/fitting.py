"""How a campaign is opened, whoever runs it: `run`, `nightly`, `try`, programs and pytest. A campaign and its
target are what they say, and are told apart by that; the path of a file is only where it was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tornpage.live.admission import work_of
from tornpage.plans.campaign import Campaign, load_campaign
from tornpage.plans.changes import change_all
from tornpage.plans.limits import Limits
from tornpage.plans.origin import origin_of
from tornpage.powerloss.explorer import loss_models
from tornpage.store.origin import Origin
from tornpage.store.rows import Run
from tornpage.targets.option import UNDER, disk_of
from tornpage.targets.registry import (
    DEFAULT_TARGET,
    TARGET_FILE,
    campaign_parts,
    explorer_path,
    identity_of,
    is_target_file,
    make_target,
    target_name,
)
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.closest import unknown
from tornpage.vocabulary.errors import ConfigError, TargetError
from tornpage.vocabulary.paths import Paths
from tornpage.workloads.workload import fit_params, validate_params

__all__ = ["Opened", "absolute_options", "changed", "check_options", "open_campaign", "open_with"]


@dataclass(frozen=True, slots=True)
class Opened:
    """A campaign, as its file has it but fitted to what it tortures; name: where that is found again (a name,
    or the absolute path of a target file)."""

    campaign: Campaign
    target: Target
    name: str

    @property
    def identity(self) -> str:
        """Which target it is."""
        return identity_of(self.target)

    def origin(self, command: str = "") -> Origin:
        """Of a run of it that starts now; command: as of origin_of()."""
        return origin_of(self.campaign, self.target, command)

    def did(self, run: Run) -> bool:
        """A run of this campaign on this target, wherever the files were, with whatever seed and sizes."""
        return (
            run.campaign == self.campaign.name
            and run.identity == self.identity
            and Campaign.model_validate(run.settings).work == self.campaign.work
        )


def open_campaign(campaign: str | Campaign, target: str | None, paths: Paths) -> Opened:
    """The campaign of this name or file, or made by a program, with `target`, else with its own. Raises
    ConfigError, TargetError."""
    name = target_name(_own_target(campaign, paths.workloads) if target is None else target)
    return open_with(campaign, make_target(name, paths.build), name, paths)


def open_with(campaign: str | Campaign, target: Target, name: str, paths: Paths) -> Opened:
    """The same with a target that is made already. name: as of Opened."""
    if not isinstance(campaign, Campaign):
        campaign = load_campaign(campaign, paths.workloads, target.name)
    return Opened(_fitted(campaign, target), target, name)


def changed(
    opened: Sequence[Opened], limits: Limits, options: Mapping[str, str], paths: Paths
) -> list[Opened]:
    """Campaigns that are one question, with these limits and options, as of change_all(). ConfigError for
    what one of them, or its target, does not have: before anything runs."""
    options = absolute_options([one.target for one in opened], options)
    chosen = change_all([one.campaign for one in opened], limits, options)
    found = [replace(one, campaign=as_) for one, as_ in zip(opened, chosen, strict=True)]
    for one in found:
        _check(one, paths)
    return [_with_lines(one) for one in found]


def absolute_options(targets: Iterable[Target], options: Mapping[str, str]) -> dict[str, str]:
    """Paths among the options of targets as they are found from everywhere."""
    try:
        known = {option.name: option for target in targets for option in target.options()}
    except TargetError:
        return dict(options)
    return {
        name: known[name].absolute(value) if name in known else value
        for name, value in options.items()
    }


def _with_lines(opened: Opened) -> Opened:
    """Its statements are those that its options name, unless a campaign gives others."""
    campaign, target = opened.campaign, opened.target
    if target.lines is None or campaign.params.get("path") != str(target.lines):
        return opened
    lines = str(target.lines_of(campaign.options))
    return replace(opened, campaign=campaign.changed({"params": {"path": lines}}))


def _check(opened: Opened, paths: Paths) -> None:
    """Options with their values, parameters, models."""
    campaign = opened.campaign
    _check_options(opened)
    config = campaign.configs()[0]
    validate_params(
        campaign.workload, fit_params(campaign.workload, campaign.params, config.options)
    )
    models = loss_models(explorer_path(paths.build)) if _models_of(campaign) else {}
    for model in _models_of(campaign):
        if model not in models:
            raise ConfigError(unknown("model", model, models))


def _check_options(opened: Opened) -> None:
    """A target that cannot be asked is run: that it fails is for the run to say."""
    disk = disk_of(opened.campaign.options)
    if disk and not opened.campaign.explore:
        raise ConfigError(f"{UNDER}={disk}: a disk loses power, and {opened.campaign.name} kills")
    with suppress(TargetError):
        check_options(opened.target, opened.target.name, _options_of(opened.campaign))
        opened.target.check_needs(opened.campaign.options)


def check_options(target: Target, called: str, pairs: Iterable[tuple[str, str]]) -> None:
    """ConfigError: one that the target does not have, or a value that it does not take. called: of the
    target, in the message."""
    known = {option.name: option for option in target.options()}
    for name, value in pairs:
        if name not in known:
            raise ConfigError(f"target {called}: {unknown('option', name, known)}")
        check = known[name].check
        if check is not None and (refusal := check(value)):
            raise ConfigError(f"target {called}: {refusal}")


def _models_of(campaign: Campaign) -> list[str]:
    return campaign.explore.models if campaign.explore else []


def _options_of(campaign: Campaign) -> list[tuple[str, str]]:
    """Every option with every value that it may have, each pair once."""
    pairs = [*campaign.options.items()]
    pairs += [(name, value) for name, values in campaign.cross.items() for value in values]
    for names, values in campaign.vary.items():
        for value in values:
            pairs += zip(names.split(","), value.split(","), strict=True)
    return list(dict.fromkeys(pairs))


def _own_target(campaign: str | Campaign, folder: Path) -> str:
    """What a campaign tortures; seen from its file, if it has one."""
    if isinstance(campaign, Campaign):
        return campaign.target or DEFAULT_TARGET
    found = load_campaign(campaign, folder)
    if not is_target_file(campaign):
        name, family = campaign_parts(campaign)
        if family == TARGET_FILE:
            raise ConfigError(f"{campaign} is for target files: tornpage run {name} --target FILE")
        if family != DEFAULT_TARGET:
            return family
    own = found.target or DEFAULT_TARGET
    return str(Path(campaign).parent / own) if is_target_file(own) else own


def _fitted(campaign: Campaign, target: Target) -> Campaign:
    """It hits sites that the target has, power loss crosses what the target says, and an observed one makes
    its own work."""
    update: dict[str, Any] = {}
    if campaign.explore:
        given = campaign.options.keys() | campaign.cross.keys()
        crossed = {name: values for name, values in target.crossed.items() if name not in given}
        update = {"cross": {**crossed, **campaign.cross}}
    elif any(not target.sites.issuperset(hit.sites) for hit in campaign.hit):
        update = {"hit": _hits(campaign, target)}
    if Capability.OBSERVED in target.capabilities:
        update |= _own_work(campaign, target)
    return campaign.changed(update) if update else campaign


def _own_work(campaign: Campaign, target: Target) -> Mapping[str, Any]:
    """Its workload. A script that the campaign gives in place of its lines stays."""
    workload, params = work_of(target, campaign.options)
    told = campaign.params if campaign.workload == workload else {}
    return {"workload": workload, "params": told or params}


def _hits(campaign: Campaign, target: Target) -> list[dict[str, Any]]:
    return [
        hit.model_dump() | {"sites": [site for site in hit.sites if site in target.sites]}
        for hit in campaign.hit
        if target.sites & set(hit.sites)
    ]
