"""The oracle of a run that was killed, of a target that observes its own states: what this very run has told
and had acknowledged, not what a fault-free one did. So kills need no target that does the same each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tornpage.faults.trace import Trace
from tornpage.live.journal import acknowledged_in, clients_in, issued_last
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
    trace: Trace, told: Mapping[int, State], fault_free: ObservedOracle
) -> KilledRun:
    """told: states by number of the statement, as far as the run got to tell them. What it did not get to
    tell is taken from the fault-free run as long as both have told the same, where another fault-free run
    agrees: a store may draw what it commits. Raises GoldenRunError when it cannot be judged: it was not ready
    yet, or an acknowledged state is not known."""
    acknowledged = acknowledged_in(trace)
    if all(fault_free.told.get(number) == state for number, state in told.items()):
        agreed = {n: state for n, state in fault_free.told.items() if n in fault_free.agreed}
        told = {**agreed, **told}
    under_way = [number for number in issued_last(trace) if number not in acknowledged]
    known = [number for number in under_way if number in told]
    clients = clients_in(trace)
    oracle = ObservedOracle(told, [*acknowledged, *known], killed=True, clients=clients)
    if known == under_way:
        return KilledRun(oracle, "")
    unknown = min(set(under_way).difference(known))
    return KilledRun(
        oracle,
        f"statement {unknown} was under way, and its state is not known: this run differs from the "
        "fault-free one, and printed no state before it committed",
    )
