"""What a run is made with, and whom it tells of its progress."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from tornpage.store.origin import Examined, Origin
from tornpage.vocabulary.paths import Paths

if TYPE_CHECKING:
    from tornpage.vocabulary.model import TrialResult  # much to load for an annotation

__all__ = [
    "DEFAULT_JOBS",
    "ClusterExecutor",
    "Executor",
    "Pending",
    "Progress",
    "QuietProgress",
    "RunContext",
    "WithResults",
]

DEFAULT_JOBS = min(os.cpu_count() or 1, 8)
"""Worker processes, unless it is said how many."""


T = TypeVar("T")
F = TypeVar("F")
T_co = TypeVar("T_co", covariant=True)


class Pending(Protocol[T_co]):
    """Work that was handed over."""

    def done(self) -> bool:
        """It has ended; result() will not wait."""

    def result(self) -> T_co:
        """Waits for the end; raises what the work raised. Asked once, unless the wait was interrupted."""


class Executor(Protocol):
    """Who does the work of a run: processes of this machine, or of others (cluster.py)."""

    @property
    def size(self) -> int:
        """How many work at once."""

    def submit(
        self, work: Callable[[Any], T], task: Any, failed: Callable[[Exception], F] | None = None
    ) -> Pending[T | F]:
        """Hands over a function of the harness and its task: a data class with `paths`, `scratch` and
        `images`, which are those of the place where the work is done. failed: makes the answer of one that
        fails wherever it is tried, from what it raised there, a MachineError if it is the machine's or if the
        worker was lost; without it that is raised."""


class ClusterExecutor(Executor, Protocol):
    """Those of other machines, where many explorations are under way at once."""

    def wait(self, pending: Sequence[Pending[Any]]) -> None:
        """Until one of these, which were all handed over here, has ended."""


@runtime_checkable
class WithResults(Protocol):
    """An answer of a worker that holds results of trials. Others are results, or tuples of them."""

    def with_results(self, change: Callable[[TrialResult], TrialResult]) -> Self:
        """The same with other results."""


class Progress(Protocol):
    """What the owner tells whoever watches."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def phase(self, text: str, total: int) -> None:
        """A new phase of `total` steps starts."""

    def advance(self, broken: bool) -> None:
        """One step is done; broken: it broke an invariant."""

    def note(self, text: str, share: float = 0.0) -> None:
        """How far the present step is, or those under way, in a few words, and how many steps that comes to;
        "" again at the end."""

    def crashed(self, site: str, broken: bool) -> None:
        """A crash at this site has its verdict."""

    def explored(self, label: str, summary: Mapping[str, Any], broken: Mapping[str, int]) -> None:
        """An exploration has ended with this summary of the explorer's. broken: states, by site."""


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

    def note(self, text: str, share: float = 0.0) -> None:
        """Nothing to tell."""

    def crashed(self, site: str, broken: bool) -> None:
        """Nothing to tell."""

    def explored(self, label: str, summary: Mapping[str, Any], broken: Mapping[str, int]) -> None:
        """Nothing to tell."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run is made with. jobs: worker processes; out: where crashed images are kept; origin: of the
    programs as they are now; night: that it is a part of; stop_at: on time.monotonic(), no crash or
    fault-free run begins after it; cluster: does the work in place of worker processes; examined: what
    has come before it already."""

    paths: Paths
    jobs: int
    out: Path
    progress: Progress
    origin: Origin
    night: int | None = None
    stop_at: float = math.inf
    cluster: ClusterExecutor | None = None
    examined: Examined | None = None

    def is_late(self) -> bool:
        """The time is up."""
        return time.monotonic() >= self.stop_at
