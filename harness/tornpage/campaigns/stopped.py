"""Runs that are stopped at an acknowledgement: what is in the files then must be what was recorded till then.

At the end of a run a file may hold again what it should, whatever was written to it past the recorder in
between. A run that is killed right behind an acknowledgement is compared there.

May import: errors, image, model, plan, preload, stream, target, trace, workload.
"""

from __future__ import annotations

from pathlib import Path

from tornpage.faults.image import copy_image, keep_files, remove_image
from tornpage.faults.plan import compile_plan
from tornpage.faults.preload import WHOLE
from tornpage.faults.stream import stream_difference
from tornpage.faults.trace import Trace
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import CensusError
from tornpage.vocabulary.model import Action, Fault, FaultKind, TrialSpec
from tornpage.workloads.workload import generate

__all__ = ["check_at_acknowledgements", "run_stopped"]

ACK = "ack "


def check_at_acknowledgements(spec: TrialSpec, target: Target, work: Path, count: int) -> int:
    """Compares the files of runs in the new folder `work` at the first, the middle and the last of `count`
    acknowledgements, and returns how many of them were reached: a run may have fewer than another. Raises
    CensusError naming acknowledgement, file and range."""
    return sum(
        _check(spec, target, work, number) for number in sorted({1, (count + 1) // 2, count})
    )


def run_stopped(spec: TrialSpec, target: Target, work: Path, fault: Fault) -> Trace:
    """Runs the workload of `spec` in the new folder `work` until this fault kills it, if it does. Returns the
    recording; the crashed files are in work/data, those that were there before the run in work/found."""
    remove_image(work)
    data, found = work / "data", work / "found"
    found.mkdir(parents=True)
    target.lay_out(found, spec.options)
    keep_files(found)
    copy_image(found, data)
    script = generate(spec.workload, spec.params, spec.workload_seed)
    (work / "script").write_text(script.text, "ascii")
    (work / "plan").write_text(compile_plan((fault,)), "ascii")
    command = target.run_command(data, work / "script", spec.options)
    env = target.preload_env(data, work / "trace", work / "plan")
    command.run({**env, **WHOLE}, may_be_killed=True)
    return Trace.load(work / "trace")


def _check(spec: TrialSpec, target: Target, work: Path, number: int) -> bool:
    trace = run_stopped(spec, target, work, Fault(FaultKind.MARK, number, Action.KILL, text=ACK))
    if not trace.fired:
        return False
    difference = stream_difference(trace, work / "data", target.unrecorded, work / "found")
    if difference:
        raise CensusError(
            f"stopped at acknowledgement {number} of a run: the recorded stream is not what happened: "
            f"{difference}"
        )
    return True
