"""What a power-loss run of a workload that is enumerated is complete for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tornpage.reports.summary import Summary, cut_states, judged_states
from tornpage.vocabulary.model import config_of
from tornpage.workloads.workload import lengths_of

__all__ = ["Bound", "bound_of"]

_SEQUENCE = re.compile(r"\bsequence=(\d+)")
"""In the label of a script."""


@dataclass(frozen=True, slots=True)
class Bound:
    """length: every sequence up to this one was explored in every configuration, 0: not even those of one
    statement; of places 1 if all were; explored, all: sequences, or places, of these those that had a crash
    state; whole: models of which each exploration judged every state."""

    length: int
    explored: int
    all: int
    whole: tuple[str, ...]
    things: str = "sequences"

    @property
    def text(self) -> str:
        """In a line."""
        of = f"{self.explored:,} of {self.all:,} {self.things}"
        has_lengths = self.things == "sequences"
        if not self.length:
            return f"{of}, complete to no length" if has_lengths else f"{of}, not complete"
        states = (
            f"all states of {', '.join(self.whole)}"
            if self.whole
            else "a sample of the states of each"
        )
        return f"{of}, complete{f' to length {self.length}' * has_lengths}: {states}"

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
    ends = lengths_of(workload, params)
    if not ends or not summary.explored:
        return None
    things = "sequences" if workload == "bounded" else "places"
    explored: dict[str, set[int]] = {}
    for label, part in summary.explored.items():
        found = _SEQUENCE.search(label)
        # A place that was not reached has no state.
        if found and (judged_states(part) or things == "sequences"):
            explored.setdefault(config_of(label), set()).add(int(found[1]))
    common = set.intersection(*explored.values()) if explored else set()
    length = sum(common >= set(range(end)) for end in ends)
    return Bound(length, len(common), ends[-1], _whole(summary.explored), things)


def _whole(explored: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Crashes of recoveries have states that no plan counts beforehand: of these nothing is said, nor where
    the end of the time has left a state without a verdict."""
    if any(int(part["depth"]) > 1 or cut_states(part) for part in explored.values()):
        return ()
    models: dict[str, bool] = {}
    judged = set[str]()
    for part in explored.values():
        for name, states in part["by_model"].items():
            models[name] = models.get(name, True) and states["states"] == states.get("possible")
            judged |= {name} if states["states"] else set()
    return tuple(sorted(name for name in judged if models[name]))
