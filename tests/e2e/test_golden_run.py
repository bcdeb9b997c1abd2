"""The golden run of the built engine: what it shows, what refuses it, and what tells one from another."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from trials import ENGINE_SITES, make_spec, replaced

from tornpage.live.golden_run import golden_run_key, take_golden_run
from tornpage.targets.engine.target import EngineTarget
from tornpage.targets.target import RecoveryAnswer
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import GoldenRunError, MachineError, TargetError, WorkloadError
from tornpage.vocabulary.model import FaultPlan, GoldenRun, Site


def test_golden_run_is_clean_and_finds_every_site(golden_run: GoldenRun) -> None:
    """The fault-free run breaks nothing, ends as the oracle says, and writes to all sites."""
    assert golden_run.violations == ()
    assert set(golden_run.by_site()) == {*ENGINE_SITES, Site.FILE_OP, Site.OTHER}
    assert all(write.line > 0 for write in golden_run.writes)
    assert from_json(GoldenRun, to_json(golden_run)) == golden_run


def test_golden_run_is_the_same_twice(
    golden_run: GoldenRun, target: EngineTarget, tmp_path: Path
) -> None:
    """The same seed gives the same writes and the same trace hash; another seed does not."""
    again = take_golden_run(make_spec(), target, tmp_path)
    assert again == golden_run
    other = take_golden_run(replace(make_spec(), workload_seed=4), target, tmp_path)
    assert other.trace_hash != golden_run.trace_hash
    assert other.key != golden_run.key


def test_a_golden_run_that_fails_is_a_harness_error(target: EngineTarget, tmp_path: Path) -> None:
    """No golden run, no verdicts: the cause is told."""
    broken = replaced(target)
    broken.run_instead = ("/bin/sh", "-c", "echo broken >&2; exit 4")
    with pytest.raises(GoldenRunError, match="broken"):
        take_golden_run(make_spec(), broken, tmp_path)
    with pytest.raises(GoldenRunError, match="page_size"):
        take_golden_run(make_spec(page_size="5k"), target, tmp_path)
    with pytest.raises(WorkloadError, match="no workload 'nope'"):
        take_golden_run(replace(make_spec(), workload="nope"), target, tmp_path)
    blind = replaced(target)
    blind.capabilities = frozenset()  # type: ignore[misc]
    with pytest.raises(TargetError, match="lacks"):
        take_golden_run(make_spec(), blind, tmp_path)


def test_a_golden_run_sees_errors_that_the_model_does_not_predict(
    target: EngineTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that fails or succeeds against the model's prediction is a violation (I3)."""
    monkeypatch.setattr(
        EngineTarget,
        "parse_run",
        lambda self, child, parse=EngineTarget.parse_run: replace(
            parse(self, child), failed={1: "DB_ERROR"}
        ),
    )
    golden_run = take_golden_run(make_spec(), target, tmp_path)
    assert any(
        v.invariant == 3 and "line 1 ended with DB_ERROR" in v.what for v in golden_run.violations
    )


def test_a_machine_that_fails_the_last_look_is_no_finding(
    target: EngineTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The closed database was not opened for want of space: nothing is said of the target."""
    no_space = RecoveryAnswer(False, message="no space", machine=True)
    monkeypatch.setattr(EngineTarget, "parse_recovery", lambda _self, _child: no_space)
    with pytest.raises(MachineError, match="no space"):
        take_golden_run(make_spec(), target, tmp_path)


def test_keys_tell_configurations_apart() -> None:
    """Everything that changes the run changes the key; plan, seed and number of the trial do not."""
    spec = make_spec()
    assert golden_run_key(
        replace(spec, seed=99, number=7, plan=FaultPlan(name="x"))
    ) == golden_run_key(spec)
    others = [
        replace(spec, workload_seed=9),
        replace(spec, params={"rows": 41, "changes": 8}),
        make_spec(log_optimize_ddl="off"),
    ]
    assert len({golden_run_key(other) for other in [spec, *others]}) == 4


def test_deadline_of_the_golden_run_holds(target: EngineTarget, tmp_path: Path) -> None:
    """A target that hangs in the fault-free run ends the golden run with a clear error."""
    hanging = replaced(target)
    hanging.deadline_s = 0.5
    hanging.run_instead = (sys.executable, "-c", "import signal; signal.pause()")
    with pytest.raises(GoldenRunError, match="hung"):
        take_golden_run(make_spec(), hanging, tmp_path)
