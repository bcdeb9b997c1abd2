"""The page of one bug: its history over all runs, and how the last run that saw it shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tornpage.reports.dossier import Dossier, bug_view
from tornpage.reports.page import render_page
from tornpage.store.bugs import Sighting
from tornpage.store.memory import Replayed

__all__ = ["render_bug"]


@dataclass(frozen=True, slots=True)
class _Event:
    """A line of the history. at: ISO 8601, "" if nobody knows; badge: its colour; report: page of the run."""

    at: str
    what: str
    badge: str
    run: int | None
    report: str = ""
    count: int = 0
    build: str = ""
    revision: str = ""
    host: str = ""
    why: str = ""


def render_bug(
    dossier: Dossier,
    sightings: Sequence[Sighting],
    replays: Sequence[Replayed],
    reports: Mapping[int, str],
    unit: str,
    templates: Path,
) -> str:
    """The page as text. sightings, replays: all of this bug; reports: by run the name of its page; unit: of
    what its run counts."""
    run = dossier.seen.sighting.run
    return render_page(
        templates,
        "bug_page.html.j2",
        bug=bug_view(dossier),
        history=_history(dossier, sightings, replays, reports),
        report=reports.get(run, ""),
        unit=unit,
    )


def _history(
    dossier: Dossier,
    sightings: Sequence[Sighting],
    replays: Sequence[Replayed],
    reports: Mapping[int, str],
) -> list[_Event]:
    """The newest first. Those of one run stand together: seen, played again, what it stood at then."""
    events = [
        _Event(
            one.started,
            "seen",
            one.novelty,
            one.run,
            reports.get(one.run, ""),
            one.count,
            one.build,
        )
        for one in sightings
    ]
    events += [
        _Event(
            one.at,
            one.status,
            one.status,
            one.run,
            reports.get(one.run or 0, ""),
            0,
            one.build,
            one.revision,
            one.host,
            one.reason,
        )
        for one in dossier.seen.bug.life
    ]
    started = {one.run: one.at for one in events if one.run is not None}
    events += [
        _Event(
            started.get(one.run, ""),
            f"played again: {one.answer}",
            "known",
            one.run,
            reports.get(one.run, ""),
            why=one.note,
        )
        for one in replays
    ]
    return sorted(events, key=lambda one: (one.at, one.run or 0), reverse=True)
