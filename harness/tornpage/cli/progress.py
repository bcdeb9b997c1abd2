"""How far a long command is: bars on a terminal, lines in a log."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Self

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tornpage.cli.terminal import make_console, say
from tornpage.reports.torn_matrix import torn_matrix
from tornpage.vocabulary.errors import Interrupted
from tornpage.workers.context import Progress as Watcher
from tornpage.workers.context import QuietProgress

__all__ = ["BarProgress", "LogProgress", "goes_on", "make_progress"]

LINE_EVERY_S = 60.0
NO_SITE = "no write"
"""Where the crash point follows none."""


def make_progress(quiet: bool, counted: str = "with findings") -> Watcher:
    """What fits standard error. counted: what it means that a step is broken."""
    if quiet:
        return QuietProgress()
    if sys.stderr.isatty():
        return BarProgress(make_console(stderr=True), counted)
    return LogProgress(counted)


@contextmanager
def goes_on() -> Iterator[None]:
    """Around what keeps its results as they come, so that the same command goes on after an interruption."""
    try:
        yield
    except Interrupted as stop:
        stop.kept, stop.go_on = True, "the same command"
        raise


class BarProgress:
    """A screen on a terminal: a bar per phase, what has been found and covered so far, and the sites."""

    def __init__(
        self, console: Console, counted: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """console: where it is drawn; clock: in seconds."""
        self._counted, self._clock = counted, clock
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._progress.add_task("starting", total=None, rate="", note="")
        self._broken = self._finds = self._done = 0
        self._last_find = clock()
        self._sites: dict[str, tuple[int, int]] = {}
        self._explored: dict[str, Mapping[str, Any]] = {}
        self._torn = torn_matrix({})
        self._live = Live(console=console, get_renderable=self.screen, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def phase(self, text: str, total: int) -> None:
        """A new bar of `total` steps."""
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(text, total=total, rate="", note="")
        self._broken = self._done = 0

    def advance(self, broken: bool) -> None:
        """One step is done."""
        self._broken += broken
        if broken:
            self._finds += 1
            self._last_find = self._clock()
        task = next(task for task in self._progress.tasks if task.id == self._task)
        rate = f"{task.speed:.0f}/s" if task.speed else ""
        if self._broken:
            rate += f" [red]{self._broken} {self._counted}[/]"
        self._done += 1
        self._progress.update(self._task, completed=self._done, rate=rate)

    def note(self, text: str, share: float = 0.0) -> None:
        """Behind the bar, which is as much longer."""
        self._progress.update(self._task, note=text, completed=self._done + share)

    @property
    def share(self) -> float:
        """Of the phase: how long its bar is."""
        return self._progress.tasks[0].percentage / 100

    def crashed(self, site: str, broken: bool) -> None:
        """One more in the grid."""
        crashes, found = self._sites.get(site, (0, 0))
        self._sites[site] = (crashes + 1, found + broken)

    def explored(self, label: str, summary: Mapping[str, Any], broken: Mapping[str, int]) -> None:
        """Its states are added."""
        self._explored[label] = summary
        for site, states in broken.items():
            crashes, found = self._sites.get(site or NO_SITE, (0, 0))
            self._sites[site or NO_SITE] = (crashes, found + states)
        self._torn = torn_matrix(self._explored)

    def screen(self) -> RenderableType:
        """The bar, one line, and a grid of sites: their crashes, or the states that lost a write of them;
        and how many broke something right after one."""
        parts = []
        if self._explored:
            distinct = sum(int(summary["distinct"]) for summary in [*self._explored.values()])
            parts.append(f"{distinct:,} distinct states")
        if self._torn.total:
            parts.append(f"{self._torn.covered} of {self._torn.total} kinds of torn writes")
        if self._finds:
            ago = _time(self._clock() - self._last_find)
            parts.append(f"{self._finds} {self._counted}, the last one {ago} ago")
        sites = {**self._sites}
        for cell in self._torn.cells:
            crashes, found = sites.get(cell.site, (0, 0))
            sites[cell.site] = (crashes + cell.states, found)
        grid = [
            Text(f"{site} {crashes:,}" + (f" ({found} broken)" if found else ""),
                 style="red" if found else "")
            for site, (crashes, found) in sorted(sites.items())
        ]  # fmt: skip
        line = [Text(", ".join(parts))] if parts else []
        rows = [Columns(grid, padding=(0, 3))] if grid else []
        return Group(self._progress.get_renderable(), *line, *rows)


def _print(line: str) -> None:
    with contextlib.suppress(OSError):  # a log that is gone ends no run
        say(line, sys.stderr)


class LogProgress(QuietProgress):
    """A line every minute and one at the end of each phase, without control characters. The times in it are
    the command's own: since it began, and left of the phase at its rate so far."""

    def __init__(
        self,
        counted: str,
        write: Callable[[str], None] = _print,
        clock: Callable[[], float] = time.monotonic,
        every_s: float = LINE_EVERY_S,
    ) -> None:
        """write: takes a line; clock: in seconds; every_s: between two lines."""
        self._counted, self._write, self._clock, self._every_s = counted, write, clock, every_s
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._began = clock()
        self._start("", 0)

    def __enter__(self) -> Self:
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._ticker.join()
        self._tell()

    def phase(self, text: str, total: int) -> None:
        """What was done before has come to its end."""
        self._tell()
        with self._lock:
            self._start(text, total)

    def advance(self, broken: bool) -> None:
        """One step is done."""
        with self._lock:
            self._done += 1
            self._broken += broken

    def note(self, text: str, share: float = 0.0) -> None:  # noqa: ARG002
        """At the end of the line."""
        with self._lock:
            self._note = text

    def _start(self, text: str, total: int) -> None:
        self._text, self._total, self._done, self._broken = text, total, 0, 0
        self._note = ""
        self._since = self._clock()

    def _tick(self) -> None:
        while not self._over.wait(self._every_s):
            self._tell()

    def _tell(self) -> None:
        with self._lock:
            line = self._line() if self._total else ""
        if line:
            self._write(line)

    def _line(self) -> str:
        now = self._clock()
        parts = [f"{_time(now - self._began)} {self._text}: {self._done} of {self._total}"]
        rate = self._done / (now - self._since) if now > self._since else 0.0
        if rate:
            parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min")
        if rate and self._done < self._total:
            parts.append(f"{_time((self._total - self._done) / rate)} left")
        if self._broken:
            parts.append(f"{self._broken} {self._counted}")
        if self._note:
            parts.append(f"now {self._note}")
        return ", ".join(parts)


def _time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
