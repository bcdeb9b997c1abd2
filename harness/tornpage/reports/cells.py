"""The cells of a run's matrix: what its trials at one site, with one mask and configuration came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tornpage.store.rows import GoldenRunRow, TrialRow
from tornpage.vocabulary.model import Outcome, Source, TrialResult, Violation

__all__ = ["CellCount", "Example"]


@dataclass(frozen=True, slots=True)
class Example:
    """A bug as one trial, or fault-free run, shows it."""

    what: str
    source: Source
    trial: str
    """RUN.NUMBER, or RUN.sNUMBER of a fault-free run."""


@dataclass(slots=True)
class CellCount:
    """Outcomes of one matrix cell. bugs: by number, as the cell's first trial shows it; reasons: by outcome,
    what the first trial of it says; seconds: that they took, one after the other."""

    config: str
    site: str
    mask: str
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    bugs: dict[int, Example] = field(default_factory=dict)
    reasons: dict[Outcome, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def total(self) -> int:
        """Trials of the cell."""
        return self.outcomes.total()

    def add(self, row: TrialRow, result: TrialResult) -> None:
        """One trial of the cell."""
        trial = f"{row.run}.{row.number}"
        self.outcomes[result.outcome] += 1
        self._show(result.violations, row.bugs, trial)
        self.seconds += result.seconds.get("total", 0.0)
        if result.reason:
            text = f"trial {trial}: {result.reason}"
            self.reasons.setdefault(result.outcome, text)

    def add_run(self, golden_run: GoldenRunRow, script: str) -> None:
        """One fault-free run of the configuration. script: its id."""
        self.outcomes[Outcome.VIOLATION if golden_run.violations else Outcome.CLEAN] += 1
        self._show(golden_run.violations, golden_run.bugs, script)

    def _show(
        self, violations: Sequence[Violation], bugs: Sequence[int | None], trial: str
    ) -> None:
        for violation, bug in zip(violations, bugs, strict=True):
            if bug is not None:  # the trial is unstable
                self.bugs.setdefault(bug, Example(violation.what, violation.source, trial))
