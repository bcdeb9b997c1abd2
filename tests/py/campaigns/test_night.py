"""What a night does, one step after the other: past findings of each target, then each campaign on its own
target, with seeds of its own. The runs themselves are those of test_nightly.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_result, make_spec

from tornpage.campaigns import night, recheck
from tornpage.campaigns.night import NightPlan, Team, open_night, run_night
from tornpage.campaigns.replay import Replay
from tornpage.campaigns.runner import load_summary
from tornpage.plans.campaign import Campaign
from tornpage.reports.night import NightSummary
from tornpage.reports.summary import Summary
from tornpage.store.bugs import BugStatus
from tornpage.store.memory import Answer, Replayed
from tornpage.store.origin import Origin
from tornpage.store.rows import TrialRow
from tornpage.store.store import Store
from tornpage.targets.command.skeleton import Language, write_skeleton
from tornpage.vocabulary.errors import ConfigError, MachineError, TargetError, TornpageError
from tornpage.vocabulary.model import Outcome, Source, Violation
from tornpage.vocabulary.paths import Paths, find_paths
from tornpage.workers.context import QuietProgress, RunContext

KILLS = """
description = "short"
workload = "smoke"
crash_model = "kill"
trials = 1
seed = 1
{more}
[[hit]]
sites = ["page0", "redo"]
masks = ["none"]
"""
PATHS = find_paths()


def campaign(folder: Path, name: str, more: str = "") -> str:
    """A file NAME.toml in this folder."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(KILLS.format(more=more), "utf-8")
    return str(folder / f"{name}.toml")


class Runs:
    """In place of the runner: a run is what `result` says, and no process."""

    def __init__(self) -> None:
        self.made: list[tuple[str, int, str]] = []
        self.fails: set[str] = set()
        self.never_begins: set[str] = set()
        self.starved = False
        self.outcome = Outcome.CLEAN
        self.now = 0.0
        self.costs: float | None = 1.0
        self.shares: list[float] = []

    def run(self, store: Store, chosen: Campaign, target: str, context: RunContext) -> Summary:
        """As run_campaign()."""
        self.made.append((chosen.name, chosen.seed, target))
        self.shares.append(context.stop_at - self.now)
        self.now += self.shares[-1] if self.costs is None else self.costs
        if chosen.name in self.never_begins:
            raise TargetError("no such program")
        if self.starved:
            raise MachineError("no space")
        settings = chosen.model_dump(mode="json")
        run = store.begin_run(
            chosen.name, target, chosen.seed, 1, settings, context.origin, context.night
        )
        if chosen.name in self.fails:
            store.fail_run(run.id)
            raise ConfigError("no write of the run belongs to its sites")
        store.start_trial(run.id, make_spec(0), "page0", "none")
        store.finish_trial(run.id, make_result(0, self.outcome))
        summary = load_summary(store, store.finish_run(run.id))
        store.set_verdict(run.id, summary.verdict)
        return summary


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """What the nights of a test make their runs with."""
    made = Runs()
    monkeypatch.setattr(night, "run_campaign", made.run)
    monkeypatch.setattr(night, "write_report", lambda *_: None)
    return made


@pytest.fixture
def spend(tmp_path: Path, runs: Runs) -> Callable[..., NightSummary]:
    """A night of these campaigns, in one store."""

    def whole(*names: str, target: str = "", seed: int = 1, seconds: float = 0.0) -> NightSummary:
        plan = NightPlan(seed, target, names, (), seconds)
        team = Team(PATHS, 1, tmp_path, QuietProgress(), lambda _line: None, lambda: runs.now)
        with Store(tmp_path / "s.db") as store:
            opened = open_night(store, plan, PATHS, tmp_path, resume=False, anew=True)
            return run_night(store, opened, team)

    return whole


def test_every_campaign_is_run(
    runs: Runs, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """Two of one name that differ in what they say, and one that is named twice once."""
    one = campaign(tmp_path / "a", "x")
    other = campaign(tmp_path / "b", "x", "fault_free = 3")
    third = campaign(tmp_path / "a", "y")
    summary = spend(one, other, one, third)
    assert [(name, target) for name, _, target in runs.made] == [
        ("x", "engine"),
        ("x", "engine"),
        ("y", "engine"),
    ]
    assert len({(name, seed) for name, seed, _ in runs.made}) == 2, "a seed follows from the name"
    assert list(summary.campaigns) == ["x on engine (1)", "x on engine (2)", "y"]
    assert [len(numbers) for numbers in summary.campaigns.values()] == [1, 1, 1]
    assert (summary.exit_code(), summary.not_reached) == (0, [])


def test_what_a_campaign_does_not_have_begins_no_night(tmp_path: Path) -> None:
    """An option that the target does not know is told before anything is there that could be gone on with."""
    plan = NightPlan(1, "", (campaign(tmp_path / "c", "one"),), (("nope", "1"),), 0.0)
    with Store(tmp_path / "store.db") as store:
        with pytest.raises(ConfigError, match="no option 'nope'"):
            open_night(store, plan, PATHS, tmp_path, resume=False, anew=True)
        assert store.nights() == []


def test_a_campaign_has_its_own_target(
    runs: Runs, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """Seen from its file; `--target` comes first, and without either it is the engine."""
    write_skeleton("mydb", Language.PYTHON, tmp_path)
    named = campaign(tmp_path, "own", 'target = "mydb/mydb.toml"')
    plain = campaign(tmp_path, "plain")
    place = str(tmp_path / "mydb" / "mydb.toml")
    spend(named, plain)
    assert [target for _, _, target in runs.made] == [place, "engine"]
    runs.made.clear()
    spend(named, plain, target=place)
    assert [target for _, _, target in runs.made] == [place, place]


def test_each_night_has_seeds_of_its_own(
    runs: Runs, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """And the same night the same."""
    file = campaign(tmp_path, "x")
    for seed in (1, 2, 1):
        spend(file, seed=seed)
    first, second, again = (seed for _, seed, _ in runs.made)
    assert first == again != second


def test_short_nights_take_turns(
    runs: Runs, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """A campaign that takes more than its share, as one whose fault-free runs alone are as long, takes no
    turn of the next night: that begins with those that have waited longest. A new one is the first."""
    names = [campaign(tmp_path, name) for name in ("x", "y", "z")]
    runs.costs = 80.0
    for seed in range(1, 5):
        spend(*names, seed=seed, seconds=75.0)
    assert [name for name, _, _ in runs.made] == ["x", "y", "z", "x"]
    runs.made.clear()
    spend(*names, campaign(tmp_path, "w"), seed=5, seconds=75.0)
    spend(*names, campaign(tmp_path, "w"), seed=6, seconds=75.0)
    assert [name for name, _, _ in runs.made] == ["w", "y"]


@pytest.mark.parametrize(
    ("seconds", "shares"),
    [(75.0, [37.5, 37.5]), (20.0, [20.0]), (90.0, [30.0, 30.0, 30.0]), (600.0, [200.0] * 3)],
)
def test_each_turn_has_the_floor(
    seconds: float,
    shares: list[float],
    runs: Runs,
    spend: Callable[..., NightSummary],
    tmp_path: Path,
) -> None:
    """Of a time that is too short for all, those have it that can have enough; the next night begins with the
    others."""
    names = [campaign(tmp_path, name) for name in ("x", "y", "z")]
    runs.costs = None
    spend(*names, seconds=seconds)
    assert runs.shares == shares
    first = [name for name, _, _ in runs.made]
    runs.made.clear()
    spend(*names, seed=2, seconds=seconds)
    waited = [name for name in ("x", "y", "z") if name not in first]
    assert [name for name, _, _ in runs.made][: len(waited)] == waited[: len(shares)]


def test_what_a_short_turn_leaves_is_for_the_others(
    runs: Runs, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """And rounds follow, with seeds of their own, in the order of the night."""
    names = [campaign(tmp_path, name) for name in ("x", "y")]
    runs.costs = 10.0
    spend(*names, seconds=60.0)
    assert [name for name, _, _ in runs.made] == ["x", "y"] * 3
    assert len({(name, seed) for name, seed, _ in runs.made}) == 6
    assert runs.shares == [30.0, 50.0, 40.0, 30.0, 20.0, 10.0]


def test_one_that_fails_is_left_out_and_told(
    runs: Runs, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """The others go on, and the night is not clean."""
    runs.fails = {"x"}
    summary = spend(campaign(tmp_path, "x"), campaign(tmp_path, "y"))
    assert [name for name, _, _ in runs.made] == ["x", "y"]
    assert summary.exit_code() == 2


def test_one_that_cannot_begin_is_a_failed_run(
    runs: Runs, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """A program that is missing ends no night: the others go on, round by round, and it is not clean."""
    runs.never_begins, runs.costs = {"x"}, 25.0
    summary = spend(campaign(tmp_path, "x"), campaign(tmp_path, "y"), seconds=70.0)
    assert [name for name, _, _ in runs.made] == ["x", "y", "y"]
    assert [(facts.campaign, facts.state) for facts in summary.runs] == [
        ("x", "failed"),
        ("y", "finished"),
        ("y", "finished"),
    ]
    assert (summary.exit_code(), summary.night.state) == (2, "finished")


def test_an_unstable_trial_is_not_clean(
    runs: Runs, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """Nor is one without a verdict, or one that exercised nothing."""
    file = campaign(tmp_path, "x")
    codes = {}
    for seed, outcome in enumerate(Outcome):
        runs.outcome = outcome
        codes[outcome] = spend(file, seed=seed).exit_code()
    assert codes[Outcome.UNSTABLE] == codes[Outcome.HARNESS_ERROR] == 2
    assert codes[Outcome.NOT_EXERCISED] == codes[Outcome.VACUOUS] == 3
    assert codes[Outcome.CLEAN] == 0


# -- past findings -----------------------------------------------------------------------------


class Plays:
    """In place of what plays a trial again: `answer`, or what it raises."""

    def __init__(self) -> None:
        self.asked: list[TrialRow] = []
        self.answer = Answer.REPRODUCED
        self.error: TornpageError | None = None
        self.broken: int | None = 5

    def play(self, row: TrialRow, _paths: Paths, _images: Path, *, stacks: bool) -> Replay:
        """As replay_trial()."""
        assert not stacks, "a night asks whether, not where"
        self.asked.append(row)
        if self.error is not None:
            raise self.error
        result = make_result(row.number, broken=self.broken)
        return Replay(self.answer, row.spec, result, same=True, note="")


@pytest.fixture
def plays(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> Plays:
    """What the nights of a test play past findings with; runs that they make are clean."""
    runs.outcome = Outcome.CLEAN
    made = Plays()
    monkeypatch.setattr(recheck, "replay_trial", made.play)
    return made


def find(folder: Path, target: str = "engine", *, broken: int = 5) -> None:
    """A run of a target that found a bug."""
    with Store(folder / "s.db") as store:
        run = store.begin_run("before", target, 1, 1, {}, Origin(target=target)).id
        store.start_trial(run, make_spec(0), "page0", "none")
        store.finish_trial(run, make_result(0, broken=broken))
        store.finish_run(run)


def standings(summary: NightSummary) -> list[str]:
    """What it said of each bug, by its number."""
    return [one.standing.value for one in sorted(summary.bugs, key=lambda one: one.bug.id)]


@pytest.mark.parametrize(
    ("status", "answer", "standing", "code"),
    [
        (BugStatus.NEW, Answer.REPRODUCED, ["again"], 1),
        (BugStatus.KNOWN, Answer.REPRODUCED, ["again"], 1),
        (BugStatus.FIXED, Answer.REPRODUCED, ["back"], 1),
        (BugStatus.IGNORED, Answer.REPRODUCED, [], 0),
        (BugStatus.NEW, Answer.NOT_REPRODUCED, ["not-reproduced"], 0),
        (BugStatus.NEW, Answer.NOT_PLAYED, ["not played"], 3),
    ],
)
def test_a_past_finding_is_played_again(
    status: BugStatus,
    answer: Answer,
    standing: list[str],
    code: int,
    plays: Plays,
    spend: Callable[..., NightSummary],
    tmp_path: Path,
) -> None:
    """Whatever is thought of it, unless it is ignored; what cannot be played is not gone."""
    find(tmp_path)
    with Store(tmp_path / "s.db") as store:
        store.mark_bug(1, status, "")
    plays.answer, plays.broken = answer, 5 if answer is Answer.REPRODUCED else None
    summary = spend(campaign(tmp_path, "x"))
    assert (standings(summary), summary.exit_code()) == (standing, code)
    news = {"back": 1, "not played": 3}
    assert summary.exit_code(only_news=True) == news.get("".join(standing), 0)
    assert len(plays.asked) == (status is not BugStatus.IGNORED)


def test_what_the_night_has_found_is_no_past_finding(plays: Plays, tmp_path: Path) -> None:
    """One that goes on plays those from before it, and none of its own first half."""
    find(tmp_path, broken=1)
    plan = NightPlan(1, "", (campaign(tmp_path, "x"),), (), 0.0)
    team = Team(PATHS, 1, tmp_path, QuietProgress(), lambda _line: None)
    with Store(tmp_path / "s.db") as store:
        opened = open_night(store, plan, PATHS, tmp_path, resume=False, anew=True)
        run = store.begin_run("half", "engine", 1, 1, {}, Origin(target="engine"), opened.id).id
        for number, broken in enumerate((1, 5)):
            store.start_trial(run, make_spec(number), "page0", "none")
            store.finish_trial(run, make_result(number, broken=broken))
        store.finish_run(run)
        plays.broken = 1
        summary = run_night(store, opened, team)
    assert [row.run for row in plays.asked] == [1]
    assert standings(summary) == ["again", "new"]


def test_a_play_that_fails_says_nothing(
    plays: Plays, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """The finding is not gone, and the night says so."""
    find(tmp_path)
    plays.error = TornpageError("no such workload")
    summary = spend(campaign(tmp_path, "x"))
    assert (standings(summary), summary.exit_code()) == (["not played"], 3)
    assert summary.bugs[0].note == "no such workload"


def test_a_full_machine_is_nobodys_answer(
    runs: Runs, plays: Plays, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """In a play of a past finding, and in a run: the night ends and can go on, and nothing has failed."""
    find(tmp_path)
    plays.error = MachineError("no space")
    with pytest.raises(MachineError):
        spend(campaign(tmp_path, "x"))
    plays.error, runs.starved = None, True
    with pytest.raises(MachineError):
        spend(campaign(tmp_path, "x"))
    with Store(tmp_path / "s.db") as store:
        assert not any(run.state == "failed" for run in store.runs())
        assert [one.state for one in store.nights()] == ["running"] * 2


def test_past_findings_that_are_half_played_go_on(plays: Plays, tmp_path: Path) -> None:
    """A reproducer counts as played when each of its bugs has an answer; one whose bugs have is not played
    again."""
    find(tmp_path)
    plan = NightPlan(1, "", (campaign(tmp_path, "x"),), (), 0.0)
    rule = Violation(22, "area_sync: no fsync", source=Source.RULE)
    two = (Violation(1, "commits are missing"), rule)
    with Store(tmp_path / "s.db") as store:
        run = store.begin_run("more", "engine", 1, 1, {}, Origin(target="engine")).id
        store.start_trial(run, make_spec(0), "page0", "none")
        store.finish_trial(run, replace(make_result(0, broken=1), violations=two))
        store.finish_run(run)
        assert [bug.id for bug in store.bugs()] == [1, 2, 3]
        opened = open_night(store, plan, PATHS, tmp_path, resume=False, anew=True)
        settings = recheck._settings(2).model_dump(mode="json")
        origin = Origin(target="engine")
        half = store.begin_run(recheck.REPLAY_RUN, "engine", 0, 2, settings, origin, opened.id).id
        for bug in (1, 2):
            store.put_replay(Replayed(half, bug, Answer.REPRODUCED, ""))
    with Store(tmp_path / "s.db") as store:
        again = open_night(store, plan, PATHS, tmp_path, resume=True, anew=False)
        run_night(store, again, Team(PATHS, 1, tmp_path, QuietProgress(), lambda _line: None))
        assert [row.run for row in plays.asked] == [run]
        assert {answer.bug for answer in store.replays(half)} == {1, 2, 3}


def test_past_findings_that_the_time_is_up_for_are_not_done(plays: Plays, tmp_path: Path) -> None:
    """Their run is stopped, and no bug of theirs is gone."""
    find(tmp_path)
    context = RunContext(PATHS, 1, tmp_path, QuietProgress(), Origin(target="engine"), stop_at=0.0)
    with Store(tmp_path / "s.db") as store:
        done = recheck.recheck_bugs(store, "engine", context)
    assert done is not None and (done.state, plays.asked) == ("stopped", [])


def test_another_finding_is_not_this_one(
    plays: Plays, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """The bug is gone, and the other one is new: neither hides the other."""
    find(tmp_path)
    plays.broken = 1
    summary = spend(campaign(tmp_path, "x"))
    assert (standings(summary), summary.exit_code(only_news=True)) == (["not-reproduced", "new"], 1)
    assert summary.bugs[-1].note == "bug 2 instead"


def test_past_findings_are_those_of_each_target(
    plays: Plays, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """All targets of the night and no others, each on the target as it is found now."""
    made = write_skeleton("mydb", Language.PYTHON, tmp_path).file
    named = campaign(tmp_path, "own", 'target = "mydb/mydb.toml"')
    opened = night.open_campaign(named, None, PATHS)
    for target in ("engine", opened.identity, "sqlite"):
        find(tmp_path, target)
    spend(named, campaign(tmp_path, "x"))
    assert [row.spec.target for row in plays.asked] == [str(made), "engine"]
    with Store(tmp_path / "s.db") as store:
        past = [run for run in store.runs() if run.campaign == recheck.REPLAY_RUN]
        assert [run.target for run in past] == [str(made), "engine"]
        assert [store.bug(number).runs for number in (1, 2, 3)] == [2, 2, 1]


def test_a_finding_whose_run_is_gone_cannot_be_played(
    plays: Plays, spend: Callable[..., NightSummary], tmp_path: Path
) -> None:
    """That is told, and is no pass."""
    find(tmp_path)
    with Store(tmp_path / "s.db") as store:
        store.delete_run(1)
    summary = spend(campaign(tmp_path, "x"))
    assert (standings(summary), summary.exit_code(), plays.asked) == (["not played"], 3, [])
