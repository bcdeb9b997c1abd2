"""Why a crash breaks a state, as experiments on it have shown. Values with a JSON form, like those of
model.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pydantic import ConfigDict, with_config

from tornpage.vocabulary.evidence import Frame, Step

__all__ = [
    "Cause",
    "Change",
    "Contrast",
    "Counterfactual",
    "Explained",
    "Kind",
    "Operation",
    "Parted",
    "Parting",
]

_JSON = with_config(ConfigDict(extra="forbid"))
_LENIENT = with_config(ConfigDict(extra="ignore"))
"""A store may hold explanations with keys that are gone."""


class Kind(StrEnum):
    """What went wrong."""

    ORDER = "order"
    """An operation was durable before one that it relies on."""
    ACKNOWLEDGED = "acknowledged"
    """A statement was acknowledged before what it needs was durable."""
    TORN = "torn"
    """A write must be there as a whole or not at all."""
    NOTHING_LOST = "nothing lost"
    """All that was written is there: operations must be one step, or recovery is wrong."""


@_JSON
@dataclass(frozen=True, slots=True)
class Change:
    """What of that which a write brings to its file matters: a step of several, or the last change of a page.
    what: in words; line: statement in which it was made; stack: number of the call stack of who made it,
    frames: as of Operation."""

    what: str
    line: int
    stack: int
    frames: tuple[Frame, ...] = ()


@_LENIENT
@dataclass(frozen=True, slots=True)
class Operation:
    """seq: its number in the recording; op, path: of Step; what: in words; line: statement that was in
    flight, 0 if none; frames: where the target's own code called it, the innermost first; none if the
    recording has no stacks; part: of a write that brings several steps to its file, which of them matters, in
    words; change: who made that step, or has changed the page that it writes last; None: nobody knows, or it
    brings no such thing."""

    seq: int
    op: str
    path: str
    what: str
    site: str
    line: int
    frames: tuple[Frame, ...] = ()
    part: str = ""
    change: Change | None = None


@_JSON
@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A crash at the same place that differs in one thing. right: it breaks nothing; otherwise: it breaks
    something, but does not show the finding."""

    what: str
    right: bool
    otherwise: bool = False


@_JSON
@dataclass(frozen=True, slots=True)
class Parting:
    """Where the recovery of the broken state goes another way than that of a right one. than: in what that
    one is another, in words; goes: the first thing that only the recovery of the broken state does; instead:
    that only the other one does; fails: what the former says last of a failure, as the latter never does;
    None: there is none; blames: the run has broken no rule on bytes up to the crash, which leaves what came
    after it."""

    than: str
    goes: Operation | None
    instead: Operation | None
    fails: Operation | None = None
    blames: bool = False


@_JSON
@dataclass(frozen=True, slots=True)
class Cause:
    """finding: what is broken, in the judge's words. lost:
    the smallest set of operations whose loss breaks the state while all else is there; beside: of what was
    not durable, what must be there for that; relied: the operation from which on their loss breaks it, None
    if it does at once; acknowledged: the statement that was acknowledged right there, 0 if none was; until:
    the operation with which it is right again, None if none is; notes: facts of the recording; syncs: the
    first one after each of `lost` that covers its file, and yet did not make it durable; parting: where the
    recovery goes another way than that of the nearest crash that is right, None if it does not."""

    kind: Kind
    finding: str
    lost: tuple[Operation, ...]
    beside: tuple[Operation, ...]
    relied: Operation | None
    acknowledged: int
    until: Operation | None
    counterfactuals: tuple[Counterfactual, ...]
    notes: tuple[str, ...]
    syncs: tuple[Operation, ...] = ()
    parting: Parting | None = None

    @property
    def operations(self) -> list[Operation]:
        """All of them."""
        ends = [one for one in (self.relied, self.until) if one is not None]
        return [*self.lost, *self.beside, *ends, *self.syncs]

    @property
    def stacks(self) -> list[int]:
        """Numbers of the call stacks of those who made what they bring."""
        changes = (one.change.stack for one in self.operations if one.change is not None)
        return [number for number in changes if number]

    @property
    def numbers(self) -> list[int]:
        """Of its operations, in the recording."""
        return [one.seq for one in self.operations]


@_JSON
@dataclass(frozen=True, slots=True)
class Parted:
    """Where two builds of a target part that do the same work. stack: functions that are under way in both,
    the innermost first; behind: the function that both have left right before, "" if the last thing is
    another; goes, instead: what this build and the good one do next, in words; line: the statement under way,
    0: none was, or there are none."""

    stack: tuple[str, ...]
    behind: str
    goes: str
    instead: str
    line: int = 0


@_JSON
@dataclass(frozen=True, slots=True)
class Contrast:
    """Of the build that has a finding and a good one, whose sources are `good`. sentence: in words; run:
    where they part in the script up to the crash; recovery: in a recovery of the crashed image, or of the one
    whose recovery was crashed; None: they call the same functions all the way."""

    good: str
    sentence: str
    run: Parted | None
    recovery: Parted | None


@_JSON
@dataclass(frozen=True, slots=True)
class Explained:
    """What an explanation came to. sentence: the cause in words; recording: "kept", or "made anew"; probes:
    crashes that were made and recovered for it; steps: its operations up to the crash, as a picture has
    them; contrast: with a good build, None: nobody asked for it."""

    sentence: str
    cause: Cause
    recording: str
    probes: int
    steps: tuple[Step, ...] = ()
    contrast: Contrast | None = None
