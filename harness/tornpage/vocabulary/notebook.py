"""Values as a notebook shows them: a table of HTML, by the method that Jupyter and others look for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TypeVar

from tornpage.vocabulary.shown import one_line

__all__ = ["Rows", "Shown", "table_of"]

T = TypeVar("T", bound="Shown")


class Shown:
    """A value that a notebook shows as a row of a table."""

    __slots__ = ()

    def cells(self) -> Mapping[str, object]:
        """The row, by the names of its columns."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return table_of([self.cells()])


class Rows(list[T]):
    """Such values, as one table."""

    def _repr_html_(self) -> str:
        return table_of([item.cells() for item in self])


def table_of(rows: Iterable[Mapping[str, object]]) -> str:
    """A table with the columns of the first row; without rows it says so."""
    given = list(rows)
    if not given:
        return "<p>none</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in given[0])
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(one_line(str(cell)))}</td>' for cell in row.values())}</tr>"
        for row in given
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
