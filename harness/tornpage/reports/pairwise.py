"""Which kinds of statements a power-loss run has had together, and with which settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tornpage.reports.summary import Summary
from tornpage.workloads.pairwise import NOTHING, Pairwise

__all__ = ["Pairs", "pairs_of"]

_SETTING = re.compile(r"\b(\w+)=([^,\s]*)")
"""In the label of a script."""
_NO_SETTINGS = ("seed", "sequence")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Kinds of statements, pairs of them in one script, pairs of a kind and a setting that varies."""

    kinds: int
    pairs: int
    settings: int

    @property
    def text(self) -> str:
        """In a line."""
        pairs = f"{self.pairs:,} pairs of them, {self.settings:,} pairs with a setting"
        return f"{self.kinds} statement kinds, {pairs}"

    def to_json(self) -> dict[str, Any]:
        """The value of `pairs`."""
        return {"kinds": self.kinds, "pairs": self.pairs, "settings": self.settings}


def pairs_of(summary: Summary) -> Pairs | None:
    """None: nothing was explored whose statements we read, or no two of them together."""
    each = [
        Pairwise.of(part["statements"], _settings(label))
        for label, part in summary.explored.items()
        if len(part.get("statements", ())) > 1
    ]
    had = NOTHING.union(*each)
    return Pairs(len(had.kinds), len(had.pairs), len(had.settings)) if each else None


def _settings(label: str) -> dict[str, str]:
    return {name: value for name, value in _SETTING.findall(label) if name not in _NO_SETTINGS}
