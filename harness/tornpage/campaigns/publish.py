"""Writes the pages that a person reads: one per run, and the index over all runs of the store.

May import: codec, evidence, errors, model, page, paths, report, index, dossier, store, summary.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from tornpage.campaigns.evidence import load_evidence
from tornpage.reports.dossier import Dossier
from tornpage.reports.index import IndexedRun, render_index
from tornpage.reports.page import replace_file
from tornpage.reports.report import render_report
from tornpage.reports.summary import BugSeen, Summary
from tornpage.store.bugs import Bug, BugStatus
from tornpage.store.store import DETAILS, Store
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import Paths

__all__ = ["INDEX", "write_index", "write_report"]

INDEX = "index.html"
INLINE = "inline"
"""Workload of a trial that holds its script: one that was shrunk."""


def write_report(store: Store, summary: Summary, paths: Paths, out: Path) -> Path:
    """Writes out/report-RUN.html, and the index anew; returns the path of the first."""
    path = out.resolve() / _name(summary.run.id)
    dossiers = {seen.bug.id: _dossier(store, seen) for seen in summary.bugs}
    gone = _gone(store, summary)
    replace_file(path, render_report(summary, paths.templates, dossiers, gone))
    write_index(store, paths, out)
    return path


def write_index(store: Store, paths: Paths, out: Path) -> None:
    """Writes out/index.html: all runs of campaigns, all bugs."""
    runs = [
        IndexedRun(run, name if (out / (name := _name(run.id))).is_file() else "")
        for run in store.overview()
        if run.campaign not in DETAILS
    ]
    told = {bug: one.report for one in runs if one.report for bug in store.sightings(one.run.id)}
    replace_file(out.resolve() / INDEX, render_index(runs, store.bugs(), told, paths.templates))


def _name(run: int) -> str:
    return f"report-{run}.html"


def _dossier(store: Store, seen: BugSeen) -> Dossier:
    """The small trial of a bug says more than one of this run."""
    small = seen.bug.reproducer
    if small.trial is not None:
        with contextlib.suppress(ConfigError):  # it was deleted
            row = store.trial(small.run, small.trial)
            evidence = load_evidence(row.result.image if row.result else None)
            if evidence is not None and row.spec.workload == INLINE:
                return Dossier(seen, evidence, small.name, str(row.spec.params["script"]))
    for finding in seen.findings:
        evidence = load_evidence(finding.image)
        if evidence is not None and finding.image is not None:
            image = finding.image
            return Dossier(seen, evidence, f"{image.parent.name}.{image.name}")
    return Dossier(seen)


def _gone(store: Store, summary: Summary) -> list[Bug]:
    """Bugs that the last finished run of this campaign saw and this one did not. A run that did not
    come to its end says nothing of them."""
    run = summary.run
    before = [
        other
        for other in store.runs()
        if (other.campaign, other.target) == (run.campaign, run.target)
        and other.id < run.id
        and other.state == "finished"
    ]
    if not before or run.state != "finished":
        return []
    seen = {one.bug.id for one in summary.bugs}
    return [
        bug
        for bug in store.bugs(before[-1].id)
        if bug.id not in seen and bug.status is not BugStatus.IGNORED
    ]
