"""A crash as its files, for somebody without Tornpage: what it began with, what it loses of that by which
commands, and the calls that led to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from tornpage.causes.cause import words_of
from tornpage.causes.experiment import ALL, NOTHING, Choice, Experiment
from tornpage.causes.explain import crash_of, recording_of
from tornpage.evidence.stacks import frames_of
from tornpage.evidence.timeline import recorded_steps
from tornpage.faults.image import copy_image
from tornpage.faults.retouch import retouch
from tornpage.faults.stacks import StackLog
from tornpage.faults.trace import Trace
from tornpage.live.recording import Recording
from tornpage.oracle.fingerprint import kind_of
from tornpage.powerloss.explorer import lay_out_state
from tornpage.reports.upstream import Call
from tornpage.store.rows import TrialRow
from tornpage.targets.filesystems import file_systems
from tornpage.targets.option import FS
from tornpage.targets.target import Target
from tornpage.vocabulary.cause import Cause
from tornpage.vocabulary.errors import ChildError, ConfigError
from tornpage.vocabulary.evidence import SYNCS, Fate, Step
from tornpage.vocabulary.model import TrialSpec

__all__ = ["FRAMES_SHOWN", "LaidOut", "lay_out_cause", "lay_out_kept"]

FILES = "files"
LOST = "lost"
SYNCS_SHOWN = 12
"""Between what is lost and the crash."""
FRAMES_SHOWN = 8
LOST_ROLE, THERE_ROLE, RELIED_ROLE = "lost", "must be there", "relies on what is lost"
TORN_ROLE = "torn: of its sectors {} are there"
UNTIL_ROLE = "with it all is right again"


@dataclass(frozen=True, slots=True)
class LaidOut:
    """files: the folder; change, at: as of Script; line: the statement that was issued last, 0 where only the
    evidence knows; file_systems, smaller: as of FindReport."""

    files: str = FILES
    change: tuple[str, ...] = ()
    at: Path | None = None
    calls: tuple[Call, ...] = ()
    line: int = 0
    file_systems: tuple[tuple[str, str, str], ...] = ()
    smaller: bool = False


def lay_out_kept(row: TrialRow, place: Path) -> LaidOut:
    """The crashed files that were kept, as they are. ConfigError: there are none."""
    image = row.result.image if row.result is not None else None
    if image is None or not (image / "data").is_dir():
        raise ConfigError(
            f"nothing was kept of {row.run}.{row.number}: `tornpage run` keeps it in its --out"
        )
    copy_image(image / "data", place / FILES)
    return LaidOut()


def lay_out_cause(
    row: TrialRow,
    cause: Cause,
    target: Target,
    explorer: Path,
    folders: Sequence[Path],
    place: Path,
    scratch: Path,
) -> LaidOut:
    """A crash at the same place that loses what the cause needs, and nothing else. folders: with debug files;
    place: for the files; scratch: for experiments. ConfigError, as of explain_trial()."""
    spec, result = row.spec, row.result
    assert result is not None, "it was explained"
    with recording_of(row, target, scratch) as (_how, recording):
        experiment = Experiment(spec, target, recording, scratch)
        seq, waiting = crash_of(spec, result, experiment)
        choice = Choice(seq, {one.seq: waiting[one.seq] for one in cause.lost})
        crashed, whole = scratch / "crashed", place / FILES
        for chosen, image in ((choice, crashed), (Choice(seq, {}), whole)):
            file = scratch / "chosen"
            file.write_text(f"{chosen.line}\n", "ascii")
            state = f"{seq}.chosen.0"
            lay_out_state(spec, target, recording, state, image, chosen=file)
        steps = recorded_steps(Trace.load(recording.trace))
        issued = (step.line for step in steps if step.op == "issue" and step.seq <= seq)
        return LaidOut(
            change=tuple(retouch(whole, crashed, place / LOST, LOST)),
            at=recording.at,
            calls=tuple(_calls(steps, choice, cause, recording, target, folders)),
            line=max(issued, default=0),
            file_systems=tuple(
                _on_each(spec, target, recording, explorer, scratch, choice, experiment.sample)
            ),
            smaller=any(NOTHING in kept for one, kept in waiting.items() if one not in choice.of),
        )


# ---- file systems ----


def _on_each(
    spec: TrialSpec,
    target: Target,
    recording: Recording,
    explorer: Path,
    scratch: Path,
    choice: Choice,
    sample: str,
) -> Iterator[tuple[str, str, str]]:
    """What the same loss comes to under the promises of each; none where a process was killed, which loses
    nothing. sample: as of Experiment."""
    if not spec.plan.loss:
        return
    here = Experiment(spec, target, recording, scratch, sample=sample)
    wanted = {kind_of(v) for v in here.violations(choice)}
    for name, told in file_systems(explorer).items():
        there = replace(spec, options={**spec.options, FS: name})
        try:
            found = Experiment(there, target, recording, scratch, sample=sample).violations(choice)
            outcome = _outcome({kind_of(one) for one in found}, wanted)
        except ChildError:
            outcome = "no such crash"
        yield name, str(told["what"]), outcome


def _outcome(found: Collection[tuple[int, str]], wanted: Collection[tuple[int, str]]) -> str:
    return "broken" if {*found} & {*wanted} else "another finding" if found else "right"


# ---- calls ----


def _calls(
    steps: Sequence[Step],
    choice: Choice,
    cause: Cause,
    recording: Recording,
    target: Target,
    folders: Sequence[Path],
) -> Iterator[Call]:
    """The operations of the cause, the syncs among them, the acknowledgement; the oldest first."""
    roles = _roles(cause, choice)
    paths = {step.path for step in steps if step.seq in roles}
    first = min(roles)
    syncs = [
        step.seq
        for step in steps
        if first <= step.seq <= choice.seq
        and step.op in SYNCS
        and (not step.path or step.path in paths)
    ]
    marks = [
        step.seq
        for step in steps
        if step.op == "ack" and step.line == cause.acknowledged and cause.acknowledged
    ]
    shown = {*roles, *syncs[:SYNCS_SHOWN], *marks}
    log = StackLog.load(recording.trace)
    frames = frames_of(recording.trace, sorted(roles), folders, wrappers=target.wrappers)
    times = {seq: log.times(seq) for seq in sorted(shown)} if log else {}
    base = min((began for began, _ in times.values() if began), default=0)
    for step in steps:
        if step.seq in shown:
            began, ended = times.get(step.seq, (0, 0))
            yield Call(
                number=step.seq,
                what=_what(step),
                role=roles.get(step.seq, ""),
                began=_ms(began, base),
                ended=_ms(ended, base),
                frames=tuple(map(str, frames.get(step.seq, ())))[:FRAMES_SHOWN],
            )


def _roles(cause: Cause, choice: Choice) -> Mapping[int, str]:
    """The last one counts: what is lost may be what it shows from as well."""
    ends = {UNTIL_ROLE: cause.until, RELIED_ROLE: cause.relied}
    torn = (seq for seq, kept in choice.of.items() if ALL in kept)
    return {
        **{one.seq: role for role, one in ends.items() if one is not None},
        **{one.seq: THERE_ROLE for one in cause.beside},
        **dict.fromkeys(choice.of, LOST_ROLE),
        **{seq: TORN_ROLE.format(_sectors(choice.of[seq])) for seq in torn},
    }


def _sectors(kept: str) -> str:
    """As "0-2, 5": the numbers of those that are there."""
    runs = []
    at = 0
    for is_there, run in groupby(kept):
        n = len(list(run))
        if is_there == ALL:
            runs.append(str(at) if n == 1 else f"{at}-{at + n - 1}")
        at += n
    return ", ".join(runs)


def _what(step: Step) -> str:
    if step.fate is Fate.MARK:
        return f"statement {step.line} is acknowledged"
    return words_of(step)


def _ms(at: int, base: int) -> str:
    return f"{(at - base) / 1e6:.3f}" if at else ""
