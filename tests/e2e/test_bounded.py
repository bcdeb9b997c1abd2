"""Every sequence of statements: what is crashed, and what a run of some of them says."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from e2e_support import call

from tornpage.faults.trace import FilePaths, Op, Trace
from tornpage.live.journal import read_journal
from tornpage.live.recording import recorded_run
from tornpage.plans.campaign import fault_free_spec, load_campaign
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import Scope, explore
from tornpage.targets.engine.target import EngineTarget
from tornpage.vocabulary.model import TrialSpec
from tornpage.vocabulary.paths import data_folder
from tornpage.workloads.bounded import sequences_of
from tornpage.workloads.mid_backup import FILE, SYSTEM
from tornpage.workloads.places import places_of
from tornpage.workloads.script import Verb
from tornpage.workloads.workload import generate


def test_crashes_begin_with_the_last_statement(target: EngineTarget, tmp_path: Path) -> None:
    """From where it is issued: before it nothing is crashed, in it everything."""
    campaign = load_campaign("bounded", data_folder("workloads"))
    config = campaign.scripted()[-1]
    spec = fault_free_spec(campaign, "engine", config)
    script = generate(spec.workload, spec.params, spec.workload_seed)
    with recorded_run(spec, target, tmp_path) as recording:
        journal = read_journal(Trace.load(recording.trace))
        assert (recording.ready, script.prepared + 1) in journal.issued


def test_a_run_says_what_it_is_complete_for(tmp_path: Path) -> None:
    """Of a few sequences: of none, on the last line, in --json and in the report."""
    words = ["run", "bounded", "--scripts", "3", "--states", "60", "--fault-free", "1"]
    ran = call(tmp_path, *words, "--option", "params.length=1", "--out", "o")
    told = f"3 of {len(sequences_of(1))} sequences"
    assert f"{told}, complete to no length" in ran.stdout
    shown = call(tmp_path, "report", "--out", "o", "--json")
    assert json.loads(shown.stdout)["looked_at"]["bound"]["sequences"] == 3
    assert told in (tmp_path / "o" / "report-1.html").read_text("utf-8")


def spec_of(place: int) -> TrialSpec:
    """Of the script of this place, under the options of its campaign, with rows that leave leaves to pack."""
    campaign = load_campaign("places", data_folder("workloads"))
    spec = fault_free_spec(campaign, "engine", campaign.scripted()[0])
    return replace(spec, params={"sequence": place}, workload_seed=3)


LAST = {
    (place.kind.name, place.logged, place.act): number
    for number, place in enumerate(places_of())
    if place.act != "backup"
}


@pytest.mark.parametrize("number", sorted(LAST.values())[::5])
def test_the_last_place_of_a_statement_is_reached(
    number: int, target: EngineTarget, tmp_path: Path
) -> None:
    """So those before it are: what was placed is done, once."""
    with recorded_run(spec_of(number), target, tmp_path) as recording:
        counters = recording.counters
    assert (
        sum(counters[f"placed_{what}"] for what in ("checkpoints", "cleans", "evictions", "fills"))
        == 1
    )


def test_crashes_begin_where_the_placed_thing_is_done(target: EngineTarget, tmp_path: Path) -> None:
    """Not where its statement is issued, which was crashed without it."""
    drops = (n for n, one in enumerate(places_of()) if one.kind.name == "drop table")
    number = next(drops) + 8
    with recorded_run(spec_of(number), target, tmp_path) as recording:
        trace = Trace.load(recording.trace)
        (placed,) = [event.seq for event, _ in trace.marks("placed")]
        assert recording.ready == placed > read_journal(trace).issued[-1][0]


def test_crashes_end_with_the_statement_behind_a_preamble(
    target: EngineTarget, tmp_path: Path
) -> None:
    """Behind it, in the close of the script, nothing is crashed."""
    every = list(enumerate(places_of()))
    number = next(n for n, one in every if one.kind.name == "load of index 2 and checkpoint")
    spec = spec_of(number)
    script = generate(spec.workload, spec.params, spec.workload_seed)
    with recorded_run(spec, target, tmp_path) as recording:
        journal = read_journal(Trace.load(recording.trace))
        assert (recording.ready, script.prepared + 1) in journal.issued
        assert (recording.over, script.over) in journal.finished
        limits, span = Limits(models=("all-persisted",)), (recording.ready, recording.over)
        of = (recording, replace(recording, ready=0, over=0), replace(recording, over=0))
        scopes = (Scope(), Scope(events=span), Scope())
        states = [
            explore(spec, target, one, limits, scope).summary["states"]
            for one, scope in zip(of, scopes, strict=True)
        ]
    assert 0 < states[0] == states[1] < states[2]


@pytest.mark.parametrize("name", ["add index", "rest of a rebuild"])
def test_a_backup_stands_at_its_page_of_the_file(
    name: str, target: EngineTarget, tmp_path: Path
) -> None:
    """The system tablespace is copied, and of the table's file as many pages as the place says, when the
    statement comes."""
    every = list(enumerate(places_of()))
    number, place = next(
        (n, p) for n, p in every if (p.kind.name, p.act, p.number) == (name, "backup", FILE // 2)
    )
    spec = spec_of(number)
    script = generate(spec.workload, spec.params, spec.workload_seed)
    stepped = next(one.line for one in script.statements if one.verb is Verb.STEP_BACKUP)
    with recorded_run(spec, target, tmp_path) as recording:
        trace = Trace.load(recording.trace)
        ends = {line: seq for seq, line in read_journal(trace).finished}
        paths, pages = FilePaths(), Counter[str]()
        for event in trace.events():
            paths.see(trace, event)
            if event.kind == Op.WRITE and event.seq < ends[stepped]:
                pages[Path(paths[event.file]).name] += 1
    copied = {name: n for name, n in pages.items() if name.startswith("copy_")}
    assert sorted(copied.values()) == [place.number, SYSTEM]
