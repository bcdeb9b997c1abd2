"""How far explorations are that are under way, by the progress files that the explorer writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tornpage.plans.limits import Limits

__all__ = ["Tell", "Watch", "watched"]

Tell = Callable[[str, float], None]
"""Hears how far it is, in a few words and as a share of the whole; "" and 0 at the end."""
LOOK_EVERY_S = 1.0


def states_of(file: Path) -> tuple[int, int]:
    """States that it has seen, and findings."""
    try:
        words = file.read_text("ascii").split()
    except OSError:
        return 0, 0
    return (int(words[0]), int(words[1])) if len(words) == 2 else (0, 0)


class Watch:
    """Of one exploration."""

    def __init__(
        self,
        file: Path,
        limits: Limits,
        tell: Tell,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """file: what the explorer writes; clock: in seconds."""
        self.file = file
        self._limits, self._tell, self._clock = limits, tell, clock
        self._began = clock()

    def look(self) -> None:
        """Called while the explorer runs."""
        states, findings = states_of(self.file)
        if not states:
            return  # not yet
        limits, seconds = self._limits, self._clock() - self._began
        text = f"{states:,} states" + (f" of {limits.states:,}" if limits.states else "")
        text += f", {states / max(seconds, 0.001):.0f}/s"
        share = states / limits.states if limits.states else 0.0
        if limits.budget_s:
            text += f", {max(limits.budget_s - seconds, 0):.0f} s left"
            share = max(share, seconds / limits.budget_s)
        self._tell(text + _counted(findings), min(share, 1.0))


@contextmanager
def watched(under_way: Callable[[], Iterable[tuple[Path, Limits]]], tell: Tell) -> Iterator[None]:
    """Tells of several that others make, once a second. under_way: their files and limits, asked from another
    thread."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_EVERY_S):
            tell(*far(under_way()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        tell("", 0.0)


def far(under_way: Iterable[tuple[Path, Limits]]) -> tuple[str, float]:
    """In words, and how many explorations their states come to."""
    states = findings = 0
    share = 0.0
    for file, limits in under_way:
        seen, found = states_of(file)
        states, findings = states + seen, findings + found
        share += min(seen / limits.states, 1.0) if limits.states else 0.0
    if not states:
        return "", 0.0
    return f"{states:,} states" + _counted(findings), share


def _counted(findings: int) -> str:
    return f", {findings} finding{'' if findings == 1 else 's'}" if findings else ""
