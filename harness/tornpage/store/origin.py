"""Where a run comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Examined", "Origin"]

OURS = frozenset(
    {"campaign", "explorer", "harness", "judge", "launcher", "preload", "python", "verifier"}
)
"""Programs of a run that are not the target's own."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What comes before any verdict on a target file. work: hash of target, options and workload; states: of
    the control, a disk that ignores every fsync, 0 where that cannot be made; kinds: how many kinds of them
    broke the promise; blind: configurations of which none did; not_audited: why one was not; compared: at so
    many of the acknowledgements of its runs their files were compared with their recordings; recoveries:
    images whose recovery was audited; mapped: files that were mapped to write, of which no state has a page
    earlier than the kernel handed it over."""

    work: str
    states: int = 0
    kinds: int = 0
    blind: tuple[str, ...] = ()
    not_audited: str = ""
    compared: int = 0
    acknowledgements: int = 0
    recoveries: int = 0
    mapped: tuple[str, ...] = ()

    @property
    def vacuous(self) -> str:
        """Why a verdict without a bug proves nothing, "" if it does not."""
        if self.kinds or not self.states:
            return ""
        return (
            f"vacuous: on a disk that ignores every fsync none of {self.states} states broke the "
            "promise, so this set-up cannot find anything: does the run change enough between its syncs, "
            "and does recover read what is there?"
        )

    @property
    def control_text(self) -> str:
        """What the control came to, if it is not vacuous."""
        if not self.states:
            return "control: none, as there were no power-loss states"
        return (
            f"control: {self.states} states of a disk that ignores every fsync broke the promise "
            f"in {self.kinds} ways, as they must"
        )

    @property
    def audited(self) -> str:
        """How far runs were looked at from outside, "" if they were not."""
        if not self.acknowledgements:
            return ""
        acks = f"{self.compared:,} of {self.acknowledgements:,} acknowledgements"
        return f"audited: {acks}, {self.recoveries} recoveries"

    @property
    def control(self) -> dict[str, int]:
        """The value of `control` in --json."""
        return {"states": self.states, "kinds": self.kinds}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run comes from. programs: name -> hash of what makes its verdicts (engine, preload, harness,
    ...); a run goes on with the same ones only. target: which one it is, in every checkout; revision: of the
    Git checkout that the target's own programs are in, "" if they are in none; examined: what came before the
    run, None where that is no target file's."""

    started: str = ""
    host: str = ""
    version: str = ""
    command: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    examined: Examined | None = None
    revision: str = ""

    @property
    def build(self) -> str:
        """The hash of the target's own programs, joined if there are several."""
        return "+".join(hash_ for name, hash_ in sorted(self.programs.items()) if name not in OURS)
