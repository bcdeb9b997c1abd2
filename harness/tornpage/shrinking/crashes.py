"""What is looked for when a finding is shrunk: a crash with a given fingerprint, in a script that has
changed since the finding was made. crashes_live.py and crashes_loss.py do the looking.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from tornpage.oracle.fingerprint import Fingerprint, fingerprint_of
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.model import FaultPlan, TrialSpec, Violation
from tornpage.workloads.script import Script

__all__ = ["Crash", "CrashSearch", "choose_violation", "inline_spec", "shows"]


@dataclass(frozen=True, slots=True)
class Crash:
    """A crash with the wanted fingerprint. lost_sectors: written, but not in the crashed image; None if
    that is not known of it."""

    plan: FaultPlan
    lost_sectors: int | None


class CrashSearch(Protocol):
    """One of the two searches. A crash that find() returns is the next one's neighbour.

    origin: place in the original script of the statement that was in flight at the last crash.
    start: the crash of the original script, without a stale log block or nested faults if not needed.
    """

    fingerprint: Fingerprint
    start: Crash

    @property
    def origin(self) -> int: ...

    def find(self, script: Script, origins: Sequence[int]) -> Crash | None:
        """A crash of this script; origins: place of each statement in the original."""

    def kept(self, script: Script) -> Path | None:
        """The folder beside which the recording is kept that the crash of this script belongs to; None: any
        run of it will do."""

    def refine(self, script: Script, crash: Crash, deadline: float) -> Crash:
        """The same with as little lost as possible; deadline: on time.monotonic()."""


def inline_spec(spec: TrialSpec, script: Script, plan: FaultPlan) -> TrialSpec:
    """The trial with its script in full, so that it needs no generator or file. A target's own work
    stays as it is."""
    if spec.workload == "own":
        return replace(spec, number=0, plan=plan)
    params: dict[str, int | str] = {"script": script.text}
    workload = "lines" if spec.workload == "lines" else "inline"
    return replace(spec, number=0, workload=workload, params=params, plan=plan)


def shows(violations: Iterable[Violation], wanted: Fingerprint, site: str) -> bool:
    """One of them is the finding that is wanted, and not only of its invariant. site: of the write that was
    hit."""
    return any(fingerprint_of(item, site) == wanted for item in violations)


def choose_violation(
    violations: Sequence[Violation], wanted: Violation, spec: TrialSpec
) -> Violation:
    """The violation to follow: of the same fingerprint as `wanted`, else of the same invariant."""
    path = fingerprint_of(wanted, "").path
    same = [item for item in violations if item.invariant == wanted.invariant]
    exact = [item for item in same if fingerprint_of(item, "").path == path]
    if not same:
        raise TornpageError(
            f"trial {spec.number} of {spec.campaign} no longer breaks I{wanted.invariant}: "
            "have the programs changed?"
        )
    return (exact or same)[0]
