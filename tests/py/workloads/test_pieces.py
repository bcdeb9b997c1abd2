"""No piece of a script is left out of what is drawn: what a workload can do, some script of it does."""

from __future__ import annotations

import inspect
import random
from types import ModuleType

import pytest

from tornpage.workloads import builds, collisions, mix, phases
from tornpage.workloads.book import Book
from tornpage.workloads.shapes import SMALL

PARTS = {"change", "drain", "several", "in_steps", "lengthen"}
"""Of other pieces."""
ELSEWHERE = {
    "change_primary",
    "collide",
    "columns",
    "defragment",
    "online",
    "refused",
    "settle",
    "transport",
    "twins",
}
"""Pieces with modules of their own, and of all tables."""


def pieces_of(module: ModuleType) -> set[str]:
    """What it does to a table, whatever else could be said of how."""
    found = set()
    for name, one in vars(module).items():
        if inspect.isfunction(one) and one.__module__ == module.__name__:
            needed = [
                parameter.name
                for parameter in inspect.signature(one).parameters.values()
                if parameter.default is parameter.empty
            ]
            found |= {name} if needed == ["book", "table"] else set()
    return found


def test_each_piece_may_be_drawn() -> None:
    """Those of data definition for storms, too."""
    every = {
        name
        for module in (phases, builds)
        for name in pieces_of(module)
        if not name.startswith("_")
    }
    drawn = {piece.__name__ for piece in mix._pieces(100)}
    assert (every - PARTS) | ELSEWHERE <= drawn
    storm = {piece.__name__ for piece in mix._storm_pieces(100)}
    assert (pieces_of(builds) & every) - PARTS <= storm


def test_each_collision_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over some seeds."""
    every = pieces_of(collisions) - {"_index"}
    seen: set[str] = set()
    for name in every:
        monkeypatch.setattr(collisions, name, lambda _book, _table, name=name: seen.add(name))
    for seed in range(20):
        book = Book(random.Random(seed), page_size=4096, dblwr_pages=16)
        collisions.collide(book, book.create("t", SMALL))
    assert seen == every


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_script_may_end_settled(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without history, or as it stands."""
    ends: list[Book] = []
    monkeypatch.setattr(mix, "SETTLED_SHARE", share)
    monkeypatch.setattr(phases, "settle", ends.append)
    mix._generate(mix.MixParams(rows=16, phases=1), random.Random(5), lambda _: [_nothing] * 8, 0)
    assert len(ends) == share


def _nothing(_book: Book, _table: object) -> None:
    """A piece."""
