"""Writes down how a state of a power loss came about, beside its image: what evidence.py does for kills."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

from tornpage.evidence.evidence import evidence_of, page_views, write_evidence
from tornpage.evidence.pages import States, hurt_pages
from tornpage.evidence.rows import with_rows
from tornpage.evidence.stacks import with_calls, with_stacks
from tornpage.evidence.timeline import (
    crash_point,
    loss_phase,
    loss_phases,
    recorded_steps,
    with_around,
)
from tornpage.faults.image import remove_image
from tornpage.faults.trace import Trace
from tornpage.live.kept import keep_loss, keep_recording
from tornpage.live.recording import Recording
from tornpage.powerloss.explorer import lay_out_state
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import ChildError
from tornpage.vocabulary.evidence import Phase
from tornpage.vocabulary.model import TrialResult, TrialSpec

__all__ = ["keep_loss_evidence", "stacked_recovery"]


def keep_loss_evidence(
    spec: TrialSpec, result: TrialResult, target: Target, recording: Recording, scratch: Path
) -> None:
    """Of a power-loss state: what was durable and what had been written are states of the same crash point.
    One that the explorer cannot lay out again has none. The recording is kept too where no other run need
    equal it."""
    if result.image is None:
        return
    keep_recording(recording, result.image, target)
    work = scratch / f"evidence-{spec.number}"
    remove_image(work)
    work.mkdir()
    with contextlib.suppress(ChildError):
        states, way = _loss_states(spec, target, recording, result.image / "data", work)
        last = json.loads(way[0])
        promise = target.promise(spec.options)
        bounds = (last["low"], last["high"], last["issued"])
        keep_loss(recording, *bounds, promise, result.image, target)
        run = recorded_steps(Trace.load(recording.trace))
        crash = int(spec.plan.loss.partition(".")[0])
        first, *recoveries = loss_phases(way, crash_point(run, crash))
        first = with_around(first, run, crash)
        if spec.stacks:
            command = target.explore_command(recording.trace, recording.allowed, spec.options)
            program = Path(command.argv[0])
            recoveries = [stacked_recovery(line, program) for line in way[1:]]
        phases = [with_stacks(first, recording.trace), *recoveries]
        size = target.judge_setting(spec.options).page_size
        hurt = hurt_pages(states, size)
        data = result.image / "data"
        pages = page_views(states, hurt, result.violations, size, phases[-1].sector, target, data)
        found = evidence_of(spec, target, phases, pages, size)
        if "/" not in spec.plan.loss:
            place = recording.at or work / "recovered"
            before = crash_point(run, crash)
            found = with_rows(found, spec, target, before, recording.told, data, place)
        write_evidence(found, result.image)
    remove_image(work)
    if recording.at is not None:
        recording.at.mkdir(exist_ok=True)


def stacked_recovery(line: str, program: Path, folders: Sequence[Path] = ()) -> Phase:
    """The last operations of a recovery that the explorer, this program, made itself, with their call stacks.
    line: of its way; folders: with debug files."""
    return with_calls(loss_phase(line), program, _calls_of(line), folders)


def _calls_of(way: str) -> dict[int, list[int]]:
    """Of the operations of a recovery that the explorer made itself, by their numbers."""
    return {event["seq"]: event["calls"] for event in json.loads(way)["events"] if "calls" in event}


def _loss_states(
    spec: TrialSpec, target: Target, recording: Recording, image: Path, work: Path
) -> tuple[States, list[str]]:
    """Also what the explorer says of its way, a line per crash. ChildError if it fails, or says nothing of
    the state."""
    *above, last = spec.plan.loss.split("/")
    states = States(work / "none-persisted", work / "all-persisted", image)
    for folder in (states.before, states.written):
        state = "/".join([*above, f"{last.split('.')[0]}.{folder.name}.0"])
        lay_out_state(spec, target, recording, state, folder)
    way = work / "way"
    lay_out_state(spec, target, recording, spec.plan.loss, work / "again", way)
    if not way.is_file():
        raise ChildError(f"the explorer says nothing of state {spec.plan.loss}")
    return states, way.read_text("utf-8").splitlines()
