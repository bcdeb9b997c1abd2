"""What a crash may leave: which states, of one sequence of commits or of one for each client, and what of
that is promised. The one judge of the states that recoveries of live crashes come to; the explorer's own
(explorer/judge/allowed.c) is told the same prefixes and the same promise.

Not verified here: what a target does not promise; pages, and what else is no logical state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tornpage.oracle.clients import judge_clients
from tornpage.oracle.exports import Export, exported_in
from tornpage.oracle.judgement import FoundBackup, judge, judge_backups
from tornpage.oracle.observed import KeptStates, ObservedOracle
from tornpage.oracle.oracle import Oracle
from tornpage.oracle.promise import Promise
from tornpage.oracle.state import State
from tornpage.vocabulary.model import Violation

__all__ = ["Allowed", "StateVerdict", "allowed_after"]


@dataclass(frozen=True, slots=True)
class StateVerdict:
    """What a recovered state breaks. undecided: why nothing can be said of it, "" if something can."""

    violations: tuple[Violation, ...] = ()
    undecided: str = ""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Commit prefixes low to high of `oracle` may be found. acknowledged: the newest that was, whatever is
    promised of it; unknown: why a state that is none of them need not be wrong, "" if it is."""

    oracle: Oracle | ObservedOracle | KeptStates
    low: int
    high: int
    acknowledged: int
    promise: Promise
    unknown: str = ""

    def judge(self, state: State, backups: Mapping[str, FoundBackup]) -> StateVerdict:
        """Judges what a recovery came to, its finished backups too (I28)."""
        found = self._judge_state(state) if self.promise.consistent else []
        undecided = self.unknown if found else ""
        oracle = self.oracle
        whole = judge_backups(oracle.states, oracle.backups, backups, self.low, self.high)
        return StateVerdict((*([] if undecided else found), *whole), undecided)

    def export(self) -> Export | None:
        """The table that is exported when the crash comes, if one is."""
        return exported_in(self.oracle.exports, self.acknowledged, self.high)

    def _judge_state(self, state: State) -> list[Violation]:
        parts = self.oracle.parts if not isinstance(self.oracle, Oracle) else []
        if parts:
            return judge_clients(parts, state, self.low, self.high)
        return judge(self.oracle.states, state, self.low, self.high)


def allowed_after(
    oracle: Oracle | ObservedOracle,
    finished: int,
    issued: int,
    promise: Promise,
    unknown: str = "",
) -> Allowed:
    """finished, issued: the last statements that were, before the crash. Of a target that need not keep what
    was acknowledged only what is durable for another reason must be there."""
    acknowledged = oracle.after(finished)
    high = oracle.newest(finished, issued)
    if promise.durable:
        return Allowed(oracle, acknowledged, high, acknowledged, promise, unknown)
    durable = [step.prefix for step in oracle.steps if step.durable and step.line <= finished]
    low = durable[-1] if durable else 0
    return Allowed(oracle, low, high, acknowledged, promise, unknown)
