"""JUnit XML as a reader of CI systems sees it, and annotations as GitHub's runner reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_result, make_spec, make_summary
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from tornpage.cli.options import Annotate, FailOn
from tornpage.cli.publish import publish
from tornpage.reports.annotations import github_lines
from tornpage.reports.cells import CellCount
from tornpage.reports.junit import render_junit
from tornpage.reports.summary import Claims, Summary
from tornpage.store.bugs import BugStatus, Novelty
from tornpage.store.origin import Examined, Origin
from tornpage.store.rows import GoldenRunRow, Run, TrialRow
from tornpage.vocabulary.model import Outcome, Source, TrialResult, Violation

ON, OFF = "log_optimize_ddl=on", "log_optimize_ddl=off"
SETTINGS = {"claims": ["dblwr_restored", "batches"], "run_claims": ["log_wraps"]}
CLAIMS = Claims(SETTINGS["claims"], SETTINGS["run_claims"], ["page0", "undo_page"])
ORIGIN = Origin("2026-11-21T19:00:00+00:00", "host", "1", "tornpage run smoke --seed 7")


def row(result: TrialResult, mask: str = "none", config: str = ON) -> TrialRow:
    """A trial at page0."""
    spec = make_spec(result.number, f"{config} seed=3")
    return TrialRow(1, result.number, spec, "page0", mask, result)


def summary_of(
    rows: Iterable[TrialRow], golden_runs: Iterable[GoldenRunRow] = (), state: str = "finished"
) -> Summary:
    """A run of these trials, its claims those of SETTINGS."""
    run = Run(1, "smoke", "engine", 7, 9, SETTINGS, state, 2.0, ORIGIN)
    return make_summary(run, list(golden_runs), list(rows), CLAIMS)


def suite_of(summary: Summary) -> TestSuite:
    """Its only suite, read back."""
    (suite,) = JUnitXml.fromstring(render_junit([summary]))
    return suite


def cases_of(summary: Summary) -> dict[str, TestCase]:
    """By group and name."""
    return {f"{case.classname} {case.name}": case for case in suite_of(summary)}


def test_a_suite_counts_its_cases() -> None:
    """Tests, failures, errors and skipped are what the cases say; seed and command are properties."""
    broken = make_result(0, broken=5)
    failed = make_result(1, outcome=Outcome.HARNESS_ERROR)
    suite = suite_of(summary_of([row(broken), row(failed, "all"), row(make_result(2), "random")]))
    assert suite.name == "smoke on engine"
    # all verdicts, three cells, undo_page, three claims
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (8, 1, 1, 3)
    counted = [type(result) for case in suite for result in case.result]
    assert (counted.count(Failure), counted.count(Error), counted.count(Skipped)) == (1, 1, 3)
    properties = {item.name: item.value for item in suite.properties()}
    assert properties["seed"] == "7"
    assert properties["command"] == "tornpage run smoke --seed 7"
    assert properties["verdict"].startswith("VIOLATIONS (exit 1): 1 new bug")
    assert (properties["target"], properties["crash_model"]) == ("engine", "kill")
    assert "power loss" in properties["not_exercised"]
    assert (suite.time, suite.timestamp, suite.hostname) == (2.0, ORIGIN.started, "host")


def test_a_failure_carries_the_bug_and_the_line_that_replays_it() -> None:
    """In every cell that shows it, and in no other, with a trial of the cell; the line is that of the bug."""
    rows = [row(make_result(0, broken=5)), row(make_result(1, broken=5), "all", OFF)]
    summary = summary_of([*rows, row(make_result(2), "random")])
    cases = cases_of(summary)
    for name in (f"tornpage.smoke.{ON} page0 none", f"tornpage.smoke.{OFF} page0 all"):
        (failure,) = cases[name].result
        assert isinstance(failure, Failure)
        assert failure.type == "I5"
        assert failure.message == f"bug 1, new: {summary.bugs[0].bug.title}"
        assert f"fingerprint: {summary.bugs[0].bug.fingerprint}" in failure.text
        number = "1.0" if name.endswith("none") else "1.1"
        assert f"shown here by: {number}\n" in failure.text
        assert failure.text.endswith("replay: tornpage replay 1.0")
    assert cases[f"tornpage.smoke.{ON} page0 random"].result == []


def test_what_was_not_exercised_is_skipped_with_its_reason() -> None:
    """A cell only if no trial of it was; a claim that was not kept; a site that no trial hit."""
    idle = replace(make_result(0, outcome=Outcome.NOT_EXERCISED), reason="the write never came")
    half = [row(replace(idle, number=1), "all"), row(make_result(2), "all")]
    cases = cases_of(summary_of([row(idle), *half]))
    (skipped,) = cases[f"tornpage.smoke.{ON} page0 none"].result
    assert isinstance(skipped, Skipped)
    assert skipped.message == "trial 1.0: the write never came"
    assert cases[f"tornpage.smoke.{ON} page0 all"].result == []
    assert cases["tornpage.smoke claims: dblwr_restored"].result == []
    for name in ("claims: batches", "run_claims: log_wraps", "site undo_page"):
        (skipped,) = cases[f"tornpage.smoke {name}"].result
        assert isinstance(skipped, Skipped), name


def test_a_failure_names_the_code_of_what_was_broken() -> None:
    """Behind the line that replays it; another bug's is not in it."""
    summary = summary_of([row(make_result(0, broken=5))])
    bug = summary.bugs[0].bug.id
    frames = {bug: ["torn write t.ibd, page 4: save save.cc:7"], bug + 1: ["lost write u.ibd"]}
    (suite,) = JUnitXml.fromstring(render_junit([summary], frames))
    results = (one for case in suite for one in case.result)
    (failure,) = (one for one in results if isinstance(one, Failure))
    assert failure.text.endswith("tornpage replay 1.0\ntorn write t.ibd, page 4: save save.cc:7")


def test_what_has_no_verdict_is_an_error() -> None:
    """A failure of the harness, a trial that does not repeat, a run that did not come to its end."""
    failed = replace(make_result(0, outcome=Outcome.HARNESS_ERROR), reason="no preload")
    unstable = replace(make_result(1, broken=5), outcome=Outcome.UNSTABLE, reason="came once")
    summary = summary_of([row(failed), row(unstable, "all")], state="running")
    cases = cases_of(summary)
    told = {
        f"tornpage.smoke.{ON} page0 none": "1 harness_error, first trial 1.0: no preload",
        f"tornpage.smoke.{ON} page0 all": "1 unstable, first trial 1.1: came once",
        "tornpage.smoke all verdicts": "run unfinished: some verdicts are missing",
    }
    for name, message in told.items():
        (error,) = cases[name].result
        assert isinstance(error, Error)
        assert error.message == message


def test_states_without_a_verdict_are_errors() -> None:
    """Of an exploration: one that did not break again."""
    unstable = replace(make_result(1, broken=5), outcome=Outcome.UNSTABLE, reason="came once")
    explored = {f"{ON} seed=3": {"states": 40, "distinct": 30, "depth": 1, "seconds": 1.0}}
    run = Run(1, "powerloss", "engine", 7, 1, {}, "finished", 2.0, ORIGIN)
    summary = make_summary(run, [], [row(unstable, "17.subset.2")], None, explored)
    (error,) = cases_of(summary)[f"tornpage.powerloss.{ON} crash states"].result
    assert isinstance(error, Error)
    assert error.message == "1 unstable, first trial 1.1: came once"


def test_what_has_no_verdict_is_annotated() -> None:
    """A run that did not come to its end is an error of its workflow."""
    (line,) = github_lines([summary_of([row(make_result(0))], state="failed")])
    assert line.startswith("::error ") and "run failed: some verdicts are missing" in line


def test_a_bug_does_not_hide_what_has_no_verdict() -> None:
    """Of one cell: it is a failure and an error."""
    trials = [row(make_result(0, broken=5)), row(make_result(1, outcome=Outcome.HARNESS_ERROR))]
    told = cases_of(summary_of(trials))[f"tornpage.smoke.{ON} page0 none"].result
    assert [type(one) for one in told] == [Failure, Error]


def test_every_broken_state_of_a_configuration_is_told() -> None:
    """Whatever it is of: a case is of all its explorations together."""
    explored = {
        f"{ON} seed={seed}": {"states": 40, "distinct": 30, "depth": 1, "seconds": 1.0}
        for seed in (3, 4)
    }
    run = Run(1, "powerloss", "engine", 7, 1, {}, "finished", 2.0, ORIGIN)
    rows = [
        row(make_result(number, broken=broken), f"{number}.subset.2")
        for number, broken in enumerate((5, 1, 30))
    ]
    summary = make_summary(run, [], rows, None, explored)
    told = cases_of(summary)[f"tornpage.powerloss.{ON} crash states"].result
    assert len(summary.bugs) == 3
    assert [type(one) for one in told] == [Failure] * 3


def test_every_bug_of_a_trial_fails_its_case() -> None:
    """Also one that is only ever seen beside another."""
    both = (Violation(5, "page 3 is torn"), Violation(23, "acknowledged after a failed write"))
    trial = row(replace(make_result(0, broken=5), violations=both))
    summary = summary_of([trial])
    shown = CellCount(ON, "page0", "none")
    shown.add(replace(trial, bugs=(1, 2)), trial.result or make_result(0))
    assert sorted(shown.bugs) == [1, 2]
    bugs = {seen.bug.id for seen in summary.bugs}
    failures = cases_of(summary)[f"tornpage.smoke.{ON} page0 none"].result
    assert len(failures) == len(bugs)


def test_fault_free_runs_are_cases_of_their_own() -> None:
    """One per configuration; it fails with what the run itself broke."""
    violation = Violation(23, "acknowledged after a failed write", source=Source.RUN)
    runs = [
        GoldenRunRow(f"{ON} seed=3", True, "h", 1, 1, (violation,), {}),
        GoldenRunRow(f"{ON} seed=4", False, "h", 1, 1, (), {}),
        GoldenRunRow(f"{OFF} seed=3", True, "h", 1, 1, (), {}),
    ]
    cases = cases_of(summary_of([row(make_result(0))], runs))
    (failure,) = cases[f"tornpage.smoke.{ON} fault-free runs"].result
    assert isinstance(failure, Failure)
    assert failure.text.endswith("replay: tornpage replay 1.s0")
    assert cases[f"tornpage.smoke.{OFF} fault-free runs"].result == []


def test_a_power_loss_campaign_has_a_case_per_configuration() -> None:
    """Seeds and depths together; its broken states are trials of the store."""
    part = {"states": 40, "distinct": 30, "depth": 1, "seconds": 1.5}
    explored = {
        f"{ON} seed=1,depth=1": part,
        f"{ON} seed=2,depth=2": part,
        f"{OFF} seed=1,depth=1": {**part, "states": 0},
        f"{OFF} seed=2,depth=1": {**part, "states": 1, "unfinished": 1},
    }
    run = Run(1, "powerloss", "engine", 1, 0, {}, "finished", 2.0, ORIGIN)
    summary = make_summary(run, [], [row(make_result(0, broken=3), "17.subset.2")], None, explored)
    cases = cases_of(summary)
    on = cases[f"tornpage.powerloss.{ON} crash states"]
    assert isinstance(on.result[0], Failure)
    assert on.time == 3.0
    (skipped,) = cases[f"tornpage.powerloss.{OFF} crash states"].result
    assert isinstance(skipped, Skipped)
    assert len(cases) == 3


def test_what_no_control_backs_is_no_pass() -> None:
    """Of a configuration in which a disk that ignores every fsync broke nothing: crash states and kills are
    skipped with that reason; a bug there is a failure."""
    origin = replace(ORIGIN, examined=Examined("w", 400, 2, blind=(OFF,)))
    part = {"states": 40, "distinct": 30, "depth": 1}
    explored = {f"{ON} seed=1": part, f"{OFF} seed=1": part}
    run = Run(1, "powerloss", "mydb", 1, 0, {}, "finished", 2.0, origin)
    cases = cases_of(make_summary(run, [], [], None, explored))
    assert cases[f"tornpage.powerloss.{ON} crash states"].result == []
    (skipped,) = cases[f"tornpage.powerloss.{OFF} crash states"].result
    assert isinstance(skipped, Skipped) and "control" in str(skipped.message)
    trials = [row(make_result(0), config=OFF), row(make_result(1), config=ON)]
    cases = cases_of(make_summary(replace(run, campaign="smoke"), [], trials))
    assert isinstance(cases[f"tornpage.smoke.{OFF} page0 none"].result[0], Skipped)
    assert cases[f"tornpage.smoke.{ON} page0 none"].result == []
    broken = make_summary(run, [], [row(make_result(0, broken=3), config=OFF)], None, explored)
    (failure,) = cases_of(broken)[f"tornpage.powerloss.{OFF} crash states"].result
    assert isinstance(failure, Failure)


def test_an_ignored_bug_is_no_failure() -> None:
    """It is skipped, and not annotated."""
    summary = summary_of([row(make_result(0, broken=5))])
    (seen,) = summary.bugs
    summary.bugs = [replace(seen, bug=replace(seen.bug, status=BugStatus.IGNORED))]
    (skipped,) = cases_of(summary)[f"tornpage.smoke.{ON} page0 none"].result
    assert isinstance(skipped, Skipped)
    assert skipped.message == seen.headline
    assert seen.bug.fingerprint not in "".join(github_lines([summary]))


def test_a_known_bug_is_no_failure_where_only_news_are() -> None:
    """It is skipped, and a warning; one that came back is a failure."""
    summary = summary_of([row(make_result(0, broken=5))])
    (seen,) = summary.bugs
    known = replace(seen, sighting=replace(seen.sighting, novelty=Novelty.AGAIN))
    back = replace(seen, sighting=replace(seen.sighting, novelty=Novelty.BACK))
    for bug, only_news, kind, level in (
        (known, True, Skipped, "::warning"),
        (known, False, Failure, "::error"),
        (back, True, Failure, "::error"),
    ):
        summary.bugs = [bug]
        (suite,) = JUnitXml.fromstring(render_junit([summary], only_news=only_news))
        results = [result for case in suite for result in case.result if "bug 1" in result.message]
        assert [type(result) for result in results] == [kind]
        (line,) = [x for x in github_lines([summary], only_news=only_news) if "bug 1" in x]
        assert line.startswith(level)


def test_text_that_xml_cannot_hold_is_escaped() -> None:
    """Control characters, markup and lone surrogates of a target's message."""
    odd = Violation(5, 'page <3> & \x1b[31m\x00 \ud800 "é"', path="t1.ibd")
    result = replace(make_result(0, broken=5), violations=(odd,))
    (failure,) = cases_of(summary_of([row(result)]))[f"tornpage.smoke.{ON} page0 none"].result
    assert failure.text.splitlines()[0] == 'page <3> & \\x1b[31m\\x00 \\xd800 "é"'


def test_several_runs_are_several_suites() -> None:
    """In one file."""
    one = summary_of([row(make_result(0))])
    xml = JUnitXml.fromstring(render_junit([one, one]))
    assert [suite.name for suite in xml] == ["smoke on engine"] * 2


def test_annotations_are_one_line_each() -> None:
    """Message and title are escaped as the runner undoes it; at most ten of a kind."""
    odd = Violation(5, "50% torn,\nthen: ::error::\r gone", path="t1.ibd")
    result = replace(make_result(0, broken=5), violations=(odd,))
    lines = github_lines([summary_of([row(result)])])
    assert all(line.startswith(("::error title=", "::warning title=")) for line in lines)
    (error,) = [line for line in lines if line.startswith("::error")]
    _, properties, message = error.split("::", 2)
    assert "50%25 torn,\\nthen: ::error::\\r gone%0A" in message
    assert message.endswith("%0Atornpage replay 1.0")
    title = properties.removeprefix("error title=")
    assert title.startswith("smoke on engine%3A bug 1%2C new%3A ")
    assert not set(title) & set(":,\r\n")
    failed = [replace(make_result(n, outcome=Outcome.HARNESS_ERROR), reason="x") for n in range(12)]
    many = [
        line for line in github_lines([summary_of(map(row, failed))]) if line.startswith("::error")
    ]
    assert len(many) == 10
    assert many[-1].endswith("::and 3 more")


def test_results_are_published_where_they_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Annotations: as asked for, else inside a GitHub workflow only, never on standard output. The file's
    folder is made."""
    summaries = [summary_of([row(make_result(0, broken=5))])]
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    publish(summaries, tmp_path / "new" / "junit.xml", None, FailOn.ANY)
    assert (tmp_path / "new" / "junit.xml").read_bytes() == render_junit(summaries)
    publish(summaries, None, Annotate.NONE, FailOn.ANY)
    assert capsys.readouterr() == ("", "")
    publish(summaries, None, Annotate.GITHUB, FailOn.ANY)
    asked = capsys.readouterr()
    assert asked.err.splitlines() == github_lines(summaries)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    publish(summaries, None, Annotate.NONE, FailOn.ANY)
    assert capsys.readouterr() == ("", "")
    publish(summaries, None, None, FailOn.ANY)
    assert capsys.readouterr() == asked
    assert asked.out == ""
