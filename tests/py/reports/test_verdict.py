"""The last line of a run: the word goes with the exit code, and says what was looked at and what was not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_bug, make_result, make_spec, make_summary

from tornpage.reports.night import NightBug, NightSummary, Standing
from tornpage.reports.summary import Claims, Summary
from tornpage.reports.verdict import (
    Word,
    looked_at,
    not_exercised,
    verdict_of,
    verdict_of_night,
    verdict_of_replay,
    verdict_of_runs,
)
from tornpage.store.bugs import BugStatus, Novelty
from tornpage.store.memory import Answer, Night, RunFacts
from tornpage.store.origin import Examined, Origin
from tornpage.store.rows import GoldenRunRow, Run, TrialRow
from tornpage.vocabulary.model import Outcome, TrialResult

ORIGIN = Origin(programs={"engine": "0123abcdef", "harness": "99", "preload": "88"})
KILLS = Run(2, "smoke", "engine", 1, 9, {"crash_model": "kill"}, "finished", 2.0, ORIGIN)
LOSSES = replace(KILLS, campaign="powerloss", settings={"crash_model": "power_loss"})
EXPLORED = {
    "log=on seed=1": {
        "states": 1200,
        "distinct": 900,
        "depth": 1,
        "fs": "posix",
        "by_model": {
            "one-torn": {"states": 1000},
            "subset": {"states": 200},
            "kill": {"states": 0},
        },
    }
}


def kills(*results: TrialResult, run: Run = KILLS, claims: Claims | None = None) -> Summary:
    """Of these trials."""
    rows = [TrialRow(2, r.number, make_spec(r.number), "page0", "none", r) for r in results]
    return make_summary(run, [], rows, claims)


def losses(*results: TrialResult, run: Run = LOSSES) -> Summary:
    """Of an exploration of 1,200 states."""
    rows = [TrialRow(2, r.number, make_spec(r.number), "page0", "none", r) for r in results]
    return make_summary(run, [], rows, explored=EXPLORED)


@pytest.mark.parametrize(
    ("summary", "line"),
    [
        (
            losses(),
            "CLEAN (exit 0): engine 0123abcd, fs posix, 2 models, 1,200 states; not exercised: "
            "crashes of recovery, model kill, kills, I/O errors",
        ),
        (
            kills(make_result(0)),
            "CLEAN (exit 0): engine 0123abcd, 1 trial; not exercised: power loss, I/O errors",
        ),
        (
            kills(make_result(0), make_result(5, broken=5)),
            "VIOLATIONS (exit 1): 1 new bug, next: tornpage show 2.5",
        ),
        (
            kills(make_result(0), claims=Claims(("rowlog_overflows",))),
            "CLAIMS MISSED (exit 3): rowlog_overflows never happened",
        ),
        (
            kills(make_result(0), claims=Claims((), ("log_wraps",))),
            "CLAIMS MISSED (exit 3): log_wraps never happened",
        ),
        (
            kills(make_result(0, Outcome.NOT_EXERCISED), make_result(1, Outcome.VACUOUS)),
            "NOTHING EXERCISED (exit 3): none of 2 trials was exercised",
        ),
        (kills(), "NOTHING EXERCISED (exit 3): no crash was judged"),
        (
            kills(replace(make_result(0, Outcome.HARNESS_ERROR), reason="boom")),
            "NO VERDICT (exit 2): the harness failed in 1 trial, first: trial 2.0: boom",
        ),
        (
            kills(make_result(0), run=replace(KILLS, state="failed")),
            "NO VERDICT (exit 2): the run failed before its end",
        ),
    ],
)
def test_the_line_says_what_the_exit_code_says(summary: Summary, line: str) -> None:
    """Word, exit code, and what goes with it; --json has the same, and the store where nothing is proved."""
    verdict = verdict_of(summary)
    assert verdict.line == line
    assert verdict.exit_code != 3 or summary.verdict == verdict.word
    assert verdict.exit_code == summary.exit_code()
    assert verdict.to_json() == {
        "verdict": verdict.word,
        "exit_code": verdict.exit_code,
    }


def explored(depth: int, second_crash: int, models: dict[str, int], **settings: object) -> Summary:
    """Of a run whose exploration had so many states of each model."""
    by_model = {name: {"states": states} for name, states in models.items()}
    part = {**EXPLORED["log=on seed=1"], "depth": depth, "by_model": by_model}
    part["paths"] = {"second_crash": second_crash}
    run = replace(LOSSES, settings={**LOSSES.settings, **settings})
    return make_summary(run, [], [], explored={"log=on seed=1": part})


def test_a_model_without_a_state_is_named() -> None:
    """Of those that the run was to try: "2 models" does not say which of three."""
    models = {"subset": 9, "by-file": 0, "overlapped": 0}
    missed = looked_at(explored(1, 0, models)).not_exercised
    assert [name for name in missed if name.startswith("model")] == ["models by-file overlapped"]
    chosen = {"models": ["subset", "by-file"]}
    assert "model by-file" in looked_at(explored(1, 0, models, explore=chosen)).not_exercised
    both = explored(1, 0, {**models, "by-file": 3})
    both.explored["log=off seed=1"] = explored(1, 0, models).explored["log=on seed=1"]
    assert "model overlapped" in looked_at(both).not_exercised


@pytest.mark.parametrize(
    ("depth", "second_crash", "missed"), [(1, 0, True), (2, 0, True), (2, 7, False)]
)
def test_a_depth_without_a_second_crash_is_none(
    depth: int, second_crash: int, missed: bool
) -> None:
    """What was to be crashed again, and was not."""
    about = looked_at(explored(depth, second_crash, {"subset": 9}))
    assert ("crashes of recovery" in about.not_exercised) is missed


def test_mapped_files_are_named() -> None:
    """A page of them may be on disk before a recorder learns of it: of power losses, and of a night."""
    origin = replace(ORIGIN, examined=Examined("w", 25, 2, mapped=("data.mdb",)))
    line = "earlier writeback of mapped data.mdb"
    assert line in looked_at(losses(run=replace(LOSSES, origin=origin))).not_exercised
    assert (
        line
        not in looked_at(kills(make_result(0), run=replace(KILLS, origin=origin))).not_exercised
    )
    assert origin.examined is not None
    told = replace(night(CLEAN), examined=[origin.examined])
    assert f"not exercised: mix, {line}" in verdict_of_night(told).line


def test_a_night_names_what_its_controls_left_open() -> None:
    """Configurations that no lost fsync breaks: once, however many runs there were."""
    seen = [Examined("w", 25, 2, blind=("sync=off",)), Examined("v", 25, 2, blind=("sync=off",))]
    told = replace(night(CLEAN), examined=seen)
    assert verdict_of_night(told).line.endswith("not exercised: mix, control of sync=off")


def with_bugs(summary: Summary, status: BugStatus, novelty: Novelty) -> Summary:
    """Its bugs of that status, as they were seen before or not."""
    summary.bugs = [
        replace(
            seen,
            bug=replace(seen.bug, status=status),
            sighting=replace(seen.sighting, novelty=novelty),
        )
        for seen in summary.bugs
    ]
    return summary


def test_a_run_with_bugs_is_never_called_clean() -> None:
    """Ignored, or known where only news count: exit code 0, and the line says so."""
    for status, only_news in ((BugStatus.IGNORED, False), (BugStatus.KNOWN, True)):
        summary = with_bugs(kills(make_result(0, broken=5)), status, Novelty.AGAIN)
        verdict = verdict_of(summary, only_news=only_news)
        assert (verdict.word, verdict.exit_code) == (Word.KNOWN, 0)
        assert verdict.line.startswith("KNOWN BUGS (exit 0): 1 known bug; engine 0123abcd, 1 trial")
        assert verdict_of_runs([kills(make_result(0)), summary], only_news=only_news).word is (
            Word.KNOWN
        )
    known = with_bugs(kills(make_result(0, broken=5)), BugStatus.KNOWN, Novelty.AGAIN)
    assert verdict_of(known).text == "1 known bug, next: tornpage show 2.0"


def test_what_a_run_did_not_come_to_is_named() -> None:
    """Its own trials, sites and claims, that its time was up, and what it is not about; --json names all."""
    run = replace(KILLS, state="stopped", settings={"crash_model": "io_error"})
    claims = Claims(("batches",), (), ("page0", "undo_page"))
    summary = kills(make_result(0), make_result(1, Outcome.NOT_EXERCISED), run=run, claims=claims)
    about = looked_at(summary)
    assert about.not_exercised == (
        "what the time was up for",
        "1 not exercised trial",
        "site undo_page",
        "batches",
        "kills",
        "power loss",
    )
    line = verdict_of(summary).line
    assert line.startswith("CLEAN (exit 0): engine 0123abcd, 1 trial; not exercised: what the time")
    data = looked_at(losses()).to_json()
    assert (data["target"], data["build"], data["fs"]) == ("engine", "0123abcdef", "posix")
    assert (data["models"], data["crashes"]) == (["one-torn", "subset"], 1200)


@pytest.mark.parametrize(
    ("states", "cut", "line"),
    [
        (
            7,
            2,
            "CLEAN (exit 0): engine 0123abcd, fs posix, 2 models, 5 states; not exercised: 2 states",
        ),
        (1, 1, "NOTHING EXERCISED (exit 3): no crash was judged"),
        (0, 1, "NOTHING EXERCISED (exit 3): no crash was judged"),
    ],
)
def test_a_state_that_was_cut_short_is_not_judged(states: int, cut: int, line: str) -> None:
    """Its recovery may never end: the explorer counts it, and has no verdict on it."""
    part = {**next(iter(EXPLORED.values())), "states": states, "unfinished": cut}
    summary = replace(losses(), explored={"log=on seed=1": part})
    assert verdict_of(summary).line.startswith(line)
    assert f"{cut} state" in looked_at(summary).not_exercised[0]


def test_what_no_canary_was_made_for_is_told() -> None:
    """By name, unless another configuration has had an occasion."""
    assert looked_at(losses()).to_json()["no_canary"] == []
    tried = [{"hole": True, "freed_page": None, "one_parent": None}, {"one_parent": True}]
    explored = {
        str(number): {
            **next(iter(EXPLORED.values())),
            "canaries": [{"name": name, "condemned": told} for name, told in one.items()],
        }
        for number, one in enumerate(tried)
    }
    some = replace(losses(), explored=explored)
    assert looked_at(some).no_canary == ("freed_page",)
    assert looked_at(some).to_json()["no_canary"] == ["freed_page"]


VACUOUS = Examined("w", states=400)
UNSEEN = Examined("w", states=25, kinds=2, blind=("sync=off",), not_audited="no ptrace")


def of_target_file(examined: Examined) -> Run:
    """A run of kills that came after this."""
    return replace(KILLS, origin=replace(KILLS.origin, examined=examined))


def test_what_came_before_a_run_stands_in_its_verdict() -> None:
    """A control that found nothing makes it vacuous, unless it found a bug; an audit that was not, and a
    configuration in which the control found nothing, are named; --json has the figures."""
    vacuous = kills(make_result(0), run=of_target_file(VACUOUS))
    verdict = verdict_of(vacuous)
    assert verdict.exit_code == vacuous.exit_code() == 3
    assert verdict.line.startswith(
        "NOTHING EXERCISED (exit 3): vacuous: on a disk that ignores every fsync none of 400 states"
    )
    assert vacuous.verdict == "nothing exercised"
    broken = kills(make_result(0), make_result(5, broken=5), run=of_target_file(VACUOUS))
    assert verdict_of(broken).exit_code == 1
    unseen = kills(make_result(0), run=of_target_file(UNSEEN))
    assert verdict_of(unseen).line == (
        "CLEAN (exit 0): engine 0123abcd, 1 trial; not exercised: control of sync=off, power loss, "
        "I/O errors; not audited: no ptrace"
    )
    data = looked_at(unseen).to_json()
    assert (data["control"], data["not_audited"]) == ({"states": 25, "kinds": 2}, "no ptrace")
    assert unseen.to_json("", Path())["control"] == {"states": 25, "kinds": 2}
    audited = replace(UNSEEN, not_audited="", compared=1000, acknowledgements=3000, recoveries=4)
    some = kills(make_result(0), run=of_target_file(audited))
    told = "I/O errors; audited: 1,000 of 3,000 acknowledgements, 4 recoveries"
    assert verdict_of(some).line.endswith(told)
    assert looked_at(some).to_json()["audited"] == {
        "compared": 1000,
        "acknowledgements": 3000,
        "recoveries": 4,
    }
    without = kills(make_result(0), run=of_target_file(Examined("w")))
    assert looked_at(without).not_exercised[0] == "control"


def test_a_night_has_the_controls_of_its_targets() -> None:
    """One that found nothing makes it vacuous, whichever run came after it; the last line tells audits."""
    told = replace(night(CLEAN), examined=[UNSEEN, VACUOUS])
    verdict = verdict_of_night(told)
    assert (verdict.exit_code, told.exit_code()) == (3, 3)
    assert verdict.text == VACUOUS.vacuous
    told = replace(night(CLEAN), examined=[UNSEEN, UNSEEN])
    assert verdict_of_night(told).line == (
        "CLEAN (exit 0): engine, 1 run, 24 crashes; not exercised: mix, control of sync=off; not audited: no "
        "ptrace"
    )


def test_several_runs_are_as_bad_as_the_worst() -> None:
    """A bug comes first, then what proves nothing, then what is missing; a clean one names all."""
    clean, broken = losses(), kills(make_result(3, broken=5))
    unsure = kills(make_result(0), run=replace(KILLS, state="running"))
    nothing = kills()
    vacuous = kills(make_result(0), run=of_target_file(VACUOUS))
    assert verdict_of_runs([clean, vacuous, unsure, broken]).line == (
        "VIOLATIONS (exit 1): kills: the run did not come to its end; 1 new bug, next: tornpage show 2.3"
    )
    assert verdict_of_runs([clean, vacuous, unsure]).line == (
        f"NOTHING EXERCISED (exit 3): {VACUOUS.vacuous}"
    )
    assert verdict_of_runs([clean, unsure]).line == (
        "NO VERDICT (exit 2): kills: the run did not come to its end; "
        "power loss: fs posix, 2 models, 1,200 states"
    )
    assert verdict_of_runs([clean, nothing]).line == (
        "NOTHING EXERCISED (exit 3): kills: no crash was judged; "
        "power loss: fs posix, 2 models, 1,200 states"
    )
    assert verdict_of_runs([losses(make_result(3, broken=5)), nothing]).line == (
        "VIOLATIONS (exit 1): kills: no crash was judged; 1 new bug, next: tornpage show 2.3"
    )


def test_kills_of_runs_without_a_write_are_not_exercised() -> None:
    """By themselves they prove nothing; beside a power loss they are told as what was not exercised. What the
    time was up for, or what failed, is no such."""
    row = GoldenRunRow("log=on seed=1", True, "h", 9, 0, (), {})
    sizes = make_summary(KILLS, [row])
    assert verdict_of(sizes).line == (
        "NOTHING EXERCISED (exit 3): no run has a write in which it could be killed"
    )
    assert verdict_of_runs([losses(), sizes]).line == (
        "CLEAN (exit 0): engine 0123abcd; power loss: fs posix, 2 models, 1,200 states; not exercised: "
        "crashes of recovery, model kill, kills, I/O errors"
    )
    assert "kills" in not_exercised([looked_at(losses()), looked_at(sizes)])
    assert verdict_of_runs([sizes]).exit_code == 3
    others = [replace(KILLS, state="stopped"), KILLS]
    for run, written in zip(others, [0, 7], strict=True):
        summary = make_summary(run, [replace(row, writes=written)])
        assert verdict_of_runs([losses(), summary]).exit_code == 3


def test_several_runs_are_one_question() -> None:
    """What one part is about, the other one does not lack; what both lack is told once. Known bugs are
    counted over all of them."""
    unseen = of_target_file(UNSEEN)
    parts = [losses(run=replace(LOSSES, origin=unseen.origin)), kills(make_result(0), run=unseen)]
    both = verdict_of_runs(parts)
    assert both.line == (
        "CLEAN (exit 0): engine 0123abcd; power loss: fs posix, 2 models, 1,200 states; kills: 1 trial; "
        "not exercised: control of sync=off, crashes of recovery, model kill, I/O errors; not audited: no "
        "ptrace"
    )
    abouts = [looked_at(part) for part in parts]
    assert not_exercised(abouts) == [
        "control of sync=off",
        "crashes of recovery",
        "model kill",
        "I/O errors",
    ]
    assert not_exercised(abouts[:1]) == [
        "control of sync=off",
        "crashes of recovery",
        "model kill",
        "kills",
        "I/O errors",
    ]
    ignored = with_bugs(kills(make_result(0, broken=5)), BugStatus.IGNORED, Novelty.AGAIN)
    assert verdict_of_runs([losses(), ignored]).line.startswith(
        "KNOWN BUGS (exit 0): 1 known bug; engine 0123abcd; power loss: "
    )


def facts(state: str, verdict: str, crashes: int, unsure: int = 0) -> RunFacts:
    """A run of a night."""
    return RunFacts(4, None, "churn", "engine", 7, state, verdict, crashes, 0, unsure, 0, 0, 1.0, 1)


def night(*runs: RunFacts, bugs: Sequence[NightBug] = (), state: str = "finished") -> NightSummary:
    """Of the campaigns churn and mix."""
    made = Night(1, {"seed": 1}, state, 5.0, Origin())
    return NightSummary(made, {"churn": {one.id for one in runs}, "mix": set()}, runs, bugs, ())


CLEAN = facts("finished", "clean", 24)


@pytest.mark.parametrize(
    ("summary", "line"),
    [
        (night(CLEAN), "CLEAN (exit 0): engine, 1 run, 24 crashes; not exercised: mix"),
        (
            night(
                CLEAN,
                bugs=[NightBug(make_bug(1), Standing.NEW, 3, "", "tornpage replay 4.2 --out o")],
            ),
            "VIOLATIONS (exit 1): 1 new bug, next: tornpage show 4.2 --out o",
        ),
        (
            night(CLEAN, facts("failed", "", 2, unsure=1)),
            "NO VERDICT (exit 2): run 4, churn: failed, some verdicts are missing",
        ),
        (night(CLEAN, state="running"), "NO VERDICT (exit 2): the night is running"),
        (
            night(CLEAN, facts("finished", "claims missed", 8)),
            "CLAIMS MISSED (exit 3): not all that churn claims happened",
        ),
        (
            night(CLEAN, facts("finished", "nothing exercised", 8)),
            "NOTHING EXERCISED (exit 3): run 4, churn: none of its crashes was exercised",
        ),
        (night(), "NOTHING EXERCISED (exit 3): no crash was judged"),
        (
            night(CLEAN, bugs=[NightBug(make_bug(3), Standing.NOT_PLAYED, 0, "", "")]),
            "NOTHING EXERCISED (exit 3): bug 3 could not be played again",
        ),
        (
            night(
                facts("finished", "claims missed", 8),
                bugs=[NightBug(make_bug(3), Standing.NOT_REPRODUCED, 0, "", "")],
            ),
            "CLAIMS MISSED (exit 3): not all that churn claims happened",
        ),
    ],
)
def test_a_night_has_its_line(summary: NightSummary, line: str) -> None:
    """In the same form; campaigns that it did not come to are named."""
    verdict = verdict_of_night(summary)
    assert (verdict.line, verdict.exit_code) == (line, summary.exit_code())


def test_a_night_with_known_bugs_is_not_called_clean() -> None:
    """Where only news count."""
    again = NightBug(make_bug(1), Standing.AGAIN, 3, "", "tornpage replay 4.2")
    verdict = verdict_of_night(night(CLEAN, bugs=[again]), only_news=True)
    assert (verdict.word, verdict.exit_code) == (Word.KNOWN, 0)
    assert verdict_of_night(night(CLEAN, bugs=[again])).text == (
        "1 known bug, next: tornpage show 4.2"
    )


@pytest.mark.parametrize(
    ("answer", "note", "line"),
    [
        (Answer.REPRODUCED, "", "REPRODUCED (exit 1): I5"),
        (Answer.REPRODUCED, "another one", "REPRODUCED (exit 1): I5, another one"),
        (Answer.NOT_REPRODUCED, "", "NOT REPRODUCED (exit 0)"),
        (
            Answer.NOT_PLAYED,
            "the fault did not fire",
            "NO VERDICT (exit 2): the fault did not fire",
        ),
    ],
)
def test_a_replay_has_its_line(answer: Answer, note: str, line: str) -> None:
    """What broke, or why nothing can be said."""
    assert verdict_of_replay(answer, make_result(0, broken=5), note).line == line
