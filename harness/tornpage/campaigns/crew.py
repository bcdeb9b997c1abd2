"""What a run is made with, and whom it tells of its progress.

May import: origin, paths.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from tornpage.store.origin import Origin
from tornpage.vocabulary.paths import Paths

__all__ = ["DEFAULT_JOBS", "Crew", "Progress", "QuietProgress"]

DEFAULT_JOBS = min(os.cpu_count() or 1, 8)
"""Worker processes, unless it is said how many."""


class Progress(Protocol):
    """What the owner tells whoever watches."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def phase(self, text: str, total: int) -> None:
        """A new phase of `total` steps starts."""

    def advance(self, broken: bool) -> None:
        """One step is done; broken: it broke an invariant."""

    def note(self, text: str) -> None:
        """How far the present step is, in a few words; "" again at its end."""


class QuietProgress:
    """Tells nobody."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def phase(self, text: str, total: int) -> None:
        """Nothing to tell."""

    def advance(self, broken: bool) -> None:
        """Nothing to tell."""

    def note(self, text: str) -> None:
        """Nothing to tell."""


@dataclass(frozen=True, slots=True)
class Crew:
    """What a run is made with. jobs: worker processes; out: where crashed images are kept; origin: of the
    programs as they are now; night: that it is a part of; stop_at: on time.monotonic(), no crash or
    undisturbed run begins after it."""

    paths: Paths
    jobs: int
    out: Path
    progress: Progress
    origin: Origin
    night: int | None = None
    stop_at: float = math.inf

    def is_late(self) -> bool:
        """The time is up."""
        return time.monotonic() >= self.stop_at
