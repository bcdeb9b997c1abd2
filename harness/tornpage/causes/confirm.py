"""`tornpage confirm`: does a real file system show a finding? Its work runs on one, and its disk loses power
around the statement at which the finding crashed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ConfigDict, with_config

from tornpage.causes.experiment import Experiment
from tornpage.causes.explain import crash_seq, recording_of
from tornpage.faults.scratch import scratch_folder
from tornpage.faults.trace import Op, Trace
from tornpage.live.journal import read_journal
from tornpage.live.recording import Recording, recorded_run
from tornpage.oracle.fingerprint import kind_of, without_model
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import Exploration, Scope, explore
from tornpage.store.rows import TrialRow
from tornpage.targets.option import DEFAULT_FS, FS, RECORDER, UNDER
from tornpage.targets.registry import make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError, FailedRunError, GoldenRunError, MissingError
from tornpage.vocabulary.model import FaultPlan, Source, TrialSpec, Violation
from tornpage.vocabulary.paths import Paths

__all__ = [
    "Confirmed",
    "OnDisk",
    "confirm_trial",
    "confirmed_lines",
    "keep_confirmed",
    "load_confirmed",
    "moment_in",
    "sorted_states",
]

CONFIRMED = "confirmed.json"
"""In the folder of a kept image."""
AROUND = 2
"""One in so many states is of that moment, if there are as many; the others are spread over the run."""
CHANGES = (Op.WRITE, Op.FSYNC, Op.FDATASYNC, Op.FALLOCATE)
"""What is done to a disk."""
FLUSHES = (Op.FSYNC, Op.FDATASYNC)
_JSON = with_config(ConfigDict(extra="forbid"))


@_JSON
@dataclass(frozen=True, slots=True)
class OnDisk:
    """What disks of one file system came to. states: that were judged; shown: of these, with the finding;
    here: it was seen at the statement of the finding, not elsewhere; state, what: of one that shows it;
    flush, flushes: how many were done by then, and in the whole run; waiting, lost, torn: writes behind the
    last flush, and what became of them; other: what else is broken; missing: why there is no answer."""

    under: str
    states: int = 0
    shown: int = 0
    here: bool = False
    state: str = ""
    what: str = ""
    flush: int = 0
    flushes: int = 0
    waiting: int = 0
    lost: int = 0
    torn: int = 0
    other: tuple[str, ...] = ()
    missing: str = ""


@_JSON
@dataclass(frozen=True, slots=True)
class Confirmed:
    """finding: in the judge's words; disks: by file system."""

    finding: str
    disks: tuple[OnDisk, ...]

    @property
    def is_shown(self) -> bool:
        """One of them shows it."""
        return any(disk.shown for disk in self.disks)

    @property
    def is_answered(self) -> bool:
        """There was one that could be asked."""
        return any(disk.states for disk in self.disks)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A finding. statements: how many had ended and been issued at the crash, None if no recording says."""

    spec: TrialSpec
    target: Target
    wanted: frozenset[tuple[int, str]]
    statements: tuple[int, int] | None


def confirm_trial(
    row: TrialRow,
    paths: Paths,
    under: Sequence[str],
    states: int,
    tries: int,
    jobs: int,
    tell: Callable[[str], None],
) -> Confirmed:
    """under: file systems; states: of each, per recording; tries: recordings of each, until one shows it.
    ConfigError where the finding is not one of a crash, or its target has no disk."""
    broken = _broken(row)
    target = make_target(row.spec.target, paths.build)
    if all(option.name != UNDER for option in target.options()):
        raise ConfigError(f"target {target.name} cannot run on a real disk: only a target file can")
    with scratch_folder(target.on_shm) as scratch:
        wanted = frozenset(kind_of(one) for one in broken)
        asked = _Asked(row.spec, target, wanted, _statements(row, target, scratch))
        limits = Limits(states=states, depth=row.spec.plan.loss.count("/") + 1)
        disks = tuple(_on(asked, name, limits, tries, jobs, scratch, tell) for name in under)
    return Confirmed(without_model(broken[0].what), disks)


def _broken(row: TrialRow) -> list[Violation]:
    """What a crash has broken."""
    result = row.result
    if not row.spec.plan.crashes or any(row.spec.plan.recover):
        raise ConfigError(f"trial {row.run}.{row.number} is no crash of a run: nothing to confirm")
    broken = [one for one in result.violations if one.source is Source.STATE] if result else []
    if not broken:
        raise ConfigError(f"trial {row.run}.{row.number} broke no state: nothing to confirm")
    return broken


def _statements(row: TrialRow, target: Target, scratch: Path) -> tuple[int, int] | None:
    assert row.result is not None, "it broke something"
    with suppress(ConfigError), recording_of(row, target, scratch) as (_how, recording):
        seq = crash_seq(row.spec, row.result)
        return read_journal(Trace.load(recording.trace)).at(seq + 1)
    return None


# ---- one file system ----


def _on(
    asked: _Asked,
    name: str,
    limits: Limits,
    tries: int,
    jobs: int,
    scratch: Path,
    tell: Callable[[str], None],
) -> OnDisk:
    options = {key: value for key, value in asked.spec.options.items() if key != RECORDER}
    options |= {UNDER: name, FS: DEFAULT_FS}
    spec = replace(asked.spec, options=options, stacks=False, plan=FaultPlan(name="fault_free"))
    try:
        asked.target.check_needs(options)
    except MissingError as error:
        return OnDisk(name, missing=str(error))
    found = OnDisk(name)
    for number in range(1, tries + 1):
        tell(f"{name}, recording {number}")
        try:
            with recorded_run(spec, asked.target, scratch) as recording:
                now = _explored(replace(asked, spec=spec), recording, limits, jobs, scratch)
        except (GoldenRunError, FailedRunError) as error:
            return replace(found, missing=str(error))
        other = tuple(dict.fromkeys((*found.other, *now.other)))
        found = replace(now, under=name, states=found.states + now.states, other=other)
        if found.shown:
            break
    return found


def _explored(
    asked: _Asked, recording: Recording, limits: Limits, jobs: int, scratch: Path
) -> OnDisk:
    """At the statement of the finding first, then anywhere."""
    states, other = 0, []
    assert limits.states is not None, "there is a number of them"
    for here, scope in _scopes(asked, recording, jobs):
        share = limits.states // AROUND if here else limits.states - states
        found = explore(asked.spec, asked.target, recording, replace(limits, states=share), scope)
        states += int(found.summary["states"])
        shown, others = sorted_states(found, asked.wanted)
        other += others
        if shown:
            one = replace(_seen(asked, recording, found, shown, scratch), here=here)
            return replace(one, states=states, other=tuple(other))
    return OnDisk("", states, other=tuple(other))


def _scopes(asked: _Asked, recording: Recording, jobs: int) -> Iterator[tuple[bool, Scope]]:
    if asked.statements is not None:
        first, last = moment_in(Trace.load(recording.trace), *asked.statements)
        yield True, Scope(jobs=jobs, events=(max(first, recording.ready), last))
    yield False, Scope(jobs=jobs)


def moment_in(trace: Trace, ended: int, issued: int) -> tuple[int, int]:
    """From the mark by which as many statements had ended and been issued to the next one. If the disk was
    not changed between them: from its last change before to the first one behind, for a crash there finds
    what these leave."""
    journal = read_journal(trace)
    marks = sorted(seq for seq, _line in (*journal.issued, *journal.finished))
    begins = [seq for seq, line in journal.finished if line <= ended]
    begins += [seq for seq, line in journal.issued if line <= issued]
    begin = max(begins, default=0)
    end = next((seq for seq in marks if seq > begin), begin)
    changes = [event.seq for event in trace.events(kinds=CHANGES)]
    if any(begin < seq < end for seq in changes):
        return begin, end
    first = max((seq for seq in changes if seq < begin), default=begin)
    return first, min((seq for seq in changes if seq > end), default=trace.events_declared)


def sorted_states(
    found: Exploration, wanted: frozenset[tuple[int, str]]
) -> tuple[list[str], list[str]]:
    """States that show the finding, and what others show."""
    shown, other = [], []
    for state, violations in found.broken.items():
        if {kind_of(one) for one in violations} & wanted:
            shown.append(state)
        else:
            other += [f"I{one.invariant}: {without_model(one.what)}" for one in violations[:1]]
    return shown, other


def _seen(
    asked: _Asked, recording: Recording, found: Exploration, shown: Sequence[str], scratch: Path
) -> OnDisk:
    state = shown[0]
    first = state.partition("/")[0]
    what = next(one.what for one in found.broken[state] if kind_of(one) in asked.wanted)
    kept = Experiment(asked.spec, asked.target, recording, scratch).waiting(first).values()
    crash = int(first.partition(".")[0])
    flushes = [event.seq for event in Trace.load(recording.trace).events(kinds=FLUSHES)]
    return OnDisk(
        under="",
        shown=sum(found.alike[one] for one in shown),
        state=state,
        what=without_model(what),
        flush=sum(seq <= crash for seq in flushes),
        flushes=len(flushes),
        waiting=len(kept),
        lost=sum(set(one) == {"0"} for one in kept),
        torn=sum(set(one) == {"0", "1"} for one in kept),
    )


# ---- what is kept ----


def keep_confirmed(found: Confirmed, image: Path) -> None:
    """In the folder of the finding's image; what older answers say of other file systems stays."""
    old = load_confirmed(image)
    answered = {disk.under: disk for disk in found.disks if disk.states}
    disks = {**{disk.under: disk for disk in old.disks}, **answered} if old else answered
    text = to_json(replace(found, disks=tuple(disks.values())))
    (image / CONFIRMED).write_text(text, "utf-8")


def load_confirmed(image: Path | None) -> Confirmed | None:
    """None: nobody has asked, or the image is gone."""
    if image is None or not (image / CONFIRMED).is_file():
        return None
    return from_json(Confirmed, (image / CONFIRMED).read_bytes())


def confirmed_lines(found: Confirmed) -> list[str]:
    """In words, a line each."""
    return [f"on {disk.under}: {_line(disk)}" for disk in found.disks]


def _line(disk: OnDisk) -> str:
    if not disk.states:
        return f"no answer: {disk.missing or 'no state'}"
    if not disk.shown:
        other = f"; other findings: {'; '.join(disk.other)}" if disk.other else ""
        ended = f"; then no more recordings: {disk.missing}" if disk.missing else ""
        return f"not in {disk.states:,} states{other}{ended}"
    where = "at the same statement" if disk.here else "elsewhere in the run"
    crash = f"behind flush {disk.flush} of {disk.flushes}"
    became = f"of {disk.waiting} writes since then {disk.lost} lost, {disk.torn} torn"
    share = f"{disk.shown:,} of {disk.states:,} states"
    return f"the same finding {where}, in {share}: {crash}, {became}: {disk.what}"
