"""A bug as the report shows it: the way of its crash as a timeline, its pages in three states, a script."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from tornpage.reports.drawing import Drawing
from tornpage.reports.lanes import drawing_of
from tornpage.reports.sectors import kept_sectors, page_sectors, sector_states
from tornpage.reports.summary import BugSeen, Finding
from tornpage.vocabulary.cause import Cause, Explained, Operation
from tornpage.vocabulary.evidence import (
    SYNCS,
    Evidence,
    Fate,
    Field,
    PageView,
    Phase,
    RowChange,
    Step,
    unwrapped,
)

__all__ = [
    "BugView",
    "Dossier",
    "PhaseView",
    "badge_of",
    "bug_view",
    "cause_lines",
    "page_lines",
    "phase_views",
    "stack_lines",
    "way_lines",
]

FINDINGS_MAX = 12
"""Findings of one bug that are listed."""
STEPS_SHOWN = 16
"""Operations of a phase, and marks among them, that are told in words."""
FRAMES_SHOWN = 4
"""Of an operation, the innermost."""
STACKS_SHOWN = 8
"""Operations of a bug whose frames JUnit has."""
SENTENCE_COLUMNS = 100
SECTORS_MAX = 128
"""Sectors of one write that are drawn."""
NOT_PAGES = ("redo", "checkpoint_header", "rollback_journal", "metadata")
"""Sites whose writes are no pages."""
_FATES = {
    Fate.DURABLE: "synced before the crash",
    Fate.KEPT: "not synced, but in the crashed image",
    Fate.TORN: "only some of its sectors are in the crashed image",
    Fate.LOST: "not in the crashed image",
    Fate.GONE: "its file has no name any more",
    Fate.FAILED: "it returned an error",
    Fate.ACCUSED: "it breaks the rule",
}
_BROKEN = (Fate.TORN, Fate.LOST, Fate.ACCUSED)


@dataclass(frozen=True, slots=True)
class Dossier:
    """All that is known of a bug. evidence: of the trial `trial`, of which `what` is said; None if no image
    of it was kept. script: that shows it and was made small, "" if none was; explained: what
    `tornpage explain` has found of the trial."""

    seen: BugSeen
    evidence: Evidence | None = None
    trial: str = ""
    what: str = ""
    script: str = ""
    explained: Explained | None = None

    @property
    def accuses(self) -> bool:
        """Its evidence leads to the operation that broke the bug's own rule."""
        phases = self.evidence.phases if self.evidence is not None else ()
        return any(self.seen.bug.fingerprint == f"rule {phase.rule}" for phase in phases)


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of a timeline: a statement (fate "statement") or an operation. seq: its number in the recording,
    0 of a statement that has no mark."""

    seq: int
    fate: str
    title: str
    op: str
    path: str
    place: str
    site: str
    sectors: list[str]
    stack: list[str] = field(default_factory=list)
    """The frames of an operation that matters, the innermost first."""
    sync: str = ""
    """As of Step."""


@dataclass(frozen=True, slots=True)
class PhaseView:
    """One process before it crashed, or broke a rule; rows: the oldest first; facts: of the accused page."""

    name: str
    how: str
    rows: list[_Row]
    crashed: bool
    facts: list[tuple[str, str]]
    drawing: Drawing | None = None
    """None: there is nothing to draw, or nobody asked for it."""


@dataclass(frozen=True, slots=True)
class _FieldView:
    """state: which of the other two the crash left: new, old, same or other."""

    name: str
    before: str
    written: str
    after: str
    state: str


@dataclass(frozen=True, slots=True)
class _Picture:
    """Sectors of a page, or of a write."""

    title: str
    path: str
    sectors: list[str]
    decoded: bool
    fields: list[_FieldView]
    more: int
    redo: list[str] = field(default_factory=list)
    redo_note: str = ""


@dataclass(frozen=True, slots=True)
class _CauseRow:
    """An operation of an explanation. role: its part in it; stack: its frames, the innermost first."""

    role: str
    seq: int
    what: str
    stack: list[str]


@dataclass(frozen=True, slots=True)
class BugView:
    """One bug, ready to be rendered."""

    id: int
    title: str
    badge: str
    invariants: str
    sites: str
    seen: BugSeen
    findings: list[Finding]
    findings_more: int
    phases: list[PhaseView]
    pictures: list[_Picture]
    statements: list[tuple[int, str]]
    rows: list[RowChange]
    rows_more: int
    rows_note: str
    trial: str
    what: str
    replay: str
    script: str
    sentence: str
    causes: list[_CauseRow]
    experiments: str


def bug_view(dossier: Dossier) -> BugView:
    """The words and colours of a bug."""
    seen, evidence = dossier.seen, dossier.evidence or Evidence()
    pictures = [_page(view) for view in evidence.pages] or _torn(seen)
    return BugView(
        id=seen.bug.id,
        title=seen.bug.title,
        badge=badge_of(seen),
        invariants=", ".join(f"I{number}" for number in seen.bug.invariants),
        sites=", ".join(dict.fromkeys(finding.site for finding in seen.findings)),
        seen=seen,
        findings=list(seen.findings[:FINDINGS_MAX]),
        findings_more=max(0, len(seen.findings) - FINDINGS_MAX),
        phases=[
            replace(_phase(phase, evidence), drawing=drawing_of(phase, evidence, dossier.explained))
            for phase in _own_phases(evidence, seen.bug.fingerprint)
        ],
        pictures=pictures,
        statements=sorted(evidence.statements.items()),
        rows=list(evidence.rows),
        rows_more=evidence.rows_more,
        rows_note=evidence.rows_note,
        trial=dossier.trial,
        what=dossier.what or seen.findings[0].what,
        replay=seen.replay,
        script=dossier.script,
        sentence=" ".join(_sentences(dossier.explained)),
        causes=_cause_rows(dossier.explained),
        experiments=_experiments(dossier.explained),
    )


def badge_of(seen: BugSeen) -> str:
    """new or back in this run; else how the bug stands now."""
    return seen.sighting.novelty if seen.is_news else seen.bug.status


def phase_views(evidence: Evidence) -> list[PhaseView]:
    """How it crashed, or broke rules: a line per statement and per operation."""
    return [_phase(phase, evidence) for phase in evidence.phases]


def _own_phases(evidence: Evidence, fingerprint: str) -> Sequence[Phase]:
    """fingerprint: of a bug; where several rules were broken, only its own."""
    own = [phase for phase in evidence.phases if fingerprint == f"rule {phase.rule}"]
    return own or evidence.phases


def way_lines(evidence: Evidence | None) -> list[str]:
    """The last operations before each crash and those before that were lost or torn, and what became of
    them."""
    lines = []
    evidence = evidence or Evidence()
    for phase in phase_views(evidence):
        end = "its last operations" if phase.crashed else "up to the operation that breaks a rule"
        lines.append(f"  {phase.name}, {end}:")
        last: list[str] = []
        late = len(phase.rows) - STEPS_SHOWN
        for row in (one for n, one in enumerate(phase.rows) if n >= late or one.fate in _BROKEN):
            place = ", ".join(part for part in (row.path, row.place, row.site) if part)
            fate = "" if row.fate == "statement" else row.fate
            sectors = "".join("1" if sector == "new" else "0" for sector in row.sectors)
            lines.append(f"  {row.seq or '':>7} {fate:8}{row.op} {place} {sectors}".rstrip())
            lines += [f"{'':18}{row.sync}"] if row.sync else []
            if row.stack:
                told = row.stack == last and row.fate not in _BROKEN
                lines.append(f"{'':18}by {'the same calls' if told else _frames(row)}")
                last = row.stack
        lines.append(f"          {'crash' if phase.crashed else 'rule':8}{phase.how}")
        lines += [f"          {name}: {value}" for name, value in phase.facts]
    return lines + _unknown_lines(evidence) + _row_lines(evidence)


def _unknown_lines(evidence: Evidence) -> list[str]:
    """Programs and libraries without symbols, and what to do about each."""
    frames = (frame for phase in evidence.phases for step in phase.steps for frame in step.stack)
    unknown = {frame.module: frame.build_id for frame in frames if not frame.function}
    return [
        f"  functions of {module} are unknown: --debug-files FOLDER, with the debug file of build id {build}"
        for module, build in sorted(unknown.items())
        if module and build
    ]


def stack_lines(evidence: Evidence | None) -> list[str]:
    """The operations of the last crash that were lost or torn, or that broke a rule, each with its frames."""
    lines = []
    for phase in phase_views(evidence or Evidence())[-1:]:
        for row in phase.rows:
            if row.stack and row.fate in _BROKEN:
                place = ", ".join(part for part in (row.path, row.place) if part)
                lines.append(f"{row.fate} {row.op} {place}: {_frames(row)}")
    return lines[-STACKS_SHOWN:]


def _frames(row: _Row) -> str:
    return " ← ".join(row.stack[:FRAMES_SHOWN])


def _stack(step: Step, wrappers: Sequence[str]) -> list[str]:
    """The frames of an operation that matters; one function that the compiler has made two of is one."""
    if step.fate is Fate.DURABLE and step.op not in SYNCS:
        return []
    frames = unwrapped(step.stack, wrappers)
    runs = groupby(frames, lambda one: (one.function, one.file) if one.function else one)
    return [str(next(run)) for _, run in runs]


def _row_lines(evidence: Evidence) -> list[str]:
    """What recovery came to beside what was acknowledged."""
    lines = [f"  rows: {evidence.rows_note}"] if evidence.rows_note else []
    for row in evidence.rows:
        lines += [f"    - {row.table}: {row.expected}"] if row.expected else []
        lines += [f"    + {row.table}: {row.recovered}"] if row.recovered else []
        lines.append(f"        {row.why}")
    return lines + ([f"    and {evidence.rows_more} more"] if evidence.rows_more else [])


def cause_lines(found: Explained) -> list[str]:
    """An explanation, with the frames of its operations."""
    lines = [line for text in _sentences(found) for line in textwrap.wrap(text, SENTENCE_COLUMNS)]
    for row in _cause_rows(found):
        lines.append(f"  {row.role + ':':15}{row.what}")
        lines += [f"{'':17}{frame}" for frame in row.stack]
    return [*lines, f"  {_experiments(found)}"]


def _sentences(found: Explained | None) -> list[str]:
    """The cause, and where another build does otherwise."""
    contrast = found.contrast if found else None
    return [one.sentence for one in (found, contrast) if one is not None]


def _cause_rows(found: Explained | None) -> list[_CauseRow]:
    rows = []
    for role, one in _roles(found.cause) if found else ():
        site = f", {one.site}" if one.site else ""
        line = f", statement {one.line}" if one.line else ""
        stack = [str(frame) for frame in one.frames[:FRAMES_SHOWN]]
        rows.append(_CauseRow(role, one.seq, f"{one.what}{site}{line}", stack))
        if one.change is not None:
            line = f", statement {one.change.line}" if one.change.line else ""
            stack = [str(frame) for frame in one.change.frames[:FRAMES_SHOWN]]
            rows.append(_CauseRow("made by", one.seq, f"{one.change.what}{line}", stack))
    return rows


def _roles(cause: Cause) -> Iterator[tuple[str, Operation]]:
    """The operations of a cause, each with its part in it."""
    syncs = [one for one in cause.syncs if one != cause.relied]
    parts: dict[str, Sequence[Operation | None]] = {
        "lost": cause.lost,
        "its sync": syncs,
        "must be there": cause.beside,
        "from then on": (cause.relied,),
        "until": (cause.until,),
        "recovery": (cause.parting.goes,) if cause.parting else (),
        "in place of": (cause.parting.instead,) if cause.parting else (),
        "fails at": (cause.parting.fails,) if cause.parting else (),
    }
    for role, operations in parts.items():
        yield from ((role, one) for one in operations if one is not None)


def _experiments(found: Explained | None) -> str:
    if found is None:
        return ""
    return f"{found.probes} crashes were made and recovered for this; recording {found.recording}"


def page_lines(evidence: Evidence | None) -> list[str]:
    """Of the page that a crash has hurt, what was written beside what recovery came to."""
    lines = []
    for page in evidence.pages[:1] if evidence else ():
        lines.append(f"  page {page.page} of {page.path}:")
        lines += [
            f"    {one.name}: expected {one.written or 'absent'}, recovered {one.after or 'absent'}"
            for one in page.fields
            if one.after != one.written
        ]
    return lines


def _phase(phase: Phase, evidence: Evidence) -> PhaseView:
    rows = []
    line = 0
    for step in phase.steps:
        if (step.line and step.line != line) or step.fate is Fate.MARK:
            text = evidence.statements.get(step.line, "") if step.line != line else ""
            line = step.line
            rows.append(_statement(step, text))
        if step.fate is not Fate.MARK:
            rows.append(_step(step, evidence))
    return PhaseView(phase.name, phase.how, rows, not phase.rule, list(phase.facts.items()))


def _statement(step: Step, text: str) -> _Row:
    """A mark, with its client; or its line, where it came before the operations that are told."""
    if step.fate is not Fate.MARK:
        return _Row(0, "statement", "", f"line {step.line}", text, "", "", [])
    return _Row(step.seq, "statement", "", f"{step.op} {step.line}", text, step.path, "", [])


def _step(step: Step, evidence: Evidence) -> _Row:
    path = f"{step.path} → {step.to}" if step.to else step.path
    sectors = kept_sectors(step.kept)[:SECTORS_MAX]
    site = step.site.replace("_", " ")
    place = _place(step, evidence)
    fate, title = step.fate, _FATES[step.fate]
    stack = _stack(step, evidence.wrappers)
    return _Row(step.seq, fate, title, step.op, path, place, site, sectors, stack, step.sync)


def _place(step: Step, evidence: Evidence) -> str:
    """Where in the file, in pages if it is whole ones."""
    if step.op == "truncate":
        return f"to {step.offset:,} bytes"
    if not step.length:
        return ""
    size = evidence.page_size
    whole = size and not step.offset % size and not step.length % size
    if not whole or step.site in NOT_PAGES:
        return f"{step.length:,} bytes at {step.offset:,}"
    first, count = step.offset // size, step.length // size
    return f"page {first}" if count == 1 else f"pages {first} to {first + count - 1}"


def _page(view: PageView) -> _Picture:
    return _Picture(
        f"Page {view.page}",
        view.path,
        page_sectors(view.sectors),
        view.decoded,
        [_field(field) for field in view.fields],
        view.more,
        list(view.redo),
        view.redo_note,
    )


def _field(field: Field) -> _FieldView:
    before, written, after = field.before, field.written, field.after
    if before == written == after:
        state = "same"
    elif after == written:
        state = "new"
    else:
        state = "old" if after == before else "other"
    return _FieldView(field.name, before, written, after, state)


def _torn(seen: BugSeen) -> list[_Picture]:
    """Of a store that has no evidence: the sectors of the write that was hit."""
    for finding in seen.findings:
        torn = finding.torn
        if torn is not None:
            title = f"{torn.length:,} bytes at {torn.offset:,}"
            return [_Picture(title, torn.path, sector_states(torn)[:SECTORS_MAX], False, [], 0)]
    return []
