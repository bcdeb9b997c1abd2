"""A night remembers those before: what is new, still there, gone, or back; it can be ended and resumed."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from called import called
from e2e_support import DEADLINE_S, PYTHON, Answer, Tornpage, call, verdicts

from tornpage.store.bugs import Reproducer
from tornpage.store.store import Store
from tornpage.targets.command.skeleton import Language, write_skeleton

KILLS = """
description = "short kills"
workload = "smoke"
crash_model = "kill"
trials = 12
seed = 1
scripts = 1
fault_free = 1
[[hit]]
sites = ["data_page", "page0"]
masks = ["prefix:1"]
"""
LOSSES = """
description = "short losses"
workload = "smoke"
crash_model = "power_loss"
seed = 1
[explore]
states = 40
"""
BROKEN = ("--option", "doublewrite=off")


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two short ones, as files."""
    folder = tmp_path_factory.mktemp("campaigns")
    files = {"kills": KILLS, "losses": LOSSES}
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text, "utf-8")
    return [str(folder / f"{name}.toml") for name in files]


@pytest.fixture(scope="module")
def clean_and_broken(tmp_path_factory: pytest.TempPathFactory, campaigns: list[str]) -> Path:
    """A store with two runs of the kills: 1 finds nothing, 2 is the control and finds bug 1."""
    folder = tmp_path_factory.mktemp("clean and broken")
    for options, code in ((), 0), (BROKEN, 1):
        done = call(folder, "run", campaigns[0], *options)
        assert done.returncode == code, done.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory, campaigns: list[str]
) -> list[tuple[object, ...]]:
    """What a night that nobody disturbs comes to."""
    return _to_its_end(tmp_path_factory.mktemp("whole") / "out", campaigns)


def standings(answer: Answer) -> dict[int, str]:
    """What a night said of each bug."""
    return {item["bug"]: item["standing"] for item in answer.data["bugs"]}


def test_what_was_new_is_still_there_in_the_next_night(
    tornpage: Tornpage, campaigns: list[str], tmp_path: Path
) -> None:
    """Both nights find it in both campaigns, with other seeds; only the first night has news."""
    new = ("--fail-on", "new")
    first = tornpage("nightly", *campaigns, "--seed", "20261121", *BROKEN, *new)
    assert (first.code, standings(first)) == (1, {1: "new"}), first.text
    second = tornpage("nightly", *campaigns, "--seed", "20261122", *BROKEN, *new)
    assert (second.code, standings(second)) == (0, {1: "again"}), second.text
    third = tornpage("nightly", *campaigns, "--seed", "20261122", *BROKEN)
    assert (third.code, standings(third)) == (1, {1: "again"})
    seeds = [
        [run["seed"] for run in night.data["runs"] if run["seed"]] for night in (first, second)
    ]
    assert len({*seeds[0], *seeds[1]}) == 4
    assert [run["campaign"] for run in second.data["runs"]] == ["replay", "kills", "losses"]

    (listed,) = tornpage("bugs").data["bugs"]
    assert listed["runs"] == 8, "two campaigns a night, and two nights played it again"
    runs = tornpage("runs", "--campaign", "kills").data["runs"]
    assert [(run["news"], run["night"], run["verdict"]) for run in runs] == [
        (1, 1, "violations"),
        (0, 2, "violations"),
        (0, 3, "violations"),
    ]
    again = tornpage(
        "run", campaigns[0], "--seed", str(seeds[0][0]), *BROKEN, out=tmp_path / "other"
    )
    assert again.data["violations"] == runs[0]["broken"]


@pytest.mark.extended
def test_a_bug_is_gone_and_comes_back(
    tornpage: Tornpage, campaigns: list[str], clean_and_broken: Path, tmp_path: Path
) -> None:
    """Gone: its reproducer does not show it. Marked as fixed and seen again it is news, an ignored one is
    neither played again nor told as a failure."""
    shutil.copytree(clean_and_broken, tmp_path / "out")
    with Store(tmp_path / "out" / "tornpage.db") as store:
        found = store.bug(1).reproducer
        store.set_reproducer(1, Reproducer(1, 0, ""))  # as if the engine were another
    night = tornpage("nightly", campaigns[0], "--seed", "1")
    assert (night.code, standings(night)) == (0, {1: "not-reproduced"}), night.text

    with Store(tmp_path / "out" / "tornpage.db") as store:
        store.set_reproducer(1, found)
    marked = tornpage("bugs", "1", "--mark", "fixed", "--reason", "copies are kept").data["bugs"][0]
    assert (marked["status"], marked["reason"]) == ("fixed", "copies are kept")
    night = tornpage("nightly", campaigns[0], "--seed", "2", "--fail-on", "new")
    assert (night.code, standings(night)) == (1, {1: "back"}), night.text
    (bug,) = tornpage("bugs", "--status", "back").data["bugs"]
    assert "came back in run" in bug["reason"]
    assert [one["status"] for one in bug["life"]] == ["new", "not-reproduced", "fixed", "back"]
    assert all(one["at"] and one["host"] for one in bug["life"])
    assert tornpage("bugs", "--status", "new", "--status", "open").data["bugs"] == []

    tornpage("bugs", "1", "--mark", "ignored", "--reason", "by design")
    night = tornpage("nightly", campaigns[0], "--seed", "3", *BROKEN)
    assert (night.code, standings(night)) == (0, {1: "again"}), night.text
    assert [run["campaign"] for run in night.data["runs"]] == ["kills"]


def test_two_runs_side_by_side(tornpage: Tornpage, clean_and_broken: Path) -> None:
    """What only one of them found and exercised; exit code 1 for a bug that the first has not."""
    pairs = ("12", "21", "22")
    worse, better, same = (tornpage("diff", *pair, out=clean_and_broken) for pair in pairs)
    assert (worse.code, better.code, same.code) == (1, 0, 0)
    assert (
        [bug["bug"] for bug in worse.data["new_bugs"]]
        == [1]
        == [bug["bug"] for bug in better.data["gone"]]
    )
    assert "recovery: dblwr_restored" in worse.data["lost"]
    assert worse.data["lost"] == better.data["gained"]
    assert [same.data[name] for name in ("new_bugs", "gone", "gained", "lost")] == [[]] * 4
    assert [bug["bug"] for bug in same.data["still_there"]] == [1]


@pytest.mark.extended
def test_a_night_ends_when_its_time_is_up(tornpage: Tornpage, campaigns: list[str]) -> None:
    """Rounds follow each other with new seeds; the last runs are stopped, and that is no failure."""
    answer = tornpage("nightly", *campaigns, "--seed", "1", "--for", "6s")
    assert answer.code == 0, answer.text
    assert answer.data["state"] == "finished" and 6 <= answer.data["seconds"] < 60
    runs = answer.data["runs"]
    assert len({(run["campaign"], run["seed"]) for run in runs}) == len(runs) >= 2
    assert {run["state"] for run in runs} <= {"finished", "stopped"}
    for wrong in ("8", "8x", "0s", "-1h"):
        assert tornpage("nightly", campaigns[0], f"--for={wrong}").code == 2


def test_a_night_has_the_limits_of_a_run(tornpage: Tornpage, campaigns: list[str]) -> None:
    """Each campaign takes those that it has; the explorer goes no further, and as deep."""
    words = ("--states", "30", "--depth", "2", "--models", "subset", "--trials", "6")
    answer = tornpage("nightly", *campaigns, "--seed", "1", *words, "--fault-free", "0")
    kills, losses = answer.data["runs"]
    looked_at = answer.data["looked_at"]
    assert (answer.code, kills["crashes"]) == (0, 6), answer.text
    assert 0 < losses["crashes"] <= 2 * 33
    assert (looked_at[1]["models"], looked_at[1]["depth"]) == (["subset"], 2)
    refused = tornpage("nightly", campaigns[0], *words[:2])
    assert (refused.code, "no --states" in refused.text) == (2, True)


@pytest.mark.extended
def test_a_time_too_short_for_a_crash_is_told(tornpage: Tornpage, tmp_path: Path) -> None:
    """The runs without a fault end with the time too, keep their verdicts, and are no pass."""
    file = tmp_path / "kills.toml"
    file.write_text(KILLS.replace("fault_free = 1", "fault_free = 3000"), "utf-8")
    answer = tornpage("nightly", str(file), "--seed", "1", "--for", "5s")
    assert (answer.code, answer.data["not_reached"]) == (3, ["kills"]), answer.text
    assert answer.data["seconds"] < 60
    (run,) = answer.data["runs"]
    assert (run["state"], run["verdict"]) == ("stopped", "nothing exercised")
    with Store(tmp_path / "out" / "tornpage.db", write=False) as store:
        judged = sum(not row.crashed for row in store.golden_runs(run["run"]))
    assert 0 < judged < 3000


def _night(out: Path, campaigns: list[str], *arguments: str) -> list[str]:
    words = ["nightly", *campaigns, "--seed", "9", "--jobs", "1", *BROKEN]
    return [*PYTHON, *words, "--out", str(out), "--json", *arguments]


def _to_its_end(out: Path, campaigns: list[str]) -> list[tuple[object, ...]]:
    """Goes on with a night, until there is nothing left to be resumed. What it came to, without what depends
    on when it was ended."""
    answer = called(out.parent, *_night(out, campaigns, "--go-on")[len(PYTHON) :])
    assert answer.returncode == 1, answer.stderr
    nothing_left = called(out.parent, *_night(out, campaigns, "--resume")[len(PYTHON) :])
    assert nothing_left.returncode == 2
    names = ("campaign", "seed", "state", "verdict", "crashes", "bugs")
    runs = json.loads(answer.stdout.splitlines()[-1])["runs"]
    return [tuple(run[name] for name in names) for run in runs if run["campaign"] != "replay"]


@pytest.mark.parametrize(
    "sent", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.extended)]
)
def test_a_night_that_is_ended_goes_on(
    tmp_path: Path, campaigns: list[str], whole: list[tuple[object, ...]], sent: signal.Signals
) -> None:
    """After some verdicts, again and again: it comes to the same runs with the same verdicts."""
    rng = random.Random(str(sent))
    store = tmp_path / "out" / "tornpage.db"
    for _ in range(3):
        command = _night(tmp_path / "out", campaigns, "--go-on")
        owner = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        enough, deadline = verdicts(store) + rng.randint(1, 3), time.monotonic() + DEADLINE_S
        while verdicts(store) < enough:
            assert owner.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        owner.send_signal(sent)
        owner.communicate(timeout=60)
        assert owner.returncode in (-sent, 128 + sent)
    assert _to_its_end(tmp_path / "out", campaigns) == whole


OWN = """
description = "short losses of a store of its own"
workload = "own"
crash_model = "power_loss"
target = "mydb/mydb.toml"
seed = 1
[explore]
states = 24
"""


@pytest.mark.extended
def test_each_campaign_has_its_own_target(tornpage: Tornpage, tmp_path: Path) -> None:
    """As for `run`. Two of one name, whose stores differ in a missing fsync, both run, one after the other;
    named twice they run once. The night after finds the bug in whatever checkout it was."""
    files = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        write_skeleton("mydb", Language.PYTHON, folder)
        (folder / "x.toml").write_text(OWN, "utf-8")
        files.append(str(folder / "x.toml"))
    store = tmp_path / "b" / "mydb" / "store.py"
    store.write_text(store.read_text("utf-8").replace("os.fsync", "id"), "utf-8")
    night = tornpage("nightly", *files, files[0], "--seed", "1")
    places = [str(Path(file).parent / "mydb" / "mydb.toml") for file in files]
    told = [(run["campaign"], run["target"], run["bugs"]) for run in night.data["runs"]]
    assert told == [("x", places[0], 0), ("x", places[1], told[1][2])], night.text
    assert (night.code, night.data["not_reached"]) == (1, [])
    assert {*standings(night).values()} == {"new"}

    fixed = tmp_path / "b" / "elsewhere"
    store.parent.rename(fixed)
    shutil.copytree(tmp_path / "a" / "mydb", tmp_path / "b" / "mydb")
    night = tornpage("nightly", files[1], "--seed", "1")
    assert (night.code, {*standings(night).values()}) == (0, {"not-reproduced"}), night.text
    again = tornpage("nightly", files[1], "--target", str(fixed / "mydb.toml"), "--seed", "1")
    assert (again.code, {*standings(again).values()}) == (1, {"back"}), again.text


@pytest.mark.extended
def test_a_bug_that_comes_back_is_red(tornpage: Tornpage, tmp_path: Path) -> None:
    """Nights of a store that is right, wrong, right and wrong again, where only news count: whoever fixed it
    and said nothing hears of it. The night after that knows it. The list and JUnit agree."""
    write_skeleton("mydb", Language.PYTHON, tmp_path)
    (tmp_path / "x.toml").write_text(OWN, "utf-8")
    store, junit = tmp_path / "mydb" / "store.py", tmp_path / "junit.xml"
    right = store.read_text("utf-8")
    wrong = right.replace("os.fsync(log)", "id(log)")
    told = []
    for seed, text in enumerate((right, wrong, right, wrong, wrong), 1):
        store.write_text(text, "utf-8")
        words = ("--seed", str(seed), "--fail-on", "new", "--junit", str(junit))
        night = tornpage("nightly", str(tmp_path / "x.toml"), *words)
        listed = tornpage("bugs", "--status", "new", "--status", "back").data["bugs"]
        if seed == 2:
            for bug in listed:
                tornpage("bugs", str(bug["id"]), "--mark", "known", "--reason", "seen")
        failures = "<failure" in junit.read_text("utf-8")
        told.append((night.code, {*standings(night).values()}, len(listed) > 0, failures))
    assert told == [
        (0, set(), False, False),
        (1, {"new"}, True, True),
        (0, {"not-reproduced"}, False, False),
        (1, {"back"}, True, True),
        (0, {"again"}, False, False),
    ]
    for bug in tornpage("bugs", "--status", "open").data["bugs"]:
        assert re.fullmatch(r"came back in run [0-9]+; it was known: seen", bug["reason"])
