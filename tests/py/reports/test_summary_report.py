"""A summary counts what the rows say and exits accordingly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_result, make_spec, make_summary

from tornpage.reports.sectors import sector_states
from tornpage.reports.summary import Claims, Summary
from tornpage.store.bugs import BugStatus, Novelty
from tornpage.store.rows import GoldenRunRow, Run, TrialRow
from tornpage.vocabulary.model import (
    FaultPlan,
    Outcome,
    Site,
    Source,
    TornWrite,
    TrialResult,
    Violation,
)


def golden_run_row(config: str, crashed: bool = True, *violations: Violation) -> GoldenRunRow:
    """A fault-free run in which one page split."""
    return GoldenRunRow(config, crashed, "h", 1, 1, violations, {"btr_splits": 3, "btr_merges": 0})


def summary_of(
    *results: TrialResult, claims: tuple[str, ...] = (), run_claims: tuple[str, ...] = ()
) -> Summary:
    """The summary of a run of these results."""
    rows = [TrialRow(1, r.number, make_spec(r.number), "page0", "prefix:1", r) for r in results]
    run = Run(1, "smoke", "engine", 1, len(rows), {}, "finished", 2.0)
    golden_runs = [
        golden_run_row("log_optimize_ddl=on"),
        golden_run_row("log_optimize_ddl=on seed=7", False),
    ]
    return make_summary(run, golden_runs, rows, Claims(claims, run_claims, [Site.PAGE0]))


@pytest.mark.parametrize(
    ("results", "claims", "code"),
    [
        ([make_result(0)], (), 0),
        ([make_result(0), make_result(1, broken=5)], (), 1),
        ([make_result(0), make_result(1, outcome=Outcome.HARNESS_ERROR)], (), 2),
        ([make_result(0, outcome=Outcome.NOT_EXERCISED)], (), 3),
        ([make_result(0, outcome=Outcome.VACUOUS)], (), 3),
        ([make_result(0)], ("index_load_reads",), 3),
        ([make_result(0)], ("dblwr_restored",), 0),
    ],
)
def test_exit_code(results: list[TrialResult], claims: tuple[str, ...], code: int) -> None:
    """Violations win over harness failures, and those over a run that proves nothing."""
    assert summary_of(*results, claims=claims).exit_code() == code


@pytest.mark.parametrize(
    ("status", "novelty", "codes"),
    [
        (BugStatus.NEW, Novelty.NEW, (1, 1)),
        (BugStatus.KNOWN, Novelty.AGAIN, (1, 0)),
        (BugStatus.NEW, Novelty.BACK, (1, 1)),
        (BugStatus.IGNORED, Novelty.AGAIN, (0, 0)),
    ],
)
def test_what_is_thought_of_a_bug_counts(
    status: BugStatus, novelty: Novelty, codes: tuple[int, int]
) -> None:
    """Exit code of any bug, and of news only: an ignored one is no failure. The verdict is what was seen."""
    summary = summary_of(make_result(0, broken=5))
    (seen,) = summary.bugs
    bug, sighting = replace(seen.bug, status=status), replace(seen.sighting, novelty=novelty)
    summary.bugs = [replace(seen, bug=bug, sighting=sighting)]
    assert (summary.exit_code(), summary.exit_code(only_news=True)) == codes
    assert summary.verdict == "violations"


@pytest.mark.parametrize("state", ["running", "failed"])
def test_verdicts_that_are_missing_are_not_clean(state: str) -> None:
    """A run that did not come to its end proves nothing, however clean what it has is."""
    rows = [TrialRow(1, 0, make_spec(0), "page0", "none", make_result(0))]
    run = Run(1, "smoke", "engine", 1, 2, {}, state, 2.0)
    summary = make_summary(run, [], rows, Claims())
    assert (summary.exit_code(), summary.to_json(Path("s"), Path("r"))["complete"]) == (2, False)


def test_an_unstable_violation_is_no_finding_and_not_clean() -> None:
    """It is told, counts as neither, and the run is not clean."""
    unstable = replace(make_result(1, broken=5), outcome=Outcome.UNSTABLE, reason="came once")
    summary = summary_of(make_result(0), unstable)
    assert (summary.violations, summary.findings, summary.exit_code()) == (0, [], 2)
    assert summary.errors == ["trial 1.1 is unstable: came once"]


def test_states_like_a_broken_one_are_counted() -> None:
    """The explorer tells one state per invariant and site, and how many broke the same."""
    summary = summary_of(replace(make_result(0, broken=5), alike=342), make_result(1, broken=5))
    assert (summary.violations, summary.by_invariant[5]) == (343, 343)
    assert [finding.count for finding in summary.findings] == [343]


def test_claims_of_the_runs_are_not_those_of_recoveries() -> None:
    """Each kind is met by its own counters only; what is missed is exit code 3."""
    summary = summary_of(make_result(0), claims=("dblwr_restored",), run_claims=("btr_splits",))
    assert (summary.exit_code(), summary.run_counters) == (0, {"btr_splits": 2})
    assert summary_of(make_result(0), claims=("btr_splits",)).claims_missed == ["btr_splits"]
    for name in ("btr_merges", "dblwr_restored"):
        summary = summary_of(make_result(0), run_claims=(name,))
        assert (summary.exit_code(), summary.run_claims_missed) == (3, [name])


def test_fault_free_runs_are_counted_and_judged() -> None:
    """A violation of a run that nothing happened to has a line that repeats it; other scripts with the same
    are the same finding."""
    run = Run(7, "mix", "engine", 1, 0, {}, "finished", 2.0)
    broken = Violation(10, "an index lacks rows")
    rows = [
        golden_run_row("log=on seed=1"),
        *(golden_run_row(f"log=on seed={n},pool=32", False, broken) for n in (5, 6)),
    ]
    summary = make_summary(run, rows, [], Claims())
    assert (summary.scripts, summary.fault_free, summary.exit_code()) == (1, 2, 1)
    assert (summary.violations, summary.verdict) == (2, "violations")
    (finding,) = summary.findings
    assert (finding.trial, finding.of_trial) == ("7.s1", False)
    assert finding.replay == "tornpage replay 7.s1"


def test_trials_that_were_not_exercised_hit_no_site() -> None:
    """by_site counts kills that happened."""
    summary = summary_of(make_result(0), make_result(1, outcome=Outcome.NOT_EXERCISED))
    assert summary.by_site == {"page0": 1}
    assert summary.exercised == 1


def test_states_that_broke_the_same_are_counted_at_their_site() -> None:
    """by_site of --json and the table tell one number: of states, not of findings."""
    spec = replace(make_spec(0), plan=FaultPlan(loss="17.one-torn.3"))
    result = replace(make_result(0, broken=5), alike=14)
    run = Run(1, "powerloss", "engine", 1, 1, {}, "finished", 2.0)
    summary = make_summary(run, [], [TrialRow(1, 0, spec, "page0", "", result)], Claims())
    assert summary.to_json("s.db", Path("r.html"))["by_site"] == {"page0": 1}
    summary.explored = {"a": {"depth": 1}}
    assert summary.counts_by_site == {"page0": 14}


def test_a_site_in_recovery_is_a_row_of_its_own() -> None:
    """Hits of the same site in the run do not cover it."""
    rows = [TrialRow(1, 0, make_spec(0), "page0", "none", make_result(0))]
    run = Run(1, "smoke", "engine", 1, 2, {}, "finished", 2.0)
    places = [Site.PAGE0, "recovery:page0"]
    assert make_summary(run, [], rows, Claims(sites=places)).uncovered_sites == ["recovery:page0"]
    rows.append(TrialRow(1, 1, make_spec(1), "recovery:page0", "none", make_result(1)))
    summary = make_summary(run, [], rows, Claims(sites=places))
    assert summary.by_site == {"page0": 1, "recovery:page0": 1}
    assert summary.uncovered_sites == []


def test_trace_hash_follows_the_verdicts() -> None:
    """The same verdicts give the same hash, another verdict another one."""
    same = [summary_of(make_result(0), make_result(1)).trace_hash for _ in range(2)]
    assert same[0] == same[1]
    assert summary_of(make_result(0), make_result(1, broken=5)).trace_hash != same[0]


def test_violations_of_one_fingerprint_are_one_finding() -> None:
    """Ten trials with the same invariant at the same site are one row, with the first one's replay."""
    summary = summary_of(*(make_result(number, broken=5) for number in range(10)))
    assert [(f.invariant, f.count, f.replay) for f in summary.findings] == [
        (5, 10, "tornpage replay 1.0")
    ]
    assert summary.by_invariant == {5: 10}


def test_what_the_golden_run_shows_already_is_one_finding() -> None:
    """A violation of the fault-free run is in every trial behind it, whatever that one hits: one row, which
    names a trial that can be replayed."""
    shown_by_run = Violation(22, "slot 1 is not fsynced", path="ib_dblwr")
    broken = replace(make_result(0, broken=5), violations=(shown_by_run,))
    rows = [TrialRow(1, n, make_spec(n), f"site{n}", "none", broken) for n in range(3)]
    run = Run(1, "smoke", "engine", 1, 3, {}, "finished", 2.0)
    config = make_spec(0).config
    shown = [golden_run_row(config, True, *broken.violations)]
    (finding,) = make_summary(run, shown, rows, Claims()).findings
    assert (finding.site, finding.trial) == ("run", "1.0")
    assert len(make_summary(run, [golden_run_row(config)], rows, Claims()).findings) == 3


def test_a_bug_that_never_comes_alone_says_so() -> None:
    """A broken state is always with the rule that its trials, or the run of its script, break; the rule also
    comes alone."""
    rule = Violation(22, "area: slot 1 is not fsynced", source=Source.RULE)
    torn = Violation(5, "page 3: bad checksum")
    lost = Violation(1, "acknowledged commits are missing: prefix 1 found")
    broken = [(rule, torn), (rule,), (lost,)]
    rows = [
        TrialRow(
            1, n, make_spec(n), "page0", "none", replace(make_result(n, broken=5), violations=each)
        )
        for n, each in enumerate(broken)
    ]
    run = Run(1, "smoke", "engine", 1, 3, {}, "finished", 2.0)
    summary = make_summary(run, [], rows)
    assert {seen.bug.fingerprint: seen.always_with for seen in summary.bugs} == {
        "rule area": (),
        "state acknowledged commits missing": (),
        "state page torn": (1,),
    }
    with_golden_run = make_summary(run, [golden_run_row(make_spec(0).config, True, rule)], rows)
    assert [seen.always_with for seen in with_golden_run.bugs] == [(), (1,), (1,)]


def test_sector_states_align_with_the_file() -> None:
    """An unaligned write's first sector is the rest of the file's sector; equal bytes are no loss."""
    old = b"a" * 100 + b"b" * 512 + b"c" * 412
    new = b"x" * 100 + b"b" * 512 + b"y" * 412
    torn = TornWrite("f", 412, 1024, 512, "001", old, new)
    assert sector_states(torn) == ["old", "same", "new"]
