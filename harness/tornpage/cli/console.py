"""What a person sees in the terminal: summaries, one trial."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from tornpage.cli.terminal import make_console, plain_printer, print_object, told
from tornpage.reports.dossier import way_lines
from tornpage.reports.night import NightSummary, Standing
from tornpage.reports.sectors import sector_states
from tornpage.reports.summary import BugSeen, Summary
from tornpage.reports.verdict import Verdict, looked_at, verdict_of
from tornpage.store.bugs import Bug, Change, Sighting
from tornpage.store.memory import Replayed
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec
from tornpage.vocabulary.shown import visible

if TYPE_CHECKING:
    from tornpage.shrinking.shrink import Shrunk

__all__ = [
    "bug_lines",
    "print_bug",
    "print_bugs",
    "print_night",
    "print_shrunk",
    "print_summary",
    "print_trial",
    "print_verdict",
    "tell_run",
]


ERRORS_SHOWN = 5
BUGS_SHOWN = 20
_STANDING = {
    Standing.NEW: "new",
    Standing.BACK: "back",
    Standing.AGAIN: "still there",
    Standing.NOT_REPRODUCED: "not reproduced",
    Standing.NOT_PLAYED: "not seen, and cannot be played: --mark it fixed or ignored",
}


def print_verdict(verdict: Verdict, json_output: bool = False) -> None:
    """The last line of a command; with --json it is in the object."""
    if not json_output:
        plain_printer(make_console())(verdict.line)


def tell_run(
    summary: Summary, store: str, report: Path, json_output: bool, only_news: bool = False
) -> Verdict:
    """A run for a person, its verdict last, or the object of --json."""
    verdict = verdict_of(summary, only_news=only_news)
    if json_output:
        about = {"looked_at": looked_at(summary).to_json()}
        print_object(
            {**summary.to_json(store, report), **about, **verdict.to_json()}, verdict.exit_code
        )
    else:
        print_summary(make_console(), summary, report)
    print_verdict(verdict, json_output)
    return verdict


def print_summary(console: Console, summary: Summary, report: Path | None) -> None:
    """The end of a run, for a person. report: None if it could not be written."""
    name = told(f"{summary.run.campaign} on {summary.run.identity}")
    table = Table(title=f"{name}, run {summary.run.id}")
    table.add_column("site")
    unit = "states" if summary.explored else "trials"
    columns = {f"broken {unit}": summary.broken_by_site}
    if not summary.explored:
        columns = {"trials": summary.by_site, **columns}
    for column in columns:
        table.add_column(column, justify="right")
    for site in sorted(summary.counts_by_site):
        table.add_row(site, *(str(counts[site]) for counts in columns.values()))
    console.print(table)
    idle = {
        "not exercised": summary.outcomes[Outcome.NOT_EXERCISED],
        "vacuous": summary.outcomes[Outcome.VACUOUS],
        "broken runs without a crash": summary.golden_run_violations,
    }
    others = "".join(f", {count} {what}" for what, count in idle.items() if count)
    console.print(
        f"{summary.units} {unit}, {summary.exercised} exercised, [bold]{summary.broken} broken[/]{others}, "
        f"{summary.trials_per_s:.0f} {unit}/s",
        soft_wrap=True,
    )
    distinct = f", {summary.distinct} distinct states" if summary.explored else ""
    console.print(
        f"{summary.scripts} scripts crashed, {summary.fault_free} more run without a fault{distinct}",
        highlight=False,
        soft_wrap=True,
    )
    if summary.counters:
        taken = [(name, value) for name, value in sorted(summary.counters.items()) if value]
        paths = ", ".join(f"{name} {value}" for name, value in taken)
        plain_printer(console)(f"recovery paths: {paths}")
    if summary.torn_pages.cells:
        matrix = summary.torn_pages
        console.print(f"torn pages: {matrix.covered} of {matrix.total} kinds covered")
    for line in summary.missed:
        console.print(f"[yellow]{told(line)}[/]")
    for site in summary.uncovered_sites:
        console.print(f"[yellow]no trial hit site {site}[/]")
    if summary.missing:
        console.print(f"[yellow]{told(summary.missing)}[/]")
    for error in summary.errors[:ERRORS_SHOWN]:
        console.print(f"[yellow]{told(error)}[/]", highlight=False, soft_wrap=True)
    _print_more(console, summary.errors, ERRORS_SHOWN)
    for seen in summary.bugs[:BUGS_SHOWN]:
        console.print(bug_lines(seen, unit), highlight=False, soft_wrap=True)
    _print_more(console, summary.bugs, BUGS_SHOWN)
    about = looked_at(summary)
    if about.no_canary:
        plain_printer(console)(f"no canary for: {', '.join(about.no_canary)}")
    if about.bound is not None:
        plain_printer(console)(about.bound.text)
    if report is not None:
        plain_printer(console)(f"report: {report}")


def bug_lines(seen: BugSeen, unit: str) -> str:
    """A bug as a run saw it, with the line that replays it; in rich's markup."""
    first = seen.findings[0]
    broken = ", ".join(f"I{number}" for number in seen.bug.invariants)
    sites = ", ".join(dict.fromkeys(finding.site for finding in seen.findings))
    others = ", ".join(f"bug {number}" for number in seen.always_with)
    together = f", always with {others}" if others else ""
    other = "" if first.trial == seen.bug.reproducer.name else f" (trial {first.trial})"
    return (
        f"[red]bug {seen.bug.id}[/], {seen.standing}{together}: {told(seen.bug.title)}\n"
        f"    {broken} by {first.source}, {seen.sighting.count} {unit}, at {told(sites)}; first: "
        f"{told(first.what)}{other}\n"
        f"    {told(seen.replay)}"
    )


def print_bugs(console: Console, bugs: Sequence[Bug]) -> None:
    """All bugs, two lines each."""
    for bug in bugs:
        broken = ", ".join(f"I{number}" for number in bug.invariants)
        shows = bug.reproducer.name or f"the fault-free run of {bug.reproducer.config}"
        console.print(
            f"[bold]bug {bug.id}[/], {bug.status}: {told(bug.title)}\n"
            f"    {told(bug.target)}, {broken}; {_times(bug.count)} in {bug.runs} runs, first in run "
            f"{bug.first.run}, last in run {bug.last.run}, {bug.last.started[:16]}; {told(shows)}",
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
    plain = plain_printer(console)
    for change in bug.life:
        plain(f"    {_change(change)}")
    for sighting in sightings:
        plain(
            f"    run {sighting.run}, {sighting.started[:16]}, build {sighting.build}: "
            f"{sighting.novelty}, {_times(sighting.count)}"
        )
    for replayed in replays:
        note = f" ({replayed.note})" if replayed.note else ""
        plain(f"    played again in run {replayed.run}: {replayed.answer}{note}")
    plain(f"    {line or 'the run of its reproducer has been deleted'}")


def _change(change: Change) -> str:
    """When a bug became what, where that was seen, and why."""
    parts = [f"run {change.run}"] if change.run is not None else []
    parts += [change.at[:16]] if change.at else []
    parts += [f"build {change.build}"] if change.build else []
    parts += [f"commit {change.revision}"] if change.revision else []
    parts += [f"host {change.host}"] if change.host else []
    place = ": " + ", ".join(parts) if parts else ""
    return f"{change.status}{place}" + (f"; {change.reason}" if change.reason else "")


def print_night(console: Console, summary: NightSummary) -> None:
    """The end of a night, for a person."""
    plain = plain_printer(console)
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
        crashes = "1 crash" if facts.crashes == 1 else f"{facts.crashes:,} crashes"
        plain(
            f"run {facts.id}: {facts.campaign} on {facts.target}, seed {facts.seed}: {facts.state}, "
            f"{facts.verdict or 'no verdict'}, {crashes}"
        )
    if summary.not_reached:
        plain(f"not exercised, the time was up before a crash of: {', '.join(summary.not_reached)}")
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


def print_trial(
    console: Console,
    trial: str,
    spec: TrialSpec,
    result: TrialResult,
    replay: str,
    bugs: Sequence[int | None] = (),
    debug_files: Sequence[Path] = (),
) -> None:
    """One trial, for a person. replay: the line that plays it again; bugs: that its violations tell of;
    debug_files: folders in which functions and lines of call stacks are looked up now."""
    options = " ".join(f"{name}={value}" for name, value in sorted(spec.options.items()))
    plain = plain_printer(console)
    plain(f"trial {trial}: {result.outcome} {result.reason}".rstrip())
    plain(f"  target {spec.target}" + (f", {options}" if options else ""))
    if spec.plan.loss:
        others = f", {result.alike} states like it" if result.alike > 1 else ""
        plain(f"  power loss, state {spec.plan.loss}{others}")
    for level, faults in enumerate((spec.plan.run, *spec.plan.recover)):
        during = f" of recovery {level}" if level else ""
        for fault in faults:
            how = f"sectors {fault.sectors} of {fault.sector} bytes"
            where = f"{fault.action} at {fault.kind} {fault.nth} of {fault.file}"
            plain(f"  fault{during}: {where}, {fault.error or how}")
    if result.torn is not None:
        states = _runs(sector_states(result.torn))
        plain(f"  {result.torn.path} at {result.torn.offset}: {states}")
    from tornpage.evidence.evidence import load_evidence

    for line in way_lines(load_evidence(result.image, debug_files)):
        plain(line)
    for violation in result.violations:
        console.print(
            f"  [red]I{violation.invariant}[/] by {violation.source}: {told(violation.what)}",
            highlight=False,
            soft_wrap=True,
        )
    known = sorted({bug for bug in bugs if bug is not None})
    if known:
        plain(f"  of {', '.join(f'bug {bug}' for bug in known)}")
    taken = ", ".join(f"{name} {value}" for name, value in result.counters.items() if value)
    plain(f"  recovery: {result.answer or taken or 'nothing to do'}")
    if result.image is not None:
        plain(f"  image: {result.image}")
    for line in replay.splitlines():
        plain(f"  {line}")


def _runs(states: Sequence[str]) -> str:
    """What becomes of the sectors of a write: "2 new, 6 old"."""
    return ", ".join(f"{len(list(run))} {state}" for state, run in groupby(states))


def print_shrunk(console: Console, shrunk: Shrunk) -> None:
    """What a finding was shrunk to, its script last."""
    before, after = shrunk.before, shrunk.after
    plain = plain_printer(console)
    plain(f"trial {shrunk.trial}: {shrunk.fingerprint}")
    rows = [
        ("statements", before.statements, after.statements),
        ("operations", before.operations, after.operations),
        ("lost sectors", before.lost_sectors, after.lost_sectors),
    ]
    for name, old, new in rows:
        if old or new:  # a target that makes its own work has no statements
            console.print(f"  {name}: {old} -> [bold]{new}[/]", highlight=False)
    end = "" if shrunk.complete else ", time was up"
    console.print(
        f"  {shrunk.probes} scripts tried in {shrunk.seconds:.1f} s{end}", highlight=False
    )
    plain(f"  crash: {shrunk.crash}")
    plain(f"    {shrunk.replay}")
    console.print(visible(shrunk.script), end="", highlight=False, markup=False, soft_wrap=True)
