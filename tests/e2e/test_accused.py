"""A finding by rule needs no crash: its evidence leads to the accused write, and to what its page lacks."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from trials import make_spec

from tornpage.campaigns.fault_free import (
    fault_free_row,
    reproducer_name,
    stored_row,
    with_kept_image,
)
from tornpage.evidence.accused import keep_run_evidence
from tornpage.evidence.evidence import load_evidence
from tornpage.live.fault_free import judge_fault_free
from tornpage.oracle.fingerprint import RUN_SITE, fingerprint_of
from tornpage.oracle.rules import Setting
from tornpage.plans.campaign import Campaign, PowerLoss, fault_free_spec
from tornpage.shrinking import shrink
from tornpage.shrinking.crashes_run import RunSearch
from tornpage.store.origin import Origin
from tornpage.store.store import Store
from tornpage.targets.engine.target import EngineTarget
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.evidence import Evidence, Fate
from tornpage.vocabulary.model import FaultPlan, Source, TrialSpec, Violation
from tornpage.vocabulary.paths import Paths, data_folder
from tornpage.workloads.parse import parse_script

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


def campaign() -> Campaign:
    """Power losses of SCRIPT, of which no state is looked at here."""
    return Campaign(
        name="mine",
        description="",
        workload="inline",
        params={"script": SCRIPT},
        crash_model="power_loss",
        options=spec_of("off").options,
        seed=3,
        explore=PowerLoss(states=1),
    )


def test_a_finding_by_rule_shrinks_to_a_script_that_shows_it(
    accusing: Promises, build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bug is replayed by it from then on, and its evidence is kept."""
    monkeypatch.setattr(shrink, "make_target", lambda _name, _build: accusing)
    monkeypatch.setattr(shrink, "origin_of", lambda _settings, _target: Origin())
    paths = Paths(build, data_folder("workloads"), data_folder("reports"), tmp_path)
    with Store(tmp_path / "tornpage.db") as store:
        mine = campaign()
        settings = mine.model_dump(mode="json")
        run = store.begin_run("mine", "engine", 3, 0, settings, Origin())
        spec = fault_free_spec(mine, "engine", mine.configs()[0])
        row = judge_fault_free(spec, accusing, tmp_path / "work")
        store.put_golden_run(run.id, replace(row, crashed=True))
        found = fault_free_row(store, run.id, 0)
        assert found.result is not None
        wanted = fingerprint_of(found.result.violations[0], RUN_SITE)
        done = shrink.shrink_trial(
            store, found, paths, tmp_path, 60, lambda _text: None, stacks=True
        )
        assert (done.trial, done.shrunk) == (f"{run.id}.s0", f"{run.id + 1}.s0")
        assert done.fingerprint == wanted and done.complete
        assert done.after.statements < done.before.statements == len(SCRIPT.splitlines())
        small = stored_row(store, done.shrunk)
        assert small.result is not None
        assert wanted in {fingerprint_of(one, RUN_SITE) for one in small.result.violations}
        kept = with_kept_image(small, tmp_path).result
        assert kept is not None and load_evidence(kept.image) is not None
        bug = store.bug(small.bugs[0] or 0)
        assert reproducer_name(store, bug) == done.shrunk


def test_a_script_that_keeps_the_rules_does_not_show_it(accusing: Promises, tmp_path: Path) -> None:
    """And a search for what a run does not show says so."""
    script = parse_script(SCRIPT)
    wanted = Violation(13, "dblwr_skip: page 0:1 has no copy", source=Source.RULE)
    search = RunSearch(spec_of("off"), script, accusing, tmp_path, wanted)
    assert search.find(script, range(len(script.statements))) is not None
    with pytest.raises(TornpageError, match="no longer breaks I13"):
        RunSearch(spec_of("on"), script, accusing, tmp_path, wanted)
