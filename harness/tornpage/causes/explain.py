"""`tornpage explain`: the recording of a finding, kept or made anew, and the search for its cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.causes.cause import sentence, with_frames
from tornpage.causes.experiment import Experiment, waits_of
from tornpage.causes.search import Crash, find_cause
from tornpage.evidence.stacks import frames_of, stack_frames, timed
from tornpage.evidence.timeline import recorded_steps
from tornpage.faults.scratch import scratch_folder
from tornpage.faults.stacks import StackLog
from tornpage.faults.trace import Op, Trace
from tornpage.live.kept import RECORDINGS, kept_recording, load_recording
from tornpage.live.recording import Recording, recorded_run
from tornpage.oracle.fingerprint import kind_of, without_model
from tornpage.powerloss.evidence import stacked_recovery
from tornpage.store.rows import TrialRow
from tornpage.targets.registry import make_target
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.cause import Cause, Explained
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.evidence import Fate, Step, unwrapped
from tornpage.vocabulary.model import Source, TrialResult, TrialSpec, Violation
from tornpage.vocabulary.paths import Paths

__all__ = ["crash_of", "crash_seq", "explain_trial", "is_of", "recording_of"]

KEPT = "kept"
"""A recording, with its finding."""
_WHOLE = {"0": Fate.LOST, "1": Fate.KEPT}
SYNC_KINDS = (Op.FSYNC, Op.FDATASYNC, Op.SYNC_DIR, Op.SYNC_ALL)


def explain_trial(
    row: TrialRow, paths: Paths, folders: Sequence[Path], tell: Callable[[str], None]
) -> Explained:
    """folders: with debug files; tell: hears how far it is. Raises ConfigError where nothing can be
    explained, and says why."""
    spec, result = row.spec, row.result
    name = f"{row.run}.{row.number}"
    if not spec.plan.crashes:
        raise ConfigError(
            f"{row.run}.s{row.number} is a run without a crash: `tornpage show` has the operation that "
            "breaks the rule in its place"
        )
    if result is None or not result.violations:
        raise ConfigError(f"trial {name} broke no invariant: nothing to explain")
    if not _broken(result):
        raise ConfigError(
            f"trial {name} breaks rules on bytes only, no state: `tornpage show` has the operation"
        )
    if any(spec.plan.recover):
        raise ConfigError(
            f"trial {name} kills a recovery: of a recovery only a power loss is explained"
        )
    target = make_target(spec.target, paths.build)
    with scratch_folder(target.on_shm) as scratch, recording_of(row, target, scratch) as found:
        explain = _of_recovery if "/" in spec.plan.loss else _of_run
        return explain(_Asked(spec, result, target, *found, scratch, folders, tell))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A finding whose cause is asked for. how: the recording was come by; folders: with debug files; tell:
    hears how far it is."""

    spec: TrialSpec
    result: TrialResult
    target: Target
    how: str
    recording: Recording
    scratch: Path
    folders: Sequence[Path]
    tell: Callable[[str], None]

    def crash(
        self, seq: int, waiting: dict[int, str], steps: Sequence[Step], inside: str = ""
    ) -> Crash:
        """inside: what it came after, in words."""
        broken = _broken(self.result)
        return Crash(
            seq=seq,
            waiting=waiting,
            wanted={kind_of(one) for one in broken},
            finding=inside + without_model(broken[0].what),
            steps=steps,
            began={},
        )

    def explained(self, cause: Cause, experiment: Experiment, steps: tuple[Step, ...]) -> Explained:
        """The answer."""
        return Explained(sentence(cause), cause, self.how, experiment.probes, steps)


def _of_run(asked: _Asked) -> Explained:
    trace = Trace.load(asked.recording.trace)
    log = StackLog.load(asked.recording.trace)
    parts = asked.target.parts_of(trace, log.notes if log else ())
    experiment = Experiment(
        asked.spec, asked.target, asked.recording, asked.scratch, parts, folders=asked.folders
    )
    seq, waiting = crash_of(asked.spec, asked.result, experiment)
    began = {event.seq: event.began for event in trace.events(kinds=SYNC_KINDS)}
    crash = replace(asked.crash(seq, waiting, recorded_steps(trace)), began=began)
    cause = _framed(find_cause(experiment, crash, asked.tell), log, asked.folders, asked.target)
    drawn = _drawn(crash, cause)
    steps = timed(drawn, log) if log and asked.how == KEPT else drawn
    return asked.explained(cause, experiment, steps)


def _of_recovery(asked: _Asked) -> Explained:
    """Its operations are those that the explorer tells: the last ones, and what was lost."""
    target, recording, state = asked.target, asked.recording, asked.spec.plan.loss
    inside, _, last = state.rpartition("/")
    experiment = Experiment(
        asked.spec, target, recording, asked.scratch, inside=inside, folders=asked.folders
    )
    command = target.explore_command(recording.trace, recording.allowed, asked.spec.options)
    line = experiment.way(state)[-1]
    phase = stacked_recovery(line, Path(command.argv[0]), asked.folders)
    crash = asked.crash(
        int(last.partition(".")[0]),
        waits_of(line, state),
        phase.steps,
        f"after a crash of the recovery of state {inside}: ",
    )
    cause = find_cause(experiment, crash, asked.tell)
    own = {step.seq: unwrapped(step.stack, target.wrappers) for step in phase.steps if step.stack}
    of_run = frames_of(recording.trace, cause.numbers, asked.folders, wrappers=target.wrappers)
    cause = with_frames(cause, {**of_run, **own})
    return asked.explained(cause, experiment, _drawn(crash, cause))


def _broken(result: TrialResult) -> list[Violation]:
    return [one for one in result.violations if one.source is Source.STATE]


def _framed(cause: Cause, log: StackLog | None, folders: Sequence[Path], target: Target) -> Cause:
    """With the call stacks of its operations, and of the steps of these that matter."""
    if log is None:
        return cause
    wrappers = target.wrappers
    frames = stack_frames({seq: log.of(seq) for seq in cause.numbers}, folders, wrappers)
    made = {number: log.stack(number) for number in cause.stacks}
    return with_frames(cause, frames, stack_frames(made, folders, wrappers))


def _drawn(crash: Crash, cause: Cause) -> tuple[Step, ...]:
    """The operations of the cause up to the crash, each with what became of it."""
    steps = []
    for one in crash.steps:
        if one.seq in cause.numbers and one.seq <= crash.seq:
            kept = crash.waiting.get(one.seq)
            part = kept if kept is not None and len(set(kept)) > 1 else ""
            fate = Fate.TORN if part else Fate.DURABLE if kept is None else _WHOLE[kept[:1]]
            steps.append(replace(one, fate=fate, kept=part))
    return tuple(steps)


@contextmanager
def recording_of(row: TrialRow, target: Target, scratch: Path) -> Iterator[tuple[str, Recording]]:
    """That of the finding, or an equal one."""
    result = row.result
    if result and result.image and load_recording(result.image) is not None:
        with kept_recording(result.image, scratch) as kept:
            yield KEPT, kept
        return
    if Capability.DETERMINISTIC not in target.capabilities:
        raise ConfigError(
            f"trial {row.run}.{row.number}: no recording was kept, and no run of this target need equal "
            "another"
        )
    with recorded_run(replace(row.spec, stacks=True), target, scratch) as recording:
        if result is not None and not is_of(result, recording):
            raise ConfigError(
                f"trial {row.run}.{row.number}: the programs now write something else; replay it "
                f"first: tornpage replay {row.run}.{row.number}"
            )
        yield "made anew", recording


def is_of(result: TrialResult, recording: Recording) -> bool:
    """Whether a power loss was in an equal recording, or a run that was killed had gone the same way."""
    path = _killed_trace(result)
    if path is None:
        return result.trace_hash in ("", recording.trace_hash)
    killed = Trace.load(path)
    seq = max((event.seq for event in killed.events(kinds=(Op.KILL,))), default=0) - 1
    runs = (killed, Trace.load(recording.trace))
    return len({run.until(seq).without_contents().hash() for run in runs}) == 1


def _killed_trace(result: TrialResult) -> Path | None:
    path = result.image / RECORDINGS[0][0] if result.image else None
    return path if path is not None and path.is_file() else None


def crash_of(
    spec: TrialSpec, result: TrialResult, experiment: Experiment
) -> tuple[int, dict[int, str]]:
    """Where the crash was, and what was not durable there."""
    if spec.plan.loss:
        return crash_seq(spec, result), experiment.waiting(spec.plan.loss)
    seq, kept = _killed(result)
    return seq, {**experiment.waiting(f"{seq}.all-persisted.0"), **({seq: kept} if kept else {})}


def crash_seq(spec: TrialSpec, result: TrialResult) -> int:
    """The operation behind or in which the run was crashed. ConfigError as crash_of()."""
    return int(spec.plan.loss.partition(".")[0]) if spec.plan.loss else _killed(result)[0]


def _killed(result: TrialResult) -> tuple[int, str]:
    """The operation in which the process was killed, and what a write had done of it, by sector."""
    path = _killed_trace(result)
    if path is None:
        raise ConfigError(
            "the recording of the killed run is gone; `tornpage replay` makes it again"
        )
    trace = Trace.load(path)
    event = next(iter(trace.events(kinds=(Op.KILL,))), None)
    if event is None:
        raise ConfigError("its process was not killed inside an operation: nothing to explain")
    damage = trace.damage(event)
    return event.seq, "".join("1" if one == 1 else "0" for one in damage.sectors) if damage else ""
