"""Renders a summary into one self-contained HTML page. Gets finished data; knows no SQL and runs nothing.

May import: cells, model, summary, torn_matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jinja2

from tornpage.reports.cells import CellCount
from tornpage.reports.summary import Finding, Summary
from tornpage.reports.torn_matrix import CellState, TornCell, TornMatrix
from tornpage.vocabulary.model import Outcome, TornWrite

__all__ = ["render_report", "sector_states"]

TORN_PICTURES_MAX = 8
"""Torn pages drawn in one report."""


@dataclass(frozen=True, slots=True)
class _Sector:
    state: str


@dataclass(frozen=True, slots=True)
class _Picture:
    trial: str
    path: str
    offset: int
    length: int
    sector: int
    sectors: list[_Sector]


@dataclass(frozen=True, slots=True)
class _CellView:
    state: str
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class _Row:
    site: str
    mask: str
    cells: list[_CellView]


@dataclass(frozen=True, slots=True)
class _TornRow:
    site: str
    flush: str
    cells: list[_CellView]


def render_report(summary: Summary, templates: Path) -> str:
    """The page as text. templates: folder of report.html.j2 and report.css."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    configs = sorted({cell.config for cell in summary.cells})
    style = (templates / "report.css").read_text(encoding="utf-8")
    return environment.get_template("report.html.j2").render(
        summary=summary,
        style=style,
        verdict=_verdict(summary),
        not_exercised=summary.outcomes[Outcome.NOT_EXERCISED],
        vacuous=summary.outcomes[Outcome.VACUOUS],
        configs=configs,
        matrix=_matrix(summary, configs),
        counters=sorted(summary.counters.items()),
        torn=_pictures(summary.findings),
        torn_rows=_torn_rows(summary.torn_pages),
        gaps=_gaps(summary),
    )


def sector_states(torn: TornWrite) -> list[str]:
    """Per sector of the write: "new" (reached the file), "old" (lost) or "same" (lost, but no loss)."""
    states = []
    # The first sector of an unaligned write is the rest of the file's sector that it starts in.
    start = 0
    end = torn.sector - torn.offset % torn.sector
    for kept in torn.kept:
        lost = torn.old[start:end] != torn.new[start:end] or not torn.new
        states.append("new" if kept == "1" else "old" if lost else "same")
        start, end = end, end + torn.sector
    return states


def _verdict(summary: Summary) -> dict[str, str]:
    code = summary.exit_code()
    if code == 1:
        return {"kind": "violation", "text": f"{summary.violations} trials broke an invariant"}
    if code == 2:
        return {"kind": "idle", "text": "the harness failed in some trials"}
    if code == 3:
        return {"kind": "idle", "text": "not what the campaign claims was exercised"}
    return {"kind": "clean", "text": "clean: no invariant was broken"}


def _matrix(summary: Summary, configs: list[str]) -> list[_Row]:
    cells = {(cell.site, cell.mask, cell.config): cell for cell in summary.cells}
    rows = sorted({(cell.site, cell.mask) for cell in summary.cells})
    return [
        _Row(site, mask, [_cell_view(cells.get((site, mask, config))) for config in configs])
        for site, mask in rows
    ]


def _cell_view(cell: CellCount | None) -> _CellView:
    if cell is None:
        return _CellView("none", "–", "no such write in this configuration")
    title = ", ".join(f"{count} {outcome}" for outcome, count in sorted(cell.outcomes.items()))
    broken = cell.outcomes[Outcome.VIOLATION]
    if broken:
        return _CellView("violation", f"{broken} of {cell.total} broken", title)
    clean = cell.outcomes[Outcome.CLEAN]
    return _CellView("clean" if clean else "idle", str(clean), title)


def _torn_rows(matrix: TornMatrix) -> list[_TornRow]:
    return [
        _TornRow(site, _words(flush), [_torn_view(matrix, cell) for cell in cells])
        for (site, flush), cells in matrix.rows.items()
    ]


def _torn_view(matrix: TornMatrix, cell: TornCell) -> _CellView:
    if cell.state is CellState.NO_SUCH_WRITE:
        return _CellView("none", "–", f"{cell}: {matrix.reason(cell)}")
    title = f"{cell}: {cell.states} states, {cell.writes} recorded writes"
    return _CellView("clean" if cell.states else "idle", str(cell.states), title)


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


def _pictures(findings: list[Finding]) -> list[_Picture]:
    return [
        _Picture(
            finding.trial,
            torn.path,
            torn.offset,
            torn.length,
            torn.sector,
            [_Sector(state) for state in sector_states(torn)],
        )
        for finding in findings
        if (torn := finding.torn) is not None
    ][:TORN_PICTURES_MAX]


def _gaps(summary: Summary) -> list[str]:
    lines = [f"site {site}: no trial hit it" for site in summary.uncovered_sites]
    lines += [f"recovery path {name}: never taken" for name in summary.claims_missed]
    lines += [f"{name}: in no run above zero" for name in summary.run_claims_missed]
    lines += [
        f"{cell.site} × {cell.mask} × {cell.config}: {cell.total} trials, none exercised"
        for cell in summary.cells
        if not cell.outcomes[Outcome.CLEAN] and not cell.outcomes[Outcome.VIOLATION]
    ]
    lines += [f"torn pages: {line}" for line in _torn_gaps(summary.torn_pages)]
    lines += summary.errors[:20]
    if summary.run.state == "running":
        lines.append(
            f"the run was interrupted after {summary.units} of its crashes; --resume goes on"
        )
    return lines
