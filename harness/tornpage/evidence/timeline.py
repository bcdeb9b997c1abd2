"""The last file operations before a crash, or before the one that broke a rule, from the recording of a live
process, or as the explorer tells them of a state that it has composed. Marks of statements stand among them.
"""

from __future__ import annotations

import json
import posixpath
from bisect import bisect
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tornpage.faults.stream import CREATED, DIRECTORY
from tornpage.faults.trace import Event, FilePaths, Op, Trace
from tornpage.live.writes import list_writes
from tornpage.targets.target import Target
from tornpage.vocabulary.evidence import CONTENT, SYNCS, Fate, Phase, Step

__all__ = [
    "STEPS_MAX",
    "accused_phase",
    "crash_point",
    "is_covered",
    "is_made_durable",
    "live_phase",
    "loss_phase",
    "loss_phases",
    "recorded_steps",
    "with_around",
]

STEPS_MAX = 24
"""Operations before the crash that are told: the explorer's own number (explorer/run/way.h)."""
AROUND_MAX = 32
"""Operations and marks around these that only a picture shows."""
SYNCS_AFTER = 2
"""Of a file, behind what was lost."""
_HURT = (Fate.ACCUSED, Fate.LOST, Fate.TORN, Fate.FAILED, Fate.KEPT)
"""What a picture is about, the most important first."""

_OPS = {
    Op.OPEN: "create",
    Op.WRITE: "write",
    Op.FSYNC: "fsync",
    Op.FDATASYNC: "fdatasync",
    Op.TRUNCATE: "truncate",
    Op.FALLOCATE: "fallocate",
    Op.RENAME: "rename",
    Op.UNLINK: "unlink",
    Op.SYNC_DIR: "sync_dir",
    Op.MKDIR: "mkdir",
    Op.LINK: "link",
    Op.SYNC_ALL: "sync",
}
_MARKS = ("issue", "ack", "fail")


@dataclass(frozen=True, slots=True)
class _Told:
    """An operation or a mark of a recording. sector: bytes of one, if a fault hit it; how: of that fault."""

    step: Step
    sector: int = 0
    how: str = ""


def recorded_steps(trace: Trace) -> list[Step]:
    """All operations that change something on disk, and all marks of statements, as the process knew them:
    what was synced later is not told."""
    return [told.step for told in _told(trace, {}, "")]


def live_phase(name: str, trace: Trace, target: Target, page_size: int, hit: str) -> Phase:
    """The end of a recorded process that a fault ended, or that failed by one. hit: site of the
    operation that was hit, which the recording has no write of."""
    told = list(_told(trace, _sites(trace, target, page_size), hit))
    sector = next((one.sector for one in reversed(told) if one.sector), 512)
    how = next((one.how for one in reversed(told) if one.how), "ended")
    steps = [one.step for one in told]
    return with_around(Phase(name, how, sector, _last(told)), steps, _end(steps))


def accused_phase(
    trace: Trace, target: Target, page_size: int, seq: int, rule: str, what: str
) -> Phase:
    """A run up to the event `seq`, by which it broke a rule. what: the rule says."""
    sites = _sites(trace, target, page_size)
    told = [one for one in _told(trace, sites, "") if one.step.seq <= seq]
    if told and told[-1].step.seq == seq:
        told[-1] = replace(told[-1], step=replace(told[-1].step, fate=Fate.ACCUSED))
    steps = [one.step for one in told]
    return with_around(Phase("run", what, 512, _last(told), rule), steps, seq)


def _end(steps: Sequence[Step]) -> int:
    return max((one.seq for one in steps), default=0)


def _sites(trace: Trace, target: Target, page_size: int) -> dict[int, str]:
    return {write.seq: write.site.value for write in list_writes(target, trace, page_size)}


def _told(trace: Trace, sites: Mapping[int, str], hit: str) -> Iterator[_Told]:
    """sites: of writes, by their number."""
    paths = FilePaths()
    line = 0
    for event in trace.events():
        if event.kind == Op.MARK:
            if trace.tells(event, _MARKS):
                step = _mark(trace, event)
                line = step.line if step.op == "issue" else line
                yield _Told(step)
            continue
        paths.see(trace, event)
        site = sites.get(event.seq, hit if event.kind == Op.KILL else "")
        made = _step(trace, event, paths, line, site)
        if made is None:
            continue
        if event.kind in (Op.KILL, Op.FAULT):
            damage = trace.damage(event)
            how = "killed" if event.kind == Op.KILL else "a fault was injected"
            yield _Told(made, damage.sector if damage else 0, how)
        else:
            yield _Told(made)


def _mark(trace: Trace, event: Event) -> Step:
    mark = trace.mark(event)
    client = mark.facts.get("client", "")
    line = int(mark.facts["n"])
    return Step(event.seq, mark.verb, client, Fate.MARK, line=line, thread=event.thread)


def _last(told: Sequence[_Told]) -> tuple[Step, ...]:
    """The last operations as they stand at the end, with the marks among them."""
    steps: deque[Step] = deque(maxlen=STEPS_MAX)
    for one in told:
        step = one.step
        if step.fate is Fate.MARK:
            continue
        steps.append(step)
        if step.op in SYNCS and step.fate is Fate.DURABLE:
            steps = deque((_synced(old, step) for old in steps), STEPS_MAX)
    return _with_marks(list(steps), (one.step for one in told if one.step.fate is Fate.MARK))


def _with_marks(steps: Sequence[Step], marks: Iterable[Step]) -> tuple[Step, ...]:
    """From the statement on that the first operation is of. marks: up to the crash."""
    marks = list(marks)
    first = steps[0].seq if steps else 0
    start = max((one.seq for one in marks if one.op == "issue" and one.seq < first), default=first)
    among = [one for one in marks if one.seq >= start][-STEPS_MAX:]
    return tuple(sorted([*steps, *among], key=lambda step: step.seq))


def _step(trace: Trace, event: Event, paths: FilePaths, line: int, site: str) -> Step | None:
    """None: an operation that changes nothing on disk."""
    hit = event.kind in (Op.KILL, Op.FAULT)
    kind = event.flags & 0xFF if hit else event.kind
    op = _OPS.get(Op(kind)) if kind in Op._value2member_map_ else None
    if op is None or (op == "create" and event.flags & (CREATED | DIRECTORY) != CREATED):
        return None
    path, to = paths[event.file], ""
    if not hit and event.kind in (Op.RENAME, Op.LINK):
        path, to = trace.renamed(event)
    elif not hit and event.kind in (Op.OPEN, Op.UNLINK, Op.SYNC_DIR, Op.MKDIR):
        path = trace.text(event)
    fate = Fate.KEPT
    if not hit and (event.result < 0 or op in SYNCS):
        fate = Fate.FAILED if event.result < 0 else Fate.DURABLE
    place = (event.offset, event.length) if op in CONTENT else (0, 0)
    step = Step(
        event.seq, op, path, fate, to, *place, site, line, thread=event.thread, began=event.began
    )
    return _hit(trace, event, step) if hit else step


def _hit(trace: Trace, event: Event, step: Step) -> Step:
    """What the fault left of the operation."""
    damage = trace.damage(event)
    if damage is None:
        return replace(step, fate=Fate.LOST)
    kept = "".join("1" if state == 1 else "0" for state in damage.sectors)
    if "0" not in kept:
        return step
    return replace(step, fate=Fate.TORN if "1" in kept else Fate.LOST, kept=kept)


def _synced(step: Step, sync: Step) -> Step:
    """The step as it stands after a sync."""
    covered = step.fate is Fate.KEPT and is_made_durable(step, sync)
    return replace(step, fate=Fate.DURABLE) if covered else step


def is_made_durable(step: Step, sync: Step) -> bool:
    """Whether a sync covers an operation that had ended before it began."""
    return step.seq <= (sync.began if sync.began >= 0 else sync.seq) and is_covered(step, sync)


def is_covered(step: Step, sync: Step) -> bool:
    """Whether a sync that succeeded is of what the operation has changed."""
    if sync.op not in SYNCS or sync.fate is not Fate.DURABLE or step.op in (*SYNCS, *_MARKS):
        return False
    if sync.op == "sync_dir":
        return step.op not in CONTENT and (posixpath.dirname(step.to or step.path) or ".") == (
            posixpath.normpath(sync.path)
        )
    return sync.op == "sync" or (step.op in CONTENT and step.path == sync.path)


def crash_point(steps: Sequence[Step], seq: int) -> list[Step]:
    """What of recorded_steps() comes before the power loss after event `seq`: also what the run said until
    its next operation."""
    rest = (one.seq for one in steps if one.seq > seq and one.fate is not Fate.MARK)
    end = next(rest, None)
    return [one for one in steps if end is None or one.seq < end]


def with_around(phase: Phase, steps: Sequence[Step], crash: int) -> Phase:
    """The same with threads and begins, and what its picture shows besides. steps: of the whole recording;
    crash: number of the operation that the crash comes right after."""
    known = {one.seq: one for one in steps}
    own = [
        replace(one, thread=(of := known[one.seq]).thread, began=of.began)
        if one.seq in known
        else one
        for one in phase.steps
    ]
    before = [one for one in steps if one.seq <= crash]
    covers = _covers(before)
    chosen: dict[int, Step] = {}
    hurt = sorted(
        (one for one in own if one.fate in _HURT and one.op not in SYNCS),
        key=lambda one: (_HURT.index(one.fate), -one.seq),
    )
    syncs = [one for one in before if one.op in SYNCS]
    marks = [one for one in before if one.fate is Fate.MARK]
    for one in hurt:
        near = [*_syncs_near(one, syncs), *_marks_near(one, marks)]
        chosen |= {other.seq: other for other in near if len(chosen) < AROUND_MAX}
    under_way = (one for one in steps if one.seq > crash and 0 <= one.began < crash)
    for one in list(under_way)[:AROUND_MAX]:
        chosen[one.seq] = replace(one, fate=Fate.UNDER_WAY)
    told = {one.seq for one in own}
    around = [one for seq, one in sorted(chosen.items()) if seq not in told]
    return replace(
        phase,
        steps=tuple(replace(one, covers=covers.get(one.seq, 0)) for one in own),
        around=tuple(replace(one, covers=covers.get(one.seq, 0)) for one in around),
        total=sum(one.fate is not Fate.MARK for one in before),
    )


def _syncs_near(one: Step, syncs: Sequence[Step]) -> list[Step]:
    """Of its file: the last one before it, and the first ones that ended behind it."""
    own = [sync for sync in syncs if is_covered(one, sync)]
    at = bisect(own, one.seq, key=lambda sync: sync.seq)
    return own[max(at - 1, 0) : at + SYNCS_AFTER]


def _marks_near(one: Step, marks: Sequence[Step]) -> list[Step]:
    """The statement that was last issued before it, and the first one that was acknowledged behind it."""
    at = bisect(marks, one.seq, key=lambda mark: mark.seq)
    issued = next((mark for mark in reversed(marks[:at]) if mark.op == "issue"), None)
    acknowledged = next((mark for mark in marks[at:] if mark.op == "ack"), None)
    return [mark for mark in (issued, acknowledged) if mark is not None]


def _covers(steps: Sequence[Step]) -> dict[int, int]:
    """Of each sync of a file, how many changes of its content it was the first to make durable."""
    written: dict[str, list[int]] = defaultdict(list)
    until: dict[str, int] = defaultdict(int)
    found = {}
    for one in steps:
        if one.op in CONTENT:
            written[one.path].append(one.seq)
        elif one.op in ("fsync", "fdatasync") and one.fate is Fate.DURABLE:
            own, begun = written[one.path], max(one.began, until[one.path])
            found[one.seq] = bisect(own, begun) - bisect(own, until[one.path])
            until[one.path] = begun
    return found


def loss_phases(lines: Iterable[str], steps: Iterable[Step]) -> tuple[Phase, ...]:
    """What tornpage-explore --way wrote: one JSON object per level; to the first come the marks of the run.
    steps: of the run up to the crash."""
    phases = [loss_phase(line) for line in lines]
    marks = [step for step in steps if step.fate is Fate.MARK]
    first = [replace(one, steps=_with_marks(one.steps, marks)) for one in phases[:1]]
    return (*first, *phases[1:])


def loss_phase(line: str) -> Phase:
    """Of one level, without marks."""
    told = json.loads(line)
    level = int(told["level"])
    name = "run" if level == 1 else f"recovery {level - 1}"
    how = f"power loss, {told['model']}; {told['waiting']} operations were not synced"
    return Phase(name, how, int(told["sector"]), tuple(_loss_step(e) for e in told["events"]))


def _loss_step(event: Mapping[str, Any]) -> Step:
    return Step(
        seq=int(event["seq"]),
        op=str(event["op"]),
        path=str(event["path"]),
        fate=Fate(event["fate"]),
        to=str(event.get("to", "")),
        offset=int(event.get("offset", 0)),
        length=int(event.get("length", 0)),
        site=str(event.get("site", "")),
        line=int(event["issued"]),
        kept=str(event.get("kept", "")),
    )
