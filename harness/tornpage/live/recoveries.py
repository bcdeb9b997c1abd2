"""Recoveries under audit: what one does to the files of a crash must be in its recording.

A crash inside a recovery is chosen from what was recorded of it. Where a recovery changes files past the
recorder, no such crash shows it, and kills and power losses alike say that nothing is wrong.
"""

from __future__ import annotations

from pathlib import Path

from tornpage.faults.image import keep_files
from tornpage.faults.preload import WHOLE
from tornpage.faults.stream import unseen_changes
from tornpage.faults.trace import Trace
from tornpage.live.audited import check_audit, mapped_in, under_audit
from tornpage.live.stopped import run_stopped
from tornpage.targets.target import Recorded, Target
from tornpage.vocabulary.errors import EndedError, UnseenError
from tornpage.vocabulary.model import Action, Fault, FaultKind, TrialSpec

__all__ = ["audit_recoveries"]

LEFT = ("all", "none", "prefix:1")
"""Of a write in which a run is killed: early, in the middle of the run, and of the one behind that. The last
image has the whole run."""


def audit_recoveries(
    spec: TrialSpec, target: Target, work: Path, writes: int
) -> tuple[str, int, tuple[str, ...]]:
    """Recovers runs that were killed in a write, under audit, in the new folder `work`: images as unlike as
    kills make them. writes: of such a run. Why one could not be audited, "" if all were, how many were, and
    which files they mapped to write.
    Raises GoldenRunError naming the first call that changed something and is not in the recording of its
    recovery."""
    middle = max(writes // 2, 1)
    last = max(writes, 1)
    places = dict(zip((max(writes // 8, 1), middle, middle + 1), LEFT, strict=True))
    faults = {nth: left for nth, left in places.items() if nth < last} | {last: "all"}
    mapped: set[str] = set()
    for done, (nth, left) in enumerate(faults.items()):
        run_stopped(spec, target, work, Fault(FaultKind.WRITE, nth, Action.KILL, sectors=left))
        missing = _audit(spec, target, work)
        if missing:
            return missing, done, tuple(sorted(mapped))
        mapped |= {*mapped_in(work, target.unrecorded)}
    return "", len(faults), tuple(sorted(mapped))


def _audit(spec: TrialSpec, target: Target, work: Path) -> str:
    """What it comes to is judged elsewhere."""
    what = f"audited recovery of {spec.config or spec.workload}"
    data, record = work / "data", work / "trace"
    keep_files(data)
    record.unlink()
    command = under_audit(target.recover_command(data, spec.options), work)
    try:
        target.recorded(command, Recorded(data, record, spec.options)).run(WHOLE)
    except EndedError as error:
        return str(error)
    trace = Trace.load(record) if record.exists() else None
    unseen = unseen_changes(trace, target.unrecorded) if trace is not None else ""
    if unseen:
        raise UnseenError(f"{what}: the preload cannot follow {unseen}")
    below = target.is_below(spec.options)
    return check_audit(trace, work, target.unrecorded, what, below=below)
