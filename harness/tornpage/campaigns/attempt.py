"""Everything that is done to a target file, one after the other: the admission test, the control, power
loss, kills.

The control is a disk whose every fsync is a lie. If no state of it breaks the promise, the set-up cannot find
anything, and what it does not find on an honest disk says nothing.

May import: admission, changes, crew, fitting, paths, powerloss, runner, scratch, store, summary, target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.campaigns.admission import Admission, admit, own_work
from tornpage.campaigns.changes import Changes
from tornpage.campaigns.crew import Crew
from tornpage.campaigns.fitting import Opened, open_campaign
from tornpage.campaigns.powerloss import Exploration, Limits, explore, recorded_run
from tornpage.campaigns.runner import run_campaign
from tornpage.faults.scratch import scratch_folder
from tornpage.reports.summary import Summary
from tornpage.store.store import Store
from tornpage.targets.target import Target
from tornpage.vocabulary.paths import Paths

__all__ = ["Examined", "campaigns_of", "check_target", "examine", "torture"]

CONTROL_STATES = 400
LIE = "*"


@dataclass(frozen=True, slots=True)
class Examined:
    """What comes before any verdict. control_states: of the lying disk; control_kinds: how many kinds
    of them broke the promise."""

    admission: Admission
    control_states: int
    control_kinds: int

    @property
    def vacuous(self) -> bool:
        """The set-up finds nothing where there must be something."""
        return self.control_kinds == 0


def check_target(target: Target, options: Mapping[str, str] | None = None) -> Admission:
    """The admission test alone, under these options of the target. Raises CensusError, and ConfigError if it
    has no such option."""
    with scratch_folder() as scratch:
        return admit(target, scratch, options)


def campaigns_of(target: str, changes: Changes, paths: Paths) -> list[Opened]:
    """Power loss, and kills, of a target by its name or file. changes: of states and time for the one, of
    trials for the other, and the seed. Raises ConfigError, TargetError."""
    loss, kills = (open_campaign(name, target, paths) for name in ("powerloss", "smoke"))
    return [
        replace(loss, campaign=replace(changes, trials=None).apply(loss.campaign)),
        replace(
            kills,
            campaign=replace(changes, states=None, budget_s=None, fs=None).apply(kills.campaign),
        ),
    ]


def examine(target: Target, crew: Crew) -> Examined:
    """Admission test and control. Raises CensusError; nothing stays."""
    with scratch_folder() as scratch:
        crew.progress.phase("admission", 1)
        admission = admit(target, scratch)
        crew.progress.advance(False)
        crew.progress.phase("control", 1)
        control = _control(target, scratch, crew)
        crew.progress.advance(False)
    return Examined(admission, int(control.summary["states"]), len(control.broken))


def torture(store: Store, campaigns: list[Opened], crew: Crew) -> list[Summary]:
    """Runs the campaigns, of a target that was examined."""
    ours = replace(crew, audited=True)
    return [
        run_campaign(store, opened.campaign, opened.name, replace(ours, origin=opened.origin()))
        for opened in campaigns
    ]


def _control(target: Target, scratch: Path, crew: Crew) -> Exploration:
    spec = own_work(target)
    limits = Limits(states=CONTROL_STATES, jobs=crew.jobs, ignored_fsyncs=(LIE,))
    with recorded_run(spec, target, scratch) as recording:
        return explore(spec, target, recording, limits, crew.progress.note)
