"""A finding by rule needs no crash: its evidence leads to the accused write, and to what its page lacks."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from trials import make_spec

from tornpage.evidence.accused import keep_run_evidence
from tornpage.evidence.evidence import load_evidence
from tornpage.oracle.rules import Setting
from tornpage.targets.engine.target import EngineTarget
from tornpage.vocabulary.evidence import Evidence, Fate
from tornpage.vocabulary.model import FaultPlan, TrialSpec

SCRIPT = (
    "create table t1 a:bigint primary a\ninsert - t1 a=1\ncheckpoint\ninsert - t1 a=2\ncheckpoint\n"
)


class Promises(EngineTarget):
    """Its judge is told that pages have copies, whatever the engine does."""

    def judge_setting(self, options: Mapping[str, str]) -> Setting:
        """With doublewrite."""
        return replace(super().judge_setting(options), doublewrite=True)


def spec_of(doublewrite: str) -> TrialSpec:
    """A run of SCRIPT without a fault."""
    made = make_spec()
    options = {**made.options, "doublewrite": doublewrite}
    params: dict[str, int | str] = {"script": SCRIPT}
    return replace(made, options=options, workload="inline", params=params, plan=FaultPlan())


@pytest.fixture(scope="module")
def accusing(target: EngineTarget) -> Promises:
    """The engine that breaks the promise."""
    return Promises(target.program, target.preload, target.explorer)


@pytest.fixture(scope="module")
def image(accusing: Promises, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is kept of a run without doublewrite."""
    folder = tmp_path_factory.mktemp("accused")
    assert keep_run_evidence(spec_of("off"), accusing, folder, folder / "image")
    return folder / "image"


@pytest.fixture(scope="module")
def evidence(image: Path) -> Evidence:
    """The same, read."""
    found = load_evidence(image)
    assert found is not None
    return found


def test_the_accused_write_ends_the_list_in_its_statement(evidence: Evidence) -> None:
    """A statement was in flight, and its text is told; what came before it is there."""
    (phase,) = (one for one in evidence.phases if one.rule == "dblwr_skip")
    accused = phase.steps[-1]
    assert (accused.fate, accused.op) == (Fate.ACCUSED, "write")
    assert phase.how.startswith("dblwr_skip: page ")
    assert evidence.statements[accused.line] in SCRIPT
    assert any(step.op == "issue" and step.line == accused.line for step in phase.steps)
    assert not any(step.fate is Fate.ACCUSED for step in phase.steps[:-1])


def test_the_facts_are_those_of_the_page(
    evidence: Evidence, image: Path, target: EngineTarget
) -> None:
    """No copy, the fsyncs around it, and redo records that the log of the image does have."""
    (phase,) = (one for one in evidence.phases if one.rule == "dblwr_skip")
    accused = phase.steps[-1]
    facts = {name.partition(" of page")[0]: value for name, value in phase.facts.items()}
    assert facts["doublewrite copy"] == "none: nothing was written to the area before"
    assert f"fsync of {accused.path}" in phase.facts
    assert "synced by operation" in facts["checkpoint"]
    log = subprocess.run(
        [target.program, "log", image / "data"], capture_output=True, text=True, check=True
    )
    records = facts["redo records"].partition(": ")[2].split("; ")
    assert records and all(record.split()[0] in log.stdout for record in records)


def test_the_image_has_the_accused_write_and_nothing_later(evidence: Evidence, image: Path) -> None:
    """As it was written, so that the engine's own programs can be asked of it."""
    accused = evidence.phases[0].steps[-1]
    file = image / "data" / accused.path
    assert file.stat().st_size >= accused.offset + accused.length
    assert not any((image / "data").glob("*.trace"))


def test_a_run_that_keeps_the_rules_has_no_evidence(accusing: Promises, tmp_path: Path) -> None:
    """And nothing is left of it."""
    assert not keep_run_evidence(spec_of("on"), accusing, tmp_path, tmp_path / "image")
    assert not (tmp_path / "image").exists()
    assert not list(tmp_path.iterdir())
