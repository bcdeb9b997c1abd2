"""The rows that a recovery came to otherwise than they were acknowledged, of a target that tells its states:
each with the statement that it is of, where that was acknowledged, and what of it was never synced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.evidence.timeline import is_covered
from tornpage.faults.image import copy_image, remove_image
from tornpage.oracle.observed import Texts, rows_of, told_texts
from tornpage.targets.target import Capability, Target, last_object
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.evidence import Evidence, Fate, RowChange, Step
from tornpage.vocabulary.model import TrialSpec

__all__ = ["with_rows"]

ROWS_MAX = 16
"""Rows that are listed."""
ROW_MAX = 96
"""Characters of one."""
DIGESTS_ONLY = "this target tells digests of its tables, no rows"


@dataclass(frozen=True, slots=True)
class _Statement:
    """One that was issued. client: "" where there is but one; acknowledged: number of the mark, 0 if it was
    in flight at the crash."""

    number: int
    client: str
    issued: int
    acknowledged: int = 0

    def __str__(self) -> str:
        return f"statement {self.number}" + (f" of {self.client}" if self.client else "")


def with_rows(
    evidence: Evidence,
    spec: TrialSpec,
    target: Target,
    steps: Sequence[Step],
    told: Path,
    image: Path,
    place: Path,
) -> Evidence:
    """The evidence with the rows of this crash. steps: of the run up to it; told: a file with what the run
    has printed; image: that the crash left, which stays as it is; place: a folder that is not there or empty,
    in which a copy of it is recovered."""
    if Capability.OBSERVED not in target.capabilities or not told.is_file():
        return replace(evidence, rows_note=DIGESTS_ONLY)
    remove_image(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    copy_image(image, place)
    try:
        child = target.recover_command(place, spec.options).run({})
        answer = last_object(child.stdout) or {}
    except TornpageError as error:
        return replace(evidence, rows_note=f"its recovery could not be asked for rows: {error}")
    finally:
        remove_image(place)
    if answer.get("ok") is not True:
        return replace(evidence, rows_note="recovery gave no rows: it refused, or did not end well")
    texts = told_texts(told.read_bytes())
    changes, note = row_changes(steps, texts, answer["state"])
    listed, more = changes[:ROWS_MAX], max(0, len(changes) - ROWS_MAX)
    return replace(evidence, rows=tuple(listed), rows_more=more, rows_note=note)


def row_changes(
    steps: Sequence[Step], texts: Mapping[int, Texts], recovered: Texts
) -> tuple[list[RowChange], str]:
    """What differs from the state that was acknowledged last, and which that is. steps: of the run up to the
    crash; texts: the state after each statement, 0: when it was ready."""
    statements = _statements(steps)
    done = [one for one in statements if one.acknowledged and one.number in texts]
    if 0 not in texts:
        return [], "the run has printed no state"
    expected = dict(texts[0])
    for one in done:
        expected = {**expected, **texts[one.number]} if one.client else dict(texts[one.number])
    last = done[-1] if done else None
    of = f"{last}, acknowledged at operation {last.acknowledged}" if last else "ready"
    story = _Story(steps, statements, texts)
    changes = [
        change
        for name in sorted({*expected, *recovered})
        for change in _changes(name, expected.get(name, ""), recovered.get(name, ""), story)
    ]
    if changes:
        return changes, f"expected as after {of}"
    return [], f"all rows are as after {of}: see the findings"


def _statements(steps: Iterable[Step]) -> list[_Statement]:
    """In the order of their acknowledgements, those in flight last."""
    flying: dict[int, _Statement] = {}
    done = []
    for step in steps:
        if step.op == "issue":
            flying[step.line] = _Statement(step.line, step.path, step.seq)
        elif step.op in ("ack", "fail") and step.line in flying:
            one = flying.pop(step.line)
            done += [replace(one, acknowledged=step.seq)] if step.op == "ack" else []
    return [*done, *flying.values()]


def _changes(name: str, expected: str, recovered: str, story: _Story) -> list[RowChange]:
    """Of one text. A row that is there with another value is one change."""
    lost, more = Counter(rows_of(expected)), Counter(rows_of(recovered))
    lost, more = lost - more, more - lost
    keys = Counter(key for key, _ in lost) + Counter(key for key, _ in more)
    others = {key: value for key, value in more if keys[key] == 2 and (key, value) in more}
    changes = []
    for row in lost.elements():
        key, value = row
        found = others.pop(key, "") if keys[key] == 2 else ""
        if found:
            del more[key, found]
        why = story.of_lost(name, row)
        if found:
            why += f"; recovered as {story.of_found(name, (key, found))}"
        changes.append(RowChange(name, _short(value), _short(found), why))
    changes += [
        RowChange(name, "", _short(row[1]), story.of_found(name, row)) for row in more.elements()
    ]
    return changes


def _short(text: str) -> str:
    return text if len(text) <= ROW_MAX else text[: ROW_MAX - 1] + "…"


@dataclass(frozen=True, slots=True)
class _Story:
    """What the run says of its rows."""

    steps: Sequence[Step]
    statements: Sequence[_Statement]
    texts: Mapping[int, Texts]

    def of_lost(self, name: str, row: tuple[str, str]) -> str:
        """Of one that was acknowledged: since when it was there, and what was not synced since."""
        since = None
        for one in reversed([one for one in self.statements if one.acknowledged]):
            text = self.texts.get(one.number, {}).get(name)
            if text is not None and row not in rows_of(text):
                break
            since = one if text is not None else since
        if since is None:
            return "lost: it was there when the store was ready"
        return f"lost: acknowledged at operation {since.acknowledged} ({since}), {self.unsynced(since)}"

    def of_found(self, name: str, row: tuple[str, str]) -> str:
        """Of one that is there and was not the last."""
        for one in reversed(self.statements):
            if row in rows_of(self.texts.get(one.number, {}).get(name, "")):
                how = (
                    f"acknowledged at operation {one.acknowledged}"
                    if one.acknowledged
                    else f"issued at operation {one.issued} and in flight"
                )
                return f"it was after {one}, {how}"
        if row in rows_of(self.texts[0].get(name, "")):
            return "it was when the store was ready"
        return "no statement has ever led to it"

    def unsynced(self, statement: _Statement) -> str:
        """What the statement did that no later sync covers, in words."""
        changed = [
            step
            for step in self.steps
            if statement.issued < step.seq < statement.acknowledged
            and step.fate not in (Fate.MARK, Fate.FAILED, Fate.DURABLE)
        ]
        if not changed:
            return "and it wrote nothing itself"
        last: dict[str, Step] = {}
        done = 0
        for step in changed:
            later = (one for one in self.steps if one.seq > step.seq and is_covered(step, one))
            sync = next(later, None)
            if sync is None:
                last[step.path] = step
            else:
                done = max(done, sync.seq)
        if not last:
            return f"and all that it wrote was synced by operation {done}"
        return " and ".join(_unsynced(step) for step in last.values())


def _unsynced(step: Step) -> str:
    if step.length or step.op == "truncate":
        return f"no fsync of {step.path} since operation {step.seq}"
    return f"no fsync of the folder of {step.path} since operation {step.seq}, its {step.op}"
