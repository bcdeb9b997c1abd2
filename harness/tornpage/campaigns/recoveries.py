"""Recoveries under audit: what one does to the files of a crash must be in its recording.

A crash inside a recovery is chosen from what was recorded of it. Where a recovery changes files past the
recorder, no such crash shows it, and kills and power losses alike say that nothing is wrong.

May import: audited, errors, image, model, preload, stopped, stream, target, trace.
"""

from __future__ import annotations

from pathlib import Path

from tornpage.campaigns.audited import check_audit, under_audit
from tornpage.campaigns.stopped import run_stopped
from tornpage.faults.image import keep_files
from tornpage.faults.preload import WHOLE
from tornpage.faults.stream import unseen_changes
from tornpage.faults.trace import Trace
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import CensusError
from tornpage.vocabulary.model import Action, Fault, FaultKind, TrialSpec

__all__ = ["audit_recoveries"]

IN_A_ROW = 3
"""Crashes behind so many writes in the middle of a run: a statement has several."""


def audit_recoveries(spec: TrialSpec, target: Target, work: Path, writes: int) -> str:
    """Recovers runs that were killed behind a write, under audit, in the new folder `work`. writes: of such a
    run. Why one could not be audited, "" if all were. Raises CensusError naming the first call that changed
    something and is not in the recording of its recovery."""
    middle = max(writes // 2, 1)
    missing = ""
    for nth in sorted({*range(middle, min(middle + IN_A_ROW, writes + 1)), max(writes, 1)}):
        run_stopped(spec, target, work, Fault(FaultKind.WRITE, nth, Action.KILL, sectors="all"))
        missing = missing or _audit(spec, target, work)
    return missing


def _audit(spec: TrialSpec, target: Target, work: Path) -> str:
    """What it comes to is judged elsewhere."""
    what = f"audited recovery of {spec.config or spec.workload}"
    data, record = work / "data", work / "trace"
    keep_files(data)
    record.unlink()
    command = under_audit(target.recover_command(data, spec.options), work)
    command.run({**target.preload_env(data, record, None), **WHOLE})
    trace = Trace.load(record) if record.exists() else None
    unseen = unseen_changes(trace, target.unrecorded) if trace is not None else ""
    if unseen:
        raise CensusError(f"{what}: the preload cannot follow {unseen}")
    return check_audit(trace, work, target.unrecorded, what)
