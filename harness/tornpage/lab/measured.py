"""A table of measurements of Tornpage itself, and what each of them is made with."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

__all__ = [
    "Cell",
    "Effort",
    "Measured",
    "Spent",
    "cpu_seconds",
    "living_seconds",
    "processor_seconds",
    "spent",
]

Cell = str | int | float


@dataclass(frozen=True, slots=True)
class Effort:
    """rounds: of everything, of which the median counts; share: of the trials and states of one round."""

    rounds: int
    share: float

    def of(self, usual: int) -> int:
        """So many of a usual number."""
        return max(1, round(usual * self.share))


@dataclass(frozen=True, slots=True)
class Measured:
    """columns: headings; rows: a cell for each; notes: what is to be known of it, line by line."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()

    def table(self) -> Table:
        """For a terminal."""
        table = Table(title=self.title, title_justify="left")
        for number, heading in enumerate(self.columns):
            text = any(isinstance(row[number], str) for row in self.rows)
            table.add_column(heading, justify="left" if text else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*map(_text, row))
        return table

    def to_json(self) -> dict[str, Any]:
        """An item of `tables` in --json."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"name": self.name, "title": self.title, "rows": rows, "notes": list(self.notes)}


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell:,.2f}" if isinstance(cell, float) and cell < 10 else f"{cell:,.0f}"


def cpu_seconds() -> float:
    """Processor time of this process and of those that it has waited for, and theirs."""
    sides = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(side.ru_utime + side.ru_stime for side in sides)


def living_seconds() -> float:
    """The same of children that it has not waited for yet, as a fork server: in steps of a clock tick, and
    dearer to ask for."""
    ticks = 0
    for children in Path("/proc/self/task").glob("*/children"):
        pids: list[str] = []
        with suppress(OSError):  # a thread that has ended meanwhile
            pids = children.read_text("ascii").split()
        for pid in pids:
            with suppress(OSError):
                stat = Path(f"/proc/{pid}/stat").read_bytes()  # proc(5): utime is the 14th
                ticks += sum(map(int, stat.rpartition(b")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def processor_seconds() -> float:
    """Of both: of this process and of all that it has started."""
    return cpu_seconds() + living_seconds()


@dataclass(slots=True)
class Spent:
    """Seconds of the clock, and of processor time as `cpu_seconds` has it."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def spent() -> Iterator[Spent]:
    """What the block takes, known at its end."""
    found = Spent()
    wall, before = time.monotonic(), cpu_seconds()
    yield found
    found.wall = time.monotonic() - wall
    found.cpu = cpu_seconds() - before
