"""Writes the pages that a person reads: one per run, and the index over all runs of the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tornpage.campaigns.fault_free import (
    kept_scripts,
    reproducer_name,
    stored_row,
    with_kept_image,
)
from tornpage.evidence.evidence import load_evidence
from tornpage.plans.campaign import Campaign
from tornpage.reports.bug_page import render_bug
from tornpage.reports.dossier import Dossier, stack_lines
from tornpage.reports.index import IndexedRun, render_index
from tornpage.reports.page import replace_file
from tornpage.reports.report import BUGS_MAX, render_report, unit_of
from tornpage.reports.summary import BugSeen, Summary
from tornpage.store.bugs import Bug, BugStatus
from tornpage.store.rows import DETAILS, Run
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import Paths

__all__ = ["INDEX", "bug_stacks", "write_index", "write_report"]

INDEX = "index.html"


def write_report(
    store: Store, summary: Summary, paths: Paths, out: Path, debug_files: Sequence[Path] = ()
) -> Path:
    """Writes out/report-RUN.html, a page per bug that it saw last, and the index anew; returns the path of
    the first. debug_files: folders in which functions and lines of call stacks are looked up now."""
    path = out.resolve() / _name(summary.run.id)
    bugs = summary.bugs[:BUGS_MAX]
    dossiers = {seen.bug.id: _dossier(store, seen, out, debug_files) for seen in bugs}
    gone = _gone(store, summary)
    replace_file(path, render_report(summary, paths.templates, dossiers, gone, dossiers.keys()))
    reports = {run.id: _name(run.id) for run in store.runs() if (out / _name(run.id)).is_file()}
    for bug, dossier in dossiers.items():
        page = out.resolve() / _bug_name(bug)
        if dossier.seen.bug.last.run == summary.run.id or not page.is_file():
            history = store.sightings_of(bug), store.replays(bug=bug), reports
            text = render_bug(dossier, *history, unit_of(summary), paths.templates)
            replace_file(page, text)
    write_index(store, paths, out)
    return path


def bug_stacks(
    store: Store, summaries: Sequence[Summary], out: Path, debug_files: Sequence[Path] = ()
) -> dict[int, list[str]]:
    """By number of a bug that these runs saw, the operations that were broken, with the functions and lines
    that made them. debug_files: as of write_report()."""
    seen = {one.bug.id: one for summary in summaries for one in summary.bugs[:BUGS_MAX]}
    return {
        bug: stack_lines(_dossier(store, one, out, debug_files).evidence)
        for bug, one in seen.items()
    }


def write_index(store: Store, paths: Paths, out: Path) -> None:
    """Writes out/index.html: all runs of campaigns, all bugs."""
    runs = [
        IndexedRun(run, name if (out / (name := _name(run.id))).is_file() else "")
        for run in store.overview()
        if run.campaign not in DETAILS
    ]
    bugs = store.bugs()
    told = {bug.id: name for bug in bugs if (out / (name := _bug_name(bug.id))).is_file()}
    replace_file(out.resolve() / INDEX, render_index(runs, bugs, told, paths.templates))


def _name(run: int) -> str:
    return f"report-{run}.html"


def _bug_name(bug: int) -> str:
    return f"bug-{bug}.html"


def _dossier(store: Store, seen: BugSeen, out: Path, debug_files: Sequence[Path]) -> Dossier:
    """Of its reproducer; where nothing was kept of that here, of the first of this run that has something. Of
    a rule that was broken, the accused operation says more than a crash."""
    images = [finding.image for finding in seen.findings if finding.image is not None]
    names = [
        reproducer_name(store, seen.bug),
        *kept_scripts(store, seen.sighting.run, seen.bug.id, out),
        *(f"{image.parent.name}.{image.name}" for image in images),
    ]
    told = [one for name in names if (one := _told(store, seen, name, out, debug_files))]
    accused = (one for one in told if one.accuses)
    return next(accused, next(iter(told), Dossier(seen)))


def _told(
    store: Store, seen: BugSeen, name: str, out: Path, debug_files: Sequence[Path]
) -> Dossier | None:
    """What a trial, or run without a fault, tells of a bug; None if it was deleted, or nothing was kept."""
    try:
        row = with_kept_image(stored_row(store, name), out)
    except ConfigError:
        return None
    evidence = load_evidence(row.result.image if row.result else None, debug_files)
    if row.result is None or evidence is None:
        return None
    violations = zip(row.result.violations, row.bugs, strict=True)
    return Dossier(
        seen=seen,
        evidence=evidence,
        trial=name,
        what=next((violation.what for violation, bug in violations if bug == seen.bug.id), ""),
        script=str(row.spec.params.get("script", "")),
        explained=store.explanations(row.run).get(name),
    )


def _work(run: Run) -> str:
    return Campaign.model_validate(run.settings).work


def _gone(store: Store, summary: Summary) -> list[Bug]:
    """Bugs that the last finished run of this campaign saw and this one did not. A run that did not
    come to its end says nothing of them."""
    run = summary.run
    before = [
        other
        for other in store.runs()
        if (other.campaign, other.identity) == (run.campaign, run.identity)
        and other.id < run.id
        and other.state == "finished"
        and _work(other) == _work(run)
    ]
    if not before or run.state != "finished":
        return []
    seen = {one.bug.id for one in summary.bugs}
    return [
        bug
        for bug in store.bugs(before[-1].id)
        if bug.id not in seen and bug.status is not BugStatus.IGNORED
    ]
