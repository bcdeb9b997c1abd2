"""The two matrices of a report, as rows of cells with their words: crash sites, and torn pages. And
what was not exercised.
"""

from __future__ import annotations

from dataclasses import dataclass

from tornpage.reports.cells import CellCount
from tornpage.reports.summary import Summary
from tornpage.reports.torn_matrix import CellState, TornCell, TornMatrix
from tornpage.vocabulary.model import Outcome

__all__ = ["Cell", "MatrixRow", "gaps", "site_rows", "torn_rows"]

ERRORS_MAX = 20


@dataclass(frozen=True, slots=True)
class Cell:
    """state: its colour; title: for who points at it."""

    state: str
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """name, kind: its first two columns."""

    name: str
    kind: str
    cells: list[Cell]


def site_rows(summary: Summary, configs: list[str]) -> list[MatrixRow]:
    """Site and mask by configuration."""
    cells = {(cell.site, cell.mask, cell.config): cell for cell in summary.cells}
    rows = sorted({(cell.site, cell.mask) for cell in summary.cells})
    return [
        MatrixRow(site, mask, [_site_cell(cells.get((site, mask, config))) for config in configs])
        for site, mask in rows
    ]


def _site_cell(cell: CellCount | None) -> Cell:
    if cell is None:
        return Cell("none", "–", "no such write in this configuration")
    title = ", ".join(f"{count} {outcome}" for outcome, count in sorted(cell.outcomes.items()))
    broken = cell.outcomes[Outcome.VIOLATION]
    if broken:
        return Cell("violation", f"{broken} of {cell.total} broken", title)
    clean = cell.outcomes[Outcome.CLEAN]
    return Cell("clean" if clean else "idle", str(clean), title)


def torn_rows(matrix: TornMatrix) -> list[MatrixRow]:
    """Site and flush by configuration and mask."""
    return [
        MatrixRow(site, _words(flush), [_torn_cell(matrix, cell) for cell in cells])
        for (site, flush), cells in matrix.rows.items()
    ]


def _torn_cell(matrix: TornMatrix, cell: TornCell) -> Cell:
    if cell.state is CellState.NO_SUCH_WRITE:
        return Cell("none", "–", f"{cell}: {matrix.reason(cell)}")
    title = f"{cell}: {cell.states} states, {cell.writes} recorded writes"
    return Cell("clean" if cell.states else "idle", str(cell.states), title)


def gaps(summary: Summary) -> list[str]:
    """What the run does not show, one line each: no verdict first."""
    lines = _missing_verdicts(summary)
    lines += [f"site {site}: no trial hit it" for site in summary.uncovered_sites]
    lines += summary.missed
    lines += [
        f"{cell.site} × {cell.mask} × {cell.config}: {cell.total} trials, none exercised"
        for cell in summary.cells
        if not cell.outcomes[Outcome.CLEAN] and not cell.outcomes[Outcome.VIOLATION]
    ]
    return lines + [f"torn pages: {line}" for line in _torn_gaps(summary.torn_pages)]


def _missing_verdicts(summary: Summary) -> list[str]:
    """Of a run that is not finished, and of trials that have none."""
    done = f"{summary.units} {'states' if summary.explored else f'of {summary.run.trials} trials'}"
    lines = []
    if summary.run.state == "running":
        lines.append(f"the run was interrupted after {done}; --resume goes on")
    elif summary.run.state == "failed":
        lines.append(f"the run failed after {done}: what it would have crashed then is not judged")
    elif summary.run.state == "stopped":
        lines.append(f"the time was up after {done}: the others are not judged")
    lines += summary.errors[:ERRORS_MAX]
    if len(summary.errors) > ERRORS_MAX:
        lines.append(f"and {len(summary.errors) - ERRORS_MAX} more trials without a verdict")
    return lines


def _torn_gaps(matrix: TornMatrix) -> list[str]:
    """What was never written, and per site, flush and configuration the masks that no state had."""
    never = [f"{site} ({_words(flush)})" for site, flush in matrix.rows_without_write]
    masks: dict[str, list[str]] = {}
    for cell in matrix.of(CellState.NOT_COVERED):
        name = f"{cell.site}, {_words(cell.flush)}, {cell.config}"
        masks.setdefault(name, []).append(cell.mask)
    lines = [f"the recorded runs have no write of {', '.join(never)}"] if never else []
    return lines + [f"{name}: no state has {', '.join(missed)}" for name, missed in masks.items()]


def _words(name: str) -> str:
    return name.replace("_", " ")
