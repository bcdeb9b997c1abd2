"""What a person sees in the terminal: summaries, one trial.

May import: bugs, memory, model, night, report, shrink, summary.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tornpage.reports.night import NightSummary, Standing
from tornpage.reports.report import sector_states
from tornpage.reports.summary import BugSeen, Summary
from tornpage.shrinking.shrink import Shrunk
from tornpage.store.bugs import Bug, Sighting
from tornpage.store.memory import Replayed
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec

__all__ = [
    "bug_lines",
    "make_console",
    "print_bug",
    "print_bugs",
    "print_night",
    "print_shrunk",
    "print_summary",
    "print_trial",
]


ERRORS_SHOWN = 5
BUGS_SHOWN = 20
PIPED_WIDTH = 10_000
"""Nothing is wrapped where nobody watches: a line of a log is a line."""
_STANDING = {
    Standing.NEW: "new",
    Standing.BACK: "came back",
    Standing.AGAIN: "still there",
    Standing.GONE: "gone",
    Standing.NOT_PLAYED: "not seen, and cannot be played",
}


def make_console(stderr: bool = False, quiet: bool = False) -> Console:
    """Standard output or error: as wide as the terminal, and without end where there is none."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, quiet=quiet, width=None if stream.isatty() else PIPED_WIDTH)


def print_summary(console: Console, summary: Summary, report: Path) -> None:
    """The end of a run, for a person."""
    table = Table(title=f"{summary.run.campaign} on {summary.run.target}, run {summary.run.id}")
    table.add_column("site")
    table.add_column("trials", justify="right")
    for site, count in sorted(summary.by_site.items()):
        table.add_row(site, str(count))
    console.print(table)
    console.print(
        f"{summary.units} {'states' if summary.explored else 'trials'}, {summary.exercised} exercised, "
        f"{summary.outcomes[Outcome.NOT_EXERCISED]} not exercised, "
        f"{summary.outcomes[Outcome.VACUOUS]} vacuous, "
        f"[bold]{summary.violations} violations[/], {summary.trials_per_s:.0f} trials/s"
    )
    console.print(
        f"{summary.scripts} scripts crashed, {summary.undisturbed} more run undisturbed",
        highlight=False,
    )
    paths = ", ".join(f"{name} {value}" for name, value in sorted(summary.counters.items()))
    console.print(f"recovery paths: {paths}", highlight=False)
    if summary.torn_pages.cells:
        matrix = summary.torn_pages
        console.print(f"torn pages: {matrix.covered} of {matrix.total} kinds covered")
    for name in summary.claims_missed:
        console.print(f"[yellow]claimed but never taken: {escape(name)}[/]")
    for name in summary.run_claims_missed:
        console.print(f"[yellow]claimed of the runs but never taken: {escape(name)}[/]")
    for site in summary.uncovered_sites:
        console.print(f"[yellow]no trial hit site {site}[/]")
    if not summary.complete:
        console.print(f"[yellow]the run is {summary.run.state}: not all verdicts are there[/]")
    for error in summary.errors[:ERRORS_SHOWN]:
        console.print(f"[yellow]{escape(error)}[/]", highlight=False, soft_wrap=True)
    _print_more(console, summary.errors, ERRORS_SHOWN)
    unit = "states" if summary.explored else "trials"
    for seen in summary.bugs[:BUGS_SHOWN]:
        console.print(bug_lines(seen, unit), highlight=False, soft_wrap=True)
    _print_more(console, summary.bugs, BUGS_SHOWN)
    console.print(f"report: {report}", soft_wrap=True, highlight=False, markup=False)


def bug_lines(seen: BugSeen, unit: str) -> str:
    """A bug as a run saw it, with the line that replays it; in rich's markup."""
    first = seen.findings[0]
    broken = ", ".join(f"I{number}" for number in seen.bug.invariants)
    sites = ", ".join(dict.fromkeys(finding.site for finding in seen.findings))
    others = ", ".join(f"bug {number}" for number in seen.always_with)
    company = f", always with {others}" if others else ""
    return (
        f"[red]bug {seen.bug.id}[/], {seen.standing}{company}: {escape(seen.bug.title)}\n"
        f"    {broken} by {first.source}, {seen.sighting.count} {unit}, at {escape(sites)}; first: "
        f"{escape(first.what)}\n"
        f"    {escape(first.replay)}"
    )


def print_bugs(console: Console, bugs: Sequence[Bug]) -> None:
    """All bugs, two lines each."""
    for bug in bugs:
        broken = ", ".join(f"I{number}" for number in bug.invariants)
        shows = bug.reproducer.name or f"the undisturbed run of {bug.reproducer.config}"
        console.print(
            f"[bold]bug {bug.id}[/], {bug.status}: {escape(bug.title)}\n"
            f"    {bug.target}, {broken}; {_times(bug.count)} in {bug.runs} runs, first in run "
            f"{bug.first.run}, last in run {bug.last.run}, {bug.last.started[:16]}; {escape(shows)}",
            highlight=False,
            soft_wrap=True,
        )
    if not bugs:
        console.print("no bugs")


def print_bug(
    console: Console,
    bug: Bug,
    line: str,
    sightings: Sequence[Sighting],
    replays: Sequence[Replayed],
) -> None:
    """One bug with its history. line: that shows it again."""
    print_bugs(console, [bug])
    plain = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    if bug.reason:
        plain(f"    {bug.status}: {bug.reason}")
    for sighting in sightings:
        plain(
            f"    run {sighting.run}, {sighting.started[:16]}, build {sighting.build}: "
            f"{sighting.novelty}, {_times(sighting.count)}"
        )
    for replayed in replays:
        note = f" ({replayed.note})" if replayed.note else ""
        plain(f"    played again in run {replayed.run}: {replayed.answer}{note}")
    plain(f"    {line or 'the run of its reproducer has been deleted'}")


def print_night(console: Console, summary: NightSummary) -> None:
    """The end of a night, for a person."""
    plain = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    plain(
        f"night {summary.night.id}, seed {summary.night.plan['seed']}: {len(summary.runs)} runs, "
        f"{summary.crashes} crashes in {summary.night.seconds:.0f} s"
    )
    for one in summary.bugs:
        status = "" if one.is_news else f" ({one.bug.status})"
        count = f", {_times(one.count)}" if one.count else ""
        plain(f"{_STANDING[one.standing]}: bug {one.bug.id}{status}{count}: {one.bug.title}")
        for text in (one.note, one.replay):
            if text:
                plain(f"    {text}")
    for facts in summary.runs:
        if facts.state in ("failed", "running") or facts.verdict in ("nothing", "unsure"):
            plain(f"run {facts.id}, {facts.campaign}: {facts.state} {facts.verdict}")
    for error in summary.errors[:ERRORS_SHOWN]:
        plain(error)
    _print_more(console, summary.errors, ERRORS_SHOWN)
    if not summary.bugs:
        plain("no bugs")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _print_more(console: Console, items: Sequence[object], shown: int) -> None:
    if len(items) > shown:
        console.print(f"    and {len(items) - shown} more")


def print_trial(console: Console, trial: str, spec: TrialSpec, result: TrialResult) -> None:
    """One trial, for a person."""
    options = " ".join(f"{name}={value}" for name, value in sorted(spec.options.items()))
    plain = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    plain(f"trial {trial}: {result.outcome} {result.reason}".rstrip())
    plain(f"  target {spec.target}, {options}")
    if spec.plan.loss:
        plain(f"  power loss, state {spec.plan.loss}, {result.alike} states like it")
    for level, faults in enumerate((spec.plan.run, *spec.plan.recover)):
        during = f" of recovery {level}" if level else ""
        for fault in faults:
            how = f"sectors {fault.sectors} of {fault.sector} bytes"
            where = f"{fault.action} at {fault.kind} {fault.nth} of {fault.file}"
            plain(f"  fault{during}: {where}, {fault.error or how}")
    if result.torn is not None:
        states = " ".join(sector_states(result.torn))
        plain(f"  {result.torn.path} at {result.torn.offset}: {states}")
    for violation in result.violations:
        console.print(
            f"  [red]I{violation.invariant}[/] by {violation.source}: {escape(violation.what)}",
            highlight=False,
            soft_wrap=True,
        )
    taken = ", ".join(f"{name} {value}" for name, value in result.counters.items() if value)
    plain(f"  recovery: {taken or 'nothing to do'}")
    if result.image is not None:
        plain(f"  image: {result.image}")


def print_shrunk(console: Console, shrunk: Shrunk) -> None:
    """What a finding was shrunk to, its script last."""
    before, after = shrunk.before, shrunk.after
    plain = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    plain(f"trial {shrunk.trial}: {shrunk.fingerprint}")
    rows = [
        ("statements", before.statements, after.statements),
        ("operations", before.operations, after.operations),
        ("lost sectors", before.lost_sectors, after.lost_sectors),
    ]
    for name, old, new in rows:
        if old is not None or new is not None:
            console.print(f"  {name}: {old} -> [bold]{new}[/]", highlight=False)
    end = "" if shrunk.complete else ", time was up"
    console.print(
        f"  {shrunk.probes} scripts tried in {shrunk.seconds:.1f} s{end}", highlight=False
    )
    plain(f"  crash: {shrunk.crash}")
    plain(f"    {shrunk.replay}")
    plain(shrunk.script, end="")
