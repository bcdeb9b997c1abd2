"""Values that several tests need: specs, results, writes, all minimal and all valid."""

from __future__ import annotations

from tornpage.vocabulary.model import (
    Action,
    Census,
    Fault,
    FaultKind,
    FaultPlan,
    Outcome,
    Site,
    TornWrite,
    TrialResult,
    TrialSpec,
    Violation,
    WriteEvent,
)


def make_spec(number: int, config: str = "log_optimize_ddl=on") -> TrialSpec:
    """A trial that kills inside the first write of t1.ibd."""
    fault = Fault(FaultKind.WRITE, 1, Action.KILL, file="t1.ibd", sectors="prefix:1")
    return TrialSpec(
        campaign="smoke",
        target="engine",
        config=config,
        options={"page_size": "4k"},
        workload="smoke",
        params={},
        workload_seed=1,
        seed=7,
        number=number,
        plan=FaultPlan(name="p", run=(fault,)),
    )


def make_result(
    number: int, outcome: Outcome = Outcome.CLEAN, broken: int | None = None
) -> TrialResult:
    """A verdict; with `broken` a violation of that invariant, with a torn page of two sectors."""
    if broken is None:
        return TrialResult(
            number, outcome, site=Site.PAGE0, counters={"dblwr_restored": 1}, trace_hash="a"
        )
    return TrialResult(
        number,
        Outcome.VIOLATION,
        violations=(Violation(broken, "page 3 is torn", Site.PAGE0, "t1.ibd"),),
        site=Site.PAGE0,
        trace_hash="b",
        torn=TornWrite("t1.ibd", 0, 1024, 512, "10", b"o" * 1024, b"n" * 1024),
    )


def make_write(nth: int, site: Site, file: str = "t1.ibd", length: int = 4096) -> WriteEvent:
    """The nth write to a file, at page nth."""
    return WriteEvent(nth, nth, file, nth * 4096, length, site, 1)


def make_census(*writes: WriteEvent) -> Census:
    """A census of these writes."""
    return Census("key", tuple(writes), "hash", 10, 5)
