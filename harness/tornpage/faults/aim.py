"""What a campaign's mask does to a write, and where a fault inside a recovery goes. Which writes a recovery
has depends on the crash before it: such a fault is drawn when the crashed image is there.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tornpage.vocabulary.model import Action, Fault, FaultKind, Site, WriteEvent
from tornpage.vocabulary.seeds import make_rng

__all__ = ["SECTOR", "SHORT", "RecoveryAim", "faults_of", "fits", "is_error", "is_of_names"]

SECTOR = 512
"""Bytes per sector of a plan's mask."""

SHORT = "write:short"
"""The mask of a write that takes half of what it is given, and says so."""

_OF_NAMES = ("truncate", "rename", "unlink", "sync_dir")
"""Changes of sizes and names, and syncs of folders."""

LATE_KILL_MAX = 16
LATE_KILL_SECTORS = ("none", "all", "prefix:1", "prefix:2", "prefix:4", "suffix:1", "suffix:2")
"""Of the kill behind a failed operation: at most so many writes later, and what reaches the file of it."""


@dataclass(frozen=True, slots=True)
class RecoveryAim:
    """The fault that a trial's first recovery is to have: at a write of this site, with this mask. seed: of
    the trial."""

    site: Site
    mask: str
    seed: int

    def draw(self, writes: Iterable[WriteEvent]) -> tuple[Fault, ...]:
        """The faults, from the writes of the same recovery without a fault; none if it has no such write."""
        possible = [item for item in writes if item.site is self.site and fits(self.mask, item)]
        if not possible:
            return ()
        rng = make_rng(self.seed, "recovery")
        return faults_of(self.mask, rng.choice(possible), rng)


def is_error(mask: str) -> bool:
    """Whether the operation or its fsync fails, or is short; otherwise the process is killed inside the
    write."""
    return mask.partition(":")[0] in ("write", "fsync", "read", *_OF_NAMES)


def is_of_names(mask: str) -> bool:
    """Whether what fails is a change of a size or a name, or the sync of a folder."""
    return mask.partition(":")[0] in _OF_NAMES


def fits(mask: str, write: WriteEvent) -> bool:
    """An fsync can fail only where there is one. A mask that tears must leave sectors out and keep
    others: a write of one sector cannot be torn. What is no write can only fail."""
    if mask.startswith("read:") or is_of_names(mask) or write.kind is not FaultKind.WRITE:
        return mask.partition(":")[0] == write.kind.value
    if mask == SHORT:
        return write.length > 1
    if is_error(mask):
        return mask.startswith("write:") or write.next_fsync > 0
    count = _count(write)
    if mask in ("none", "all", "random"):
        return True
    kind, _, amount = mask.partition(":")
    if kind == "mask":
        return len(set(_repeated(amount, count))) > 1
    return 0 < _kept(amount, count) < count


def faults_of(mask: str, write: WriteEvent, rng: random.Random) -> tuple[Fault, ...]:
    """What this mask does to this write, which it fits. Behind an error there is a kill, half of the time: a
    target that goes on as if nothing had happened dies inside what it writes then. rng: for all of that."""
    if not is_error(mask):
        fault = Fault(
            kind=FaultKind.WRITE,
            nth=write.nth,
            action=Action.KILL,
            file=write.file,
            sector=SECTOR,
            sectors=_sectors(mask, write, rng),
        )
        return (fault,)
    kind, _, error = mask.partition(":")
    nth = write.next_fsync if kind == "fsync" else write.nth
    failed = Fault(FaultKind(kind), nth, Action.ERROR, file=write.file, error=error)
    if mask == SHORT:
        failed = replace(failed, action=Action.SHORT, error=None, bytes=write.length // 2)
    return (failed, _late_kill(write.promised, rng)) if rng.randrange(2) else (failed,)


def _late_kill(promised: int, rng: random.Random) -> Fault:
    """Nobody knows which file it will hit: it tears none finer than the storage's promise allows of any."""
    return Fault(
        kind=FaultKind.WRITE,
        nth=1 + rng.randrange(LATE_KILL_MAX),
        action=Action.KILL,
        sector=promised,
        sectors=rng.choice(LATE_KILL_SECTORS),
        follows=True,
    )


def _sectors(mask: str, write: WriteEvent, rng: random.Random) -> str:
    """A mask of the campaign as the plan's sector choice for a write of this length: its units are sectors,
    or of several sectors each."""
    count = _count(write)
    if mask == "random":
        chosen = ["1"] * count
        while "0" not in chosen:
            chosen = [rng.choice("01") for _ in range(count)]
        return _sectors_of("".join(chosen), write)
    kind, _, amount = mask.partition(":")
    if kind in ("none", "all"):
        return kind
    if kind == "mask":
        return _sectors_of(_repeated(amount, count), write)
    if write.unit == SECTOR:
        return f"{kind}:{_kept(amount, count)}"
    kept = "1" * _kept(amount, count)
    units = kept.ljust(count, "0") if kind == "prefix" else kept.rjust(count, "0")
    return _sectors_of(units, write)


def _count(write: WriteEvent) -> int:
    """Units that the write lies in: what can be kept or lost by itself."""
    return (write.offset + write.length - 1) // write.unit - write.offset // write.unit + 1


def _sectors_of(units: str, write: WriteEvent) -> str:
    """A mask of units as one of the sectors that the write touches."""
    each = write.unit // SECTOR
    first = write.offset // SECTOR
    last = (write.offset + write.length - 1) // SECTOR
    return "".join(units[n // each - first // each] for n in range(first, last + 1))


def _kept(amount: str, count: int) -> int:
    return count // 2 if amount == "half" else int(amount)


def _repeated(pattern: str, count: int) -> str:
    return (pattern * (count // len(pattern) + 1))[:count]
