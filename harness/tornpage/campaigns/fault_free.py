"""The runs of a campaign without a fault, by the number of their script: "RUN.sNUMBER" is the id of one, as
"RUN.NUMBER" is that of a trial.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tornpage.live.fault_free import judge_fault_free
from tornpage.oracle.fingerprint import RUN_SITE
from tornpage.plans.campaign import Campaign, Config, fault_free_spec
from tornpage.plans.origin import command_line
from tornpage.powerloss.runner import loss_parts
from tornpage.store.bugs import Bug, Reproducer
from tornpage.store.place import Place
from tornpage.store.rows import GoldenRunRow, Run, TrialRow
from tornpage.store.store import Store
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec

__all__ = [
    "fault_free_row",
    "golden_runs_by_script",
    "play_script",
    "replay_line",
    "row_named",
    "row_of",
]


def golden_runs_by_script(store: Store, run: Run) -> dict[int, GoldenRunRow]:
    """What the store has of the fault-free runs of a run. ConfigError if one is of no script."""
    scripts = _scripts(Campaign.model_validate(run.settings))
    numbers = {script.label: number for number, script in enumerate(scripts)}
    rows = store.golden_runs(run.id)
    for row in rows:
        if row.config not in numbers:
            raise ConfigError(f"{store.name}: run {run.id} has no script {row.config}")
    return {numbers[row.config]: row for row in rows}


def fault_free_row(store: Store, run: int, number: int) -> TrialRow:
    """One of them as a trial whose plan has no fault. ConfigError if the store has none of this script."""
    found = store.run(run)
    campaign = Campaign.model_validate(found.settings)
    golden_run = golden_runs_by_script(store, found).get(number)
    if golden_run is None:
        raise ConfigError(f"{store.name}: no fault-free run {run}.s{number}")
    spec = fault_free_spec(campaign, found.target, _scripts(campaign)[number])
    result = _result(number, golden_run)
    return TrialRow(run, number, replace(spec, number=number), RUN_SITE, "", result)


def row_named(trial: str, place: Place) -> TrialRow:
    """What ID names in the store of this place. ConfigError if there is no such trial or run."""
    name = re.fullmatch(r"([0-9]{1,18})\.(s?)([0-9]{1,18})", trial)
    if name is None:
        raise ConfigError(
            f"{trial!r}: a trial is named RUN.NUMBER, as 3.117, a run without a fault RUN.sNUMBER"
        )
    run, number = int(name[1]), int(name[3])
    with Store(place, write=False) as store:
        return fault_free_row(store, run, number) if name[2] else store.trial(run, number)


def row_of(store: Store, reproducer: Reproducer) -> TrialRow:
    """What shows a bug. ConfigError if its run has been deleted."""
    if reproducer.trial is not None:
        return store.trial(reproducer.run, reproducer.trial)
    for number, golden_run in golden_runs_by_script(store, store.run(reproducer.run)).items():
        if golden_run.config == reproducer.config:
            return fault_free_row(store, reproducer.run, number)
    raise ConfigError(f"run {reproducer.run} has no script {reproducer.config}")


def replay_line(store: Store, bug: Bug) -> str:
    """The one command that shows the bug again, wherever it is told of; "" if its run has been deleted."""
    try:
        row = row_of(store, bug.reproducer)
    except ConfigError:
        return ""
    name = bug.reproducer.name or f"{row.run}.s{row.number}"
    return command_line(f"tornpage replay {name}", store.place.options)


def play_script(spec: TrialSpec, target: Target, scratch: Path) -> TrialResult:
    """Runs a script again without a fault, and judges the run."""
    return _result(spec.number, judge_fault_free(spec, target, scratch / "fault_free"))


def _scripts(campaign: Campaign) -> list[Config]:
    """All scripts of a campaign in the order of their numbers, with the labels that the store has."""
    if campaign.explore is None:
        crashed = campaign.scripted()
    else:
        crashed = [script for script, _depth in loss_parts(campaign)]
    return [*crashed, *campaign.only_fault_free()]


def _result(number: int, golden_run: GoldenRunRow) -> TrialResult:
    violations = golden_run.violations
    return TrialResult(
        number=number,
        outcome=Outcome.VIOLATION if violations else Outcome.CLEAN,
        reason=violations[0].what if violations else "",
        violations=violations,
        events=golden_run.events,
        trace_hash=golden_run.hash,
    )
