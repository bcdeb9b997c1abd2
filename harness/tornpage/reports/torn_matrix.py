"""The torn-page matrix: which kinds of loss did the explored crash states have, which did they not
have, and for which was there no write?

A cell is site x flush x mask x configuration. It is covered if a state lost a write of its kind that
way. Whether a cell can be covered at all is not decided here: the explorer counts the recorded writes
that have sectors enough for the mask (explorer/README.md). A cell without such a write is not in
the total.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tornpage.vocabulary.model import config_of

__all__ = ["CellState", "TornCell", "TornMatrix", "torn_matrix"]


class CellState(StrEnum):
    """What is known of a cell."""

    COVERED = "covered"
    NOT_COVERED = "not_covered"
    NO_SUCH_WRITE = "no_such_write"


@dataclass(frozen=True, slots=True)
class TornCell:
    """One kind of loss. writes: recorded writes that can be lost that way; states: crash states that lost
    one so. config: label without seed and depth."""

    site: str
    flush: str
    mask: str
    config: str
    writes: int = 0
    states: int = 0

    @property
    def state(self) -> CellState:
        """Covered, not covered, or not possible in the runs that were recorded."""
        if self.states:
            return CellState.COVERED
        return CellState.NOT_COVERED if self.writes else CellState.NO_SUCH_WRITE

    @property
    def row(self) -> tuple[str, str]:
        """Site and flush."""
        return self.site, self.flush

    def __str__(self) -> str:
        return f"{self.site}, {self.flush.replace('_', ' ')}, {self.mask}, {self.config}"

    def key(self) -> dict[str, str]:
        """What names the cell, for JSON."""
        return {
            "site": self.site,
            "flush": self.flush,
            "mask": self.mask,
            "config": self.config,
        }


@dataclass(frozen=True, slots=True)
class TornMatrix:
    """All cells, sorted by site, flush, configuration and mask: every combination of these is there."""

    cells: tuple[TornCell, ...]

    def of(self, state: CellState) -> list[TornCell]:
        """The cells of which this is known."""
        return [cell for cell in self.cells if cell.state is state]

    @property
    def covered(self) -> int:
        """Cells of which a state had such a loss."""
        return len(self.of(CellState.COVERED))

    @property
    def total(self) -> int:
        """Cells that have a write which can be lost that way."""
        return self.covered + len(self.of(CellState.NOT_COVERED))

    @property
    def configs(self) -> list[str]:
        """Sorted."""
        return list(dict.fromkeys(cell.config for cell in self.cells))

    @property
    def masks(self) -> list[str]:
        """Sorted."""
        return list(dict.fromkeys(cell.mask for cell in self.cells))

    @property
    def rows(self) -> dict[tuple[str, str], list[TornCell]]:
        """Site and flush -> cells by configuration and mask; only rows with a write in some
        configuration."""
        rows: dict[tuple[str, str], list[TornCell]] = {}
        for cell in self.cells:
            rows.setdefault(cell.row, []).append(cell)
        return {row: cells for row, cells in rows.items() if any(cell.writes for cell in cells)}

    @property
    def rows_without_write(self) -> list[tuple[str, str]]:
        """Site and flush that no configuration has a write of."""
        rows = self.rows
        return [row for row in dict.fromkeys(cell.row for cell in self.cells) if row not in rows]

    def reason(self, cell: TornCell) -> str:
        """Why a cell without a write has none."""
        flushed = any(c.writes for c in self.cells if (c.row, c.config) == (cell.row, cell.config))
        return "no write has sectors enough" if flushed else "never written"

    def to_json(self) -> dict[str, Any]:
        """`coverage` of `tornpage run powerloss --json`."""
        return {
            "covered": self.covered,
            "total": self.total,
            "cells": [
                {**cell.key(), "writes": cell.writes, "states": cell.states} for cell in self.cells
            ],
            "not_covered": [cell.key() for cell in self.of(CellState.NOT_COVERED)],
            "no_such_write": [
                {**cell.key(), "reason": self.reason(cell)}
                for cell in self.of(CellState.NO_SUCH_WRITE)
            ],
        }


def torn_matrix(explored: Mapping[str, Mapping[str, Any]]) -> TornMatrix:
    """Adds up the explorer's counters. explored: label of an exploration -> the explorer's summary, in
    which `torn_pages` holds site -> flush -> mask -> {"writes", "states"}; one without it has nothing
    to add."""
    found: dict[tuple[str, str, str, str], TornCell] = {}
    for label, summary in explored.items():
        config = config_of(label)
        for site, flushes in summary.get("torn_pages", {}).items():
            for flush, masks in flushes.items():
                for mask, counts in masks.items():
                    key = (site, flush, config, mask)
                    cell = found.get(key, TornCell(site, flush, mask, config))
                    found[key] = replace(
                        cell,
                        writes=cell.writes + int(counts["writes"]),
                        states=cell.states + int(counts["states"]),
                    )
    return TornMatrix(tuple(found[key] for key in sorted(found)))
