"""What a plan says that is done to the target."""

from __future__ import annotations

import pytest

from tornpage.vocabulary.model import Action, Fault, FaultKind, FaultPlan

KILL = Fault(FaultKind.WRITE, 1, Action.KILL)


@pytest.mark.parametrize(
    ("plan", "crashes"),
    [
        (FaultPlan(), False),
        (FaultPlan(run=(KILL,)), True),
        (FaultPlan(recover=((KILL,),)), True),
        (FaultPlan(recover=((), (KILL,))), True),
        (FaultPlan(loss="12.subset.3"), True),
    ],
)
def test_a_crash_of_any_process_is_one(plan: FaultPlan, crashes: bool) -> None:
    """Of the run, of a recovery behind a run that nothing happens to, and of the machine."""
    assert plan.crashes is crashes
