"""The page of one run. Gets finished data; knows no SQL and runs nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tornpage.reports.bound import bound_of
from tornpage.reports.dossier import Dossier, badge_of, bug_view
from tornpage.reports.matrices import gaps, site_rows, torn_rows
from tornpage.reports.page import render_page, render_part
from tornpage.reports.summary import BugSeen, Summary
from tornpage.reports.verdict import verdict_of
from tornpage.store.bugs import Bug
from tornpage.vocabulary.model import Outcome

__all__ = ["BUGS_MAX", "render_report", "unit_of"]

BUGS_MAX = 200
"""Bugs that are listed, the news first."""
DETAILED_CHARS = 60_000
"""All sections of single bugs together, at most: the others have pages of their own alone."""
GAPS_MAX = 200


@dataclass(frozen=True, slots=True)
class _News:
    """The bugs of a run beside those of the run before it."""

    fresh: list[BugSeen]
    again: list[BugSeen]
    gone: Sequence[Bug] = field(default_factory=list)


def render_report(
    summary: Summary,
    templates: Path,
    known: Mapping[int, Dossier],
    gone: Sequence[Bug] = (),
    paged: Collection[int] = (),
) -> str:
    """The page as text. templates: folder of report.html.j2; known: by bug; gone: bugs that the last
    run of this campaign saw and this one did not; paged: bugs with a page of their own."""
    configs = sorted({cell.config for cell in summary.cells})
    bugs = summary.bugs[:BUGS_MAX]
    dossiers = [known.get(seen.bug.id, Dossier(seen)) for seen in bugs]
    unit = unit_of(summary)
    sections = _sections(dossiers, unit, paged, templates)
    missing = gaps(summary)
    return render_page(
        templates,
        "report.html.j2",
        summary=summary,
        verdict=verdict_of(summary),
        bound=bound_of(summary),
        unit=unit,
        options=list(_options(summary.run.settings)),
        not_exercised=summary.outcomes[Outcome.NOT_EXERCISED],
        vacuous=summary.outcomes[Outcome.VACUOUS],
        news=_News(
            [seen for seen in bugs if seen.is_news],
            [seen for seen in bugs if not seen.is_news],
            gone,
        ),
        bugs=[(one.seen, badge_of(one.seen)) for one in dossiers],
        bugs_more=len(summary.bugs) - len(bugs),
        sections=list(sections.values()),
        detailed=sections.keys(),
        paged=paged,
        configs=configs,
        matrix=site_rows(summary, configs),
        counters=sorted(summary.counters.items()),
        torn_rows=torn_rows(summary.torn_pages),
        gaps=missing[:GAPS_MAX],
        gaps_more=max(0, len(missing) - GAPS_MAX),
    )


def unit_of(summary: Summary) -> str:
    """What the run counts."""
    return "states" if summary.explored else "trials"


def _sections(
    dossiers: Sequence[Dossier], unit: str, paged: Collection[int], templates: Path
) -> dict[int, Markup]:
    """By bug, as many of the first ones as the page has room for."""
    found: dict[int, Markup] = {}
    for dossier in dossiers:
        data = {"bug": bug_view(dossier), "unit": unit, "paged": paged}
        section = render_part(templates, "bug.html.j2", **data)
        if found and sum(map(len, found.values())) + len(section) > DETAILED_CHARS:
            break
        found[dossier.seen.bug.id] = section
    return found


def _options(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What the run was made with: options of the target, what was crossed or drawn, workload, limits."""
    if settings.get("workload"):
        yield "workload", str(settings["workload"])
    for name, value in settings.get("options", {}).items():
        yield name, str(value)
    for group in ("cross", "vary"):
        for name, values in settings.get(group, {}).items():
            yield name, " | ".join(values)
    for name, value in settings.get("params", {}).items():
        if name != "script":
            yield f"params.{name}", str(value)
    if "scripts" in settings:
        yield "scripts", str(settings["scripts"])
    for name, value in (settings.get("explore") or {}).items():
        if value:
            yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
