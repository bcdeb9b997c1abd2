"""The last file operations before a crash, from the recording of a live process, or as the explorer
tells them of a state that it has composed.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tornpage.faults.trace import Event, FilePaths, Op, Trace
from tornpage.live.writes import list_writes
from tornpage.targets.target import Target
from tornpage.vocabulary.evidence import Fate, Phase, Step

__all__ = ["STEPS_MAX", "live_phase", "loss_phases"]

STEPS_MAX = 24
"""Operations before the crash that are told: the explorer's own number (explorer/run/way.h)."""

_OPS = {
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
_SYNCS = ("fsync", "fdatasync", "sync_dir")
_CONTENT = ("write", "truncate", "fallocate")


def live_phase(name: str, trace: Trace, target: Target, page_size: int, hit: str) -> Phase:
    """The end of a recorded process that a fault ended, or that failed by one. hit: site of the
    operation that was hit, which the recording has no write of."""
    sites = {write.seq: write.site.value for write in list_writes(target, trace, page_size)}
    steps: deque[Step] = deque(maxlen=STEPS_MAX)
    paths = FilePaths()
    line, sector, how = 0, 512, "ended"
    for event in trace.events():
        if event.kind == Op.MARK:
            mark = trace.mark(event)
            line = int(mark.facts["n"]) if mark.verb == "issue" else line
            continue
        paths.see(trace, event)
        step = _step(trace, event, paths)
        if step is None:
            continue
        if event.kind in (Op.KILL, Op.FAULT):
            damage = trace.damage(event)
            sector = damage.sector if damage else sector
            how = "killed" if event.kind == Op.KILL else "a fault was injected"
        steps.append(
            replace(
                step, line=line, site=sites.get(event.seq, hit if event.kind == Op.KILL else "")
            )
        )
        if step.op in _SYNCS and step.fate is Fate.DURABLE:
            steps = deque((_synced(old, step) for old in steps), STEPS_MAX)
    return Phase(name, how, sector, tuple(steps))


def _step(trace: Trace, event: Event, paths: FilePaths) -> Step | None:
    """None: an operation that changes nothing on disk."""
    hit = event.kind in (Op.KILL, Op.FAULT)
    kind = event.flags & 0xFF if hit else event.kind
    op = _OPS.get(Op(kind)) if kind in Op._value2member_map_ else None
    if op is None:
        return None
    path, to = paths[event.file], ""
    if not hit and event.kind in (Op.RENAME, Op.LINK):
        path, to = trace.renamed(event)
    elif not hit and event.kind in (Op.UNLINK, Op.SYNC_DIR, Op.MKDIR):
        path = trace.text(event)
    step = Step(event.seq, op, path, Fate.KEPT, to)
    if op in _CONTENT:
        step = replace(step, offset=event.offset, length=event.length)
    if hit:
        return _hit(trace, event, step)
    if event.result < 0:
        return replace(step, fate=Fate.FAILED)
    return replace(step, fate=Fate.DURABLE) if op in _SYNCS else step


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
    if step.fate is not Fate.KEPT:
        return step
    content = sync.op != "sync_dir" and step.op in _CONTENT and step.path == sync.path
    names = sync.op == "sync_dir" and step.op not in _CONTENT
    return replace(step, fate=Fate.DURABLE) if content or names else step


def loss_phases(lines: Iterable[str]) -> tuple[Phase, ...]:
    """What tornpage-explore --way wrote: one JSON object per level."""
    return tuple(_loss_phase(json.loads(line)) for line in lines)


def _loss_phase(told: Mapping[str, Any]) -> Phase:
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
