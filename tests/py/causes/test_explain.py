"""A crash is explained by the recording that it was in, or an equal one; by another program's never."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_trace import FakeTrace

from tornpage.causes.experiment import Choice, Experiment
from tornpage.causes.explain import is_of
from tornpage.faults.trace import Op
from tornpage.live.recording import Recording
from tornpage.targets.target import Capability
from tornpage.vocabulary.cause import Parting
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import FaultPlan, Outcome, TrialResult, Violation


def recording(tmp_path: Path, trace: FakeTrace) -> Recording:
    """All that is asked of one."""
    path = tmp_path / "trace"
    path.write_bytes(trace.data())
    told = SimpleNamespace(trace=path, trace_hash="0123456789abcdef")
    return cast(Recording, told)


@pytest.mark.parametrize(
    ("byte", "offset", "same"), [(b"a", 0, True), (b"b", 0, False), (b"a", 512, False)]
)
def test_a_killed_run_went_the_same_way(
    byte: bytes, offset: int, same: bool, tmp_path: Path
) -> None:
    """Up to the operation in which it was killed: what comes behind that is in the recording only."""
    killed = FakeTrace().write("f", 0, b"a" * 16).record(Op.KILL, file=1, length=16, result=8)
    image = tmp_path / "image"
    image.mkdir()
    (image / "run.trace").write_bytes(killed.data())
    whole = FakeTrace().write("f", offset, byte * 16).write("f", 16, b"c" * 16).mark("ack n=1")
    result = TrialResult(0, Outcome.VIOLATION, image=image)
    assert is_of(result, recording(tmp_path, whole)) is same


@pytest.mark.parametrize(("hash_", "same"), [("0123456789abcdef", True), ("f" * 16, False)])
def test_a_power_loss_was_in_an_equal_recording(hash_: str, same: bool, tmp_path: Path) -> None:
    """As its hash says."""
    result = TrialResult(0, Outcome.VIOLATION, trace_hash=hash_)
    assert is_of(result, recording(tmp_path, FakeTrace().mark("ready"))) is same


@pytest.mark.parametrize(("kept", "told"), [("1100", True), ("?", False)])
def test_a_tear_that_cannot_be_told_is_refused(
    kept: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be explained as a write that is there as a whole."""

    def lay_out(*asked: object) -> None:
        way = asked[-1]
        assert isinstance(way, Path)
        way.write_text(json.dumps({"waits": [{"seq": 4, "kept": kept}]}) + "\n", "utf-8")

    monkeypatch.setattr("tornpage.causes.experiment.lay_out_state", lay_out)
    spec, nothing = SimpleNamespace(plan=FaultPlan("other", loss="8.kill.0")), cast(Any, None)
    experiment = Experiment(cast(Any, spec), nothing, nothing, tmp_path)
    if told:
        assert experiment.waiting("7.one-part.1") == {4: kept}
    else:
        with pytest.raises(ConfigError, match=r"7.one-part.1: operation 4 writes too many sectors"):
            experiment.waiting("7.one-part.1")


@pytest.mark.parametrize(
    ("seq", "inside", "capabilities", "blames"),
    [
        (6, "", {Capability.RULES}, True),
        (7, "", {Capability.RULES}, False),
        (9, "6.kill.0", {Capability.RULES}, True),
        (6, "9.kill.0", {Capability.RULES}, False),
        (6, "", set(), False),
    ],
)
def test_recovery_is_blamed_where_the_run_has_kept_the_rules(
    seq: int,
    inside: str,
    capabilities: set[Capability],
    blames: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up to the crash of the run, and where somebody judges it by them: this one breaks one at event 7."""
    laid_out = []

    def lay_out(
        _spec: object, _target: object, _recording: object, *asked: object, **_: object
    ) -> Any:
        laid_out.append(asked)
        return SimpleNamespace(broken={})

    monkeypatch.setattr("tornpage.causes.experiment.lay_out_state", lay_out)
    monkeypatch.setattr(
        "tornpage.causes.parting.Recoveries.parting",
        lambda _self, _broken, _right, than: Parting(than, None, None),
    )
    spec, target = SimpleNamespace(options={}), SimpleNamespace(capabilities=capabilities)
    told = SimpleNamespace(suspect=(7, 20), at=None)
    nothing = cast(Any, None)
    experiment = Experiment(
        cast(Any, spec), cast(Any, target), cast(Any, told), tmp_path, nothing, inside
    )
    parting = experiment.parting(Choice(seq, {2: "0"}), Choice(seq, {}), "with it durable")
    assert parting == Parting("with it durable", None, None, blames=blames)
    state = f"{inside}/{seq}.chosen.0".removeprefix("/")
    assert laid_out == [(state, tmp_path / "broken"), (state, tmp_path / "right")]


def test_each_crash_is_looked_at_as_that_of_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What breaks only in new work, for one, would be right wherever nobody works."""
    own = "7.one-lost.1"

    def lay_out(*asked: object, chosen: Path | None = None, sample: str = "") -> Any:
        state = asked[3]
        if chosen is None:
            way = asked[-1]
            assert isinstance(way, Path)
            told = {"waits": [], "sample": "48" if state == own else "7"}
            way.write_text(json.dumps(told) + "\n", "utf-8")
        found = (Violation(2, "after new work: a row is missing"),) if sample == "48" else ()
        return SimpleNamespace(broken={state: found})

    monkeypatch.setattr("tornpage.causes.experiment.lay_out_state", lay_out)
    spec, nothing = SimpleNamespace(plan=FaultPlan("loss", loss=own)), cast(Any, None)
    experiment = Experiment(cast(Any, spec), nothing, nothing, tmp_path)
    experiment.waiting("7.all-persisted.0")
    assert experiment.violations(Choice(7, {4: "0"})) == ()
    experiment.waiting(own)
    experiment.waiting("7.all-persisted.0")
    assert experiment.sample == "48"
    assert experiment.violations(Choice(7, {2: "0"})) != ()
    there = Experiment(cast(Any, spec), nothing, nothing, tmp_path, sample=experiment.sample)
    assert there.violations(Choice(7, {4: "0"})) != ()
