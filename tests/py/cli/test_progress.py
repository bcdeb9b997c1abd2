"""Progress where nobody watches: lines of a log, told by a clock of the test's own."""

from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from tornpage.cli.progress import BarProgress, LogProgress, make_progress
from tornpage.workers.context import QuietProgress


class Clock:
    """Seconds that the test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_at_the_end_of_each_phase() -> None:
    """With what was done, how fast, and how much of it was broken; an empty phase is not told."""
    lines: list[str] = []
    clock = Clock()
    with LogProgress("with findings", lines.append, clock) as progress:
        progress.phase("golden runs", 2)
        for _ in range(2):
            clock.now += 5
            progress.advance(False)
        progress.phase("fault-free runs", 0)
        progress.phase("trials", 300)
        for number in range(300):
            clock.now += 0.5
            progress.advance(number % 100 == 0)
    assert lines == [
        "0:00:10 golden runs: 2 of 2, 12.0/min",
        "0:02:40 trials: 300 of 300, 2.0/s, 3 with findings",
    ]


def test_a_line_tells_the_time_left() -> None:
    """Of the phase, at its own rate; none as long as nothing is done. A run that ends early tells how far."""
    lines: list[str] = []
    clock = Clock()
    with LogProgress("not caught", lines.append, clock) as progress:
        progress.phase("trials", 4000)
        clock.now += 60
        progress.phase("trials", 4000)
        for _ in range(1000):
            progress.advance(True)
        clock.now += 120
    assert lines == [
        "0:01:00 trials: 0 of 4000",
        "0:03:00 trials: 1000 of 4000, 8.3/s, 0:06:00 left, 1000 not caught",
    ]


def test_a_line_tells_of_a_long_step() -> None:
    """What the step says of itself; nothing once it is over."""
    lines: list[str] = []
    clock = Clock()
    with LogProgress("with findings", lines.append, clock) as progress:
        progress.phase("runs explored", 2)
        clock.now += 30
        progress.note("120 states, 4/s, 30 s left")
        progress.phase("runs explored", 1)
        progress.note("3 states")
        progress.note("")
        progress.advance(False)
        clock.now += 30
    assert lines == [
        "0:00:30 runs explored: 0 of 2, now 120 states, 4/s, 30 s left",
        "0:01:00 runs explored: 1 of 1, 2.0/min",
    ]


def test_a_line_comes_by_itself() -> None:
    """A phase of one long step is told of while it lasts."""
    told = threading.Event()
    lines: list[str] = []

    def write(line: str) -> None:
        lines.append(line)
        told.set()

    with LogProgress("with findings", write, Clock(), every_s=0.01) as progress:
        progress.phase("runs explored", 1)
        assert told.wait(30)
        progress.advance(False)
    assert lines[0] == "0:00:00 runs explored: 0 of 1"
    assert lines[-1] == "0:00:00 runs explored: 1 of 1"


def test_the_progress_fits_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log where there is no terminal, whatever the environment says of colours; nothing with --json."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert isinstance(make_progress(quiet=True), QuietProgress)
    with make_progress(quiet=False) as progress:
        progress.phase("x" * 500, 1)
        progress.advance(True)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.endswith("1 with findings\n")
    assert error.isascii() and error[:-1].isprintable()


def shown(progress: BarProgress, width: int) -> list[str]:
    """The lines of its screen, on a terminal so wide."""
    page = io.StringIO()
    Console(file=page, width=width).print(progress.screen())
    return page.getvalue().splitlines()


def test_a_screen_tells_what_was_covered_and_found() -> None:
    """Rate, distinct states, kinds of torn writes, finds and when the last one came, and a grid of sites; no
    line is longer than the terminal."""
    clock, width = Clock(), 80
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    masks = {"prefix": {"writes": 3, "states": 2}, "suffix": {"writes": 3, "states": 0}}
    summary = {"distinct": 1234, "torn_pages": {"data_page": {"first": masks}}}
    with BarProgress(console, "with findings", clock) as progress:
        progress.phase("trials", 40)
        for number in range(10):
            progress.advance(number == 4)
            progress.crashed("redo" if number % 2 else "page0", number == 4)
        clock.now += 65
        progress.explored("a=1 seed=1", summary, {"data_page": 3, "": 1})
        lines = shown(progress, width)
    assert "trials" in lines[0] and "10/40" in lines[0] and "1 with findings" in lines[0]
    text = " ".join(" ".join(lines[1:]).split())
    assert text == (
        "1,234 distinct states, 1 of 2 kinds of torn writes, 1 with findings, the last one 0:01:05 ago "
        "data_page 2 (3 broken) no write 0 (1 broken) page0 5 (1 broken) redo 5"
    )
    assert max(map(len, lines)) <= width


def test_a_bar_goes_on_within_a_step() -> None:
    """By the share of it that is done; a whole step is not counted before it is."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with BarProgress(console, "with findings") as progress:
        progress.phase("runs explored", 2)
        lengths = []
        for share in (0.0, 0.9):
            progress.note("40 states", share)
            (line,) = shown(progress, 120)
            assert "0/2" in line and "40 states" in line
            lengths.append(progress.share)
        progress.advance(False)
        progress.note("")
        (line,) = shown(progress, 120)
        assert "1/2" in line and "states" not in line
        assert [*lengths, progress.share] == [0.0, 0.45, 0.5]


def test_a_screen_has_nothing_to_tell_at_first() -> None:
    """But the bar."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with BarProgress(console, "with findings") as progress:
        progress.phase("golden runs", 2)
        (line,) = shown(progress, 80)
    assert "golden runs" in line
