"""What is kept of a run that cannot be had again, as a server's: its recording, the files that it began with,
and what its crash may leave. kept_verdict.py asks them once more.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tornpage.faults.image import copy_image, empty_place, remove_image
from tornpage.faults.stacks import copy_stacks
from tornpage.faults.trace import Trace
from tornpage.live.recording import Recording
from tornpage.oracle.allowed import Allowed
from tornpage.oracle.observed import KeptStates, ObservedOracle
from tornpage.oracle.prefixes import prefixes_of
from tornpage.oracle.promise import Promise
from tornpage.oracle.state import read_tables
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import DamagedError
from tornpage.vocabulary.model import Source, Violation

__all__ = [
    "RECORDING",
    "RECORDINGS",
    "KeptCrash",
    "is_of_recording",
    "keep_crash",
    "keep_found",
    "keep_loss",
    "keep_recording",
    "keep_run",
    "kept_recording",
    "load_crash",
    "load_recording",
]

RECORDINGS = (("run.trace", "found"), ("recover-1.trace", "data"), ("recover.trace", "data"))
"""In the folder of a kept image: each with the folder that it began with. A recovery that was disturbed has a
number, and the next one began with what it left."""
CRASH = "crash.json"
"""What the crash may leave."""
RECORDING = "recording"
"""Of a power loss: the folder of the run that was explored."""
FACTS = "recording.json"


def is_of_recording(violation: Violation, target: Target) -> bool:
    """Whether its evidence is a recording, and no other run of the target need show the same."""
    return violation.source is Source.RULE and Capability.DETERMINISTIC not in target.capabilities


def keep_found(found: Path, image: Path, violations: Iterable[Violation], target: Target) -> None:
    """Puts what the run found beside its recording, in a kept image, if that is the evidence."""
    if any(is_of_recording(violation, target) for violation in violations):
        copy_image(found, image / RECORDINGS[0][1])


def keep_run(trace: Path, found: Path, image: Path, target: Target) -> None:
    """Puts the recording of a run by whose bytes a rule was broken, and the files that it began with, beside
    what is kept of it, if no other run need break the rule again."""
    if Capability.DETERMINISTIC not in target.capabilities:
        recording, folder = RECORDINGS[0]
        (image / recording).write_bytes(Trace.load(trace).data)
        copy_stacks(trace, image / recording)
        copy_image(found, image / folder)


# ---- kills ----


@dataclass(frozen=True, slots=True)
class KeptCrash:
    """before_first: no statement was issued; at: where the image lay, if its files may name that."""

    allowed: Allowed
    before_first: bool
    at: Path | None


def keep_crash(allowed: Allowed, before_first: bool, data: Path, image: Path) -> None:
    """Puts what may be found after a kill beside its image, of a target that tells its states itself: no
    other run need tell the same. data: where the image lay."""
    oracle = allowed.oracle
    if not isinstance(oracle, ObservedOracle):
        return
    recording = (image / RECORDINGS[0][0]).read_bytes()
    facts = _CrashFacts(
        low=allowed.low,
        high=allowed.high,
        acknowledged=allowed.acknowledged,
        unknown=allowed.unknown,
        durable=allowed.promise.durable,
        consistent=allowed.promise.consistent,
        before_first=before_first,
        at=str(data) if os.fsencode(data) in recording else "",
        prefixes=[json.loads(line) for line in prefixes_of(oracle).splitlines()],
    )
    (image / CRASH).write_text(to_json(facts), "utf-8")


@dataclass(frozen=True, slots=True)
class _CrashFacts:
    """CRASH: an Allowed, its oracle as prefixes_of() tells it, and the rest of a KeptCrash."""

    low: int
    high: int
    acknowledged: int
    unknown: str
    durable: bool
    consistent: bool
    before_first: bool
    at: str
    prefixes: list[dict[str, Any]]


def load_crash(image: Path) -> KeptCrash | None:
    """None: it was not kept. DamagedError."""
    if not (image / CRASH).is_file():
        return None
    facts = from_json(_CrashFacts, (image / CRASH).read_bytes())
    allowed = Allowed(
        _states_of(image / CRASH, facts.prefixes),
        facts.low,
        facts.high,
        facts.acknowledged,
        Promise(facts.durable, facts.consistent),
        facts.unknown,
    )
    if not 0 <= facts.low <= facts.high < len(facts.prefixes):
        raise DamagedError(f"{image / CRASH}: low to high are no prefixes of it")
    return KeptCrash(allowed, facts.before_first, Path(facts.at) if facts.at else None)


def _states_of(file: Path, prefixes: list[dict[str, Any]]) -> KeptStates:
    try:
        states = [read_tables(prefix["tables"]) for prefix in prefixes]
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{file}: prefixes: {error!r}") from error
    return KeptStates(states, [prefix.get("client") for prefix in prefixes])


# ---- power losses ----


def keep_recording(recording: Recording, image: Path, target: Target) -> None:
    """Puts the recording beside the image of one of its states, if another run need not be equal."""
    if Capability.DETERMINISTIC in target.capabilities:
        return
    place = image / RECORDING
    remove_image(place)
    place.mkdir()
    (place / recording.trace.name).write_bytes(
        Trace.load(recording.trace).data
    )  # it has room behind
    copy_stacks(recording.trace, place / recording.trace.name)
    for file in (recording.allowed, recording.kinds, recording.write_sites, recording.told):
        if file is not None and file.is_file():
            shutil.copyfile(file, place / file.name)
    copy_image(recording.found, place / recording.found.name)
    facts = _RecordingFacts(
        ready=recording.ready,
        trace_hash=recording.trace_hash,
        events=recording.events,
        suspect=recording.suspect,
        at=str(recording.at or ""),
        over=recording.over,
    )
    (place / FACTS).write_text(to_json(facts), "utf-8")


@dataclass(frozen=True, slots=True)
class _RecordingFacts:
    """FACTS: as of Recording."""

    ready: int
    trace_hash: str
    events: int
    suspect: tuple[int, ...]
    at: str
    over: int = 0


def load_recording(image: Path) -> Recording | None:
    """None: it was not kept. What was wrong with the run itself is not in it. DamagedError."""
    place = image / RECORDING
    if not (place / FACTS).is_file():
        return None
    facts = from_json(_RecordingFacts, (place / FACTS).read_bytes())
    sites = place / "sites"
    return Recording(
        trace=place / "trace",
        allowed=place / "allowed",
        kinds=place / "kinds",
        write_sites=sites if sites.is_file() else None,
        found=place / "found",
        ready=facts.ready,
        trace_hash=facts.trace_hash,
        events=facts.events,
        violations=(),
        counters={},
        suspect=facts.suspect,
        at=Path(facts.at) if facts.at else None,
        over=facts.over,
    )


@contextmanager
def kept_recording(image: Path, scratch: Path) -> Iterator[Recording]:
    """The recording beside an image, as recorded_run() gives one: it is explored in scratch, and its own
    folder is there, empty, if a file names that. FileExistsError: something else is there. DamagedError."""
    recording = load_recording(image)
    if recording is None:
        raise DamagedError(f"{image}: no recording was kept")
    folder = scratch / "kept-recording"
    folder.mkdir()
    try:
        for file in (image / RECORDING).iterdir():
            if file.is_file():
                (folder / file.name).symlink_to(file.resolve())
        with empty_place(recording.at):
            yield replace(recording, trace=folder / recording.trace.name)
    finally:
        remove_image(folder)


def keep_loss(
    recording: Recording,
    low: int,
    high: int,
    issued: int,
    promise: Promise,
    image: Path,
    target: Target,
) -> None:
    """Puts what may be found after a power loss beside its image and recording: what keep_crash() does for
    kills. low, high: prefixes that the explorer allows there; issued: the last statement that was."""
    if Capability.DETERMINISTIC in target.capabilities:
        return
    prefixes = [json.loads(line) for line in recording.allowed.read_text("ascii").splitlines()]
    facts = _CrashFacts(
        low=low,
        high=high,
        acknowledged=low,
        unknown="",
        durable=promise.durable,
        consistent=promise.consistent,
        before_first=issued == 0,
        at=str(recording.at or ""),
        prefixes=prefixes,
    )
    (image / CRASH).write_text(to_json(facts), "utf-8")
