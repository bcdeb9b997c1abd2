"""Exported tables behind live kills (I28): carried away from the crashed image, each is the table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tornpage.live.golden_run import take_golden_run
from tornpage.live.trial import run_trial
from tornpage.oracle.exports import Export
from tornpage.oracle.oracle import Oracle
from tornpage.oracle.rules import ask_export, stop_judges
from tornpage.plans.campaign import fault_free_spec, load_campaign
from tornpage.targets.engine.target import EngineTarget
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import ChildError
from tornpage.vocabulary.model import Action, Fault, FaultKind, FaultPlan, Outcome, TrialSpec
from tornpage.vocabulary.paths import ROOT
from tornpage.workloads.workload import generate

OPTIONS = {"page_size": "4k", "log_optimize_ddl": "on"}
SCRIPT = """create table t a:bigint b:char(60) primary a
insert_seq - t 1 200
add index t ib(b)
flush export t
"""
PAGE = 4096
CLUSTERED = 2
"""Root of the clustered index, whose pages are logged; those of the other one are loaded without redo."""
INDEX_ID = slice(50, 58)
"""docs/FORMAT.md."""


@pytest.fixture(scope="module")
def target(build: Path) -> EngineTarget:
    """The engine of the build under test."""
    made = make_target("engine", build)
    assert isinstance(made, EngineTarget)
    return made


@pytest.fixture
def exported(target: EngineTarget, tmp_path: Path) -> Path:
    """What a crash leaves behind an acknowledged export."""
    script, data = tmp_path / "script", tmp_path / "data"
    script.write_text(SCRIPT, "ascii")
    command = target.loop_command(data, script, OPTIONS)
    argv = [*command.argv[:2], "--crash", *command.argv[2:]]
    assert replace(command, argv=tuple(argv)).run({}).exit_code == 0
    return data


def ask(target: EngineTarget, data: Path, acked: bool = True) -> list[tuple[int, str]]:
    """What is wrong with the table that was exported: invariants and words."""
    try:
        _, found = ask_export(target.judge_command().argv, data, Export("t", acked), OPTIONS)
    finally:
        stop_judges()
    return [(violation.invariant, violation.what) for violation in found]


def test_a_whole_export_is_the_table(target: EngineTarget, exported: Path) -> None:
    """And the files stay as the crash has left them."""
    before = {path.name: path.read_bytes() for path in exported.iterdir()}
    assert ask(target, exported) == []
    assert {path.name: path.read_bytes() for path in exported.iterdir()} == before


def test_a_page_that_only_the_log_has(target: EngineTarget, exported: Path) -> None:
    """Recovery makes it anew; who has carried the file away cannot. The table can be imported, and shows the
    damage: to who scans its pages, and to who reads its rows."""
    file = exported / "t.ibd"
    pages = [file.read_bytes()[at : at + PAGE] for at in range(0, file.stat().st_size, PAGE)]
    leaf = max(n for n, page in enumerate(pages) if page[INDEX_ID] == pages[CLUSTERED][INDEX_ID])
    with file.open("r+b") as out:
        out.seek(leaf * PAGE)
        out.write(bytes(PAGE))
    assert ask(target, exported) == [
        (5, f"with the exported file: t.ibd page {leaf}: zero"),
        (28, "export of t: other rows than the table has"),
    ]


def test_only_what_was_acknowledged_must_be_there(target: EngineTarget, exported: Path) -> None:
    """Without a whole .cfg there is no promise, until the statement has made one."""
    (exported / "t.cfg").unlink()
    assert ask(target, exported, acked=False) == []
    told = (28, "export of t: acknowledged, but there is no whole .cfg")
    assert ask(target, exported) == [told]


def test_a_question_that_is_none(target: EngineTarget, exported: Path) -> None:
    """Neither a folder that is not there nor an option that is none gives a verdict."""
    argv = target.judge_command().argv
    for base, options in ((exported / "none", OPTIONS), (exported, {"page_size": "5k"})):
        with pytest.raises(ChildError, match="tornpage-judge: "):
            ask_export(argv, base, Export("t", True), options)
    stop_judges()


def exporting_spec() -> tuple[TrialSpec, range]:
    """A script of the campaign mix_kill, and the lines of a commit around which a table is exported."""
    campaign = load_campaign("mix_kill", ROOT / "workloads")
    for config in campaign.scripted():
        spec = fault_free_spec(campaign, "engine", config)
        oracle = Oracle(generate(spec.workload, spec.params, spec.workload_seed), spec.options)
        for prefix in sorted(oracle.exports):
            if prefix + 1 in oracle.exports:
                before, behind = (oracle.commit_lines[one] + 1 for one in (prefix, prefix + 1))
                return spec, range(before, behind)
    raise AssertionError("no script exports a table")


def test_a_killed_run_is_asked_for_its_export(target: EngineTarget, tmp_path: Path) -> None:
    """A kill while a table is exported: the trial counts that it was judged, and nothing is wrong."""
    spec, lines = exporting_spec()
    golden_run = take_golden_run(spec, target, tmp_path)
    write = next(found for found in golden_run.writes if found.line in lines)
    fault = Fault(FaultKind.WRITE, write.nth, Action.KILL, file=write.file, sectors="none")
    killed = replace(spec, number=1, plan=FaultPlan(run=(fault,)))
    result = run_trial(killed, target, tmp_path, tmp_path / "images")
    assert result.outcome is Outcome.CLEAN, result.reason
    assert result.counters["exports_judged"] == 1
