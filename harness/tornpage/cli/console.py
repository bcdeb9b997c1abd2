"""What a person sees in the terminal: summaries, one trial.

May import: model, report, shrink, summary.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tornpage.reports.report import sector_states
from tornpage.reports.summary import BugSeen, Summary
from tornpage.shrinking.shrink import Shrunk
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec

__all__ = ["bug_lines", "make_console", "print_shrunk", "print_summary", "print_trial"]


ERRORS_SHOWN = 5
BUGS_SHOWN = 20
PIPED_WIDTH = 10_000
"""Nothing is wrapped where nobody watches: a line of a log is a line."""


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
    return (
        f"[red]bug {seen.bug.id}[/], {seen.standing}: {escape(seen.bug.title)}\n"
        f"    {broken} by {first.source}, {seen.sighting.count} {unit}, at {escape(sites)}; first: "
        f"{escape(first.what)}\n"
        f"    {escape(first.replay)}"
    )


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
