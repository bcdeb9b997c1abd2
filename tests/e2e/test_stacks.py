"""Call stacks: what a person reads of an operation leads to the line that made it, and changes no verdict."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from e2e_support import Tornpage, call
from trials import kill_at, make_spec

from tornpage.evidence.evidence import keep_evidence, load_evidence
from tornpage.evidence.stacks import stack_frames
from tornpage.faults.stacks import StackLog, stacks_path
from tornpage.live.fault_free import run_fault_free
from tornpage.live.recording import recorded_run
from tornpage.live.trial import run_trial
from tornpage.live.writes import list_writes
from tornpage.plans.limits import Limits
from tornpage.powerloss.evidence import keep_loss_evidence
from tornpage.powerloss.explorer import explore, loss_plan, replay_state
from tornpage.reports.dossier import phase_views, way_lines
from tornpage.targets.engine.target import EngineTarget
from tornpage.vocabulary.evidence import Fate
from tornpage.vocabulary.model import GoldenRun, Outcome, Site

CALLERS = ["ddl_rename_steps", "ddl_rename_table", "engine_rename_table"]
"""Of the rename of a table. The second ends by calling the first."""


def test_stacks_change_nothing_else(
    target: EngineTarget, scratch: Path, golden_run: GoldenRun, tmp_path: Path
) -> None:
    """The run and the trial are the same, byte for byte; without the wish nothing is beside them."""
    plain, stacked = make_spec(), replace(make_spec(), stacks=True)
    one = run_fault_free(plain, target, tmp_path / "plain")
    other = run_fault_free(stacked, target, tmp_path / "stacked")
    assert one.trace.body == other.trace.body
    assert not stacks_path(tmp_path / "plain" / "trace").exists()
    log = StackLog.load(tmp_path / "stacked" / "trace")
    assert log is not None and log.of(1) is not None
    write = next(w for w in golden_run.writes if w.site is Site.DATA_PAGE)
    spec = make_spec(plan=kill_at(write, "prefix:3"))
    results = [
        run_trial(each, target, scratch, tmp_path)
        for each in (spec, replace(spec, number=1, stacks=True))
    ]
    assert len({(result.outcome, result.trace_hash, result.digest) for result in results}) == 1


def test_the_engine_names_who_made_a_record_group(target: EngineTarget, tmp_path: Path) -> None:
    """Behind what each group goes through; and each caller is there, one too that ends by a call."""
    run_fault_free(replace(make_spec(), stacks=True), target, tmp_path / "run")
    log = StackLog.load(tmp_path / "run" / "trace")
    assert log is not None and log.notes
    groups = [note for note in log.notes if note.text.startswith("log_group ")]
    taken = {note.stack: log.stack(note.stack) for note in groups}
    made = [
        [frame.function for frame in frames]
        for frames in stack_frames(taken, (), target.wrappers).values()
    ]
    layers = ("probe_", "log_", "mtr_", "trx_commit")
    assert not [functions for functions in made if functions[0].startswith(layers)]
    assert not [functions for functions in made if functions[0] == functions[1]]
    assert any(functions[:3] == CALLERS for functions in made), made


def test_the_engine_names_who_wrote_a_page(
    target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """Of the page that was torn, and of the fsyncs before it; what every page goes through is left out."""
    spec = make_spec(doublewrite="off")
    run = run_fault_free(spec, target, tmp_path / "run")
    writes = list_writes(target, run.trace, 4096)
    write = next(w for w in reversed(writes) if w.site is Site.DATA_PAGE)
    spec = replace(spec, plan=kill_at(write, "prefix:3"), stacks=True)
    result = run_trial(spec, target, scratch, tmp_path / "images")
    assert result.outcome is Outcome.VIOLATION
    keep_evidence(spec, result, target, scratch)
    evidence = load_evidence(result.image)
    assert evidence is not None
    steps = evidence.phases[0].steps
    torn = next(step for step in steps if step.fate is Fate.TORN)
    functions = [frame.function for frame in torn.stack]
    assert functions[0] == "posix_write" and "buf_dblwr_write_home" in functions
    home = next(frame for frame in torn.stack if frame.function == "buf_dblwr_write_home")
    assert Path(home.file).name == "buf_dblwr.c" and home.line > 0
    assert (
        phase_views(evidence)[0].rows[-1].stack[0].startswith("buf_dblwr_write_home buf_dblwr.c:")
    )
    assert all(step.stack for step in steps if step.op == "fsync")


@pytest.mark.extended
def test_a_store_of_ones_own_is_read_by_its_lines(tmp_path: Path) -> None:
    """`try` of a store in Python without its fsync: terminal, report and JUnit name function, file and line;
    --no-stacks leaves them out."""
    done = call(tmp_path, "target", "new", "mykv")
    assert done.returncode == 0, done.stderr
    store = tmp_path / "mykv" / "store.py"
    lines = [line for line in store.read_text().splitlines() if "os.fsync(log)" not in line]
    store.write_text("\n".join(lines) + "\n")
    number = next(
        n for n, line in enumerate(lines, 1) if "log.write" in line or "os.write(log" in line
    )
    words = ["try", "mykv", "--states", "60", "--trials", "2", "--junit", "found.xml"]
    assert call(tmp_path, *words).returncode == 1
    shown = call(tmp_path, "show", "1.0").stdout
    frame = f"by load store.py:{number} ← <module> store.py"
    assert re.search(rf"(torn|lost) +write store.log.*\n +{re.escape(frame)}", shown), shown
    junit = (tmp_path / "found.xml").read_text("utf-8")
    assert re.search(
        rf"(torn|lost) write store.log, .*: load store.py:{number} ← &lt;module&gt;", junit
    )
    report = (tmp_path / "out" / "report-1.html").read_text("utf-8")
    assert f"load store.py:{number} ←" in report
    words = ["try", "mykv", "--states", "60", "--trials", "2", "--no-stacks", "--out", "bare"]
    assert call(tmp_path, *words).returncode == 1
    bare = call(tmp_path, "show", "1.0", "--out", "bare").stdout
    assert "store.log" in bare


def test_a_recovery_inside_the_explorer_tells_its_calls(
    target: EngineTarget, tmp_path: Path
) -> None:
    """Of the bundled engine, whose recoveries run in the explorer's own process: run and recovery each with
    functions and lines; only where stacks were asked for. A recovery in little memory writes pages far below
    recv_run(), beyond the frames that are kept: one of those that were crashed must show it."""
    spec = replace(make_spec(doublewrite="off"), stacks=True)
    with recorded_run(spec, target, tmp_path) as recording:
        found = explore(spec, target, recording, Limits(depth=2, states=8000)).broken
        crashed = sorted(state for state in found if "/" in state)
        assert crashed
        for stacks in (True, False):
            told_by_itself = []
            for state in crashed:
                lost = replace(spec, plan=loss_plan(state), stacks=stacks)
                result = replay_state(lost, target, recording, tmp_path / "image")
                keep_loss_evidence(lost, result, target, recording, tmp_path)
                evidence = load_evidence(result.image)
                assert evidence is not None and len(evidence.phases) == 2
                crash = int(state.rpartition("/")[2].partition(".")[0])
                own = [step.stack for step in evidence.phases[1].steps if step.seq <= crash]
                told = [stack for stack in own if stack]
                assert own and len(told) == (len(own) if stacks else 0)
                functions = {frame.function for stack in told for frame in stack}
                shown = "\n".join(way_lines(evidence))
                told_by_itself.append(
                    {"recv_run", "engine_open_layers"} <= functions
                    and re.search(r"sync_dir \.\n +by recv_\w+ recv_\w+\.c:\d+ ← ", shown)
                )
            assert any(told_by_itself) == stacks


@pytest.mark.extended
def test_a_stripped_program_is_read_with_its_debug_file(
    tornpage: Tornpage, build: Path, tmp_path: Path
) -> None:
    """What ran knows no lines; --debug-files finds them by build id, also of what was kept."""
    programs = tmp_path / "build"
    engine = programs / "engine" / "engine"
    engine.parent.mkdir(parents=True)
    shutil.copy(build / "engine" / "engine", engine)
    for folder in ("faults", "explorer"):
        (programs / folder).symlink_to(build / folder)
    notes = subprocess.run(["readelf", "-n", engine], check=True, capture_output=True, text=True)
    build_id = notes.stdout.partition("Build ID: ")[2].split()[0]
    debug = tmp_path / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", engine, debug], check=True)
    subprocess.run(["strip", engine], check=True)
    options = [
        "--option",
        "doublewrite=off",
        "--scripts",
        "1",
        "--fault-free",
        "0",
        "--trials",
        "8",
    ]
    run = tornpage("run", "smoke", *options, "--stacks", TORNPAGE_BUILD=str(programs))
    assert run.code == 1, run.text
    out = ["--out", str(tmp_path / "out")]
    name = run.data["bugs"][0]["replay"].split("replay ")[1].split()[0]
    bare = call(tmp_path, "show", name, *out).stdout
    assert re.search(r"by engine\+0x[0-9a-f]+ ← ", bare), bare
    assert f"functions of {engine} are unknown: --debug-files FOLDER" in bare
    assert f"build id {build_id}" in bare
    named = call(tmp_path, "show", name, "--debug-files", "debug", *out).stdout
    assert "are unknown" not in named
    assert "buf_dblwr_write_home buf_dblwr.c:" in named
    refused = call(tmp_path, "show", name, "--debug-files", "nowhere", *out)
    assert refused.returncode == 2


@pytest.mark.extended
def test_an_interrupted_run_is_asked_only_once(tmp_path: Path) -> None:
    """--resume takes it from the run that goes on, as it does limits and options."""
    done = call(tmp_path, "run", "smoke", "--scripts", "1", "--fault-free", "0", "--trials", "1")
    assert done.returncode in (0, 1, 3), done.stderr
    refused = call(tmp_path, "run", "smoke", "--resume", "--stacks")
    assert refused.returncode == 2
    assert "--resume takes" in refused.stderr
