"""The runs of a campaign without a fault, by the number of their script: "RUN.sNUMBER" is the id of one, as
"RUN.NUMBER" is that of a trial.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tornpage.evidence.accused import keep_run_evidence
from tornpage.evidence.evidence import load_evidence
from tornpage.evidence.images import images_of
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
from tornpage.vocabulary.model import Outcome, Source, TrialResult, TrialSpec

__all__ = [
    "fault_free_row",
    "golden_runs_by_script",
    "keep_accused",
    "kept_scripts",
    "play_script",
    "replay_line",
    "reproducer_name",
    "row_named",
    "row_of",
    "script_folder",
    "scripts_of",
    "stored_row",
    "with_kept_image",
]


def golden_runs_by_script(store: Store, run: Run) -> dict[int, GoldenRunRow]:
    """What the store has of the fault-free runs of a run. ConfigError if one is of no script."""
    scripts = scripts_of(Campaign.model_validate(run.settings))
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
    spec = fault_free_spec(campaign, found.target, scripts_of(campaign)[number])
    result = _result(number, golden_run)
    spec = replace(spec, number=number)
    return TrialRow(run, number, spec, RUN_SITE, "", result, bugs=golden_run.bugs)


def row_named(trial: str, place: Place) -> TrialRow:
    """What ID names in the store of this place. ConfigError as stored_row()."""
    _parts(trial)
    with Store(place, write=False) as store:
        return stored_row(store, trial)


def stored_row(store: Store, trial: str) -> TrialRow:
    """What ID names in a store. ConfigError if ID is none, or there is no such trial or run."""
    run, is_script, number = _parts(trial)
    return fault_free_row(store, run, number) if is_script else store.trial(run, number)


def _parts(trial: str) -> tuple[int, bool, int]:
    """Of an ID: the run, whether it names a run without a fault, and the number."""
    name = re.fullmatch(r"([0-9]{1,18})\.(s?)([0-9]{1,18})", trial)
    if name is None:
        raise ConfigError(
            f"{trial!r}: a trial is named RUN.NUMBER, as 3.117, a run without a fault RUN.sNUMBER"
        )
    return int(name[1]), bool(name[2]), int(name[3])


def play_script(spec: TrialSpec, target: Target, scratch: Path, images: Path) -> TrialResult:
    """Runs a script again without a fault, and judges the run. How it broke a rule is kept below `images`."""
    result = _result(spec.number, judge_fault_free(spec, target, scratch / "fault_free"))
    image = images / script_folder(spec.number)
    if not any(violation.source is Source.RULE for violation in result.violations):
        return result
    kept = keep_run_evidence(spec, target, scratch, image)
    return replace(result, image=image.resolve()) if kept else result


def script_folder(number: int) -> str:
    """The folder of a script among the images of a run."""
    return f"s{number}"


def keep_accused(
    store: Store,
    run: Run,
    scratch: Path,
    target: Target,
    out: Path,
    late: Callable[[], bool] = lambda: False,
) -> None:
    """Of each bug that is a rule on bytes, and that a run without a fault has shown, keeps how the first such
    run broke it: its script is played once more. late: asked before each; then no more are."""
    known: set[int] = set()
    for number, row in sorted(golden_runs_by_script(store, run).items()):
        bugs = {
            bug
            for violation, bug in zip(row.violations, row.bugs, strict=True)
            if violation.source is Source.RULE
        }
        image = images_of(out, run.id) / script_folder(number)
        if bugs <= known or late():
            continue
        known |= bugs
        if load_evidence(image) is None:
            spec = fault_free_row(store, run.id, number).spec
            keep_run_evidence(spec, target, scratch, image)


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
    name = reproducer_name(store, bug)
    return command_line(f"tornpage replay {name}", store.place.options) if name else ""


def reproducer_name(store: Store, bug: Bug) -> str:
    """What `tornpage replay` calls that which shows the bug, "" if its run has been deleted."""
    try:
        row = row_of(store, bug.reproducer)
    except ConfigError:
        return ""
    return bug.reproducer.name or f"{row.run}.s{row.number}"


def kept_scripts(store: Store, run: int, bug: int, out: Path) -> list[str]:
    """Names of the runs without a fault that show a bug, and of which it was kept how."""
    return [
        f"{run}.s{number}"
        for number, row in sorted(golden_runs_by_script(store, store.run(run)).items())
        if bug in row.bugs
        and load_evidence(images_of(out, run) / script_folder(number)) is not None
    ]


def with_kept_image(row: TrialRow, out: Path) -> TrialRow:
    """A run without a fault has its image where its evidence was kept; a trial has its own, also where `out`
    was moved away from a store that is elsewhere."""
    if row.result is None:
        return row
    crashes, stored = row.spec.plan.crashes, row.result.image
    name = str(row.number) if crashes else script_folder(row.number)
    image = images_of(out, row.run) / name
    moved = stored is not None and not stored.is_dir() and image.is_dir()
    if not (moved if crashes else load_evidence(image) is not None):
        return row
    return replace(row, result=replace(row.result, image=image.resolve()))


def scripts_of(campaign: Campaign) -> list[Config]:
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
