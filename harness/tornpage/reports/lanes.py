"""The way of a crash as a picture: threads as lanes, calls as bars, what each sync covers, acknowledgements
as flags, the crash as a line. Here are places and words; reports/timeline.svg.j2 draws them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

from markupsafe import Markup

from tornpage.reports.drawing import Bar, Dot, Drawing, Flag, Label, Lane, Sync
from tornpage.reports.page import render_part
from tornpage.reports.places import GAP, GUTTER, begin, begun, duration, places
from tornpage.vocabulary.cause import Explained
from tornpage.vocabulary.evidence import CONTENT, SYNCS, Evidence, Fate, Phase, Step
from tornpage.vocabulary.shown import one_line

__all__ = ["draw_way", "drawing_of"]

MARGIN = 60
HEAD, FLAGS, BAR, LABEL, ROW, NOTE = 42, 14, 30, 14, 16, 15
FLAG = 15
"""Heights: of the title with the axis, a row of flags, a bar, a row of labels, of a sync, a note; width of a
flag."""
LETTER = 6.2
"""Width of one, about."""
TICK = 90
"""Between two labels of the axis at least."""
LABEL_ROWS = 3
LABEL_LETTERS = 58
SEGMENTS_MAX = 64
SYNCS_MAX = 12
"""Of those that are drawn with what they cover, the nearest to the crash."""
_LOUD = (Fate.LOST, Fate.TORN, Fate.ACCUSED, Fate.FAILED)
"""Fates that are written above their bars."""
_WORDS = {
    Fate.DURABLE: "synced before the crash, or a sync",
    Fate.KEPT: "not synced, but there after the crash",
    Fate.TORN: "torn: what is hatched is lost",
    Fate.LOST: "lost",
    Fate.GONE: "its file has no name any more",
    Fate.FAILED: "returned an error",
    Fate.ACCUSED: "breaks the rule",
    Fate.UNDER_WAY: "under way at the crash",
}


def draw_way(
    evidence: Evidence, explained: Explained | None, templates: Path, name: str, title: str
) -> Markup:
    """All processes of a finding in one picture that stands alone, with its own style. name: of its parts,
    one word; title: in words."""
    drawings = [drawing_of(phase, evidence, explained) for phase in evidence.phases]
    return render_part(
        templates,
        "timeline.svg.j2",
        drawings=drawings,
        width=max((one.width for one in drawings), default=GUTTER),
        height=sum(one.whole for one in drawings),
        ids=name,
        title=one_line(title),
        style=Markup((templates / "timeline.css").read_text("utf-8")),
    )


def drawing_of(phase: Phase, evidence: Evidence, explained: Explained | None = None) -> Drawing:
    """explained: of the finding; its operations are marked by letters."""
    return _Layout(phase, evidence, explained).drawing()


class _Layout:
    def __init__(self, phase: Phase, evidence: Evidence, explained: Explained | None) -> None:
        self._phase, self._evidence = phase, evidence
        self._letters = _letters(explained) if phase.name == "run" else {}
        extra = explained.steps if explained and self._letters else ()
        known = {one.seq for one in (*phase.steps, *phase.around)}
        steps = [*phase.steps, *phase.around, *(one for one in extra if one.seq not in known)]
        steps.sort(key=lambda one: one.seq)
        self._calls = [one for one in steps if one.fate is not Fate.MARK]
        self._marks = [one for one in steps if one.fate is Fate.MARK]
        self._at, self._cuts = places(self._calls, self._marks)
        self._ended = [one for one in self._calls if one.fate is not Fate.UNDER_WAY]
        end = round(max(self._at.values(), default=GUTTER))
        self._crash = end + GAP
        self._width = end + MARGIN

    def drawing(self) -> Drawing:
        flags = list(self._flags())
        y = HEAD + (2 * FLAGS if flags else 0)
        lanes, y = self._lanes(y)
        lanes_end = y
        syncs = self._syncs(y + ROW)
        y += ROW * (len(syncs) + 1) if syncs else 0
        end = y + ROW
        legend, y = self._legend(end + ROW)
        notes = [Label(GUTTER, y + NOTE * n, text) for n, text in enumerate(self._notes(syncs))]
        title = one_line(f"{self._phase.name}: {self._phase.how}")
        crash = self._hit() or self._crash
        width = max(self._width, GUTTER + int(LETTER * max(len(one.text) for one in notes)))
        return Drawing(
            title=title,
            width=max(width, int(LETTER * len(title))),
            height=end + 4,
            whole=y + NOTE * len(notes),
            left=GUTTER - GAP,
            flags_y=HEAD,
            ticks=list(self._ticks()),
            cuts=self._cuts,
            flags=flags,
            lanes=lanes,
            lanes_end=lanes_end,
            syncs=syncs,
            crash=crash,
            crash_text="breaks the rule" if self._phase.rule else "crash",
            crash_y=end,
            legend=legend,
            notes=notes,
        )

    # ---- where ----

    def _x(self, key: float) -> int:
        return round(self._at.get(key, GUTTER))

    def _span(self, one: Step) -> tuple[int, int]:
        end = self._crash if one.fate is Fate.UNDER_WAY else self._x(one.seq)
        return self._x(begin(one)), end

    def _hit(self) -> int | None:
        """In the bar of the write that was hit, behind what of its first sectors was kept."""
        last = self._ended[-1] if self._ended else None
        if last is None or not self._phase.how.startswith("killed") or last.fate is Fate.KEPT:
            return None
        x, end = self._span(last)
        whole = len(last.kept) - len(last.kept.lstrip("1"))
        is_prefix = set(last.kept[whole:]) <= {"0"}
        return x + round((end - x) * whole / max(len(last.kept), 1)) if is_prefix else None

    # ---- what ----

    def _lanes(self, y: int) -> tuple[list[Lane], int]:
        """Each with room for its labels; where the next thing begins."""
        lanes = []
        for thread in sorted({one.thread for one in self._calls}):
            own = [one for one in self._calls if one.thread == thread]
            labels, rows = self._labels(own)
            y += LABEL * rows + 6
            placed = [replace(one, y=y - 4 - LABEL * one.y) for one in labels]
            lanes.append(Lane(f"thread {thread}", y, [self._bar(one) for one in own], placed))
            y += BAR
        return lanes, y

    def _labels(self, calls: Sequence[Step]) -> tuple[list[Label], int]:
        """Above their bars, in rows that are counted from below; those that find no room are left out."""
        rows: list[list[tuple[float, float]]] = []
        found = []
        for one in calls:
            letter = self._letters.get(one.seq, "")
            if not letter and one.fate not in _LOUD:
                continue
            word = one.fate if one.fate in _LOUD else ""
            text = " ".join(part for part in (letter, word, self._what(one)) if part)
            text = _cut(text, LABEL_LETTERS)
            x, right = self._span(one)
            wide = LETTER * len(text) + GAP
            at_end = x + wide > self._crash + MARGIN and right - wide > GUTTER
            left = right - wide if at_end else x
            free = (
                n
                for n, row in enumerate(rows)
                if all(b <= left or left + wide <= a for a, b in row)
            )
            row = next(free, len(rows))
            if row == LABEL_ROWS:
                continue
            rows[row : row + 1] = [[*(rows[row] if row < len(rows) else ()), (left, left + wide)]]
            self._width = max(self._width, int(left + wide))
            found.append(Label(right if at_end else x, row, text, "end" if at_end else "start"))
        return found, len(rows)

    def _bar(self, one: Step) -> Bar:
        x, end = self._span(one)
        end = max(end, x + GAP)
        kind = "sync" if one.op in SYNCS else "write" if one.op in CONTENT else "name"
        letter = self._letters.get(one.seq, "")
        return Bar(
            seq=one.seq,
            x=x,
            width=end - x,
            fate=one.fate.replace(" ", "-"),
            kind=kind,
            text=f"{letter} {one.op}".strip(),
            title=self._told(one),
            segments=_segments(one.kept, x, end) if one.fate is Fate.TORN else [],
        )

    def _what(self, one: Step) -> str:
        path = f"{one.path} to {one.to}" if one.to else one.path
        return one_line(", ".join(part for part in (f"{one.op} {path}", self._place(one)) if part))

    def _place(self, one: Step) -> str:
        size = self._evidence.page_size
        if one.op == "truncate":
            return f"to {one.offset:,} bytes"
        if not one.length:
            return ""
        if size and one.length == size and not one.offset % size:
            return f"page {one.offset // size}"
        return f"{one.length:,} bytes at {one.offset:,}"

    def _told(self, one: Step) -> str:
        """All that is known of a call, in one line."""
        part = self._letters.get(one.seq)
        parts = [
            f"{one.seq} {self._what(one)}",
            one.site.replace("_", " "),
            f"{part}, of the explanation" if part else "",
            _WORDS[one.fate] if one.op not in SYNCS or one.fate is not Fate.DURABLE else "",
            duration(one.end_ns - one.start_ns) if one.end_ns else "",
            f"statement {one.line}" if one.line else "",
            one.sync,
            str(one.stack[0]) if one.stack else "",
        ]
        return one_line("; ".join(text for text in parts if text))

    def _flags(self) -> Iterator[Flag]:
        """What was issued in one row, what was answered below it."""
        free = [0.0, 0.0]
        for one in self._marks:
            text = self._evidence.statements.get(one.line, "")
            client = f" {one.path}" if one.path else ""
            title = f"{one.seq} {one.op} {one.line}{client}" + (f": {text}" if text else "")
            x, row, told = self._x(one.seq), int(one.op != "issue"), f"{one.op} {one.line}"
            told = told if x >= free[row] else ""
            free[row] = max(free[row], x + FLAG + LETTER * len(told)) if told else free[row]
            yield Flag(x, HEAD + FLAGS * row, one.op, told, one_line(title))

    def _syncs(self, y: int) -> list[Sync]:
        """A row per sync of a file whose writes are drawn."""
        chosen = []
        until: dict[str, int] = defaultdict(int)
        for sync in self._calls:
            if sync.fate in (Fate.DURABLE, Fate.UNDER_WAY):
                dots = list(self._dots(sync, until[sync.path]))
                until[sync.path] = max(until[sync.path], begun(sync))
                chosen += [(sync, dots)] if dots else []
        rows = []
        for n, (sync, dots) in enumerate(chosen[-SYNCS_MAX:]):
            x, end = self._span(sync)
            letter = self._letters.get(sync.seq, "")
            name = f"{letter} {sync.op} {sync.seq}".strip()
            text = one_line(f"{sync.path}: {_coverage(sync, dots)}")
            left = min(x, *(dot.x for dot in dots))
            width = max(end - x, GAP)
            rows.append(Sync(sync.seq, name, y + ROW * n, x, width, left, dots, text))
            self._width = max(self._width, x + width + int(LETTER * len(text)) + 2 * GAP)
        return rows

    def _dots(self, sync: Step, covered: int) -> Iterator[Dot]:
        """The writes of its file that had begun before it ended; `covered`: up to it by an earlier one."""
        for one in self._ended:
            if _is_on(one, sync) and one.seq > covered and begin(one) < sync.seq:
                is_covered = one.seq <= begun(sync)
                why = "covered" if is_covered else "not covered: it ended after the sync began"
                yield Dot(self._x(one.seq), is_covered, f"{one.seq}: {why}")

    # ---- words around ----

    def _ticks(self) -> Iterator[Label]:
        """Times before the crash where they are known, else numbers of operations."""
        ends = [one for one in self._ended if one.end_ns]
        zero = max((one.end_ns for one in ends), default=0)
        last = -math.inf
        for one in ends or self._ended:
            x = self._x(one.seq)
            if x - last >= TICK:
                last = x
                text = f"-{duration(zero - one.end_ns)}" if ends else f"#{one.seq}"
                yield Label(x, HEAD - 6, text.replace("-0 us", "0"), "middle")

    def _legend(self, y: int) -> tuple[list[tuple[str, Label]], int]:
        fates = {one.fate for one in self._calls}
        found: list[tuple[str, Label]] = []
        x = GUTTER
        for fate, words in _WORDS.items():
            if fate in fates:
                width = 30 + int(LETTER * len(words))
                if x > GUTTER and x + width > self._width:
                    x, y = GUTTER, y + ROW
                found.append((fate.replace(" ", "-"), Label(x, y, words)))
                x += width
        return found, y + ROW + 4

    def _notes(self, syncs: Sequence[Sync]) -> list[str]:
        """What is left out, and what the marks mean."""
        drawn = sum(one.fate is not Fate.UNDER_WAY for one in self._calls)
        total = self._phase.total
        notes = [
            "A bar is a call, from its begin to its end; the calls of one thread are one lane."
        ]
        if total > drawn:
            notes = [f"{drawn:,} of {total:,} operations are drawn; ≈ marks where others were."]
        if any(one.end_ns for one in self._calls):
            notes.append("Times are before the last call; lengths are times within bounds.")
        else:
            notes.append("No times were taken: the order is that of the recording.")
        if syncs:
            notes.append(
                "Under the lanes: what each sync covers, ● writes that ended before it began, and not ✕."
            )
        if self._letters:
            notes.append(
                "Of the explanation: A was lost, B relies on it, C is the sync that did not cover it."
            )
        return notes


def _letters(explained: Explained | None) -> dict[int, str]:
    """Of the operations of an explanation."""
    if explained is None:
        return {}
    cause = explained.cause
    relied = {cause.relied.seq: "B"} if cause.relied else {}
    syncs = {one.seq: "C" for one in cause.syncs}
    return {**relied, **syncs, **{one.seq: "A" for one in cause.lost}}


def _is_on(one: Step, sync: Step) -> bool:
    """An operation on what is in the file of a sync."""
    return sync.op in ("fsync", "fdatasync") and one.op in CONTENT and one.path == sync.path


def _coverage(sync: Step, dots: Sequence[Dot]) -> str:
    covered = sum(dot.covered for dot in dots)
    verb = "would cover" if sync.fate is Fate.UNDER_WAY else "covers"
    told = f"{verb} {covered} of {len(dots)} that are drawn"
    told += f", {sync.covers:,} in all" if sync.covers > covered else ""
    missed = [dot.title.partition(":")[0] for dot in dots if not dot.covered]
    return told + (f"; not {', '.join(missed)}" if missed else "")


def _segments(kept: str, x: int, end: int) -> list[tuple[int, int, bool]]:
    """Runs of sectors of a torn write, the lost ones too; of many sectors, several are one."""
    cells = min(len(kept), SEGMENTS_MAX)
    edges = [len(kept) * n // cells for n in range(cells + 1)]
    lost = ["0" in kept[a:b] for a, b in pairwise(edges)]
    runs = []
    at = 0
    for is_lost, run in groupby(lost):
        count = len(list(run))
        left, right = (x + round((end - x) * n / cells) for n in (at, at + count))
        runs.append((left, right - left, is_lost))
        at += count
    return runs


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"
