"""Where a run comes from.

May import: nothing of the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Origin"]

OURS = frozenset({"campaign", "explorer", "harness", "judge", "launcher", "preload", "python"})
"""Programs of a run that are not the target's own."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run comes from. programs: name -> hash of what makes its verdicts (engine, preload, harness,
    ...); a run goes on with the same ones only. target: which one it is, in every checkout; "" in a run of an
    older version."""

    started: str = ""
    host: str = ""
    version: str = ""
    command: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)
    target: str = ""

    @property
    def build(self) -> str:
        """The hash of the target's own programs, joined if there are several."""
        return "+".join(hash_ for name, hash_ in sorted(self.programs.items()) if name not in OURS)
