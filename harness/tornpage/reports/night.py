"""What a night came to, as finished data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tornpage.store.bugs import Bug, BugStatus
from tornpage.store.memory import CLAIMS_MISSED, NOTHING, Night, RunFacts
from tornpage.store.origin import Examined

__all__ = ["NightBug", "NightSummary", "Standing", "is_idle"]


class Standing(StrEnum):
    """What a night says of a bug, in the order in which it is told."""

    NEW = "new"
    BACK = "back"
    """It was fixed, or did not show any more."""
    AGAIN = "again"
    """It is still there."""
    NOT_REPRODUCED = "not-reproduced"
    """Its reproducer does not show it any more, and nothing else did."""
    NOT_PLAYED = "not played"
    """Nothing showed it, and its reproducer could not be played."""


@dataclass(frozen=True, slots=True)
class NightBug:
    """A bug in a night. count: trials, states and fault-free runs that showed it; note: of the play of its
    reproducer; replay: the line that shows it, "" if there is none."""

    bug: Bug
    standing: Standing
    count: int
    note: str
    replay: str

    @property
    def is_news(self) -> bool:
        """New, or back."""
        return self.standing in (Standing.NEW, Standing.BACK)

    @property
    def is_there(self) -> bool:
        """It was seen, and is not ignored."""
        return self.count > 0 and self.bug.status is not BugStatus.IGNORED

    @property
    def is_unknown(self) -> bool:
        """Nobody has said that it is gone, and whether it is could not be found out."""
        settled = self.bug.status in (BugStatus.FIXED, BugStatus.IGNORED)
        return self.standing is Standing.NOT_PLAYED and not settled

    def to_json(self) -> dict[str, Any]:
        """An item of `bugs`."""
        return {
            "bug": self.bug.id,
            "title": self.bug.title,
            "status": self.bug.status,
            "standing": self.standing,
            "count": self.count,
            "note": self.note,
            "replay": self.replay,
        }


@dataclass(frozen=True, slots=True)
class NightSummary:
    """A night in numbers: which runs each campaign had, by its label, all its runs, and what it says of the
    bugs of its targets. examined: what came before its runs of target files."""

    night: Night
    campaigns: Mapping[str, Set[int]]
    runs: Sequence[RunFacts]
    bugs: Sequence[NightBug]
    errors: Sequence[str]
    examined: Sequence[Examined] = ()

    @property
    def unproved(self) -> list[str]:
        """Why what it did not find proves nothing, each target whose control found nothing."""
        return [one.vacuous for one in self.examined if one.vacuous]

    @property
    def crashes(self) -> int:
        """Trials with a verdict and power-loss states."""
        return sum(facts.crashes for facts in self.runs)

    @property
    def not_reached(self) -> list[str]:
        """Campaigns that the time was up for before one of their crashes was judged."""
        reached = {
            facts.id for facts in self.runs if facts.state != "stopped" or _has_exercised(facts)
        }
        return [label for label, runs in self.campaigns.items() if not reached & runs]

    def exit_code(self, *, only_news: bool = False) -> int:
        """1: bugs that are there, or only new ones; 2: verdicts that are missing or unstable, a campaign that
        could not be run; 3: nothing exercised, not what a finished run claims, not a past finding; else 0."""
        if any(one.is_there and (one.is_news or not only_news) for one in self.bugs):
            return 1
        ended = all(facts.state in ("finished", "stopped") for facts in self.runs)
        if self.night.state != "finished" or not ended or any(facts.unsure for facts in self.runs):
            return 2
        idle = [one for one in self.runs if is_idle(one)]
        unknown = any(one.is_unknown for one in self.bugs)
        if (
            self.unproved
            or idle
            or unknown
            or not any(_has_exercised(facts) for facts in self.runs)
        ):
            return 3
        return 0

    def to_json(self, store: str) -> dict[str, Any]:
        """The object that `tornpage nightly --json` prints last."""
        return {
            "night": self.night.id,
            "seed": self.night.plan["seed"],
            "state": self.night.state,
            "seconds": round(self.night.seconds, 1),
            "crashes": self.crashes,
            "not_reached": self.not_reached,
            "runs": [
                {
                    "run": facts.id,
                    "campaign": facts.campaign,
                    "target": facts.target,
                    "seed": facts.seed,
                    "state": facts.state,
                    "verdict": facts.verdict,
                    "crashes": facts.crashes,
                    "bugs": facts.bugs,
                    "news": facts.news,
                }
                for facts in self.runs
            ],
            "bugs": [one.to_json() for one in self.bugs],
            "errors": list(self.errors),
            "store": str(store),
        }


def is_idle(facts: RunFacts) -> bool:
    """It came to its end, and says nothing, or less than its campaign claims."""
    return facts.state == "finished" and facts.verdict in (NOTHING, CLAIMS_MISSED)


def _has_exercised(facts: RunFacts) -> bool:
    """One of its crashes says something."""
    return facts.crashes > 0 and facts.verdict != NOTHING
