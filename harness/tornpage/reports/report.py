"""The page of one run. Gets finished data; knows no SQL and runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tornpage.reports.dossier import Dossier, badge_of, bug_view
from tornpage.reports.matrices import gaps, site_rows, torn_rows
from tornpage.reports.page import render_page
from tornpage.reports.summary import BugSeen, Summary
from tornpage.reports.verdict import verdict_of
from tornpage.store.bugs import Bug
from tornpage.vocabulary.model import Outcome

__all__ = ["render_report"]

BUGS_MAX = 200
"""Bugs that are listed, the news first."""
DETAILED_MAX = 40
"""Bugs with a section of their own."""
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
) -> str:
    """The page as text. templates: folder of report.html.j2; known: by bug; gone: bugs that the last
    run of this campaign saw and this one did not."""
    configs = sorted({cell.config for cell in summary.cells})
    bugs = summary.bugs[:BUGS_MAX]
    dossiers = [known.get(seen.bug.id, Dossier(seen)) for seen in bugs]
    detailed = dossiers[:DETAILED_MAX]
    missing = gaps(summary)
    return render_page(
        templates,
        "report.html.j2",
        summary=summary,
        verdict=verdict_of(summary),
        unit="states" if summary.explored else "trials",
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
        views=[bug_view(dossier) for dossier in detailed],
        detailed={dossier.seen.bug.id for dossier in detailed},
        configs=configs,
        matrix=site_rows(summary, configs),
        counters=sorted(summary.counters.items()),
        torn_rows=torn_rows(summary.torn_pages),
        gaps=missing[:GAPS_MAX],
        gaps_more=max(0, len(missing) - GAPS_MAX),
    )


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
    for name, value in (settings.get("explore") or {}).items():
        if value:
            yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
