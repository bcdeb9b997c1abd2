"""Single trials on the built engine: each kind of fault, and each way in which a target can misbehave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from trials import ENGINE_SITES, OPTIONS, kill_at, make_spec, replaced

from tornpage.faults.aim import RecoveryAim
from tornpage.faults.plan import load_plan, resolve_mask
from tornpage.faults.process import ChildResult
from tornpage.faults.trace import Trace
from tornpage.live.contents import KnownContents
from tornpage.live.golden_run import load_baseline, take_golden_run
from tornpage.live.trial import run_aimed, run_trial
from tornpage.targets.engine.target import EngineTarget
from tornpage.targets.target import RecoveryAnswer
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import PlanError
from tornpage.vocabulary.model import (
    Action,
    Fault,
    FaultKind,
    FaultPlan,
    GoldenRun,
    Outcome,
    Site,
    TrialResult,
    TrialSpec,
    WriteEvent,
)


def run(
    plan: FaultPlan, target: EngineTarget, scratch: Path, tmp_path: Path, **options: str
) -> TrialResult:
    """One trial with its images below tmp_path."""
    return run_trial(make_spec(5, plan, **options), target, scratch, tmp_path / "images")


def invariants(result: TrialResult) -> list[int]:
    """Numbers of the broken invariants, each once."""
    return sorted({violation.invariant for violation in result.violations})


@pytest.mark.parametrize("site", sorted(ENGINE_SITES))
@pytest.mark.parametrize("sectors", ["none", "prefix:1", "suffix:1", "all"])
def test_a_kill_at_each_site_is_survived(
    site: Site,
    sectors: str,
    golden_run: GoldenRun,
    target: EngineTarget,
    scratch: Path,
    tmp_path: Path,
) -> None:
    """The fault hits exactly the write that was chosen, and the engine recovers from it. A mask that tears
    nothing of a write of one sector is recovered from too, and counts for nothing."""
    writes = golden_run.by_site()[site]
    write = writes[len(writes) // 2]
    result = run(kill_at(write, sectors), target, scratch, tmp_path)
    whole = write.length == 512 and sectors in ("prefix:1", "suffix:1")
    assert result.outcome is (Outcome.NOT_EXERCISED if whole else Outcome.CLEAN), result
    assert ("leaves the whole write" in result.reason) is whole
    assert (result.site, result.path, result.offset) == (site, write.file, write.offset)
    if site is not Site.CHECKPOINT_HEADER:  # a new checkpoint may leave nothing to do
        assert result.counters["redo_records"] > 0
    assert result.image is None and not (tmp_path / "images").exists()
    assert from_json(TrialResult, to_json(result)) == result


def test_the_same_trial_gives_the_same_verdict(
    golden_run: GoldenRun, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """Trace hash, digest and counters are a function of the spec."""
    plan = kill_at(golden_run.by_site()[Site.INDEX_LOAD_PAGE][3], "prefix:3", stale_log=True)
    first, second = (run(plan, target, scratch, tmp_path / name) for name in "ab")
    assert first.trace_hash == second.trace_hash
    assert (first.digest, first.counters) == (second.digest, second.counters)


def test_a_torn_page_without_doublewrite_breaks_i5(
    target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """The control. Image, plan, script and traces are kept; the torn sectors are in the result."""
    golden_run = take_golden_run(make_spec(doublewrite="off"), target, scratch)
    found = None
    for write in golden_run.by_site()[Site.DATA_PAGE]:
        if write.line < 20:
            continue
        plan = kill_at(write, "10000000")
        found = run(plan, target, scratch, tmp_path, doublewrite="off")
        if found.outcome is Outcome.VIOLATION:
            break
    assert found is not None
    assert invariants(found) == [5]
    assert "no doublewrite copy" in found.reason
    assert found.torn is not None
    assert found.torn.kept == resolve_mask("10000000", found.torn.offset, 4096)
    assert len(found.torn.old) == len(found.torn.new) == 4096 and found.torn.old != found.torn.new
    assert found.image is not None
    page = (found.image / "data" / found.path).read_bytes()[found.torn.offset :][:4096]
    assert page == found.torn.new[:512] + found.torn.old[512:]
    assert load_plan(found.image / "plan.toml") == plan
    assert {"script", "run.trace", "recover.trace"} <= {p.name for p in found.image.iterdir()}


def test_a_killed_run_has_the_contents_of_the_golden_run(
    target: EngineTarget, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that equals the golden run up to its kill is recorded without contents: hash and kept trace are
    those of one that is recorded with them. One that differs once is a violation even if it does so never
    again."""
    golden_run = take_golden_run(make_spec(doublewrite="off"), target, scratch)
    plans = (kill_at(w, "10000000") for w in golden_run.by_site()[Site.DATA_PAGE] if w.line >= 20)
    for plan in plans:
        bare = run(plan, target, scratch, tmp_path / "bare", doublewrite="off")
        if bare.image is not None:
            break
    monkeypatch.setattr(KnownContents, "covers", lambda *_: False)
    whole = run(plan, target, scratch, tmp_path / "whole", doublewrite="off")
    assert invariants(bare) == [5]
    assert invariants(whole) == [0, 5]
    assert (bare.trace_hash, bare.digest) == (whole.trace_hash, whole.digest)
    assert bare.image is not None and whole.image is not None
    traces = [Trace.load(result.image / "run.trace") for result in (bare, whole)]
    assert traces[0].body == traces[1].body
    assert [trace.hash() for trace in traces] == [bare.trace_hash] * 2


def test_recovery_may_be_killed_again_and_again(
    golden_run: GoldenRun, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """Nested crashes: two recoveries die in the middle of a write, the third one must do."""
    write = golden_run.by_site()[Site.DATA_PAGE][-5]
    nested = Fault(FaultKind.WRITE, 4, Action.KILL, file="*.ibd", sectors="prefix:2")
    log = Fault(FaultKind.MARK, 1, Action.KILL, text="point name=recv.applied")
    plan = kill_at(write, "prefix:4", recover=((nested,), (log,)))
    result = run(plan, target, scratch, tmp_path)
    assert result.outcome is Outcome.CLEAN, result
    assert result.counters["nested_kills"] == 2


def test_a_nested_fault_that_misses_makes_the_trial_vacuous(
    golden_run: GoldenRun, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """Recovery was to be crashed and was not: that is no pass."""
    late = Fault(FaultKind.WRITE, 10**6, Action.KILL)
    plan = kill_at(golden_run.writes[-1], "none", recover=((late,),))
    result = run(plan, target, scratch, tmp_path)
    assert result.outcome is Outcome.VACUOUS
    assert "before its fault" in result.reason


def test_a_fault_that_does_not_fire_is_not_exercised(
    target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """Never a pass."""
    plan = FaultPlan(run=(Fault(FaultKind.WRITE, 10**6, Action.KILL),))
    assert run(plan, target, scratch, tmp_path).outcome is Outcome.NOT_EXERCISED


@pytest.mark.parametrize(
    "fault",
    [
        Fault(FaultKind.MARK, 1, Action.KILL, text="point name=ddl.index_load_logged"),
        Fault(FaultKind.MARK, 2, Action.KILL, text="point name=ddl.flushed", when="after"),
        Fault(FaultKind.FSYNC, 30, Action.KILL, file="ib_logfile0"),
        Fault(FaultKind.RENAME, 1, Action.KILL, file="s1.ibd"),
        Fault(FaultKind.UNLINK, 1, Action.KILL, file="*.ibd", when="after"),
        Fault(FaultKind.TRUNCATE, 2, Action.KILL, file="t1.ibd"),
    ],
)
def test_kills_at_points_and_other_operations_are_survived(
    fault: Fault, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """A named point, an fsync, a rename, an unlink, an extension: all recoverable."""
    result = run(FaultPlan(run=(fault,)), target, scratch, tmp_path)
    assert result.outcome is Outcome.CLEAN, result


@pytest.mark.parametrize("nth", range(1, 40, 3))
def test_a_kill_while_the_database_is_made_is_told_apart(
    nth: int, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """Before the first statement there may be no database, or an empty one; nothing else."""
    fault = Fault(FaultKind.WRITE, nth, Action.KILL, sectors="all")
    result = run(FaultPlan(run=(fault,)), target, scratch, tmp_path)
    assert result.outcome is Outcome.CLEAN, result


def test_a_stale_block_needs_a_log(target: EngineTarget, scratch: Path, tmp_path: Path) -> None:
    """A plan that asks for one where the crash comes before the log is made is refused in words."""
    fault = Fault(FaultKind.WRITE, 1, Action.KILL, sectors="all")
    with pytest.raises(PlanError, match=r"stale_log: .*before the log is made"):
        run(FaultPlan(run=(fault,), stale_log=True), target, scratch, tmp_path)


def test_an_io_error_is_judged_too(target: EngineTarget, scratch: Path, tmp_path: Path) -> None:
    """A failed fsync stops the engine (I23); what it had acknowledged is there after recovery."""
    fault = Fault(FaultKind.FSYNC, 40, Action.ERROR, file="ib_logfile0", error="EIO")
    result = run(FaultPlan(run=(fault,)), target, scratch, tmp_path)
    assert result.outcome is Outcome.CLEAN, result


@pytest.mark.parametrize("action", [Action.ERROR, Action.SHORT])
def test_a_statement_that_fails_alone_is_judged_by_its_answer(
    action: Action, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """The engine goes on behind a build that had no room for its runs, to its clean end: the state is that of
    the script without the build. One that was only told of a short write has made its index."""
    spec = replace(make_spec(5), params={"rows": 2000, "changes": 8})
    write = take_golden_run(spec, target, scratch).by_site()[Site.SORT_RUN][0]
    fault = Fault(FaultKind.WRITE, write.nth, action, file=write.file)
    how = {"error": "ENOSPC"} if action is Action.ERROR else {"bytes": write.length // 2}
    plan = FaultPlan(run=(replace(fault, **how),))  # type: ignore[arg-type]
    result = run_trial(replace(spec, plan=plan), target, scratch, tmp_path / "images")
    assert (result.violations, result.site) == ((), Site.SORT_RUN)
    assert result.reason in ("", "no recovery ran after the crash"), result


def test_a_target_that_goes_on_can_be_killed_later(
    target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """The kill is the third write behind the lie; what the trial hit is the lie."""
    lie = Fault(FaultKind.FSYNC, 40, Action.DROP, file="ib_logfile0")
    kill = Fault(FaultKind.WRITE, 3, Action.KILL, follows=True)
    alone = run(FaultPlan(run=(lie,)), target, scratch, tmp_path)
    killed = run(FaultPlan(run=(lie, kill)), target, scratch, tmp_path)
    assert (alone.outcome, killed.outcome) == (Outcome.CLEAN, Outcome.CLEAN)
    assert (alone.mask, killed.mask) == ("before", "before")
    assert alone.offset == killed.offset
    assert killed.events < alone.events


def aimed(
    aim: RecoveryAim, write: WriteEvent, target: EngineTarget, scratch: Path, tmp_path: Path
) -> tuple[TrialSpec, TrialResult]:
    """A kill after this write of the golden run, and a fault in the recovery."""
    spec = make_spec(5, kill_at(write, "all"))
    return run_aimed(spec, aim, target, scratch, tmp_path / "images")


@pytest.mark.parametrize(
    ("mask", "counter"),
    [
        ("none", "nested_kills"),
        ("write:EIO", "nested_errors"),
        ("write:ENOSPC", "nested_errors"),
        ("fsync:EIO", "nested_errors"),
    ],
)
@pytest.mark.parametrize("site", [Site.DATA_PAGE, Site.UNDO_PAGE, Site.DOUBLEWRITE, Site.REDO])
def test_a_fault_in_recovery_is_drawn_from_its_writes(
    site: Site,
    mask: str,
    counter: str,
    golden_run: GoldenRun,
    target: EngineTarget,
    scratch: Path,
    tmp_path: Path,
) -> None:
    """It hits; the next recovery succeeds; and the plan that comes back gives the same verdict."""
    write = golden_run.by_site()[Site.REDO][-3]
    aim = RecoveryAim(site, mask, 7)
    spec, result = aimed(aim, write, target, scratch, tmp_path)
    assert result.outcome is Outcome.CLEAN, result
    assert result.counters[counter] == 1
    assert len(spec.plan.recover) == 1
    assert aimed(aim, write, target, scratch, tmp_path)[0] == spec
    again = run_trial(spec, target, scratch, tmp_path / "images")
    assert (again.outcome, again.digest, again.trace_hash) == (
        result.outcome,
        result.digest,
        result.trace_hash,
    )
    assert again.counters == result.counters


def test_a_recovery_without_such_a_write_is_not_exercised(
    golden_run: GoldenRun, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """No recovery loads an index. Nothing else is hit instead."""
    aim = RecoveryAim(Site.INDEX_LOAD_PAGE, "write:EIO", 7)
    spec, result = aimed(aim, golden_run.writes[-1], target, scratch, tmp_path)
    assert result.outcome is Outcome.NOT_EXERCISED
    assert "no write" in result.reason
    again = run_trial(from_json(TrialSpec, to_json(spec)), target, scratch, tmp_path / "images")
    assert (again.outcome, again.reason) == (result.outcome, result.reason)


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        (RecoveryAnswer(True), 23),
        (RecoveryAnswer(False, message="died by SIGSEGV"), 30),
        (RecoveryAnswer(False, stopped=True, message="t1.ibd: fsync failed"), None),
        (RecoveryAnswer(False, refused=True, message="the disk is full"), None),
    ],
)
def test_a_recovery_whose_write_failed_must_stop_and_say_so(
    answer: RecoveryAnswer,
    number: int | None,
    golden_run: GoldenRun,
    target: EngineTarget,
    scratch: Path,
    tmp_path: Path,
) -> None:
    """Success breaks I23, an end without a clear message I30."""

    class Disturbed(EngineTarget):
        calls = 0

        def parse_recovery(self, child: ChildResult) -> RecoveryAnswer:
            self.calls += 1
            return answer if self.calls == 2 else super().parse_recovery(child)

    disturbed = Disturbed(target.program, target.preload, target.explorer)
    aim = RecoveryAim(Site.REDO, "write:EIO", 7)
    _, result = aimed(aim, golden_run.writes[-1], disturbed, scratch, tmp_path)
    assert disturbed.calls == 4
    assert invariants(result) == ([number] if number else [])


def test_a_disturbed_recovery_may_not_change_what_the_next_one_comes_to(
    golden_run: GoldenRun, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """I17: the state is that of the recovery that nothing disturbed."""

    class Drifting(EngineTarget):
        calls = 0

        def parse_recovery(self, child: ChildResult) -> RecoveryAnswer:
            self.calls += 1
            answer = super().parse_recovery(child)
            return replace(answer, state={}) if self.calls == 1 else answer

    drifting = Drifting(target.program, target.preload, target.explorer)
    aim = RecoveryAim(Site.REDO, "none", 7)
    _, result = aimed(aim, golden_run.writes[-1], drifting, scratch, tmp_path)
    assert invariants(result) == [17]


def test_a_crash_that_no_recovery_survives_is_the_verdict(
    golden_run: GoldenRun, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """The recovery that was to be disturbed fails by itself: the plan is the kill alone, and is judged."""
    broken = replaced(target)
    broken.recover_instead = ("/bin/sh", "-c", "kill -SEGV $$")
    aim = RecoveryAim(Site.REDO, "none", 7)
    spec, result = aimed(aim, golden_run.writes[-1], broken, scratch, tmp_path)
    assert (invariants(result), spec.plan.recover) == ([30], ())
    assert result.outcome is Outcome.VIOLATION


def test_a_plan_that_the_preload_cannot_do_is_refused(
    target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """The preload's refusal is a harness error with its reason."""
    fault = Fault(FaultKind.RENAME, 1, Action.TEAR, file="x")
    with pytest.raises(PlanError, match="the preload refused"):
        run(FaultPlan(run=(fault,)), target, scratch, tmp_path)


@pytest.mark.parametrize(
    ("script", "numbers", "word"),
    [
        ("kill -SEGV $$", [30], "SIGSEGV"),
        ("echo 'runtime error: index out of bounds' >&2; exit 1", [30], "index out of bounds"),
        ("exit 3", [30], "exit code 3"),
        ("sleep 60", [30], "hung"),
    ],
)
def test_a_recovery_that_crashes_or_hangs_is_a_verdict(
    script: str,
    numbers: list[int],
    word: str,
    golden_run: GoldenRun,
    target: EngineTarget,
    scratch: Path,
    tmp_path: Path,
) -> None:
    """A signal, a sanitizer's exit, silence, a hang: I30 with the cause, never an exception."""
    broken = replaced(target)
    broken.deadline_s = 1.5
    broken.recover_instead = ("/bin/sh", "-c", script)
    result = run(kill_at(golden_run.writes[-1], "none"), broken, scratch, tmp_path)
    assert result.outcome is Outcome.VIOLATION
    assert invariants(result) == numbers
    assert word in result.violations[-1].what


def test_a_refusal_blames_the_invariant_that_names_its_cause(
    golden_run: GoldenRun, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """I5 after a torn page, I30 after anything else."""
    broken = replaced(target)
    answer = '{"ok":false,"error":"DB_UNRECOVERABLE","message":"no"}'
    broken.recover_instead = ("/bin/sh", "-c", f"echo '{answer}'; exit 3")
    sites = golden_run.by_site()
    for site, number in ((Site.UNDO_PAGE, 5), (Site.REDO, 30)):
        result = run(kill_at(sites[site][-1], "prefix:1"), broken, scratch, tmp_path)
        assert invariants(result) == [number]


def test_lost_and_invented_commits_are_seen(
    golden_run: GoldenRun, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """A target that recovers something else than what was acknowledged breaks I1 or I3."""
    write = golden_run.by_site()[Site.DATA_PAGE][20]
    baseline = load_baseline(make_spec(), target, scratch)
    finished, _ = baseline.journal.at(write.seq)
    right = baseline.oracle.after(finished)

    class Lying(EngineTarget):
        prefix = 0

        def parse_recovery(self, child: ChildResult):  # type: ignore[no-untyped-def]
            answer = super().parse_recovery(child)
            return replace(answer, state=baseline.oracle.states[self.prefix])

    lying = Lying(target.program, target.preload, target.explorer)
    for prefix, numbers in ((right, []), (right - 1, [1]), (len(baseline.oracle.states) - 1, [3])):
        lying.prefix = prefix
        result = run(kill_at(write, "none"), lying, scratch, tmp_path)
        assert invariants(result) == numbers


def test_a_second_recovery_that_changes_the_state_breaks_i17(
    golden_run: GoldenRun, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """Recovering twice must give the same logical state."""

    class Drifting(EngineTarget):
        calls = 0

        def parse_recovery(self, child: ChildResult):  # type: ignore[no-untyped-def]
            answer = super().parse_recovery(child)
            self.calls += 1
            return answer if self.calls == 1 else replace(answer, state={})

    drifting = Drifting(target.program, target.preload, target.explorer)
    result = run(kill_at(golden_run.writes[-1], "all"), drifting, scratch, tmp_path)
    assert invariants(result) == [17]


def test_a_run_that_is_not_the_golden_run_is_a_finding(
    golden_run: GoldenRun, target: EngineTarget, scratch: Path, tmp_path: Path
) -> None:
    """Another sequence of events before the fault: reported under 0, and judged in full."""
    other = replaced(target)
    options = [f"--option={key}={value}" for key, value in OPTIONS.items() if key != "dblwr_pages"]
    pairs = [part for option in options for part in ("--option", option.removeprefix("--option="))]
    other.run_instead = (str(target.program), "run", "--json", *pairs, "--option", "dblwr_pages=8")
    write = golden_run.by_site()[Site.REDO][-3]
    result = run(kill_at(write, "none"), other, scratch, tmp_path)
    assert result.outcome is Outcome.VIOLATION
    assert invariants(result) == [0]
