"""A bug is found once, however many trials and runs show it, and outlives them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_result, make_spec

from tornpage.campaigns.prune import prune_runs
from tornpage.store.bugs import BugStatus, Novelty, Reproducer
from tornpage.store.memory import Answer, Replayed
from tornpage.store.origin import Origin
from tornpage.store.rows import GoldenRunRow
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Outcome, TrialResult, Violation
from tornpage.vocabulary.paths import find_paths

TORN = Violation(5, "recovery refused: torn page 5 of ibdata1: no doublewrite copy")
LOST = Violation(1, "acknowledged commits are missing: prefix 3 found, at least 4 acknowledged")


def begin(store: Store, build: str = "b1", night: int | None = None) -> int:
    """A run of the engine of this hash, and of the commit of the same number."""
    programs = {"engine": build, "harness": "h"}
    started, revision = f"2026-11-2{build[1:]}", f"c{build[1:]}"
    origin = Origin(started, host="a", programs=programs, revision=revision)
    return store.begin_run("smoke", "engine", 1, 9, {"name": "smoke"}, origin, night).id


def broken(number: int, *violations: Violation) -> TrialResult:
    """A verdict with these violations."""
    return replace(make_result(number, broken=5), violations=violations)


def add(store: Store, run: int, result: TrialResult) -> None:
    """A trial with its verdict."""
    store.start_trial(run, make_spec(result.number), "page0", "none")
    store.finish_trial(run, result)


def test_findings_of_one_root_are_one_bug(tmp_path: Path) -> None:
    """Seen in two runs of two builds: first and last sighting, how often, and the first trial to replay."""
    with Store(tmp_path / "s.db") as store:
        first, second = begin(store, "b1"), begin(store, "b2")
        add(store, first, broken(0, TORN))
        add(store, first, replace(broken(1, TORN, LOST), alike=40))
        add(store, second, broken(0, TORN))
        (bug,) = store.bugs()
        assert (bug.target, bug.invariants, bug.status) == ("engine", (1, 5), BugStatus.OPEN)
        assert (bug.first.run, bug.last.run, bug.runs, bug.count) == (first, second, 2, 42)
        assert (bug.first.started, bug.builds) == ("2026-11-21", ("b1", "b2"))
        assert bug.reproducer == Reproducer(second, 0, make_spec(0).config), "of the present build"
        assert [store.sightings(run)[1].novelty for run in (first, second)] == ["new", "again"]
        assert store.trial(first, 1).bugs == (1, 1)


def test_another_root_or_target_is_another_bug(tmp_path: Path) -> None:
    """What a run saw is asked for by its number."""
    with Store(tmp_path / "s.db") as store:
        first = begin(store)
        second = store.begin_run("smoke", "sqlite", 1, 9, {}).id
        add(store, first, broken(0, TORN))
        add(store, first, broken(1, LOST))
        add(store, second, broken(0, TORN))
        assert [bug.id for bug in store.bugs()] == [1, 2, 3]
        assert [bug.id for bug in store.bugs(second)] == [3]


def test_an_fault_free_run_shows_bugs_until_a_trial_does(tmp_path: Path) -> None:
    """A trial can be replayed and shrunk: it takes the place of the fault-free run."""
    with Store(tmp_path / "s.db") as store:
        run = begin(store)
        golden_run = GoldenRunRow("a", True, "h", 10, 5, (TORN,), {})
        for _ in range(2):
            store.put_golden_run(run, golden_run)
        assert store.golden_runs(run)[0].bugs == (1,)
        assert (store.bug(1).reproducer, store.bug(1).count) == (Reproducer(run, None, "a"), 1)
        add(store, run, broken(4, TORN))
        assert store.bug(1).reproducer == Reproducer(run, 4, make_spec(4).config)


def test_an_unstable_violation_is_no_bug(tmp_path: Path) -> None:
    """It is kept, and belongs to none."""
    with Store(tmp_path / "s.db") as store:
        run = begin(store)
        add(store, run, replace(broken(0, TORN), outcome=Outcome.UNSTABLE))
        assert store.bugs() == []
        assert store.trial(run, 0).bugs == (None,)


def test_a_fixed_bug_that_comes_back_is_new_again(tmp_path: Path) -> None:
    """Once per run, and its reason tells of it; known and ignored ones stay what they are."""
    with Store(tmp_path / "s.db") as store:
        add(store, begin(store), broken(0, TORN))
        store.mark_bug(1, BugStatus.FIXED, "page copies are kept")
        again = begin(store)
        add(store, again, broken(0, TORN))
        add(store, again, broken(1, TORN))
        assert store.sightings(again)[1].novelty is Novelty.BACK
        bug = store.bug(1)
        assert bug.status is BugStatus.BACK
        assert bug.reason == f"came back in run {again}; it was fixed: page copies are kept"
        for status in (BugStatus.KNOWN, BugStatus.IGNORED):
            store.mark_bug(1, status, "")
            run = begin(store)
            add(store, run, broken(0, TORN))
            assert store.bug(1).status is status
            assert store.sightings(run)[1].novelty is Novelty.AGAIN
        with pytest.raises(ConfigError, match="no bug 7"):
            store.mark_bug(7, BugStatus.KNOWN, "")


def test_a_bug_that_did_not_show_any_more_comes_back(tmp_path: Path) -> None:
    """By a play that did not show it, not by silence; by one of the very night, or before another sighting,
    it does not: it was there all the time. An ignored one never does."""
    with Store(tmp_path / "s.db") as store:

        def sees(night: int | None = None) -> Novelty:
            run = begin(store, night=night)
            add(store, run, broken(0, TORN))
            add(store, run, broken(1, TORN))
            return store.sightings(run)[1].novelty

        def plays(answer: Answer, night: int | None = None) -> None:
            store.put_replay(Replayed(begin(store, night=night), 1, answer, ""))

        assert sees() is Novelty.NEW
        begin(store)
        assert sees() is Novelty.AGAIN, "silence"
        plays(Answer.NOT_PLAYED)
        assert sees() is Novelty.AGAIN
        plays(Answer.NOT_REPRODUCED, night=7)
        assert sees(7) is Novelty.AGAIN, "the night itself has seen it"
        assert sees(8) is Novelty.AGAIN
        plays(Answer.NOT_REPRODUCED)
        plays(Answer.NOT_PLAYED)
        assert sees() is Novelty.BACK
        assert re.fullmatch(
            r"came back in run [0-9]+; run [0-9]+ did not show it any more", store.bug(1).reason
        )
        assert sees() is Novelty.AGAIN
        store.mark_bug(1, BugStatus.KNOWN, "looked at")
        plays(Answer.NOT_REPRODUCED, night=9)
        assert sees(10) is Novelty.BACK
        bug = store.bug(1)
        assert bug.status is BugStatus.BACK and bug.reason.endswith("; it was known: looked at")
        store.mark_bug(1, BugStatus.IGNORED, "by design")
        plays(Answer.NOT_REPRODUCED)
        assert (sees(), store.bug(1).status) == (Novelty.AGAIN, BugStatus.IGNORED)


def test_a_bug_outlives_its_runs(tmp_path: Path) -> None:
    """Pruning keeps the run that holds its reproducer, unless it is ignored, and no number is used again."""
    with Store(tmp_path / "s.db") as store:
        runs = [begin(store) for _ in range(3)]
        for run in runs:
            add(store, run, broken(0, TORN))
    with Store(tmp_path / "s.db") as store:
        assert prune_runs(store, find_paths(), tmp_path, 0) == runs[1:]
        assert (store.bug(1).runs, store.bug(1).last.run) == (3, runs[-1])
        store.mark_bug(1, BugStatus.IGNORED, "by design")
        assert prune_runs(store, find_paths(), tmp_path, 0) == runs[:1]
        assert store.bug(1).runs == 3
        assert begin(store) == runs[-1] + 1


def test_one_bug_is_marked(tmp_path: Path) -> None:
    """And no other; there must be one."""
    with Store(tmp_path / "s.db") as store:
        run = begin(store)
        add(store, run, broken(0, TORN))
        add(store, run, broken(1, LOST))
        store.mark_bug(2, BugStatus.IGNORED, "by design")
        assert [(bug.status, bug.reason) for bug in store.bugs()] == [
            ("new", ""),
            ("ignored", "by design"),
        ]
        with pytest.raises(ConfigError, match="no bug 3"):
            store.mark_bug(3, BugStatus.IGNORED, "")


def test_the_life_of_a_bug(tmp_path: Path) -> None:
    """New, open in another night, known, not reproduced, back: each with run, build, commit, host and reason,
    also when the runs are deleted; what a night itself has seen stays what it was."""

    def sees(store: Store, build: str, night: int) -> int:
        run = begin(store, build, night)
        add(store, run, broken(0, TORN))
        add(store, run, broken(1, TORN))
        return run

    def is_not_shown(store: Store, build: str, night: int) -> int:
        run = begin(store, build, night)
        store.put_replay(Replayed(run, 1, Answer.NOT_REPRODUCED, "fixed?"))
        return run

    with Store(tmp_path / "s.db") as store:
        first = sees(store, "b1", 1)
        sees(store, "b1", 1)
        assert store.bug(1).status is BugStatus.NEW, "of this night"
        second = sees(store, "b2", 2)
        assert (store.bug(1).status, store.bug(1).reproducer.run) == (BugStatus.OPEN, second)
        marked = store.mark_bug(1, BugStatus.KNOWN, "a lock is missing", at="2026-11-23", host="c")
        assert marked.status is BugStatus.KNOWN
        third = is_not_shown(store, "b3", 3)
        assert store.bug(1).status is BugStatus.NOT_REPRODUCED
        again = sees(store, "b3", 3)
        assert (store.bug(1).status, store.bug(1).reason) == ("known", "a lock is missing")
        assert store.bug(1).reproducer.run == again, "the other one does not show it"
        fourth = is_not_shown(store, "b4", 4)
    with Store(tmp_path / "s.db") as store:
        assert prune_runs(store, find_paths(), tmp_path, 0)[-1] == fourth
        fifth = sees(store, "b5", 5)
        assert store.bug(1).status is BugStatus.BACK, "whatever became of the run that played it"
        life = store.bug(1).life
        assert [(one.status, one.run, one.build) for one in life] == [
            ("new", first, "b1"),
            ("open", second, "b2"),
            ("known", None, ""),
            ("not-reproduced", third, "b3"),
            ("known", again, "b3"),
            ("not-reproduced", fourth, "b4"),
            ("back", fifth, "b5"),
        ]
        assert (life[0].at, life[0].revision, life[0].host) == ("2026-11-21", "c1", "a")
        assert (life[2].at, life[2].host, life[3].reason) == ("2026-11-23", "c", "fixed?")
        assert life[-1].reason == f"came back in run {fifth}; it was known: a lock is missing"


def test_a_small_trial_stays_the_reproducer(tmp_path: Path) -> None:
    """Of another build too, until a play does not show it; making it is no second sighting."""
    with Store(tmp_path / "s.db") as store:
        add(store, begin(store, "b1"), broken(0, TORN))
        origin = Origin(programs={"engine": "b1"})
        small = store.begin_run("shrink", "engine", 1, 1, {}, origin).id
        add(store, small, broken(0, TORN))
        store.set_reproducer(1, Reproducer(small, 0, make_spec(0).config))
        assert store.bug(1).status is BugStatus.NEW
        add(store, begin(store, "b2"), broken(0, TORN))
        assert store.bug(1).reproducer.run == small
        store.put_replay(Replayed(begin(store, "b2"), 1, Answer.NOT_REPRODUCED, ""))
        shown = begin(store, "b2")
        add(store, shown, broken(3, TORN))
        assert store.bug(1).reproducer == Reproducer(shown, 3, make_spec(0).config)


def test_a_mark_without_a_reason_keeps_the_old_one(tmp_path: Path) -> None:
    """And all that was said before stays in its life."""
    with Store(tmp_path / "s.db") as store:
        add(store, begin(store), broken(0, TORN))
        store.mark_bug(1, BugStatus.KNOWN, "a lock is missing")
        bug = store.mark_bug(1, BugStatus.FIXED)
        assert (bug.status, bug.reason) == (BugStatus.FIXED, "a lock is missing")
        assert [one.status for one in bug.life] == ["new", "known", "fixed"]
