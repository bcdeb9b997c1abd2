"""Why a crash breaks a state, in words; the values are in vocabulary/cause.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from tornpage.vocabulary.cause import Cause, Counterfactual, Kind, Operation, Parting
from tornpage.vocabulary.evidence import Frame, Step

__all__ = ["Meeting", "meetings", "operation_of", "sentence", "with_frames", "words_of"]


NONE: Mapping[int, tuple[Frame, ...]] = {}


def with_frames(
    cause: Cause,
    frames: Mapping[int, tuple[Frame, ...]],
    made: Mapping[int, tuple[Frame, ...]] = NONE,
) -> Cause:
    """frames: by number of the operation; made: of who made what it brings, by number of the stack."""

    def framed(one: Operation) -> Operation:
        change = one.change
        if change is not None and change.stack:
            change = replace(change, frames=made[change.stack])
        return replace(one, frames=frames.get(one.seq, ()), change=change)

    return replace(
        cause,
        lost=tuple(map(framed, cause.lost)),
        beside=tuple(map(framed, cause.beside)),
        relied=framed(cause.relied) if cause.relied else None,
        until=framed(cause.until) if cause.until else None,
        syncs=tuple(map(framed, cause.syncs)),
    )


def words_of(step: Step) -> str:
    """As "write of 4096 bytes at 8192 of t1.ibd"."""
    path = f"{step.path} to {step.to}" if step.to else step.path
    size = f" of {step.length} bytes at {step.offset}" if step.length else ""
    size = f" at {step.offset} bytes" if step.op == "truncate" else size
    return f"{step.op}{size} of {path}" if path else f"{step.op}{size}"


def operation_of(step: Step) -> Operation:
    """Its words have its number."""
    what = f"{words_of(step)} (operation {step.seq})"
    return Operation(step.seq, step.op, step.path, what, step.site, step.line)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Operations whose calls meet in one call of a function, and where it calls them: who orders them, or
    should make one step of them."""

    one: int
    other: int
    frames: tuple[Frame, Frame]

    def __str__(self) -> str:
        places = [f"{PurePath(one.file).name}:{one.line}" for one in self.frames if one.file]
        where = f", at {' and '.join(dict.fromkeys(places))}" if places else ""
        return f"Operations {self.one} and {self.other} are both called by {self.frames[0].function}{where}."


def meetings(cause: Cause) -> list[Meeting]:
    """Of each operation that was lost and the one that relies on it; if nothing was lost, of the two ends:
    where they were made, and where what they bring was. Each function once."""
    first = cause.lost or ((cause.relied,) if cause.relied else ())
    last = cause.relied if cause.lost else cause.until
    pairs = [(one, last) for one in first if last]
    met = [
        Meeting(one.seq, other.seq, frames) for one, other in pairs for frames in _met(one, other)
    ]
    return list({(one.one, one.other, one.frames[0].function): one for one in met}.values())


def _met(one: Operation, other: Operation) -> Iterator[tuple[Frame, Frame]]:
    """Calls of different statements meet in what runs statements, which is no meeting."""
    for line, frames in _stacks(one):
        for there, others in _stacks(other):
            found = _meet(frames, others) if 0 < line == there else None
            if found is not None:
                yield found


def _stacks(one: Operation) -> Iterator[tuple[int, Sequence[Frame]]]:
    """Each with its statement, of who made what matters first."""
    if one.change is not None:
        yield one.change.line, one.change.frames
    yield one.line, one.frames


def _meet(one: Sequence[Frame], other: Sequence[Frame]) -> tuple[Frame, Frame] | None:
    """The innermost frames of the same call of a function."""
    met = None
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if not a.function or (a.function, a.file) != (b.function, b.file):
            break
        met = a, b
        if a.line != b.line or (not a.line and a.offset != b.offset):
            break
    return met


def sentence(cause: Cause) -> str:
    """The cause, for a person who has not seen the recording."""
    lost, then = _several(cause.lost), _several([cause.relied])
    were, them = ("was", "it") if len(cause.lost) == 1 else ("were", "them")
    match cause.kind:
        case Kind.NOTHING_LOST:
            return _nothing_lost(cause)
        case Kind.TORN:
            said = f"{lost} {were} torn, and must be there as a whole or not at all."
        case Kind.ACKNOWLEDGED:
            said = (
                f"{lost} {were} not durable when statement {cause.acknowledged} was acknowledged, "
                f"right after {then or them}."
            )
        case Kind.ORDER if then:
            said = f"{lost} {were} not durable when {then}, which relies on {them}, was."
        case Kind.ORDER:
            said = f"{lost} {were} lost, which breaks the state at once."
    tried = map(_outcome, cause.counterfactuals)
    told = [*cause.notes, *map(str, meetings(cause)), *tried, *_parted(cause.parting)]
    return " ".join([f"{cause.finding}:", said, *told])


def _nothing_lost(cause: Cause) -> str:
    said = "all that was written is there, so no order of writes is to blame."
    since = _several([cause.relied]) or "the beginning"
    until = f", until {_several([cause.until])}: these must be one step" if cause.until else ""
    said = f"{cause.finding}: {said} From {since} on a crash breaks it{until}."
    return " ".join([said, *map(str, meetings(cause)), *_parted(cause.parting)])


def _parted(parting: Parting | None) -> list[str]:
    if parting is None:
        return []
    goes, instead = parting.goes, parting.instead
    if goes is None:
        assert instead is not None, "one of them does what the other does not"
        said = [f"Recovery never comes to {instead.what}, as it does {parting.than}."]
    elif instead is None:
        said = [f"Recovery goes another way than {parting.than}, at {goes.what}."]
    else:
        said = [
            f"Recovery goes another way than {parting.than}, at {goes.what}, not {instead.what}."
        ]
        met = _meet(goes.frames, instead.frames)
        said += [f"Both are called by {met[0].function}."] if met else []
    said += [f"It fails at {parting.fails.what}."] if parting.fails else []
    innocent = (
        "The run has broken no rule on bytes up to the crash, which leaves what came after it."
    )
    return [*said, innocent] if parting.blames else said


def _several(operations: Sequence[Operation | None]) -> str:
    told = (one for one in operations if one is not None)
    return " and ".join(f"{one.what}, {one.part}" if one.part else one.what for one in told)


def _outcome(one: Counterfactual) -> str:
    broken = "another finding" if one.otherwise else "broken"
    return f"{one.what}: {'right' if one.right else broken}."
