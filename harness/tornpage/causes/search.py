"""The cause of a finding, by experiment: which operations must be lost for it, which must be there, from
which one on it shows, and what one operation more or less would change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tornpage.causes.cause import operation_of
from tornpage.causes.experiment import ALL, NOTHING, Choice, Experiment
from tornpage.evidence.timeline import is_covered
from tornpage.oracle.fingerprint import kind_of
from tornpage.shrinking.ddmin import ddmin
from tornpage.targets.target import Part
from tornpage.vocabulary.cause import Cause, Change, Counterfactual, Kind, Operation
from tornpage.vocabulary.errors import ChildError, ConfigError
from tornpage.vocabulary.evidence import CONTENT, SYNCS, Fate, Step

__all__ = ["Crash", "find_cause"]

NEAR = 12
"""Operations behind the one that breaks the state, each of which is tried, and of those before it."""
BEFORE = "right before that"


@dataclass(frozen=True, slots=True)
class Crash:
    """A crash to explain. seq: the event that it comes right after; waiting: what was not durable, and what
    of it was kept; wanted: the findings that it shows; finding: the first, in the judge's words; steps: all
    of the recording, of one process; began: by number of a sync the event after which its call began."""

    seq: int
    waiting: Mapping[int, str]
    wanted: Collection[tuple[int, str]]
    finding: str
    steps: Sequence[Step]
    began: Mapping[int, int]


def find_cause(experiment: Experiment, crash: Crash, tell: Callable[[str], None]) -> Cause:
    """Raises ConfigError where the crash cannot be made operation by operation. tell: hears how far it is."""
    return _Search(experiment, crash, tell).cause()


class _Search:
    def __init__(self, experiment: Experiment, crash: Crash, tell: Callable[[str], None]) -> None:
        self._experiment, self._crash, self._tell = experiment, crash, tell
        self._steps = {step.seq: step for step in crash.steps if step.fate is not Fate.MARK}
        self._wanted: set[tuple[int, str]] = set()
        self._apart: tuple[Choice, Choice, str] | None = None
        """A broken crash, the right one that is nearest to it, and in what that is another."""

    def cause(self) -> Cause:
        cause = self._cause()
        if self._apart is None:
            return cause
        self._tell("where its recovery goes another way")
        return replace(cause, parting=self._experiment.parting(*self._apart))

    def _cause(self) -> Cause:
        crash = self._crash
        lost = {seq: kept for seq, kept in crash.waiting.items() if NOTHING in kept}
        self._wanted = self._shown_at_first(Choice(crash.seq, lost))
        if not self._wanted:
            raise ConfigError(
                "the crash cannot be made operation by operation: with the same writes lost, and the others "
                "there, nothing is broken (a size without its bytes is such a crash)"
            )
        self._tell("what must be lost for it")
        needed = ddmin(
            sorted(lost), lambda some: self._shows(Choice(crash.seq, {s: lost[s] for s in some}))
        )
        if not needed:
            return self._nothing_lost()
        parts = {seq: lost[seq] for seq in needed}
        self._tell("what must be there for it")
        beside = self._beside(parts)
        self._tell("from which operation on")
        relied = self._first_broken(parts)
        acknowledged = self._acknowledged(parts, relied)
        torn = self._must_be_whole(parts)
        ends = self._torn_between(parts) if torn else None
        if ends is not None:
            return self._between(*ends)
        lost_parts = {} if torn else {seq: self._part_lost(parts, seq) for seq in needed}
        kind = Kind.TORN if torn else Kind.ACKNOWLEDGED if acknowledged else Kind.ORDER
        return Cause(
            kind=kind,
            finding=crash.finding,
            lost=tuple(self._told(seq, lost_parts.get(seq)) for seq in needed),
            beside=self._operations(beside),
            relied=None if relied is None else self._told(relied, self._part_since(relied, parts)),
            acknowledged=acknowledged,
            until=None,
            counterfactuals=tuple(self._counterfactuals(parts)),
            notes=() if torn else tuple(self._note(seq) for seq in needed),
            syncs=() if torn else self._operations(self._syncs_of(needed)),
        )

    # ---- what is there and what is not ----

    def _shown_at_first(self, choice: Choice) -> set[tuple[int, str]]:
        """Of the findings of a crash those to follow: the same, else of the same invariant: a live recovery
        says the same in other words."""
        shown = {kind_of(one) for one in self._experiment.violations(choice)}
        alike = {one for one in shown if one[0] in {wanted[0] for wanted in self._crash.wanted}}
        return shown & set(self._crash.wanted) or alike

    def _shows(self, choice: Choice) -> bool:
        return self._experiment.shows(choice, self._wanted)

    def _right(self, choice: Choice) -> bool:
        return not self._experiment.violations(choice)

    def _beside(self, parts: Mapping[int, str]) -> list[int]:
        """Of what was not durable the smallest set that must be there, if all else is lost too; none where
        the crash cannot be made that way."""
        others = sorted(seq for seq in self._crash.waiting if seq not in parts)
        torn = {seq: kept for seq, kept in parts.items() if ALL in kept}

        def alone(some: list[int]) -> bool:
            of = {**dict.fromkeys(some, ALL), **torn}
            return self._shows(Choice(self._crash.seq, of, keeps=True))

        return ddmin(others, alone) if alone(others) else []

    def _must_be_whole(self, parts: Mapping[int, str]) -> bool:
        """Of what is torn nothing may be there, or all."""
        torn = {seq: NOTHING for seq, kept in parts.items() if ALL in kept}
        return bool(torn) and self._right(Choice(self._crash.seq, {**parts, **torn}))

    def _counterfactuals(self, parts: Mapping[int, str]) -> list[Counterfactual]:
        seq = self._crash.seq
        told = []
        for one in parts:
            rest = {other: kept for other, kept in parts.items() if other != one}
            what = "With it durable" if not rest else f"With operation {one} durable"
            told.append(self._tried(what, Choice(seq, rest), parts))
            if ALL in parts[one]:
                whole = {**parts, one: NOTHING}
                what = f"With nothing of operation {one} there"
                told.append(self._tried(what, Choice(seq, whole), parts))
        nothing = Choice(seq, {}, keeps=True)
        told.append(self._tried("With nothing kept that was not durable", nothing, parts))
        return told

    def _tried(self, what: str, choice: Choice, parts: Mapping[int, str]) -> Counterfactual:
        """The first one that is right is the nearest."""
        right = self._right(choice)
        if right and self._apart is None:
            self._apart = Choice(self._crash.seq, parts), choice, what[0].lower() + what[1:]
        return Counterfactual(what, right, not right and not self._shows(choice))

    # ---- when ----

    def _when(self, seq: int) -> int:
        """0: before all steps. What waits in a recovery and has a number behind the crash is of the run."""
        return seq if seq <= self._crash.seq else 0

    def _first_broken(self, parts: Mapping[int, str]) -> int | None:
        """The first operation after which the loss shows, in halves: behind the last one that is lost, else
        before it, where its not having happened is enough. None: it shows right after that."""

        def broken(seq: int) -> bool:
            return self._shows(
                Choice(seq, {one: kept for one, kept in parts.items() if self._when(one) <= seq})
            )

        last = max(map(self._when, parts))
        after = [seq for seq in sorted(self._steps) if last <= seq <= self._crash.seq]
        first = self._search(after, broken)
        if first > 0:
            return after[first]
        before = [seq for seq in sorted(self._steps) if seq < last]
        if self._answer(before, len(before) - 1, 0, broken):
            return before[self._search(before, broken)]
        return None

    def _search(self, points: Sequence[int], broken: Callable[[int], bool]) -> int:
        """Place of the first broken one. The last one is broken, and those behind the first are as well."""
        low, high = 0, len(points) - 1
        while low < high:
            middle = (low + high) // 2
            answer = self._answer(points, middle, low, broken)
            if answer is None or not answer:
                low = middle + 1
            else:
                high = middle
        return low

    def _answer(
        self, points: Sequence[int], place: int, low: int, broken: Callable[[int], bool]
    ) -> bool | None:
        """At a crash point, or the next one before it: not every operation is one. None: there is none."""
        for at in range(place, low - 1, -1):
            try:
                return broken(points[at])
            except ChildError:
                continue
        return None

    def _acknowledged(self, parts: Mapping[int, str], relied: int | None) -> int:
        """The statement that was acknowledged right after that operation, if that is what its loss breaks: it
        does so too if the operation itself is lost."""
        place = relied if relied is not None else max(parts, key=self._when)
        marks = self._marks_after(place)
        if not marks:
            return 0
        if self._step(place).op in SYNCS or place in parts:
            return marks[-1]  # nothing else has changed there
        return marks[-1] if self._shows(Choice(place, {**parts, place: NOTHING})) else 0

    def _marks_after(self, seq: int) -> list[int]:
        """Statements that were acknowledged after the operation and before the next one."""
        following = min((other for other in self._steps if other > seq), default=None)
        return [
            step.line
            for step in self._crash.steps
            if step.op == "ack" and step.seq > seq and (following is None or step.seq < following)
        ]

    # ---- which step of a write ----

    def _part_since(self, seq: int, lost: Mapping[int, str]) -> Part | None:
        """Of the steps that the write brings the first with which the loss shows."""
        before = {one: kept for one, kept in lost.items() if self._when(one) <= seq}
        return self._first_part(seq, lambda n: self._shows(Choice(seq, before, cut=(seq, n))))

    def _part_lost(self, lost: Mapping[int, str], seq: int) -> Part | None:
        """Of the steps that the lost write brings the one that must be there: with it the rest of the write
        is lost, and nothing shows."""
        others = {one: kept for one, kept in lost.items() if one != seq}
        crash = self._crash.seq
        return self._first_part(seq, lambda n: not self._shows(Choice(crash, others, cut=(seq, n))))

    def _first_part(self, seq: int, changed: Callable[[int], bool]) -> Part | None:
        """changed: with so many of the steps there. None: the write is not made of steps, or it is none of
        them."""
        parts = self._experiment.parts(seq)
        if not parts or changed(0) or not changed(len(parts)):
            return None
        return parts[bisect_left(range(1, len(parts)), 1, key=changed)]

    def _torn_between(self, torn: Mapping[int, str]) -> tuple[Operation, Operation] | None:
        """Of one write that is torn, and brings several steps: the one with which it shows, and the next one
        with which it does not, of those that end before the first sector that is lost. None: whole steps do
        not break it."""
        (seq, kept), *others = torn.items()
        parts = self._experiment.parts(seq)
        if others or not parts:
            return None

        def shows(n: int) -> bool:
            return self._shows(Choice(seq, {}, cut=(seq, n)))

        head = kept[: kept.index(NOTHING)].ljust(len(kept), NOTHING)
        there = self._experiment.whole_parts(seq, head)
        if shows(0) or not shows(there):
            return None
        since = bisect_left(range(1, there), 1, key=shows)
        until = next((n for n in range(there + 1, len(parts) + 1) if not shows(n)), None)
        if until is None:
            return None
        self._parts_apart(seq, since)
        return self._told(seq, parts[since]), self._told(seq, parts[until - 1])

    # ---- nothing is lost ----

    def _nothing_lost(self) -> Cause:
        """From which operation on, and until which one, does a crash that loses nothing show it?"""
        self._tell("from which operation on, until which")

        def broken(seq: int) -> bool:
            return self._shows(Choice(seq, {}))

        points = [seq for seq in sorted(self._steps) if seq <= self._crash.seq]
        first = self._search(points, broken)
        since = points[first] if points else 0
        if first == 0 and (not points or self._answer(points, 0, 0, broken)):
            until = self._first_right([seq for seq in sorted(self._steps) if seq > self._crash.seq])
            return self._between(None, None if until is None else self._told(until, None))
        part = self._part_since(since, {})
        if part is not None:
            self._parts_apart(since, self._experiment.parts(since).index(part))
        else:
            near = (Choice(seq, {}) for seq in reversed(points[:first][-NEAR:]))
            before = next(filter(self._is_right, near), None)
            self._apart = (Choice(since, {}), before, BEFORE) if before else None
        return self._between(self._told(since, part), self._until(since, part))

    def _parts_apart(self, seq: int, place: int) -> None:
        """Of one write with and without the step at this place."""
        broken, right = (Choice(seq, {}, cut=(seq, n)) for n in (place + 1, place))
        self._apart = broken, right, BEFORE

    def _between(self, since: Operation | None, until: Operation | None) -> Cause:
        return Cause(
            kind=Kind.NOTHING_LOST,
            finding=self._crash.finding,
            lost=(),
            beside=(),
            relied=since,
            acknowledged=0,
            until=until,
            counterfactuals=(),
            notes=(),
        )

    def _until(self, since: int, part: Part | None) -> Operation | None:
        """The next step behind which nothing shows: step by step at first, in the same write as well."""
        later = [seq for seq in sorted(self._steps) if seq > since]
        near = [since, *later[:NEAR]] if part else later[:NEAR]
        begun = part is None
        for seq in near:
            for n, one in enumerate(self._experiment.parts(seq) or (None,), 1):
                if begun and self._is_right(Choice(seq, {}, cut=(seq, n) if one else None)):
                    return self._told(seq, one)
                begun = begun or one == part
        until = self._first_right([seq for seq in later[NEAR:] if seq > self._crash.seq])
        if until is None:
            return None
        first = self._first_part(
            until, lambda n: not self._shows(Choice(until, {}, cut=(until, n)))
        )
        return self._told(until, first)

    def _is_right(self, choice: Choice) -> bool:
        """False: there is no such crash."""
        try:
            return not self._shows(choice)
        except ChildError:
            return False

    def _first_right(self, points: Sequence[int]) -> int | None:
        """The first one whose crash is right: in growing steps, then in halves."""

        def right(seq: int) -> bool:
            return not self._shows(Choice(seq, {}))

        at, step, low = 0, 1, 0
        while at < len(points):
            if self._answer(points, at, low, right):
                return points[low + self._search(points[low : at + 1], right)]
            low, at, step = at + 1, at + step, step * 2
        return None

    # ---- words ----

    def _step(self, seq: int) -> Step:
        """Not each that waits is one of the recording's steps: an open that cuts its file is none."""
        return self._steps.get(seq, Step(seq, "operation", "", Fate.KEPT))

    def _told(self, seq: int, part: Part | None) -> Operation:
        """part: which of its steps matters."""
        told = operation_of(self._step(seq))
        made = part or self._experiment.changer(seq)
        if made is None:
            return told
        change = Change(made.what, self._line_of(made, seq), made.stack)
        return replace(told, part=part.what if part else "", change=change)

    def _line_of(self, part: Part, seq: int) -> int:
        """The statement in which a step of this operation was made."""
        issued = (one for one in self._crash.steps if one.op == "issue" and one.seq <= part.event)
        return max(issued, key=lambda one: one.seq, default=self._step(seq)).line

    def _operations(self, seqs: Sequence[int]) -> tuple[Operation, ...]:
        return tuple(operation_of(self._step(seq)) for seq in seqs)

    def _sync_after(self, seq: int) -> int | None:
        """The first sync between the operation and the crash that should have made it durable."""
        step = self._step(seq)
        later = (n for n in sorted(self._steps) if seq < n <= self._crash.seq)
        return next((n for n in later if is_covered(step, self._steps[n])), None)

    def _syncs_of(self, seqs: Sequence[int]) -> list[int]:
        found = (self._sync_after(seq) for seq in seqs)
        return sorted({one for one in found if one is not None})

    def _note(self, seq: int) -> str:
        """Why no sync has made the operation durable."""
        sync = self._sync_after(seq)
        if sync is not None:
            said = f"The {self._step(sync).op} at operation {sync} covers its file,"
            if self._crash.began.get(sync, seq) < seq:
                return f"{said} but began before operation {seq} ended."
            return f"{said} and did not make it durable."
        step = self._step(seq)
        what = (step.path if step.op in CONTENT else "its folder") if step.path else "its file"
        return f"No fsync of {what} came between them."
