"""The oracle of a run that was killed, of a target that observes its own states: what this very run has told
and had acknowledged, not what an undisturbed one did. So kills need no target that does the same each time.

May import: census, observed, state, trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tornpage.campaigns.census import acknowledged_in, read_journal
from tornpage.faults.trace import Trace
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.state import State

__all__ = ["KilledRun", "judge_by_own_run"]


@dataclass(frozen=True, slots=True)
class KilledRun:
    """oracle: the states that the run went through, that of the statement under way too if it is known;
    unknown: why nothing can be said of a state that is none of them, "" if all are known."""

    oracle: ObservedOracle
    unknown: str


def judge_by_own_run(
    trace: Trace, told: Mapping[int, State], undisturbed: ObservedOracle
) -> KilledRun:
    """told: states by number of the statement, as far as the run got to tell them. What it did not get to
    tell is taken from the undisturbed run as long as both have told the same. Raises CensusError when it
    cannot be judged: it was not ready yet, or an acknowledged state is not known."""
    acknowledged = acknowledged_in(trace)
    journal = read_journal(trace)
    if all(undisturbed.told.get(number) == state for number, state in told.items()):
        told = {**undisturbed.told, **told}
    issued = journal.issued[-1][1] if journal.issued else 0
    under_way = [issued] if issued > (acknowledged[-1] if acknowledged else 0) else []
    known = [number for number in under_way if number in told]
    oracle = ObservedOracle(told, [*acknowledged, *known], killed=True)
    if known == under_way:
        return KilledRun(oracle, "")
    return KilledRun(
        oracle,
        f"statement {issued} was under way, and its state is not known: this run differs from the "
        "undisturbed one, and told no state before it committed",
    )
