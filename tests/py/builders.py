"""Values that several tests need: specs, results, writes, all minimal and all valid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tornpage.oracle.root import roots_of
from tornpage.reports.summary import Claims, Summary, summarise
from tornpage.store.bugs import Bug, BugStatus, Novelty, Reproducer, Sighting
from tornpage.store.rows import GoldenRunRow, Run, TrialRow
from tornpage.vocabulary.model import (
    Action,
    Fault,
    FaultKind,
    FaultPlan,
    GoldenRun,
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


def make_golden_run(*writes: WriteEvent) -> GoldenRun:
    """A golden run of these writes."""
    return GoldenRun("key", tuple(writes), "hash", 10, 5)


def make_bug(
    number: int, fingerprint: str = "state page torn", novelty: Novelty = Novelty.NEW
) -> Bug:
    """A bug that was seen once, in run 1."""
    seen = Sighting(number, 1, "2026-11-21T19:00:00+00:00", "b1", novelty, 1)
    return Bug(
        number,
        "engine",
        fingerprint,
        fingerprint,
        (5,),
        BugStatus.NEW,
        "",
        Reproducer(1, 0, "log_optimize_ddl=on"),
        seen,
        seen,
        1,
        1,
        ("b1",),
    )


def make_summary(
    run: Run,
    golden_runs: Sequence[GoldenRunRow] = (),
    rows: Sequence[TrialRow] = (),
    claims: Claims | None = None,
    explored: Mapping[str, Mapping[str, Any]] | None = None,
) -> Summary:
    """The summary of rows that the store would have given bugs to, each new."""
    bugs: dict[str, Bug] = {}

    def assign(violations: Iterable[Violation]) -> tuple[int, ...]:
        roots = [root.fingerprint for root in roots_of(list(violations))]
        for root in roots:
            bugs.setdefault(root, make_bug(len(bugs) + 1, root))
        return tuple(bugs[root].id for root in roots)

    return summarise(
        run,
        {n: replace(row, bugs=assign(row.violations)) for n, row in enumerate(golden_runs)},
        [_with_bugs(row, assign) for row in rows],
        {name: dict(part) for name, part in (explored or {}).items()},
        claims or Claims(),
        {bug.id: (bug, bug.first) for bug in bugs.values()},
    )


def _with_bugs(row: TrialRow, assign: Callable[[Iterable[Violation]], tuple[int, ...]]) -> TrialRow:
    if row.result is None:
        return row
    if row.result.outcome is Outcome.UNSTABLE:
        return replace(row, bugs=(None,) * len(row.result.violations))
    return replace(row, bugs=assign(row.result.violations))
