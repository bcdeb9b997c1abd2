"""Figures that others have published beside those measured here: a page with a chart of each table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornpage.reports.charts import Chart, compared_chart
from tornpage.reports.page import render_page

__all__ = ["Figure", "FigureTable", "render_figures"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of a table. published: what a document says of as much as is measured, None where it says nothing
    that can be brought down to it; server: MariaDB's here, None without one; limit: what
    must be durable before the statements end, by itself, for seconds."""

    what: str
    published: float | None
    ours: float
    server: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class FigureTable:
    """number: in the order of docs/FEATURES.md's sources; unit: "s", "MB", "writes", "pages"."""

    number: int
    title: str
    unit: str
    figures: Sequence[Figure]

    def columns(self) -> dict[str, list[float | None]]:
        """By heading, those that any row has."""
        columns: dict[str, list[float | None]] = {
            "published": [one.published for one in self.figures],
            "engine": [one.ours for one in self.figures],
            "MariaDB here": [one.server for one in self.figures],
            "limit of the disk": [one.limit for one in self.figures],
        }
        return {
            name: column for name, column in columns.items() if any(v is not None for v in column)
        }

    def to_json(self) -> dict[str, Any]:
        """An item of `tables` in --json."""
        return {
            "number": self.number,
            "title": self.title,
            "unit": self.unit,
            "rows": [
                {
                    "what": one.what,
                    "published": one.published,
                    "ours": one.ours,
                    "server": one.server,
                    "limit": one.limit,
                }
                for one in self.figures
            ],
        }


@dataclass(frozen=True, slots=True)
class _Drawn:
    table: FigureTable
    chart: Chart


def render_figures(tables: Sequence[FigureTable], rows: int, machine: str, templates: Path) -> str:
    """The page as text. rows: of the measured table; machine: one line, for the seconds."""
    drawn = [_Drawn(table, _chart(table)) for table in tables]
    return render_page(templates, "figures.html.j2", drawn=drawn, rows=rows, machine=machine)


def _chart(table: FigureTable) -> Chart:
    title = f"{table.number}. {table.title}"
    return compared_chart(title, table.columns(), [one.what for one in table.figures])
