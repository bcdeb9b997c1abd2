"""How a run without a fault broke a rule on bytes: the operation in its place, and what is known of its page:
the redo records of it, the checkpoint, its copy in the doublewrite area or that there is none, the fsyncs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.evidence.evidence import evidence_of, write_evidence
from tornpage.evidence.redo import redo_of
from tornpage.evidence.stacks import with_stacks
from tornpage.evidence.timeline import accused_phase, is_covered, recorded_steps
from tornpage.faults.image import remove_image
from tornpage.faults.stream import RecordedFiles
from tornpage.faults.trace import Op, Trace
from tornpage.live.fault_free import FaultFreeRun, run_fault_free
from tornpage.live.kept import keep_run
from tornpage.live.writes import list_writes
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import FailedRunError
from tornpage.vocabulary.evidence import Fate, Phase, Step
from tornpage.vocabulary.model import Site, Source, TrialSpec, WriteEvent

__all__ = ["keep_run_evidence", "rule_of"]

_PAGE = re.compile(r"\bpage (\d+):(\d+)\b")


def rule_of(what: str) -> str:
    """The name of the rule that a finding is of."""
    return what.partition(":")[0]


def keep_run_evidence(spec: TrialSpec, target: Target, scratch: Path, image: Path) -> bool:
    """Plays a script without a fault, and of the first break of each rule, best of those behind the first
    statement, writes down how it came about, below `image`; in image/data are the files as they were right
    after the first of them. The recording is kept too where no other run need equal it. False: no rule was
    broken, and nothing is there."""
    work = scratch / f"accused-{spec.number}"
    remove_image(image)
    try:
        run = run_fault_free(replace(spec, number=0, stacks=True), target, work, contents=True)
        size = run.setting.page_size
        first: dict[str, int] = {}
        phases: list[Phase] = []
        begun = next((event.seq for event, _ in run.trace.marks("issue")), 0)
        for finding in sorted(run.findings, key=lambda finding: finding.seq < begun):
            rule = rule_of(finding.violation.what)
            if finding.violation.source is not Source.RULE or rule in first:
                continue
            first[rule] = finding.seq
            phase = accused_phase(
                run.trace, target, size, finding.seq, rule, finding.violation.what
            )
            data = image / "data" if len(first) == 1 else work / f"at-{finding.seq}"
            files = RecordedFiles(target.unrecorded, work / "found")
            files.follow(run.trace.until(finding.seq))
            files.lay_out(data)
            facts = _facts(_Accused(run, target, finding.seq, finding.violation.what, data))
            phases.append(with_stacks(replace(phase, facts=facts), work / "trace"))
        if phases:
            write_evidence(evidence_of(spec, target, phases, (), size), image)
            keep_run(work / "trace", work / "found", image, target)
        return bool(phases)
    except FailedRunError:
        return False
    finally:
        remove_image(work)


@dataclass(frozen=True, slots=True)
class _Accused:
    """An operation of a run. what: the rule says; data: the files as they were right after it."""

    run: FaultFreeRun
    target: Target
    seq: int
    what: str
    data: Path

    @property
    def trace(self) -> Trace:
        """Of the run."""
        return self.run.trace

    def writes(self) -> list[WriteEvent]:
        """Up to the operation, itself included."""
        found = list_writes(self.target, self.trace, self.run.setting.page_size)
        return [write for write in found if write.seq <= self.seq]


def _facts(accused: _Accused) -> dict[str, str]:
    trace = accused.trace
    writes = accused.writes()
    steps = recorded_steps(trace)
    facts = {"checkpoint": _checkpoint(writes, steps, accused.seq)}
    files = [write.file for write in writes if write.site is Site.REDO][-1:]
    page = _page_written(writes, accused)
    if page is not None:
        name = f"page {page.facts['space']}:{page.facts['page']}"
        if page.seq != accused.seq:
            facts[name] = f"written last by operation {page.seq}"
        if Site.DOUBLEWRITE in accused.target.sites:
            facts[f"doublewrite copy of {name}"] = _copy(accused, writes, page, steps)
        facts[f"redo records of {name}"] = _records(accused, page.facts)
        files = [page.file, *files]
    return facts | _syncs(steps, accused.seq, files or [write.file for write in writes[-1:]])


def _page_written(writes: Sequence[WriteEvent], accused: _Accused) -> WriteEvent | None:
    """The accused write, or the last one of the page that the rule names as space:page."""
    named = _PAGE.search(accused.what)
    for write in reversed(writes):
        place = (write.facts.get("space"), write.facts.get("page"))
        if None not in place and (write.seq == accused.seq or (named and place == named.groups())):
            return write
    return None


def _checkpoint(writes: Sequence[WriteEvent], steps: Sequence[Step], seq: int) -> str:
    headers = [write for write in writes if write.site is Site.CHECKPOINT_HEADER]
    if not headers:
        return "none was written before"
    last = headers[-1]
    return f"written last by operation {last.seq} to {last.file}{_durable(last.seq, steps, seq)}"


def _durable(written: int, steps: Sequence[Step], seq: int) -> str:
    """Whether a write was synced before event `seq`."""
    step = next((one for one in steps if one.seq == written), None)
    if step is None:
        return ""
    syncs = (one for one in steps if written < one.seq < seq and one.fate is Fate.DURABLE)
    sync = next((one for one in syncs if is_covered(step, one)), None)
    return f", synced by operation {sync.seq}" if sync else ", not synced when this came"


def _copy(
    accused: _Accused, writes: Sequence[WriteEvent], own: WriteEvent, steps: Sequence[Step]
) -> str:
    """The last write to the area before the accused one that has its bytes."""
    area = {write.seq for write in writes if write.site is Site.DOUBLEWRITE}
    contents = dict(_contents(accused.trace, {*area, own.seq}))
    page = contents.get(own.seq, b"")
    for seq in sorted(area, reverse=True):
        if page and page in contents[seq]:
            return f"in operation {seq}{_durable(seq, steps, accused.seq)}"
    if not area:
        return "none: nothing was written to the area before"
    return f"none: {len(area)} writes went to the area before, and none has these bytes"


def _contents(trace: Trace, wanted: set[int]) -> Iterator[tuple[int, bytes]]:
    for event in trace.events(kinds=(Op.WRITE,)):
        if event.seq in wanted:
            yield event.seq, trace.payload(event)[: event.length]


def _records(accused: _Accused, facts: Mapping[str, str]) -> str:
    """Of the page, as the log was when the operation came."""
    found, words = redo_of(accused.target, accused.data, facts["space"], facts["page"])
    return f"{words}: {'; '.join(found)}" if found else words


def _syncs(steps: Sequence[Step], seq: int, files: Sequence[str]) -> dict[str, str]:
    """The fsyncs of these files around the operation."""
    found = {}
    for file in dict.fromkeys(files):
        syncs = [one.seq for one in steps if one.path == file and one.op in ("fsync", "fdatasync")]
        before = [one for one in syncs if one < seq]
        after = [one for one in syncs if one > seq]
        last = f"the last one was operation {before[-1]}" if before else "there was none before"
        found[f"fsync of {file}"] = last + (
            f", the next one is operation {after[0]}" if after else ", and none follows"
        )
    return found
