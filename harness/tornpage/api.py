"""The Python API for programs, tests and notebooks. docs/API.md explains each name and how long it stays
stable. The modules below are internal.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.campaigns.fault_free import row_named, with_kept_image
from tornpage.campaigns.fitting import Opened, changed, open_campaign, open_with
from tornpage.campaigns.publish import write_report
from tornpage.campaigns.replay import Replay, replay_trial
from tornpage.campaigns.runner import load_summary, run_campaign
from tornpage.causes.explain import explain_trial
from tornpage.live.admission import work_of
from tornpage.plans.campaign import Campaign, PowerLoss
from tornpage.plans.changes import command_words
from tornpage.plans.limits import Limits
from tornpage.plans.origin import without_password
from tornpage.reports.summary import Finding, Summary
from tornpage.shrinking.shrink import Shrunk, shrink_trial
from tornpage.store.bugs import Bug
from tornpage.store.memory import RunFacts
from tornpage.store.place import Place, place_in, place_of
from tornpage.store.rows import TrialRow
from tornpage.store.store import Store as ResultStore
from tornpage.targets.registry import full_name, make_target, target_name
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.cause import Explained
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.errors import ConfigError, MachineError, TargetError, TornpageError
from tornpage.vocabulary.notebook import Rows
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths
from tornpage.workers.context import DEFAULT_JOBS, QuietProgress, RunContext

if TYPE_CHECKING:
    import pandas

__all__ = [
    "Campaign",
    "ConfigError",
    "Finding",
    "MachineError",
    "Store",
    "Summary",
    "Target",
    "TargetError",
    "TornpageError",
    "explain",
    "powerloss",
    "replay",
    "run",
    "shrink",
]


def run(
    campaign: str | Path | Campaign,
    target: str | Path | None = None,
    *,
    options: Mapping[str, str] | None = None,
    seed: int | None = None,
    trials: int | None = None,
    scripts: int | None = None,
    fault_free: int | None = None,
    models: Sequence[str] | None = None,
    depth: int | None = None,
    states: int | None = None,
    budget_s: float | None = None,
    jobs: int = DEFAULT_JOBS,
    out: str | Path = DEFAULT_OUT,
    store: str | Path | None = None,
) -> Summary:
    """Runs a campaign as `tornpage run` does, and writes its report.

    campaign: a name, a .toml file, or an object; target: a name, or a target file; default: the campaign's,
    or the bundled engine. The others are those of the command: options is its --option; states and budget_s
    (seconds) are per exploration; jobs: worker processes; out: folder of database and reports; store: another
    place for the database, a file or postgresql://USER@HOST/DATABASE. The summary has bugs and findings, and
    exit_code() is that of the command. Raises TornpageError if the run could not be made, never for what the
    target does.
    """
    limits = Limits(
        seed=seed,
        trials=trials,
        scripts=scripts,
        fault_free=fault_free,
        models=tuple(models or ()),
        depth=depth,
        states=states,
        budget_s=budget_s,
    )
    chosen = dict(options or {})
    named = campaign if isinstance(campaign, Campaign) else str(campaign)
    opened = open_campaign(named, None if target is None else str(target), find_paths())
    command = _command(
        named, None if target is None else opened.name, command_words(limits, chosen)
    )
    (limited,) = changed([opened], limits, chosen, find_paths())
    return _run(opened, limited.campaign, jobs, Path(out), _place(out, store), command)


def powerloss(
    target: str | Path,
    script: str = "",
    *,
    options: Mapping[str, str] | None = None,
    models: Sequence[str] | None = None,
    depth: int = 1,
    states: int = 1000,
    budget_s: float = 0,
    seed: int = 1,
    name: str = "script",
    jobs: int = 1,
    out: str | Path = DEFAULT_OUT,
    store: str | Path | None = None,
) -> Rows[Finding]:
    """Runs one script, judges states that a power loss may leave at any moment of it, and returns the
    findings.

    target: a name, or a target file; script: in the language of docs/SCRIPT.md; for a target file that takes
    lines, lines that replace its own; for one that makes its own work, nothing. models: of `tornpage list
    models`, none: all; depth: 2 crashes the recovery too; states: about how many at most; budget_s: limit in
    seconds, 0: none; name: of the run in the database; out, store: as in run(). Raises TornpageError if the
    run could not be made, or no state could be judged.
    """
    chosen = target_name(str(target))
    limits = Limits(
        seed=seed, models=tuple(models or ()), depth=depth, states=states, budget_s=budget_s
    )
    made = make_target(chosen, find_paths().build)
    campaign = Campaign(
        name=name,
        description="crash states of one script",
        crash_model="power_loss",
        seed=seed,
        options=dict(options or {}),
        explore=PowerLoss(),
        **_work(made, script),
    )
    opened = open_with(campaign, made, chosen, find_paths())
    (limited,) = changed([opened], limits, {}, find_paths())
    summary = _run(opened, limited.campaign, jobs, Path(out), _place(out, store))
    if not summary.findings and summary.exit_code():
        errors = "; ".join(summary.errors) or "no crash state of the script was judged"
        raise TornpageError(f"run {summary.run.id}: {errors}")
    return Rows(summary.findings)


def replay(
    trial: str,
    *,
    stacks: bool = True,
    out: str | Path = DEFAULT_OUT,
    store: str | Path | None = None,
) -> Replay:
    """Repeats a stored trial, as `tornpage replay` does.

    trial: RUN.NUMBER, as in Finding.trial; stacks: record call stacks; out, store: as in run(). Raises
    TornpageError if there is no such trial.
    """
    row = with_kept_image(row_named(trial, _place(out, store)), Path(out))
    return replay_trial(row, find_paths(), Path(out) / "replay", stacks=stacks)


def shrink(
    trial: str,
    *,
    budget_s: float = 60,
    stacks: bool = True,
    out: str | Path = DEFAULT_OUT,
    store: str | Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> Shrunk:
    """Searches for about budget_s seconds for a smaller script and a smaller crash with the same finding, and
    stores them as a trial; the result has its script.

    trial: RUN.NUMBER; stacks: record call stacks of the new trial; out, store: as in run(); tell: called with
    a line of progress from time to time. Raises TornpageError if there is nothing to shrink, or the finding
    does not recur.
    """
    place = _place(out, store)
    row = row_named(trial, place)
    with ResultStore(place, create=False) as opened:
        hear = tell or (lambda _line: None)
        return shrink_trial(opened, row, find_paths(), Path(out), budget_s, hear, stacks=stacks)


def explain(
    trial: str,
    *,
    debug_files: Sequence[str | Path] = (),
    out: str | Path = DEFAULT_OUT,
    store: str | Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> Explained:
    """Finds by experiment why a crash breaks a state, as `tornpage explain` does, and keeps the result with
    the finding.

    trial: RUN.NUMBER; debug_files: folders with debug files; out, store: as in run(); tell: called with a
    line of progress from time to time. Raises TornpageError if there is nothing to explain.
    """
    place = _place(out, store)
    row = with_kept_image(row_named(trial, place), Path(out))
    hear = tell or (lambda _line: None)
    found = explain_trial(row, find_paths(), [Path(one) for one in debug_files], hear)
    with ResultStore(place, create=False) as opened:
        opened.put_explanation(trial, found)
    return found


class Store:
    """A result database, for reading during or after runs. Raises ConfigError, a TornpageError, if there is
    none."""

    def __init__(self, out: str | Path = DEFAULT_OUT) -> None:
        """out: like --out or --store of the commands, a folder, a file, or
        postgresql://USER@HOST/DATABASE."""
        self._place = place_of(out)
        with self._open():
            pass

    def runs(self) -> Rows[RunFacts]:
        """All runs, the oldest first."""
        with self._open() as store:
            return Rows(store.overview())

    def bugs(self) -> Rows[Bug]:
        """All bugs, by their numbers."""
        with self._open() as store:
            return Rows(store.bugs())

    def trials(self, run: int | None = None) -> list[TrialRow]:
        """The trials of a run; None: the newest."""
        with self._open() as store:
            return list(store.trials(run if run is not None else store.latest_run().id))

    def explanations(self, run: int | None = None) -> dict[str, Explained]:
        """The results of explain() for a run's findings, by their IDs; None: the newest run."""
        with self._open() as store:
            return store.explanations(run if run is not None else store.latest_run().id)

    def summary(self, run: int | None = None) -> Summary:
        """A run in numbers, with its findings; None: the newest."""
        with self._open() as store:
            return load_summary(store, store.latest_run() if run is None else store.run(run))

    def frame(self, table: str = "trials", run: int | None = None) -> pandas.DataFrame:
        """A table as a pandas data frame: "runs", "bugs", or of one run (None: the newest) "trials" or
        "findings". Nested values become columns, such as `counters.dblwr_restored`. Needs pandas: pip install
        tornpage[frames]."""
        try:
            import pandas
        except ImportError as error:
            raise ConfigError(
                "a data frame needs pandas: pip install 'tornpage[frames]'"
            ) from error
        return pandas.json_normalize(list(self._records(table, run)))

    def _records(self, table: str, run: int | None) -> Iterable[dict[str, Any]]:
        if table == "runs":
            return (asdict(facts) for facts in self.runs())
        if table == "bugs":
            return (to_plain(bug) for bug in self.bugs())
        if table == "findings":
            return (to_plain(finding) for finding in self.summary(run).findings)
        if table == "trials":
            return (_record(row) for row in self.trials(run))
        raise ConfigError(f"no table {table!r}; there are: runs, bugs, trials, findings")

    def _open(self) -> ResultStore:
        return ResultStore(self._place, write=False)


def _place(out: str | Path, store: str | Path | None) -> Place:
    """Where the store is: by its own name, or in the folder `out`."""
    return place_in(Path(out), store)


def _record(row: TrialRow) -> dict[str, Any]:
    """A trial: what was planned, and if it has a verdict, what it came to."""
    planned = {
        "run": row.run,
        "number": row.number,
        "trial": f"{row.run}.{row.number}",
        "campaign": row.spec.campaign,
        "target": row.spec.target,
        "config": row.spec.config,
        "workload": row.spec.workload,
        "workload_seed": row.spec.workload_seed,
        "site": row.site,
        "mask": row.mask,
    }
    if row.result is None:
        return planned
    invariants = sorted({violation.invariant for violation in row.result.violations})
    result = to_plain(row.result)
    came = {
        key: result[key]
        for key in ("outcome", "reason", "alike", "events", "peak_bytes", "trace_hash", "digest")
    }
    facts = {"invariants": invariants, "bugs": list(row.bugs)}
    return {
        **planned,
        **came,
        **facts,
        "counters": dict(row.result.counters),
        "seconds": dict(row.result.seconds),
    }


def _command(campaign: str | Campaign, target: str | None, changed: list[str]) -> str:
    """What makes such a run from anywhere; "" for a campaign that is in no file."""
    if isinstance(campaign, Campaign):
        return ""
    chosen = [] if target is None else ["--target", target]
    words = ["tornpage", "run", full_name(campaign), *chosen, *changed]
    return shlex.join(without_password(word) for word in words)


def _run(
    opened: Opened, chosen: Campaign, jobs: int, out: Path, place: Place, command: str = ""
) -> Summary:
    paths = find_paths()
    context = RunContext(paths, jobs, out, QuietProgress(), opened.origin(command))
    with ResultStore(place) as store:
        summary = run_campaign(store, chosen, opened.name, context)
        write_report(store, summary, paths, out)
    return summary


def _work(target: Target, script: str) -> dict[str, Any]:
    """Workload and parameters of a script. ConfigError for one that the target does not take."""
    if Capability.OBSERVED not in target.capabilities:
        return {"workload": "inline", "params": {"script": script}}
    workload, params = work_of(target, {})
    if script and target.lines is None:
        raise ConfigError(f"target {target.name} makes its own work, and takes no script")
    return {"workload": workload, "params": {"script": script} if script else params}
