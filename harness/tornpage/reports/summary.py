"""What a run came to, as finished data: counts, matrix, violations, counters. The command line prints
it, the report renders it, `--json` is a part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import xxhash

from tornpage.oracle.fingerprint import RUN_SITE, Fingerprint, fingerprint_of
from tornpage.reports.cells import CellCount
from tornpage.reports.torn_matrix import TornMatrix, torn_matrix
from tornpage.store.bugs import Bug, BugStatus, Novelty, Sighting
from tornpage.store.memory import CLAIMS_MISSED, NOTHING
from tornpage.store.rows import GoldenRunRow, Run, TrialRow
from tornpage.vocabulary.model import (
    Outcome,
    Source,
    TornWrite,
    TrialResult,
    Violation,
    config_of,
)
from tornpage.vocabulary.notebook import Shown, table_of

__all__ = ["BugSeen", "Claims", "Finding", "Summary", "cut_states", "judged_states", "summarise"]


@dataclass(frozen=True, slots=True)
class Claims:
    """What a campaign says that it does. paths: counters of recoveries, run_paths: status counters of
    fault-free runs, which both must be above zero; sites: those it hits, by the names of the rows."""

    paths: Sequence[str] = ()
    run_paths: Sequence[str] = ()
    sites: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Finding(Shown):
    """Violations of one fingerprint (invariant, site, path) in one configuration.

    bug: that it tells of; source: who says so; trial: the first one, as "RUN.NUMBER", or the fault-free run,
    as "RUN.sNUMBER"; of_trial: which of the two; count: trials that share the fingerprint.
    """

    bug: int
    invariant: int
    site: str
    config: str
    what: str
    source: Source
    trial: str
    of_trial: bool
    replay: str
    count: int
    torn: TornWrite | None
    image: Path | None

    def cells(self) -> Mapping[str, object]:
        """For a notebook."""
        return {
            "bug": self.bug,
            "broken": f"I{self.invariant}",
            "site": self.site,
            "configuration": self.config,
            "what": self.what,
            "times": self.count,
            "replay": self.replay,
        }


@dataclass(frozen=True, slots=True)
class BugSeen:
    """A bug as this run saw it: one row of the report. findings: what told of it, first those whose image was
    kept, the most frequent first. replay: the line that plays its reproducer, the same wherever the bug is
    told of. always_with: bugs that every trial with this one shows too, or the fault-free run of its
    script: perhaps its cause."""

    bug: Bug
    sighting: Sighting
    findings: tuple[Finding, ...]
    replay: str
    always_with: tuple[int, ...] = ()

    @property
    def is_news(self) -> bool:
        """Not seen before this run, or fixed before it."""
        return self.sighting.novelty is not Novelty.AGAIN

    def fails(self, only_news: bool) -> bool:
        """It makes a case of a CI system red: not if it is ignored, or (only_news) was known before."""
        return self.bug.status is not BugStatus.IGNORED and (self.is_news or not only_news)

    @property
    def standing(self) -> str:
        """What this sighting was at its time."""
        if self.sighting.novelty is Novelty.AGAIN:
            return f"seen before ({self.bug.status})"
        return self.sighting.novelty

    @property
    def headline(self) -> str:
        """One line."""
        return f"bug {self.bug.id}, {self.standing}: {self.bug.title}"

    def to_json(self) -> dict[str, Any]:
        """An item of `bugs` in --json."""
        return {
            "bug": self.bug.id,
            "title": self.bug.title,
            "fingerprint": self.bug.fingerprint,
            "invariants": list(self.bug.invariants),
            "status": self.bug.status,
            "reason": self.bug.reason,
            "novelty": self.sighting.novelty,
            "count": self.sighting.count,
            "always_with": list(self.always_with),
            "trial": self.findings[0].trial,
            "replay": self.replay,
        }


@dataclass(slots=True)
class Summary:
    """A run in numbers. broken: trials or states with a violation. by_invariant and broken_by_site count
    such, by_site counts trials; counters are summed over trials, and exercised_by counts the trials in which
    a counter was above zero. scripts: that were crashed; fault_free: those that only ran; run_counters: in
    how many fault-free runs, of both, a status counter was above zero; writes: that a trial could be in, of
    all of these runs. run_cells: these runs, by
    configuration; their site is RUN_SITE. explored: per script what the power-loss explorer said; a state
    counts as a trial there. torn_pages: what these states tore."""

    run: Run
    finished: int = 0
    broken: int = 0
    golden_run_violations: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    by_invariant: Counter[int] = field(default_factory=Counter)
    by_site: Counter[str] = field(default_factory=Counter)
    broken_by_site: Counter[str] = field(default_factory=Counter)
    counters: Counter[str] = field(default_factory=Counter)
    exercised_by: Counter[str] = field(default_factory=Counter)
    scripts: int = 0
    fault_free: int = 0
    run_counters: Counter[str] = field(default_factory=Counter)
    writes: int = 0
    cells: list[CellCount] = field(default_factory=list)
    run_cells: list[CellCount] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    bugs: list[BugSeen] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    peak_bytes: int = 0
    trace_hash: str = ""
    explored: dict[str, dict[str, Any]] = field(default_factory=dict)
    torn_pages: TornMatrix = field(default_factory=lambda: TornMatrix(()))
    claims_missed: list[str] = field(default_factory=list)
    run_claims_missed: list[str] = field(default_factory=list)
    uncovered_sites: list[str] = field(default_factory=list)

    def _repr_html_(self) -> str:
        """For a notebook."""
        run = {
            "run": self.run.id,
            "campaign": self.run.campaign,
            "target": self.run.identity,
            "verdict": self.verdict,
            "crashes": self.units,
            "exercised": self.exercised,
            "violations": self.violations,
        }
        bugs = [{"bug": seen.headline, "replay": seen.replay} for seen in self.bugs]
        return table_of([run]) + (table_of(bugs) if bugs else "")

    @property
    def exercised(self) -> int:
        """Crashes that happened and that say something."""
        return (
            self.states
            if self.explored
            else self.outcomes[Outcome.CLEAN] + self.outcomes[Outcome.VIOLATION]
        )

    @property
    def violations(self) -> int:
        """Trials, or power-loss states, with a broken invariant, and golden runs with one."""
        return self.broken + self.golden_run_violations

    @property
    def is_writeless(self) -> bool:
        """No kill could be inside a write of its runs, which change sizes and names only, or nothing."""
        idle = not self.units and not self.violations and self.run.state == "finished"
        return idle and self.scripts > 0 and not self.writes

    @property
    def complete(self) -> bool:
        """Every trial or exploration of the run has its verdict, or those that its time was enough for."""
        return self.run.state in ("finished", "stopped")

    @property
    def unproved(self) -> str:
        """Why this run proves nothing unless it finds something: its control did not. "" if it does."""
        return self.run.origin.examined.vacuous if self.run.origin.examined else ""

    @property
    def missed(self) -> list[str]:
        """What was required and never ran, a sentence each."""
        of = {"recovery": self.claims_missed, "run": self.run_claims_missed}
        return [
            f"required {kind} counter stayed at zero: {name}"
            for kind, names in of.items()
            for name in names
        ]

    @property
    def missing(self) -> str:
        """Says so if verdicts are missing, else ""."""
        state = "unfinished" if self.run.state == "running" else self.run.state
        return "" if self.complete else f"run {state}: some verdicts are missing"

    @property
    def trials_per_s(self) -> float:
        """Finished trials per second of the run's own time."""
        return self.units / self.run.seconds if self.run.seconds > 0 else 0.0

    @property
    def states(self) -> int:
        """Power-loss states that were recovered and judged."""
        return sum(judged_states(part) for part in self.explored.values())

    @property
    def cut_short(self) -> int:
        """Power-loss states that the end of the time has left without a verdict: nobody knows whether their
        recoveries end."""
        return sum(cut_states(part) for part in self.explored.values())

    @property
    def distinct(self) -> int:
        """Of these, how many differ in their bytes or in what may be found in them."""
        return sum(int(part["distinct"]) for part in self.explored.values())

    @property
    def units(self) -> int:
        """Crashes judged: trials of a kill campaign, states of a power-loss one."""
        return self.states if self.explored else self.finished

    def exit_code(self, *, only_news: bool = False) -> int:
        """0 clean, 1 bugs that are not ignored (only_news: that are new or came back), 2 harness failure,
        verdicts that are missing or unstable, 3 no crash was exercised, or a required path never ran."""
        return 1 if any(seen.fails(only_news) for seen in self.bugs) else self._code_without_bugs()

    def _code_without_bugs(self) -> int:
        unsure = self.outcomes[Outcome.HARNESS_ERROR] or self.outcomes[Outcome.UNSTABLE]
        if unsure or not self.complete:
            return 2
        if not self.exercised or self.unproved:
            return 3
        # A run whose time was up cannot be held to what its campaign claims.
        if self.run.state == "finished" and (self.claims_missed or self.run_claims_missed):
            return 3
        return 0

    @property
    def verdict(self) -> str:
        """In a word, as the store keeps it: what was seen, whatever is thought of it."""
        code = 1 if self.violations else self._code_without_bugs()
        proved = self.exercised and not self.unproved
        return ("clean", "violations", "unsure", CLAIMS_MISSED if proved else NOTHING)[code]

    @property
    def counts_by_site(self) -> Mapping[str, int]:
        """Trials, or states that broke something: only those have a site."""
        return self.broken_by_site if self.explored else self.by_site

    def to_json(self, store: str, report: Path) -> dict[str, Any]:
        """The object that `tornpage run --json` prints last."""
        data: dict[str, Any] = {
            "campaign": self.run.campaign,
            "seed": self.run.seed,
            "trials": self.units,
            "exercised": self.exercised,
            "not_exercised": self.outcomes[Outcome.NOT_EXERCISED],
            "vacuous": self.outcomes[Outcome.VACUOUS],
            "violations": self.violations,
            "by_invariant": {f"I{n}": self.by_invariant[n] for n in sorted(self.by_invariant)},
            "by_site": dict(sorted(self.counts_by_site.items())),
            "trials_per_s": round(self.trials_per_s, 1),
            "trace_hash": self.trace_hash,
            "store": str(store),
            "report": str(report),
            "run": self.run.id,
            "target": self.run.target,
            "complete": self.complete,
            "bugs": [seen.to_json() for seen in self.bugs],
            "unstable": self.outcomes[Outcome.UNSTABLE],
            "harness_errors": self.outcomes[Outcome.HARNESS_ERROR],
            "scripts": self.scripts,
            "fault_free": self.fault_free,
            "counters": {name: self.counters[name] for name in sorted(self.counters)},
            "run_counters": {name: self.run_counters[name] for name in sorted(self.run_counters)},
            "claims_missed": self.claims_missed,
            "run_claims_missed": self.run_claims_missed,
            "uncovered_sites": self.uncovered_sites,
        }
        if self.run.origin.examined is not None:
            data["control"] = self.run.origin.examined.control
        if self.explored:
            data |= {
                "states": self.states,
                "distinct": self.distinct,
                "states_per_s": round(self.trials_per_s, 1),
                "depth": max(int(part["depth"]) for part in self.explored.values()),
                "coverage": self.torn_pages.to_json(),
            }
        return data


def judged_states(part: Mapping[str, Any]) -> int:
    """Of what the explorer said of one exploration: the states that have a verdict."""
    return max(0, int(part["states"]) - cut_states(part))


def cut_states(part: Mapping[str, Any]) -> int:
    """As well: those that the end of the time has left without one."""
    return int(part.get("unfinished", 0))


def summarise(
    run: Run,
    golden_runs: Mapping[int, GoldenRunRow],
    trials: Iterable[TrialRow],
    explored: dict[str, dict[str, Any]],
    claims: Claims,
    bugs: Mapping[int, tuple[Bug, Sighting]],
    command: Callable[[str], str] = lambda line: line,
    complete: Callable[[Finding], Finding] = lambda finding: finding,
    line_of: Callable[[Bug], str] = lambda _bug: "",
) -> Summary:
    """Folds the rows of a run, trials in order of number. golden_runs: fault-free runs by number of the
    script; bugs: those that it saw, by id; command: turns a line that replays into one for anywhere;
    complete: adds to a finding what these rows do not have; line_of: of a bug, the line that plays its
    reproducer, "" where that is gone and only this run has the bug."""
    fold = _Fold(Summary(run, explored=explored, torn_pages=torn_matrix(explored)))
    for number, golden_run in golden_runs.items():
        fold.add_golden_run(number, golden_run)
    for config, part in sorted(explored.items()):
        fold.add_exploration(config, part)
    for row in trials:
        if row.result is not None:
            fold.add_trial(row, row.result)
    summary = fold.folded()
    summary.findings = [
        complete(replace(finding, replay=command(finding.replay)))
        for finding in sorted(fold.findings.values(), key=lambda f: (f.invariant, -f.count, f.site))
    ]
    summary.bugs = _bugs_seen(bugs, summary.findings, fold.together, line_of)
    summary.claims_missed = [name for name in claims.paths if not summary.counters[name]]
    summary.run_claims_missed = [n for n in claims.run_paths if not summary.run_counters[n]]
    summary.uncovered_sites = [s for s in dict.fromkeys(claims.sites) if not summary.by_site[s]]
    return summary


class _Fold:
    """Rows of a run, added one by one to its summary."""

    def __init__(self, summary: Summary) -> None:
        self.findings: dict[tuple[Fingerprint, str, int], Finding] = {}
        self.together = _SeenTogether()
        self._summary = summary
        self._digest = xxhash.xxh3_64()
        self._golden_runs: dict[str, GoldenRunRow] = {}
        self._run_cells: dict[str, CellCount] = {}
        self._cells: dict[tuple[str, str, str], CellCount] = {}

    def add_golden_run(self, number: int, golden_run: GoldenRunRow) -> None:
        summary = self._summary
        self._golden_runs[golden_run.config] = golden_run
        self.together.meet(golden_run.bugs)
        config = config_of(golden_run.config)
        script = f"{summary.run.id}.s{number}"
        cell = self._run_cells.setdefault(config, CellCount(config, RUN_SITE, ""))
        cell.add_run(golden_run, script)
        self._digest.update(f"{golden_run.config} {golden_run.hash}\n".encode())
        summary.scripts += golden_run.crashed
        summary.fault_free += not golden_run.crashed
        summary.writes += golden_run.writes
        summary.run_counters.update(name for name, value in golden_run.counters.items() if value)
        summary.golden_run_violations += bool(golden_run.violations)
        for violation, bug in zip(golden_run.violations, golden_run.bugs, strict=True):
            summary.by_invariant[violation.invariant] += 1
            _add_finding(self.findings, script, RUN_SITE, golden_run.config, violation, bug, None)

    def add_exploration(self, config: str, part: dict[str, Any]) -> None:
        self._digest.update(f"{config} {part['states']} {part['distinct']}\n".encode())
        self._summary.counters.update(part.get("paths", {}))

    def add_trial(self, row: TrialRow, result: TrialResult) -> None:
        self._digest.update(_verdict_line(result).encode())
        _add_trial(self._summary, row, result)
        trial = f"{self._summary.run.id}.{row.number}"
        key = (config_of(row.spec.config), row.site, row.mask)
        self._cells.setdefault(key, CellCount(*key)).add(row, result)
        shown = self._golden_runs.get(row.spec.config)
        self.together.meet(row.bugs, shown.bugs if shown else ())
        for violation, its_bug in zip(result.violations, row.bugs, strict=True):
            if its_bug is None:  # the trial is unstable
                continue
            of_run = shown is not None and violation in shown.violations
            site = RUN_SITE if of_run else row.site
            _add_finding(self.findings, trial, site, row.spec.config, violation, its_bug, result)

    def folded(self) -> Summary:
        """The summary, with what needs all rows: cells in order, and the digest of all verdicts."""
        self._summary.run_cells = [self._run_cells[config] for config in sorted(self._run_cells)]
        self._summary.cells = [self._cells[key] for key in sorted(self._cells)]
        self._summary.trace_hash = self._digest.hexdigest()
        return self._summary


class _SeenTogether:
    """Which bugs are never seen without which others."""

    def __init__(self) -> None:
        self._always: dict[int, set[int]] = {}

    def meet(self, bugs: Sequence[int | None], beside: Sequence[int] = ()) -> None:
        """A trial or fault-free run shows these bugs; beside: those of the fault-free run of its script."""
        together = {bug for bug in (*bugs, *beside) if bug is not None}
        for bug in {bug for bug in bugs if bug is not None}:
            self._always[bug] = self._always.get(bug, together) & (together - {bug})

    def of(self, bug: int) -> tuple[int, ...]:
        """Those that always come with it, but for those that it always comes with."""
        others = self._always.get(bug, set())
        return tuple(sorted(other for other in others if bug not in self._always[other]))


def _bugs_seen(
    bugs: Mapping[int, tuple[Bug, Sighting]],
    findings: Sequence[Finding],
    together: _SeenTogether,
    line_of: Callable[[Bug], str],
) -> list[BugSeen]:
    """The news first, then those that come alone, then the most frequent."""
    rows: dict[int, list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: (finding.image is None, -finding.count)):
        rows.setdefault(finding.bug, []).append(finding)
    seen = [
        BugSeen(
            *bugs[bug], tuple(found), line_of(bugs[bug][0]) or found[0].replay, together.of(bug)
        )
        for bug, found in rows.items()
    ]
    return sorted(
        seen,
        key=lambda one: (
            not one.is_news,
            bool(one.always_with),
            -one.sighting.count,
            one.bug.id,
        ),
    )


def _replay_line(trial: str) -> str:
    return f"tornpage replay {trial}"


def _verdict_line(result: TrialResult) -> str:
    broken = ",".join(f"I{violation.invariant}" for violation in result.violations)
    return f"{result.number} {result.trace_hash} {result.digest} {result.outcome} {broken}\n"


def _add_trial(summary: Summary, row: TrialRow, result: TrialResult) -> None:
    summary.finished += 1
    summary.outcomes[result.outcome] += 1
    summary.peak_bytes = max(summary.peak_bytes, result.peak_bytes)
    if result.outcome is Outcome.HARNESS_ERROR:
        summary.errors.append(f"trial {row.run}.{row.number}: {result.reason}")
        return
    if result.outcome is Outcome.UNSTABLE:
        summary.errors.append(f"trial {row.run}.{row.number} is unstable: {result.reason}")
        return
    if result.outcome is Outcome.VIOLATION:
        summary.broken += result.alike
        summary.broken_by_site[row.site] += result.alike
    if result.outcome is not Outcome.NOT_EXERCISED:
        summary.by_site[row.site] += 1
    for name, value in result.counters.items():
        summary.counters[name] += value
        summary.exercised_by[name] += value > 0
    for invariant in {violation.invariant for violation in result.violations}:
        summary.by_invariant[invariant] += result.alike


def _add_finding(
    findings: dict[tuple[Fingerprint, str, int], Finding],
    trial: str,
    site: str,
    config: str,
    violation: Violation,
    bug: int,
    result: TrialResult | None,
) -> None:
    """trial: id; result: its result, None of a fault-free run."""
    key = (fingerprint_of(violation, site), config_of(config), bug)
    known = findings.get(key)
    alike = result.alike if result else 1
    # A fault-free run shows it too, but a trial can also be shrunk.
    if known is not None and not known.of_trial and result is not None:
        known = replace(known, trial=trial, of_trial=True, count=0)
    name = known.trial if known else trial
    findings[key] = Finding(
        bug=bug,
        invariant=violation.invariant,
        site=key[0].site,
        config=known.config if known else config,
        what=known.what if known else violation.what,
        source=known.source if known else violation.source,
        trial=name,
        of_trial=known.of_trial if known else result is not None,
        replay=_replay_line(name),
        count=known.count + alike if known and result else alike,
        torn=known.torn if known else (result.torn if result else None),
        image=(known.image if known else None) or (result.image if result else None),
    )
