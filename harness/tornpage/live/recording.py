"""A run of a target, recorded with its contents, for crashes that are composed from it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.faults.image import remove_image
from tornpage.faults.trace import Trace
from tornpage.live.fault_free import FaultFreeRun, run_fault_free
from tornpage.live.golden_run import TOLD, golden_run_key
from tornpage.live.journal import read_journal
from tornpage.live.writes import list_writes
from tornpage.oracle.prefixes import prefixes_of
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.errors import TargetError
from tornpage.vocabulary.model import TrialSpec, Violation
from tornpage.workloads.pairwise import kinds_of
from tornpage.workloads.script import Script, Verb

__all__ = ["Recording", "recorded_run"]


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run in scratch: trace with contents, the prefixes that a crash may leave, the kinds of its
    statements, what its writes are for where the explorer cannot tell, and what was found before it. ready:
    number of the event before the first crash; over: of the last one that is crashed, 0: that of the run.
    violations: what is wrong with the run itself, whatever crash follows; counters: its status at the end;
    suspect: numbers of the events by which it broke a rule on bytes; accused: the pages of which it broke
    one, as Finding has them; statements: what the script does (kinds_of); at: the path of its folder, where
    that is written in a file, so that images are recovered under it."""

    trace: Path
    allowed: Path
    kinds: Path
    write_sites: Path | None
    found: Path
    ready: int
    trace_hash: str
    events: int
    violations: tuple[Violation, ...]
    counters: Mapping[str, int]
    suspect: tuple[int, ...] = ()
    accused: tuple[tuple[int, int], ...] = ()
    statements: tuple[str, ...] = ()
    at: Path | None = None
    over: int = 0

    @property
    def told(self) -> Path:
        """What the run has printed, if it tells its states; else there is no such file."""
        return self.trace.with_name(TOLD)


@contextmanager
def recorded_run(spec: TrialSpec, target: Target, scratch: Path) -> Iterator[Recording]:
    """Runs the workload of `spec` fault-free with contents recorded, which lie in scratch until the end.
    Raises FailedRunError and GoldenRunError as run_fault_free() does."""
    if Capability.EXPLORE not in target.capabilities:
        raise TargetError(f"target {target.name} cannot be explored for power loss yet")
    folder = scratch / f"recording-{golden_run_key(spec)}"
    try:
        repeats = Capability.DETERMINISTIC in target.capabilities
        stacked = replace(spec, stacks=spec.stacks or not repeats)  # no other run has these
        run = run_fault_free(stacked, target, folder, contents=True)
        (folder / "allowed").write_text(prefixes_of(run.oracle), "ascii")
        (folder / "kinds").write_text(_kinds_of(run.script), "ascii")
        if run.output:
            (folder / TOLD).write_bytes(run.output)
        sites = _write_sites_of(run, target)
        (folder / "sites").write_text(sites, "ascii")
        yield Recording(
            trace=folder / "trace",
            allowed=folder / "allowed",
            kinds=folder / "kinds",
            write_sites=folder / "sites" if sites else None,
            found=folder / "found",
            ready=_ready(run, target),
            trace_hash=run.hash,
            events=run.trace.events_declared,
            violations=run.violations,
            counters=run.answer.status,
            suspect=tuple(sorted({finding.seq for finding in run.findings})),
            accused=tuple(sorted({found.page for found in run.findings if found.page})),
            at=_path_told(run.trace, folder / "data"),
            statements=kinds_of(run.script),
            over=_over(run),
        )
    finally:
        remove_image(folder)


def _path_told(trace: Trace, data: Path) -> Path | None:
    """The path of the run's folder if the run has written it into a file, and makes that anew, empty: what
    recovers may look there."""
    for path in {data, data.resolve()}:
        if trace.data.find(os.fsencode(path)) >= 0:
            path.mkdir()
            return path
    return None


def _write_sites_of(run: FaultFreeRun, target: Target) -> str:
    """What the explorer is told of single writes, a line each: of a target file whose bytes we decode. It has
    patterns of paths for those of others, and knows the engine's itself."""
    if not {Capability.OBSERVED, Capability.RULES} <= target.capabilities:
        return ""
    writes = list_writes(target, run.trace, run.setting.page_size)
    return "".join(f"{write.seq} {write.site}\n" for write in writes)


def _kinds_of(script: Script) -> str:
    """Per line of the script a word for the kind of its statement."""
    kinds = {statement.line: statement.verb.value for statement in script.statements}
    return "".join(f"{kinds.get(line, '')}\n" for line in range(1, max(kinds, default=0) + 1))


def _ready(run: FaultFreeRun, target: Target) -> int:
    """The event behind which crashes begin: the mark `ready` of a target that tells its states itself, or
    that by which the first statement behind those that prepare was issued; if this one places something, the
    mark of its being done. 0: all is crashed."""
    if Capability.OBSERVED in target.capabilities:
        return next((event.seq for event, _mark in run.trace.marks("ready")), 0)
    if not run.script.prepared:
        return 0
    if _is_placed(run.script):
        return next(
            (event.seq for event, _ in run.trace.marks("placed")), run.trace.events_declared
        )
    return next(seq for seq, line in read_journal(run.trace).issued if line > run.script.prepared)


def _over(run: FaultFreeRun) -> int:
    """The event behind which nothing is crashed: the end of the last statement that this is about."""
    if not run.script.over:
        return 0
    ends = (seq for seq, line in read_journal(run.trace).finished if line == run.script.over)
    return next(ends, 0)


def _is_placed(script: Script) -> bool:
    first = next(one for one in script.statements if one.line > script.prepared)
    return first.verb is Verb.AT
