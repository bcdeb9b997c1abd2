"""What somebody changes of a campaign before it runs: its options, its sizes, the limits of power loss.

May import: campaign, errors, option.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tornpage.campaigns.campaign import Campaign
from tornpage.targets.option import FS
from tornpage.vocabulary.errors import ConfigError

__all__ = ["Changes"]

_OPTIONS = {"models": "model", "budget_s": "budget"}
"""What `tornpage run` calls a limit, where the campaign's key is another word."""


@dataclass(frozen=True, slots=True)
class Changes:
    """None, or nothing in it: as the campaign's file has it. settings: target options, and params.NAME;
    scripts: per configuration, and per depth; states, budget_s (seconds): of each exploration; fs: names of
    file systems, with commas."""

    settings: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    trials: int | None = None
    scripts: int | None = None
    undisturbed: int | None = None
    models: Sequence[str] | None = None
    depth: int | None = None
    states: int | None = None
    budget_s: float | None = None
    fs: str | None = None

    def __bool__(self) -> bool:
        """Anything is changed."""
        return self != Changes()

    def apply(self, campaign: Campaign) -> Campaign:
        """The campaign with these changes. ConfigError for one that it cannot have."""
        sizes: dict[str, Any] = {
            "seed": self.seed,
            "trials": self.trials,
            "undisturbed": self.undisturbed,
        }
        limits: dict[str, Any] = {
            "models": self.models,
            "depth": self.depth,
            "states": self.states,
            "budget_s": self.budget_s,
        }
        if campaign.explore:
            limits["seeds"] = self.scripts
        else:
            sizes["scripts"] = self.scripts
        if campaign.explore and self.trials is not None:
            raise ConfigError(
                f"campaign {campaign.name} is a power-loss campaign: --states, no --trials"
            )
        if campaign.explore is None and (self.fs or FS in self.settings):
            raise ConfigError(f"campaign {campaign.name} is no power-loss campaign: no --fs")
        settings = {**self.settings, **({FS: self.fs} if self.fs else {})}
        changed = campaign.with_settings(settings).changed(_given(sizes))
        return _with_limits(changed, _given(limits))

    def words(self) -> list[str]:
        """The options of `tornpage run` that say the same."""
        pairs = [("--set", f"{name}={value}") for name, value in self.settings.items()]
        pairs += [("--model", name) for name in self.models or ()]
        numbers = {
            "--seed": self.seed,
            "--trials": self.trials,
            "--scripts": self.scripts,
            "--undisturbed": self.undisturbed,
            "--depth": self.depth,
            "--states": self.states,
            "--budget": None if self.budget_s is None else f"{self.budget_s:g}s",
        }
        pairs += [(option, str(value)) for option, value in _given(numbers).items()]
        return [word for pair in pairs for word in pair]


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _with_limits(campaign: Campaign, given: dict[str, Any]) -> Campaign:
    if campaign.explore is None:
        if given:
            key = next(iter(given))
            option = f"--{_OPTIONS.get(key, key)}"
            raise ConfigError(f"campaign {campaign.name} is no power-loss campaign: no {option}")
        return campaign
    if "depth" in given:
        given["depths"] = []
    if "budget_s" in given and "states" not in given:
        given["states"] = 0
    return campaign.changed({"explore": campaign.explore.model_dump() | given})
