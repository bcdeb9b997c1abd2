"""Everything that is done to a target file, one after the other: the admission test, the control, power
loss, kills.

The control is a disk whose every fsync is a lie. If no state of it breaks the promise, the set-up cannot find
anything, and what it does not find on an honest disk says nothing.

May import: admission, campaign, crew, fitting, origin, paths, powerloss, registry, runner, scratch,
store, summary, target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.campaigns.admission import Admission, admit, own_work
from tornpage.campaigns.campaign import Campaign
from tornpage.campaigns.crew import Crew
from tornpage.campaigns.fitting import campaign_of
from tornpage.campaigns.origin import origin_of
from tornpage.campaigns.powerloss import Exploration, Limits, explore, recorded_run
from tornpage.campaigns.runner import run_campaign
from tornpage.faults.scratch import scratch_folder
from tornpage.reports.summary import Summary
from tornpage.store.store import Store
from tornpage.targets.registry import make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.paths import Paths

__all__ = ["Attempt", "attempt", "campaigns_of", "check_target"]

CONTROL_STATES = 400
LIE = "*"


@dataclass(frozen=True, slots=True)
class Attempt:
    """control: states of the lying disk, and how many kinds of them broke the promise; summaries: of the
    campaigns."""

    admission: Admission
    control_states: int
    control_kinds: int
    summaries: tuple[Summary, ...]

    @property
    def vacuous(self) -> bool:
        """The set-up finds nothing where there must be something."""
        return self.control_kinds == 0


def check_target(name: str, paths: Paths) -> Admission:
    """The admission test alone. Raises ConfigError, TargetError, CensusError."""
    target = make_target(name, paths.build)
    with scratch_folder() as scratch:
        return admit(target, scratch)


def campaigns_of(name: str, states: int, trials: int, seed: int, paths: Paths) -> list[Campaign]:
    """Power loss, and kills."""
    target = make_target(name, paths.build)
    loss = campaign_of("powerloss", paths.workloads, target)
    kills = campaign_of("smoke", paths.workloads, target)
    assert loss.explore is not None, "its file says so"
    return [
        loss.changed({"seed": seed, "explore": loss.explore.model_dump() | {"states": states}}),
        kills.changed({"seed": seed, "trials": trials}),
    ]


def attempt(store: Store, name: str, campaigns: list[Campaign], crew: Crew) -> Attempt:
    """Runs all of it. Kills are left out where two undisturbed runs come to different states."""
    target = make_target(name, crew.paths.build)
    with scratch_folder() as scratch:
        crew.progress.phase("admission", 1)
        admission = admit(target, scratch)
        crew.progress.advance(False)
        crew.progress.phase("control", 1)
        control = _control(target, scratch, crew)
        crew.progress.advance(False)
    summaries = []
    for campaign in campaigns:
        if campaign.explore or admission.repeatable:
            own = replace(crew, origin=origin_of(campaign, target))
            summaries.append(run_campaign(store, campaign, name, own))
    states = int(control.summary["states"])
    return Attempt(admission, states, len(control.broken), tuple(summaries))


def _control(target: Target, scratch: Path, crew: Crew) -> Exploration:
    spec = own_work(target)
    limits = Limits(states=CONTROL_STATES, jobs=crew.jobs, ignored_fsyncs=(LIE,))
    with recorded_run(spec, target, scratch) as recording:
        return explore(spec, target, recording, limits)
