"""A run without a fault: recorded, held against its own files, and judged like any other."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.faults.image import (
    attributes_below,
    copy_image,
    files_below,
    keep_files,
    odd_files,
    remove_image,
)
from tornpage.faults.preload import EXIT_PRELOAD_REFUSED, WHOLE
from tornpage.faults.stream import is_ignored, stream_difference, unseen_changes
from tornpage.faults.trace import Trace, refusal
from tornpage.live.audited import check_audit, mapped_in, under_audit
from tornpage.live.journal import acknowledged_in, clients_in
from tornpage.oracle.answers import ANY_ERROR
from tornpage.oracle.judgement import judge, judge_backups
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.oracle import Oracle, Step
from tornpage.oracle.rules import Finding, Judged, Setting, ask_rules
from tornpage.oracle.state import State
from tornpage.store.rows import GoldenRunRow
from tornpage.targets.target import (
    Capability,
    Command,
    Recorded,
    RecoveryAnswer,
    RunAnswer,
    Target,
)
from tornpage.vocabulary.errors import (
    FailedRunError,
    GoldenRunError,
    MachineError,
    TraceError,
    UnseenError,
)
from tornpage.vocabulary.model import (
    Source,
    TrialSpec,
    Violation,
)
from tornpage.vocabulary.paths import require_floor
from tornpage.workloads.script import Script
from tornpage.workloads.workload import generate

__all__ = [
    "NOT_THE_TARGETS",
    "FaultFreeRun",
    "failed_run",
    "judge_answers",
    "judge_fault_free",
    "judge_run",
    "oracle_of",
    "run_fault_free",
    "script_of",
]

EXIT_USAGE = 2
LEFT = "TORNPAGE_LEFT"
"""Names the file that tells of processes which a run has left (faults/children.h)."""
RAN_WRONG = 0
"""The invariant of a run that the target failed."""
NOT_THE_TARGETS = (EXIT_USAGE, EXIT_PRELOAD_REFUSED)
"""Of every target's program, and of the preload in it: what was asked for is wrong, not what it did."""


@dataclass(frozen=True, slots=True)
class FaultFreeRun:
    """A run without a fault, recorded and judged.

    hash: of its record, contents that only this run was asked for left out; not_audited: why it was not,
    where that was asked for; findings: of the rules; violations: all that is wrong with it, those of the
    trace, of its answers and of the database that it left. output: what it printed, if that tells
    its states; left: programs of processes that it left behind, which were ended.
    """

    script: Script
    answer: RunAnswer
    oracle: Oracle | ObservedOracle
    trace: Trace
    hash: str
    setting: Setting
    findings: tuple[Finding, ...]
    violations: tuple[Violation, ...]
    not_audited: str = ""
    output: bytes = b""
    left: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()


def run_fault_free(
    spec: TrialSpec, target: Target, work: Path, *, contents: bool = False, audit: bool = False
) -> FaultFreeRun:
    """_run_once(), and once more if it fails, or breaks an invariant and always does the same: what comes
    again is what it came to. MachineError: it does not; nothing is said of the target then."""
    first: set[int]
    try:
        run = _run_once(spec, target, work, contents=contents, audit=audit)
    except FailedRunError as error:
        first, why = {RAN_WRONG}, str(error)
    else:
        first, why = _broken(run), "; ".join(violation.what for violation in run.violations[:1])
        if not first or Capability.DETERMINISTIC not in target.capabilities:
            return run
    again = _run_once(spec, target, work, contents=contents, audit=audit)
    if _broken(again) != first:
        raise MachineError(f"unstable: {why}: a second run behaved differently")
    return again


def _broken(run: FaultFreeRun) -> set[int]:
    return {violation.invariant for violation in run.violations}


def _run_once(
    spec: TrialSpec, target: Target, work: Path, *, contents: bool, audit: bool
) -> FaultFreeRun:
    """Runs the workload of `spec` in the new folder `work`, where script and trace stay, and in `found`
    what was there before the run. contents: leave the contents of its writes in the trace; audit: account for
    every system call that changes a file. Raises FailedRunError when the target failed, GoldenRunError when
    the run cannot be made or did what its stream does not show."""
    data, found = _lay_out(spec, target, work)
    script = script_of(spec)
    (work / "script").write_text(script.text, "ascii")
    command = _recorded_command(spec, target, work, audit=audit)
    child = command.run({**WHOLE, LEFT: str(work / "left")})
    answer = target.parse_run(child)
    observed = Capability.OBSERVED in target.capabilities
    what = f"{'audited' if audit else 'fault-free'} run of {spec.config or spec.workload}"
    if not answer.ok:
        _check_machine(work, what)
        refused = refusal(work / "trace")
        if refused:
            raise GoldenRunError(f"{what}: {refused}")
        ours = observed or child.exit_code in NOT_THE_TARGETS
        raise (GoldenRunError if ours else FailedRunError)(f"{what} failed: {answer.message}")
    trace = _load_recording(work, what)
    _check_stream(trace, target, what)
    not_audited = _audit(trace, work, target, spec, what) if audit else ""
    _check_files(trace, target, data, found, what)
    ignored = [name for name in files_below(data) if is_ignored(name, target.unrecorded)]
    copied = _recovered_copy(target, work, spec) if audit else None
    imaged = _recovered_copy(target, work, spec, ignored) if audit and ignored else None
    usual = trace if command.env.items() >= WHOLE.items() else trace.without_contents()
    if not contents and usual is not trace:
        trace = usual
        (work / "trace").write_bytes(trace.data)
    oracle = oracle_of(spec, script, answer.told, trace)
    setting = target.judge_setting(spec.options)
    judged = judge_run(target, work / "trace", setting, found, live=False)
    findings = judged.findings
    answer = replace(answer, status={**answer.status, **judged.counters})
    at_end = _judge_end(oracle, _recovered(target, data, spec))
    if copied is not None and not at_end:
        _check_copy(data, _judge_end(oracle, copied), what)
    if imaged is not None and not at_end:
        _check_ignored(ignored, _judge_end(oracle, imaged), what)
    violations = (
        *(finding.violation for finding in findings),
        *judge_answers(oracle.steps, answer.failed),
        *(replace(violation, source=Source.RUN) for violation in at_end),
    )
    remove_image(data)
    return FaultFreeRun(
        script,
        answer,
        oracle,
        trace,
        usual.hash(),
        setting,
        findings,
        violations,
        not_audited,
        child.stdout if observed else b"",
        left_of(work / "left"),
        mapped_in(work, target.unrecorded) if audit else (),
    )


def _lay_out(spec: TrialSpec, target: Target, work: Path) -> tuple[Path, Path]:
    """Folder `data` of the new folder `work`, as the run finds it, and `found`, which keeps that."""
    remove_image(work)
    data, found = work / "data", work / "found"
    found.mkdir(parents=True)
    target.lay_out(found, spec.options)
    _check_kinds(found, target, "before the run")
    keep_files(found)
    copy_image(found, data)
    return data, found


def _recorded_command(spec: TrialSpec, target: Target, work: Path, *, audit: bool) -> Command:
    """What runs the script in `work`, recorded with contents, to hold the stream against the files."""
    data = work / "data"
    command = target.run_command(data, work / "script", spec.options)
    if audit:
        command = under_audit(command, work)
    return target.recorded(
        command, Recorded(data, work / "trace", spec.options, stacks=spec.stacks)
    )


def left_of(file: Path) -> tuple[str, ...]:
    """The programs of the processes that were ended with a run, sorted."""
    return tuple(sorted(file.read_text("utf-8", "replace").splitlines())) if file.exists() else ()


def script_of(spec: TrialSpec) -> Script:
    """The script of a trial."""
    return generate(spec.workload, spec.params, spec.workload_seed)


def _audit(trace: Trace, work: Path, target: Target, spec: TrialSpec, what: str) -> str:
    below = target.is_below(spec.options)
    return check_audit(trace, work, target.unrecorded, what, below=below)


def _load_recording(work: Path, what: str) -> Trace:
    """GoldenRunError if nothing was recorded."""
    if not (work / "trace").exists():
        raise UnseenError(
            f"{what}: nothing was recorded: is the program linked statically, or set-user-id?"
        )
    return Trace.load(work / "trace")


def oracle_of(
    spec: TrialSpec, script: Script, told: Mapping[int, State] | None, trace: Trace
) -> Oracle | ObservedOracle:
    """What may be found after a crash: by the model, or by the states that the target has told."""
    if told is None:
        return Oracle(script, spec.options)
    return ObservedOracle(told, acknowledged_in(trace), clients=clients_in(trace))


def judge_fault_free(spec: TrialSpec, target: Target, work: Path) -> GoldenRunRow:
    """A run without a fault and its verdict, a failure of the target too; nothing of it stays."""
    try:
        run = run_fault_free(spec, target, work)
    except FailedRunError as error:
        return failed_run(spec.config, False, error)
    finally:
        remove_image(work)
    return GoldenRunRow(
        config=spec.config,
        crashed=False,
        hash=run.hash,
        events=run.trace.events_declared,
        writes=0,
        violations=run.violations,
        counters=run.answer.status,
    )


def failed_run(config: str, crashed: bool, error: FailedRunError) -> GoldenRunRow:
    """The row of a fault-free run that the target failed: nothing was done to it."""
    broken = Violation(RAN_WRONG, str(error), source=Source.RUN)
    return GoldenRunRow(config, crashed, "", 0, 0, (broken,), {})


def _check_machine(work: Path, what: str) -> None:
    """MachineError if it was a full machine that made a run fail; its record may be anything."""
    require_floor(work)
    with contextlib.suppress(TraceError):
        starved = Trace.load(work / "trace").starved()
        if starved:
            raise MachineError(f"{what}: an operation failed by {starved}")


def _check_stream(trace: Trace, target: Target, what: str) -> None:
    """GoldenRunError if the stream itself says that it is not all that happened to the files, MachineError if
    a full machine took part."""
    if trace.starved():
        raise MachineError(f"{what}: an operation failed by {trace.starved()}")
    unseen = unseen_changes(trace, target.unrecorded)
    if unseen:
        raise UnseenError(
            f"{what}: the preload cannot follow {unseen}: do without that call (docs/TARGETS.md, "
            "Limits), or name the file in `ignore` if no crash needs it"
        )


def _check_kinds(folder: Path, target: Target, when: str) -> None:
    """GoldenRunError if something is there that no image can have."""
    for path, kind in odd_files(folder):
        if not is_ignored(path, target.unrecorded):
            raise GoldenRunError(
                f"{when}: {path} is {kind}, of which a crashed image has none: name it in `ignore` if no "
                "crash needs it"
            )


def _check_files(trace: Trace, target: Target, data: Path, found: Path, what: str) -> None:
    """GoldenRunError if the files are not what the stream gives."""
    _check_kinds(data, target, what)
    difference = stream_difference(trace, data, target.unrecorded, found)
    if difference:
        raise UnseenError(f"{what}: the recorded stream is not what happened: {difference}")


def judge_run(target: Target, trace: Path, setting: Setting, found: Path, *, live: bool) -> Judged:
    """What the rules say of a run; nothing of a target whose files they cannot decode. found: folder with
    what was there before; live: it may have been disturbed."""
    if Capability.RULES not in target.capabilities:
        return Judged()
    base = found if any(found.iterdir()) else None
    return ask_rules(target.judge_command().argv, trace, setting, base=base, live=live)


def judge_answers(steps: Iterable[Step], failed: Mapping[int, str]) -> list[Violation]:
    """Every statement must end as the model says: an error that changes nothing, or none."""
    found = []
    for step in steps:
        actual = failed.get(step.line, "")
        said = (ANY_ERROR if actual else "") if step.error == ANY_ERROR else actual
        if said not in (step.error, step.other or step.error):
            what = f"line {step.line} ended with {actual or 'success'}"
            what = f"{what}, the model says {step.error or 'success'}"
            found.append(Violation(3, what, source=Source.RUN))
    return found


def _recovered(target: Target, data: Path, spec: TrialSpec) -> RecoveryAnswer:
    """What the target says of the files. MachineError: that the machine failed."""
    command = target.recover_command(data, spec.options)
    answer = target.parse_recovery(command.run({}))
    if answer.machine:
        raise MachineError(f"recover: {answer.message}")
    return answer


def _recovered_copy(
    target: Target, work: Path, spec: TrialSpec, ignored: Sequence[str] = ()
) -> RecoveryAnswer:
    """The same of a copy, as images are made, in the place of the files, which may hold their path, and which
    come back as they were. ignored: files that are in it as they were before the run, if at all."""
    data, original = work / "data", work / "original"
    data.rename(original)
    copy_image(original, data)
    for name in ignored:
        (data / name).unlink()
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(work / "found" / name, data / name)
    try:
        return _recovered(target, data, spec)
    finally:
        remove_image(data)
        original.rename(data)


def _check_copy(data: Path, lost: list[Violation], what: str) -> None:
    """GoldenRunError if a recovery finds in the files of a run what a copy of their names and bytes lacks: no
    image has it, so that each would be judged by what it cannot have."""
    if lost:
        named = ", ".join(attributes_below(data))
        raise GoldenRunError(
            f"{what}: recover finds in the files what it does not find in a copy of them: {lost[0].what}; of "
            f"extended attributes{named and f' ({named})'}, permissions, owners and times nothing is in the "
            "recording and in a crashed image: keep in the bytes what a crash needs (docs/TARGETS.md, Limits)"
        )


def _check_ignored(ignored: Sequence[str], lost: list[Violation], what: str) -> None:
    """GoldenRunError if a recovery does not find the last state without what this run did to the files that
    are in no recording: each image would be judged by what it cannot have."""
    if lost:
        raise GoldenRunError(
            f"{what}: without the ignored files recover does not find the last state: {', '.join(ignored)}: "
            f"{lost[0].what}; name in `ignore` only what no crash needs"
        )


def _judge_end(oracle: Oracle | ObservedOracle, answer: RecoveryAnswer) -> list[Violation]:
    """The cleanly closed database must equal the last prefix and pass the scanner."""
    if not answer.ok or answer.state is None:
        return [Violation(30, f"a cleanly closed database does not open: {answer.message}")]
    last = len(oracle.states) - 1
    return [
        *answer.findings,
        *judge(oracle.states, answer.state, last, last),
        *judge_backups(oracle.states, oracle.backups, answer.backups, last, last),
    ]
