"""What a person sees in the terminal: progress with rate and time left, summaries, one trial.

May import: model, report, runner, shrink, summary.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from tornpage.reports.report import sector_states
from tornpage.reports.summary import Summary
from tornpage.shrinking.shrink import Shrunk
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec

__all__ = ["RichProgress", "print_shrunk", "print_summary", "print_trial"]


class RichProgress:
    """Progress bars on a terminal; one line per phase where there is none."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._progress.add_task("starting", total=None, rate="")
        self._broken = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def phase(self, text: str, total: int) -> None:
        """A new bar of `total` steps."""
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(text, total=total, rate="")
        self._broken = 0

    def advance(self, broken: bool) -> None:
        """One step is done."""
        self._broken += broken
        task = next(task for task in self._progress.tasks if task.id == self._task)
        rate = f"{task.speed:.0f}/s" if task.speed else ""
        if self._broken:
            rate += f" [red]{self._broken} broken[/]"
        self._progress.update(self._task, advance=1, rate=rate)


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
        console.print(f"[yellow]claimed but never taken: {name}[/]")
    for name in summary.run_claims_missed:
        console.print(f"[yellow]claimed of the runs but never taken: {name}[/]")
    for site in summary.uncovered_sites:
        console.print(f"[yellow]no trial hit site {site}[/]")
    for error in summary.errors[:5]:
        console.print(f"[yellow]{error}[/]", highlight=False)
    for finding in summary.findings[:20]:
        console.print(
            f"[red]I{finding.invariant}[/] {finding.site} ({finding.config}), by {finding.source}, "
            f"{finding.count} trials: "
            f"{finding.what}\n    {finding.replay}",
            highlight=False,
        )
    console.print(f"report: {report}", soft_wrap=True, highlight=False)


def print_trial(console: Console, trial: str, spec: TrialSpec, result: TrialResult) -> None:
    """One trial, for a person."""
    options = " ".join(f"{name}={value}" for name, value in sorted(spec.options.items()))
    console.print(f"trial {trial}: {result.outcome} {result.reason}".rstrip(), highlight=False)
    console.print(f"  target {spec.target}, {options}", highlight=False)
    for level, faults in enumerate((spec.plan.run, *spec.plan.recover)):
        during = f" of recovery {level}" if level else ""
        for fault in faults:
            how = f"sectors {fault.sectors} of {fault.sector} bytes"
            console.print(
                f"  fault{during}: {fault.action} at {fault.kind} {fault.nth} of {fault.file}, "
                f"{fault.error or how}",
                highlight=False,
            )
    if result.torn is not None:
        states = " ".join(sector_states(result.torn))
        console.print(f"  {result.torn.path} at {result.torn.offset}: {states}", highlight=False)
    for violation in result.violations:
        console.print(
            f"  [red]I{violation.invariant}[/] by {violation.source}: {violation.what}",
            highlight=False,
        )
    taken = ", ".join(f"{name} {value}" for name, value in result.counters.items() if value)
    console.print(f"  recovery: {taken or 'nothing to do'}", highlight=False)
    if result.image is not None:
        console.print(f"  image: {result.image}", soft_wrap=True, highlight=False)


def print_shrunk(console: Console, shrunk: Shrunk) -> None:
    """What a finding was shrunk to, its script last."""
    before, after = shrunk.before, shrunk.after
    console.print(f"trial {shrunk.trial}: {shrunk.fingerprint}", highlight=False)
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
    console.print(f"  crash: {shrunk.crash}", highlight=False)
    console.print(f"    {shrunk.replay}", soft_wrap=True, highlight=False)
    console.print(shrunk.script, end="", markup=False, soft_wrap=True, highlight=False)
