"""The runs of a campaign without a fault, by the number of their script: "RUN.sNUMBER" is the id of one, as
"RUN.NUMBER" is that of a trial.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tornpage.live.undisturbed import judge_undisturbed
from tornpage.oracle.fingerprint import RUN_SITE
from tornpage.plans.campaign import Campaign, Config, undisturbed_spec
from tornpage.powerloss.runner import loss_parts
from tornpage.store.place import Place
from tornpage.store.rows import CensusRow, Run, TrialRow
from tornpage.store.store import Store
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Outcome, TrialResult, TrialSpec

__all__ = ["censuses_by_script", "play_script", "row_named", "undisturbed_row"]


def censuses_by_script(store: Store, run: Run) -> dict[int, CensusRow]:
    """What the store has of the undisturbed runs of a run. ConfigError if one is of no script."""
    scripts = _scripts(Campaign.model_validate(run.settings))
    numbers = {script.label: number for number, script in enumerate(scripts)}
    rows = store.censuses(run.id)
    for row in rows:
        if row.config not in numbers:
            raise ConfigError(f"{store.name}: run {run.id} has no script {row.config}")
    return {numbers[row.config]: row for row in rows}


def undisturbed_row(store: Store, run: int, number: int) -> TrialRow:
    """One of them as a trial whose plan has no fault. ConfigError if the store has none of this script."""
    found = store.run(run)
    campaign = Campaign.model_validate(found.settings)
    census = censuses_by_script(store, found).get(number)
    if census is None:
        raise ConfigError(f"{store.name}: no undisturbed run {run}.s{number}")
    spec = undisturbed_spec(campaign, found.target, _scripts(campaign)[number])
    result = _result(number, census)
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
        return undisturbed_row(store, run, number) if name[2] else store.trial(run, number)


def play_script(spec: TrialSpec, target: Target, scratch: Path) -> TrialResult:
    """Runs a script again without a fault, and judges the run."""
    return _result(spec.number, judge_undisturbed(spec, target, scratch / "undisturbed"))


def _scripts(campaign: Campaign) -> list[Config]:
    """All scripts of a campaign in the order of their numbers, with the labels that the store has."""
    if campaign.explore is None:
        crashed = campaign.scripted()
    else:
        crashed = [script for script, _depth in loss_parts(campaign)]
    return [*crashed, *campaign.only_undisturbed()]


def _result(number: int, census: CensusRow) -> TrialResult:
    violations = census.violations
    return TrialResult(
        number=number,
        outcome=Outcome.VIOLATION if violations else Outcome.CLEAN,
        reason=violations[0].what if violations else "",
        violations=violations,
        events=census.events,
        trace_hash=census.hash,
    )
