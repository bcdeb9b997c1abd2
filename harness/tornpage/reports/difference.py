"""What one run has and another has not: bugs, and what was exercised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tornpage.reports.summary import Summary
from tornpage.reports.verdict import Verdict, Word
from tornpage.store.bugs import Bug
from tornpage.vocabulary.model import Outcome

__all__ = ["RunDifference", "difference_of", "verdict_of_difference"]


@dataclass(frozen=True, slots=True)
class RunDifference:
    """From an old run to a new one. gained, lost: cells of the matrices, and counters, that were exercised in
    the new one only, or in the old one only."""

    old: int
    new: int
    new_bugs: tuple[Bug, ...]
    still_there: tuple[Bug, ...]
    gone: tuple[Bug, ...]
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The object that `tornpage diff --json` prints."""
        return {
            "old": self.old,
            "new": self.new,
            "new_bugs": [_short(bug) for bug in self.new_bugs],
            "still_there": [_short(bug) for bug in self.still_there],
            "gone": [_short(bug) for bug in self.gone],
            "gained": list(self.gained),
            "lost": list(self.lost),
        }


def difference_of(old: Summary, new: Summary) -> RunDifference:
    """Compares two runs of one store."""
    old_bugs, new_bugs = _bugs_of(old), _bugs_of(new)
    before, after = _exercised(old), _exercised(new)
    return RunDifference(
        old=old.run.id,
        new=new.run.id,
        new_bugs=tuple(bug for number, bug in new_bugs.items() if number not in old_bugs),
        still_there=tuple(bug for number, bug in new_bugs.items() if number in old_bugs),
        gone=tuple(bug for number, bug in old_bugs.items() if number not in new_bugs),
        gained=tuple(sorted(after - before)),
        lost=tuple(sorted(before - after)),
    )


def verdict_of_difference(found: RunDifference) -> Verdict:
    """Of two runs side by side: the newer one has a bug that the older has not, or none."""
    counts = {"new": found.new_bugs, "still there": found.still_there, "gone": found.gone}
    text = ", ".join(f"{len(bugs)} {word}" for word, bugs in counts.items())
    if found.new_bugs:
        return Verdict(Word.VIOLATIONS, 1, f"bugs: {text}")
    return Verdict(Word.KNOWN if found.still_there else Word.CLEAN, 0, f"bugs: {text}")


def _bugs_of(summary: Summary) -> dict[int, Bug]:
    """By id, in that order."""
    bugs = sorted((seen.bug for seen in summary.bugs), key=lambda bug: bug.id)
    return {bug.id: bug for bug in bugs}


def _exercised(summary: Summary) -> set[str]:
    """Names of what a run exercised."""
    names = {f"torn page: {cell}" for cell in summary.torn_pages.cells if cell.states}
    names |= {
        f"kill: {cell.site}, {cell.mask}, {cell.config}"
        for cell in summary.cells
        if not summary.explored and cell.outcomes[Outcome.CLEAN] + cell.outcomes[Outcome.VIOLATION]
    }
    names |= {f"recovery: {name}" for name, value in summary.counters.items() if value}
    return names | {f"run: {name}" for name, value in summary.run_counters.items() if value}


def _short(bug: Bug) -> dict[str, Any]:
    return {"bug": bug.id, "title": bug.title, "status": bug.status}
