"""Rows of the store as the rest of the harness has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tornpage.store.origin import Origin
from tornpage.vocabulary.model import TrialResult, TrialSpec, Violation

__all__ = ["DETAILS", "IMPORT", "SHRINK", "GoldenRunRow", "Run", "TrialRow"]

SHRINK = "shrink"
IMPORT = "import"
DETAILS = (SHRINK, "replay", IMPORT)
"""Runs of these names are but details of others: what was shrunk, findings played again, and findings that
come from other machines."""


@dataclass(frozen=True, slots=True)
class Run:
    """A row of `run`; settings is the JSON object of the campaign; night: that it is a part of."""

    id: int
    campaign: str
    target: str
    seed: int
    trials: int
    settings: dict[str, Any]
    state: str
    seconds: float
    origin: Origin = field(default_factory=Origin)
    verdict: str = ""
    night: int | None = None

    @property
    def identity(self) -> str:
        """Which target it is about; `target` is where that was found."""
        return self.origin.target or self.target

    @property
    def is_over(self) -> bool:
        """Failed, or with what it came to: its owner may have died between the last crash and the verdict."""
        return self.state == "failed" or (self.state != "running" and self.verdict != "")


@dataclass(frozen=True, slots=True)
class GoldenRunRow:
    """A row of `golden_run`: a fault-free run. crashed: its script gets trials or is explored; bugs: of each
    violation, as the store has assigned them."""

    config: str
    crashed: bool
    hash: str
    events: int
    writes: int
    violations: tuple[Violation, ...]
    counters: Mapping[str, int]
    bugs: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial as it stands in the store; result is None while it runs or was interrupted. bugs: of each
    violation, None where the trial is unstable."""

    run: int
    number: int
    spec: TrialSpec
    site: str
    mask: str
    result: TrialResult | None
    bugs: tuple[int | None, ...] = field(default=(), compare=False)
