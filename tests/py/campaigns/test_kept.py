"""What is kept of a run that cannot be had again, and what it says later."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_result, make_spec

from tornpage.campaigns import kept_verdict
from tornpage.campaigns.kept_verdict import KeptAnswer, ask_kept
from tornpage.campaigns.replay import _why_clean
from tornpage.faults.process import ChildResult
from tornpage.live.kept import keep_crash, keep_found, load_crash
from tornpage.live.recovered import NOTHING_TO_HIT, Recovery
from tornpage.oracle.allowed import allowed_after
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.promise import Promise
from tornpage.oracle.rules import Finding, Judged, Setting
from tornpage.oracle.state import State
from tornpage.targets.registry import BUNDLED, make_target
from tornpage.targets.target import RecoveryAnswer, Target
from tornpage.vocabulary.model import Source, Violation
from tornpage.vocabulary.paths import find_paths

RULE = Violation(19, "ckpt_pages: too early", source=Source.RULE)


@pytest.fixture
def server() -> Target:
    """A target whose runs are not equal, and whose bytes are decoded."""
    name = str(BUNDLED / "mariadb-10.11.toml")
    return make_target(name, find_paths().build, ready=False)


def test_files_are_kept_where_a_recording_is_the_evidence(server: Target, tmp_path: Path) -> None:
    """Of a rule that a server's run broke; not of a state, nor of an engine whose runs are equal."""
    found = tmp_path / "before"
    found.mkdir()
    (found / "ibdata1").write_bytes(b"page")
    engine = make_target("engine", find_paths().build, ready=False)
    for number, (target, violation) in enumerate(
        [(server, RULE), (server, replace(RULE, source=Source.STATE)), (engine, RULE)]
    ):
        image = tmp_path / str(number)
        image.mkdir()
        keep_found(found, image, [violation], target)
        assert (image / "found" / "ibdata1").exists() == (number == 0)


def test_a_kept_recording_is_judged_again(
    server: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the rules, from the files that the run began with; an image without them says nothing. So the first
    recovery, from the crashed image."""
    spec = replace(make_spec(3), options={"page_size": "16k"})
    result = replace(make_result(3, broken=19), image=tmp_path)

    asked = []

    def judge_run(
        _target: Target, trace: Path, setting: Setting, found: Path, *, live: bool
    ) -> Judged:
        asked.append((trace.name, found.name))
        assert (setting.page_size, live) == (16384, True)
        number = 19 if trace.name == "run.trace" else 22
        return Judged((Finding(7, replace(RULE, invariant=number)),))

    def answers() -> list[str]:
        return [str(one) for one in ask_kept(spec, result, server, tmp_path)]

    monkeypatch.setattr(kept_verdict, "judge_run", judge_run)
    assert answers() == []
    (tmp_path / "run.trace").touch()
    (tmp_path / "found").mkdir()
    assert answers() == ["the kept recording: broken, I19"]
    (tmp_path / "data").mkdir()
    (tmp_path / "recover.trace").touch()
    assert answers() == ["the kept recording: broken, I19, I22"]
    (tmp_path / "recover-1.trace").touch()  # the one above began with what this one left
    asked.clear()
    assert answers() == ["the kept recording: broken, I19, I22"]
    assert asked == [("run.trace", "found"), ("recover-1.trace", "data")]
    assert ask_kept(spec, make_result(3), server, tmp_path) == ()


STATES: list[State] = [{"rows": (n, n, ())} for n in range(4)]


@pytest.mark.parametrize("clients", [{}, {1: "a", 2: "b", 3: "a"}])
def test_what_a_kill_may_leave_is_kept(clients: dict[int, str], tmp_path: Path) -> None:
    """And judges every state as it did then."""
    told = {
        n: {clients[n]: (n, n, ())} if clients and n else state for n, state in enumerate(STATES)
    }
    told[0] = dict.fromkeys(set(clients.values()) or {"rows"}, (0, 0, ()))
    oracle = ObservedOracle(told, [1, 2, 3], clients=clients)
    allowed = allowed_after(oracle, 1, 2, Promise())
    (tmp_path / "run.trace").write_bytes(b"names /a/data in a file")
    keep_crash(allowed, True, Path("/a/data"), tmp_path)
    kept_crash = load_crash(tmp_path)
    assert kept_crash is not None and kept_crash.before_first
    assert kept_crash.at == Path("/a/data")
    names = set(clients.values()) or {"rows"}
    for counts in itertools.product(range(5), repeat=len(names)):
        state = {name: (n, n, ()) for name, n in zip(sorted(names), counts, strict=True)}
        assert kept_crash.allowed.judge(state, {}) == allowed.judge(state, {}), state


def test_where_an_image_lay_is_told_only_if_its_files_may_name_it(tmp_path: Path) -> None:
    """Else it is recovered anywhere. Of an engine with a model nothing is kept."""
    oracle = ObservedOracle(dict(enumerate(STATES)), [1, 2, 3])
    (tmp_path / "run.trace").write_bytes(b"no folder")
    assert load_crash(tmp_path) is None
    keep_crash(allowed_after(oracle, 1, 1, Promise()), False, Path("/a/data"), tmp_path)
    kept_crash = load_crash(tmp_path)
    assert kept_crash is not None and kept_crash.at is None and not kept_crash.before_first


@pytest.mark.parametrize(
    ("states", "wanted"),
    [((1, 1), []), ((2, 2), []), ((0, 0), [1]), ((1, 2), [17])],
)
def test_a_kept_image_is_recovered_twice(
    states: tuple[int, int],
    wanted: list[int],
    server: Target,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To a state that was allowed then, and to the same one again."""
    oracle = ObservedOracle(dict(enumerate(STATES)), [1, 2, 3])
    (tmp_path / "run.trace").write_bytes(b"no folder")
    keep_crash(allowed_after(oracle, 1, 2, Promise()), False, Path("/a/data"), tmp_path)
    (tmp_path / "data").mkdir()
    answers = iter(states)
    child = ChildResult(0, 0, False, 0.1, 0, 0, b"", b"")

    def recover(*_: object) -> Recovery:
        told = RecoveryAnswer(True, state=STATES[next(answers)], recovered=True)
        return Recovery(child, told)

    monkeypatch.setattr(kept_verdict, "_recover", recover)
    result = replace(make_result(3, broken=1), image=tmp_path)
    (answer,) = ask_kept(make_spec(3), result, server, tmp_path)
    assert [one.invariant for one in answer.violations] == wanted and not answer.unasked


def test_a_crash_in_a_recovery_is_not_asked_and_said_so(server: Target, tmp_path: Path) -> None:
    """Its image is older than that crash: to recover it alone says nothing of the finding."""
    oracle = ObservedOracle(dict(enumerate(STATES)), [1, 2, 3])
    (tmp_path / "run.trace").write_bytes(b"no folder")
    keep_crash(allowed_after(oracle, 1, 1, Promise()), False, Path("/a/data"), tmp_path)
    spec = make_spec(3)
    spec = replace(spec, plan=replace(spec.plan, recover=(spec.plan.run,)))
    result = replace(make_result(3, broken=1), image=tmp_path)
    (answer,) = ask_kept(spec, result, server, tmp_path)
    assert answer.unasked.startswith("not asked") and not answer.violations
    (tmp_path / "data").mkdir()
    unhit = replace(spec, plan=replace(spec.plan, recover=NOTHING_TO_HIT))
    (answer,) = ask_kept(unhit, result, server, tmp_path)
    assert "recovery" not in answer.unasked


@pytest.mark.parametrize(
    ("kept", "fixed"),
    [
        ((), False),
        ((KeptAnswer("a"),), True),
        ((KeptAnswer("a"), KeptAnswer("b", unasked="not asked: gone")), False),
    ],
)
def test_fixed_is_said_only_if_all_that_was_kept_is_clean(
    kept: tuple[KeptAnswer, ...], fixed: bool, server: Target
) -> None:
    """Of a target whose runs differ, a new run has only had luck."""
    said = _why_clean(kept, server, "")
    assert said.startswith("fixed?") == fixed
    assert ("nothing was kept" in said) == (not kept)
