"""What a power-loss run of a workload that is enumerated is complete for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tornpage.reports.summary import Summary
from tornpage.vocabulary.model import config_of
from tornpage.workloads.workload import enumerated, validate_params

__all__ = ["Bound", "bound_of"]

LENGTH = "length"
_SEQUENCE = re.compile(r"\bsequence=(\d+)")
"""In the label of a script."""


@dataclass(frozen=True, slots=True)
class Bound:
    """length: every sequence up to this one was explored in every configuration, 0: not even those of one
    statement; explored, all: sequences; whole: models of which each exploration judged every state."""

    length: int
    explored: int
    all: int
    whole: tuple[str, ...]

    @property
    def text(self) -> str:
        """In a line."""
        of = f"{self.explored:,} of {self.all:,} sequences"
        if not self.length:
            return f"{of}, complete to no length"
        states = (
            f"all states of {', '.join(self.whole)}" if self.whole else "no model with all states"
        )
        return f"{of}, complete to length {self.length}: {states}"

    def to_json(self) -> dict[str, Any]:
        """The value of `bound`."""
        return {
            "complete_to_length": self.length,
            "sequences": self.explored,
            "all_sequences": self.all,
            "whole_models": list(self.whole),
        }


def bound_of(summary: Summary) -> Bound | None:
    """None: the scripts of this run are drawn, not enumerated, or were not explored."""
    settings = summary.run.settings
    workload, params = str(settings.get("workload")), dict(settings.get("params", {}))
    every = enumerated(workload, params, 0)
    if not every or not summary.explored:
        return None
    explored: dict[str, set[int]] = {}
    for label in summary.explored:
        found = _SEQUENCE.search(label)
        if found:
            explored.setdefault(config_of(label), set()).add(int(found[1]))
    common = set.intersection(*explored.values()) if explored else set()
    length, longest = 0, int(validate_params(workload, params)[LENGTH])
    while length < longest and common >= set(
        enumerated(workload, {**params, LENGTH: length + 1}, 0)
    ):
        length += 1
    return Bound(length, len(common), len(every), _whole(summary.explored))


def _whole(explored: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Crashes of recoveries have states that no plan counts beforehand: of these nothing is said."""
    if any(int(part["depth"]) > 1 for part in explored.values()):
        return ()
    models: dict[str, bool] = {}
    judged = set[str]()
    for part in explored.values():
        for name, states in part["by_model"].items():
            models[name] = models.get(name, True) and states["states"] == states.get("possible")
            judged |= {name} if states["states"] else set()
    return tuple(sorted(name for name in judged if models[name]))
