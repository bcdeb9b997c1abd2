"""The parts of a picture of lanes.py, with their places. All lengths are in CSS pixels."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bar", "Dot", "Drawing", "Flag", "Label", "Lane", "Sync"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A call. kind: sync, write or name; segments: of a torn write, place, width and whether it is lost."""

    seq: int
    x: int
    width: int
    fate: str
    kind: str
    text: str
    title: str
    segments: list[tuple[int, int, bool]]


@dataclass(frozen=True, slots=True)
class Label:
    """What is written at a place."""

    x: int
    y: int
    text: str
    anchor: str = "start"


@dataclass(frozen=True, slots=True)
class Lane:
    """A thread; y: top of its bars."""

    name: str
    y: int
    bars: list[Bar]
    labels: list[Label]


@dataclass(frozen=True, slots=True)
class Flag:
    """A statement was issued, acknowledged, or has failed. y: top of its flag; text: "" where there is no
    room."""

    x: int
    y: int
    verb: str
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class Dot:
    """The end of a write that a sync covers, or of one that it overlaps and does not cover."""

    x: int
    covered: bool
    title: str


@dataclass(frozen=True, slots=True)
class Sync:
    """What one sync covers. x, width: of the call; left: of the first write that is drawn; text: in words."""

    seq: int
    name: str
    y: int
    x: int
    width: int
    left: int
    dots: list[Dot]
    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """One process up to its crash, from the top to the bottom. height: of the picture alone, whole: with
    legend and notes; cuts: places where time is left out; crash: the line's; legend: fates that are drawn,
    with their places."""

    title: str
    width: int
    height: int
    whole: int
    left: int
    flags_y: int
    ticks: list[Label]
    cuts: list[Label]
    flags: list[Flag]
    lanes: list[Lane]
    lanes_end: int
    syncs: list[Sync]
    crash: int
    crash_text: str
    crash_y: int
    legend: list[tuple[str, Label]]
    notes: list[Label]
