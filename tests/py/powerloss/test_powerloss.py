"""What the explorer is asked, and how long it may take."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import make_result, make_spec

from tornpage.faults.process import ChildResult
from tornpage.live.recording import Recording
from tornpage.plans.limits import Limits
from tornpage.powerloss import explorer, parts
from tornpage.powerloss.explorer import (
    Exploration,
    Scope,
    explore,
    lay_out_state,
    merge_slices,
)
from tornpage.powerloss.parts import found_states, play_found
from tornpage.targets.engine.target import EngineTarget
from tornpage.targets.registry import make_target
from tornpage.targets.target import Command
from tornpage.vocabulary.errors import ChildError, DeafError, MachineError
from tornpage.vocabulary.model import Outcome, Site, Source, Violation

SLOW_S = 500.0
SUMMARY = b'{"states": 1}\n'


@pytest.mark.parametrize("state", ["17.one-torn.3", "17.one-torn.3/5.none-persisted.0"])
def test_the_explorer_sees_a_hang_first(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state that is played again may hang at each level, and the explorer asks twice before it says so."""
    given: list[float] = []
    slow = EngineTarget(tmp_path, tmp_path)
    command = Command(("explore",), deadline_s=SLOW_S)
    monkeypatch.setattr(slow, "explore_command", lambda *_: command)

    def run(argv: tuple[str, ...], _env: object, deadline_s: float, **_: object) -> ChildResult:
        assert argv[-5:] == (
            "--depth",
            str(state.count("/") + 1),
            "--base",
            str(tmp_path),
            "--json",
        )
        given.append(deadline_s)
        return ChildResult(0, 0, False, 0.0, 0, 0, SUMMARY, b"")

    monkeypatch.setattr(explorer, "run_child", run)
    (tmp_path / "ibdata1").touch()
    file = tmp_path / "file"
    recording = Recording(file, file, file, None, tmp_path, 0, "", 1, (), {})
    lay_out_state(make_spec(0), slow, recording, state, tmp_path / "image")
    assert given[0] > 2 * SLOW_S * (state.count("/") + 1)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("engine", {"purged": 2, "dblwr_restored": 0, "second_crash": 3}),
        ("sqlite", {"second_crash": 3}),
        ("mariadb-10.11", {"second_crash": 3}),
    ],
)
def test_a_target_has_no_counters_of_another(
    name: str, shown: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the explorer counts of the bundled engine's recoveries is shown of that engine."""
    target = make_target(name, tmp_path, ready=False)
    monkeypatch.setattr(type(target), "explore_command", lambda *_: Command(("explore",)))
    paths = b'{"states": 1, "paths": {"purged": 2, "dblwr_restored": 0, "second_crash": 3}}'
    ended = ChildResult(0, 0, False, 0.0, 0, 0, paths, b"")
    monkeypatch.setattr(explorer, "run_child", lambda *_, **__: ended)
    assert merge_slices(make_spec(0), target, tmp_path).summary["paths"] == shown


def test_all_that_a_state_broke_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finding of it, who says so, and how many states are like it. A rule speaks of bytes, all others of
    the state."""
    target = make_target("engine", tmp_path, ready=False)
    monkeypatch.setattr(type(target), "explore_command", lambda *_: Command(("explore",)))
    findings = [
        {"invariant": 5, "source": "scan", "what": "page 3: checksum"},
        {"invariant": 1, "source": "oracle", "what": "commits are missing"},
        {"invariant": 30, "source": "recovery", "what": "refused"},
        {"invariant": 4, "source": "rule", "what": "page ahead of its log", "rule": "log_first"},
    ]
    of_state = {"state": "7.subset.1", "model": "subset", "site": "redo", "count": 3}
    lines = [*({**of_state, **one} for one in findings), {"states": 9}]
    told = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    ended = ChildResult(1, 0, False, 0.0, 0, 0, told, b"")
    monkeypatch.setattr(explorer, "run_child", lambda *_, **__: ended)
    found = merge_slices(make_spec(0), target, tmp_path)
    broken = found.broken["7.subset.1"]
    assert [violation.invariant for violation in broken] == [5, 1, 30, 4]
    assert [violation.source for violation in broken] == [*[Source.STATE] * 3, Source.RULE]
    assert (found.alike, found.answer) == ({"7.subset.1": 3}, "refused")


def test_a_target_file_says_how_long_a_recovery_may_take(tmp_path: Path) -> None:
    """The explorer, and who waits for it, go by the same number."""
    target = make_target("mariadb-10.11", tmp_path, ready=False)
    command = target.explore_command(tmp_path / "trace", tmp_path / "allowed", {})
    asked = float(command.argv[command.argv.index("--deadline") + 1])
    assert command.deadline_s == target.recover_command(tmp_path, {}).deadline_s == asked


def test_broken_states_have_numbers_of_their_own(
    recording: Recording, target: EngineTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first of their exploration on: those of another one are other trials. One that is known is not
    played again; each stands for all that are like it."""
    violation = Violation(1, "commits are missing", Site.REDO)
    names = ["5.subset.1", "6.subset.1", "7.subset.1"]
    found = Exploration({}, dict.fromkeys(names, (violation,)), dict.fromkeys(names, 4))
    part = SimpleNamespace(spec=make_spec(0), first=20_000, known={20_001})
    states = found_states(cast(Any, part), found)
    assert [(one.spec.number, one.spec.plan.loss) for one in states] == [
        (20_000, names[0]),
        (20_002, names[2]),
    ]
    again = replace(make_result(20_000, broken=1), violations=(violation,))
    monkeypatch.setattr(parts, "replay_state", lambda *_: again)
    broken = play_found(states[0], target, recording, tmp_path)
    assert (broken.result.outcome, broken.result.alike) == (Outcome.VIOLATION, 4)


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineTarget:
    """One whose explorer is no program."""
    engine = EngineTarget(tmp_path, tmp_path)
    monkeypatch.setattr(engine, "explore_command", lambda *_: Command(("explore",)))
    return engine


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """That nobody reads."""
    file = tmp_path / "file"
    return Recording(file, file, file, None, tmp_path, 0, "", 1, (), {})


def test_suspects_and_accused_pages_are_handed_on(
    target: EngineTarget, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a rule complained of, and of which page, as the judge has told it."""
    accusing = replace(recording, suspect=(17,), accused=((3, 8192), (4, 0)))
    asked: list[str] = []

    def run(argv: tuple[str, ...], *_: object, **__: object) -> ChildResult:
        asked.extend(argv)
        return ChildResult(0, 0, False, 0.0, 0, 0, SUMMARY, b"")

    monkeypatch.setattr(explorer, "run_child", run)
    explore(make_spec(0), target, accusing, Limits())
    told = " ".join(asked)
    assert "--suspect 17" in told
    assert "--accused 3:8192 --accused 4:0" in told


def test_where_to_look_is_handed_on(
    target: EngineTarget, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits, scope, and what is known of the recording."""
    asked: list[str] = []

    def run(argv: tuple[str, ...], *_: object, **__: object) -> ChildResult:
        asked[:] = argv
        return ChildResult(0, 0, False, 0.0, 0, 0, SUMMARY, b"")

    monkeypatch.setattr(explorer, "run_child", run)
    told = replace(recording, ready=5, over=90, at=Path("/place"))
    limits = Limits(models=("subset", "one-torn"), depth=2, states=30, budget_s=4.0)
    scope = Scope(jobs=3, whole=True, canaries=True, ignored_fsyncs=("*.db",))
    whole = "--jobs 3|--model subset|--model one-torn|--depth 2|--states 30|--budget 4.0|--whole|--canaries"
    whole += "|--ignore-fsync *.db|--from-seq 5|--to-seq 90|--recover-at /place"
    part = Scope(events=(7, 9))
    for given, where, words in (
        (limits, scope, whole),
        (Limits(), part, "--depth 1|--from-seq 7|--to-seq 9"),
    ):
        explore(make_spec(0), target, told, given, where)
        said = " ".join(asked) + " "
        assert [word for word in words.split("|") if f"{word} " not in said] == []


@pytest.mark.parametrize(
    ("code", "error"),
    [(0, None), (1, None), (3, None), (2, ChildError), (9, ChildError), (10, MachineError)],
)
def test_an_explorer_that_failed_came_to_nothing(
    code: int,
    error: type[Exception] | None,
    target: EngineTarget,
    recording: Recording,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever it had printed by then."""
    ended = ChildResult(code, 0, False, 0.0, 0, 0, SUMMARY, b"")
    monkeypatch.setattr(explorer, "run_child", lambda *_, **__: ended)
    with nullcontext() if error is None else pytest.raises(error):
        explore(make_spec(0), target, recording, Limits())


def test_a_judge_that_lets_a_canary_pass_is_deaf(
    target: EngineTarget, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its summary is not read, whatever it says; without the canaries nobody asks."""
    deaf = b"tornpage-explore: the judge is deaf: torn_page (I5) is condemned by nobody\n"

    def run(argv: tuple[str, ...], _env: object, _deadline_s: float, **_: object) -> ChildResult:
        asked = "--canaries" in argv
        code, words = (11, deaf) if asked else (0, b"")
        return ChildResult(code, 0, False, 0.0, 0, 0, SUMMARY, words)

    monkeypatch.setattr(explorer, "run_child", run)
    assert explore(make_spec(0), target, recording, Limits()).summary == {"states": 1}
    with pytest.raises(DeafError, match=r"^the judge is deaf: torn_page \(I5\) is condemned by"):
        explore(make_spec(0), target, recording, Limits(), Scope(canaries=True))
