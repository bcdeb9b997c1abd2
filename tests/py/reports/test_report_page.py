"""The page of a run: its headline says what the exit code says, each bug is told, and nothing is loaded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape

import pytest
from builders import make_bug, make_result, make_spec, make_summary

from tornpage.reports.dossier import Dossier, badge_of, bug_view
from tornpage.reports.report import render_report
from tornpage.reports.summary import BugSeen, Claims, Summary
from tornpage.reports.verdict import verdict_of
from tornpage.store.bugs import BugStatus, Novelty
from tornpage.store.origin import Origin
from tornpage.store.rows import Run, TrialRow
from tornpage.vocabulary.evidence import Evidence, Fate, Field, PageView, Phase, Step
from tornpage.vocabulary.model import Outcome, Site, TrialResult, Violation
from tornpage.vocabulary.paths import data_folder

TEMPLATES = data_folder("reports")
SIZE_MAX = 150_000
"""Characters of a page."""
ORIGIN = Origin(
    "2026-11-21T19:00:00+00:00", "host", "0.1.0", "tornpage run smoke --seed 4", {"engine": "abc"}
)
RUN = Run(
    7, "smoke", "engine", 4, 2, {"options": {"page_size": "4k"}}, "finished", 2.0, origin=ORIGIN
)


def summary_of(*results: TrialResult, run: Run = RUN, claims: Sequence[str] = ()) -> Summary:
    """The summary of a run of these results."""
    rows = [
        TrialRow(run.id, r.number, make_spec(r.number), "page0", "prefix:1", r) for r in results
    ]
    return make_summary(run, [], rows, Claims(claims, (), [Site.PAGE0]))


def evidence() -> Evidence:
    """A kill that tore page 5, after a write that was synced and one that was not."""
    steps = (
        Step(1, "write", "a.ibd", Fate.DURABLE, offset=4096, length=4096, line=3),
        Step(2, "fsync", "a.ibd", Fate.DURABLE, line=3),
        Step(3, "write", "ib_logfile0", Fate.KEPT, offset=8192, length=4096, site="redo", line=4),
        Step(4, "write", "a.ibd", Fate.TORN, offset=20480, length=4096, kept="10", line=4),
    )
    fields = (
        Field("verdict", "ok", "ok", "bad checksum"),
        Field("lsn", "10", "20", "20"),
        Field("records 01", "old <row>", "new", "old <row>"),
        Field("type", "index", "index", "index"),
    )
    page = PageView(
        "a.ibd",
        5,
        4096,
        512,
        "nnossssx",
        True,
        fields,
        3,
        ("10..20 <SET>",),
        "since the checkpoint, 10",
    )
    phase = Phase("run", "killed", 512, steps)
    return Evidence((phase,), (page,), {3: "insert <a>", 4: "clean 1"}, 4096)


def test_the_page_is_self_contained_and_escapes() -> None:
    """It says where it comes from, names each bug with its replay line, and loads nothing."""
    page = render_report(summary_of(make_result(0), make_result(1, broken=5)), TEMPLATES, {})
    for text in (
        "tornpage replay 7.1",
        "1 of 2 broken",
        'href="#bug-1"',
        'id="bug-1"',
        ORIGIN.started,
        ORIGIN.command,
        "page_size",
        "abc",
    ):
        assert text in page
    assert "http" not in page
    assert page.count("<script") == page.count("<script>") == 1
    broken = replace(make_result(1, broken=5), violations=(Violation(5, "<q>torn</q>"),))
    assert "<q>torn" not in render_report(summary_of(broken), TEMPLATES, {})


@pytest.mark.parametrize(
    ("state", "results", "headline"),
    [
        ("finished", [make_result(0)], "CLEAN (exit 0): engine abc, 1 trial; not exercised: "),
        ("finished", [make_result(1, broken=5)], "VIOLATIONS (exit 1): 1 new bug"),
        ("failed", [make_result(0)], "NO VERDICT (exit 2): the run failed before its end"),
        ("running", [make_result(0)], "NO VERDICT (exit 2): the run did not come to its end"),
        (
            "finished",
            [make_result(0, Outcome.HARNESS_ERROR)],
            "NO VERDICT (exit 2): the harness failed in 1 trial",
        ),
        (
            "failed",
            [make_result(n, Outcome.UNSTABLE) for n in range(2)],
            "NO VERDICT (exit 2): the run failed before its end, 2 trials did not repeat",
        ),
        ("finished", [make_result(0, Outcome.VACUOUS)], "NOTHING EXERCISED (exit 3): none of "),
    ],
)
def test_the_headline_says_why(state: str, results: list[TrialResult], headline: str) -> None:
    """Each verdict has its own, and one that is unsure its reason."""
    summary = summary_of(*results, run=replace(RUN, state=state))
    verdict = verdict_of(summary)
    assert verdict.line.startswith(headline)
    assert escape(verdict.line, quote=False) in render_report(summary, TEMPLATES, {})
    kinds = {"clean": "clean", "violations": "violation", "unsure": "idle"}
    assert verdict.kind == kinds.get(summary.verdict, "idle")


@pytest.mark.parametrize(
    ("state", "gap"),
    [
        ("failed", "the run failed after 1 of 2 trials"),
        ("stopped", "the time was up after 1 of 2 trials"),
        ("running", "the run was interrupted after 1 of 2 trials; --resume goes on"),
    ],
)
def test_missing_verdicts_are_gaps(state: str, gap: str) -> None:
    """What a run that did not finish has not judged stands first among what was not exercised."""
    page = render_report(summary_of(make_result(0), run=replace(RUN, state=state)), TEMPLATES, {})
    listed = re.findall(r"<li>(.*?)</li>", page.partition("Not exercised")[2], re.S)
    assert listed[0].startswith(gap)


def test_trials_without_a_verdict_are_gaps() -> None:
    """Twenty of them by name, the others by number."""
    failed = [replace(make_result(n, Outcome.HARNESS_ERROR), reason="boom") for n in range(33)]
    page = render_report(summary_of(*failed), TEMPLATES, {})
    assert "<li>trial 7.19: boom</li>" in page
    assert "trial 7.20" not in page
    assert "<li>and 13 more trials without a verdict</li>" in page


def test_a_bug_is_told_by_its_evidence() -> None:
    """Statement, operation and fate of each step, pages in place of bytes, the diff, the script."""
    summary = summary_of(make_result(1, broken=5))
    (seen,) = summary.bugs
    view = bug_view(Dossier(seen, evidence(), "7.1"))
    (phase,) = view.phases
    rows = [(row.fate, row.op, row.place) for row in phase.rows]
    assert rows == [
        ("statement", "line 3", ""),
        ("durable", "write", "page 1"),
        ("durable", "fsync", ""),
        ("statement", "line 4", ""),
        ("kept", "write", "4,096 bytes at 8,192"),
        ("torn", "write", "page 5"),
    ]
    assert phase.rows[-1].sectors == ["new", "old"]
    (picture,) = view.pictures
    assert [field.state for field in picture.fields] == ["other", "new", "old", "same"]
    assert picture.sectors == ["new", "new", "old", "same", "same", "same", "same", "other"]
    page = render_report(summary, TEMPLATES, {seen.bug.id: Dossier(seen, evidence(), "7.1")})
    assert "insert &lt;a&gt;" in page and "old &lt;row&gt;" in page
    assert "tornpage shrink 7.1" in page
    assert "3 more differences" in page
    assert (
        "redo records of the page, since the checkpoint, 10:" in page
        and "10..20 &lt;SET&gt;" in page
    )
    small = Dossier(seen, evidence(), "9.0", "it is torn", "create t1")
    page = render_report(summary, TEMPLATES, {seen.bug.id: small})
    for text in ("create t1", "then: it is torn", "trial 9.0"):
        assert text in page
    assert "tornpage shrink" not in page and page.count("tornpage replay 7.1") == 2


def test_without_evidence_the_torn_write_is_drawn() -> None:
    """A store of before has the sectors of the write only."""
    page = render_report(summary_of(make_result(1, broken=5)), TEMPLATES, {})
    assert '<i class="new" title="sector 0: new"></i><i class="old" title="sector 1: old">' in page
    assert "1,024 bytes at 0" in page


def seen_as(novelty: Novelty, status: BugStatus) -> BugSeen:
    """A bug in a run."""
    bug = replace(make_bug(1, novelty=novelty), status=status)
    return BugSeen(bug, bug.first, (), "")


def test_the_badge_says_what_is_new() -> None:
    """What a run shows for the first time, or again after it was fixed, goes before what somebody said."""
    assert badge_of(seen_as(Novelty.NEW, BugStatus.NEW)) == "new"
    assert badge_of(seen_as(Novelty.BACK, BugStatus.NEW)) == "back"
    assert badge_of(seen_as(Novelty.AGAIN, BugStatus.OPEN)) == "open"
    assert badge_of(seen_as(Novelty.AGAIN, BugStatus.KNOWN)) == "known"


def test_gone_bugs_are_listed() -> None:
    """By number and title, as those of the run before."""
    page = render_report(summary_of(make_result(0)), TEMPLATES, {}, [make_bug(12, "redo is cut")])
    gone = page.partition("<h3>Gone</h3>")[2]
    assert "bug 12" in gone and "redo is cut" in gone


def test_ten_thousand_violations_stay_readable() -> None:
    """Whether they are of one bug or each of its own, the page stays small and says what it left out."""
    words = "abcdefghij"
    names = ["".join(words[int(digit)] for digit in f"{n:04}") for n in range(10_000)]
    results = [
        replace(make_result(n, broken=5), violations=(Violation(21, f"{name} is odd"),))
        for n, name in enumerate(names)
    ]
    summary = summary_of(*results)
    assert len(summary.bugs) > 1000
    page = render_report(summary, TEMPLATES, {})
    assert len(page) < SIZE_MAX
    assert f"and {len(summary.bugs) - 200:,} more" in page
    one = summary_of(*(make_result(n, broken=5) for n in range(10_000)))
    assert len(one.bugs) == 1
    page = render_report(one, TEMPLATES, {})
    assert len(page) < 50_000 and "10,000" in page
