"""Everything that is done to a target file, one after the other: the admission test, the control, power
loss, kills.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tornpage.campaigns.fitting import Opened, changed, open_campaign
from tornpage.campaigns.runner import run_campaign
from tornpage.faults.scratch import scratch_folder
from tornpage.live.admission import Admission, admit
from tornpage.plans.limits import Limits
from tornpage.powerloss.control import examine_runs, works_of
from tornpage.reports.summary import Summary
from tornpage.store.origin import Examined
from tornpage.store.store import Store
from tornpage.targets.target import Target
from tornpage.vocabulary.paths import Paths
from tornpage.workers.context import RunContext

__all__ = ["campaigns_of", "check_target", "examine", "torture"]


def check_target(target: Target, options: Mapping[str, str] | None = None) -> Admission:
    """The admission test alone, under these options of the target. Raises GoldenRunError, and ConfigError if
    it has no such option."""
    with scratch_folder(target.on_shm) as scratch:
        return admit(target, scratch, options)


def campaigns_of(
    target: str, limits: Limits, settings: Mapping[str, str], paths: Paths
) -> list[Opened]:
    """Power loss, and kills, of a target by its name or file, each with the limits that it has. Raises
    ConfigError, TargetError."""
    opened = [open_campaign(name, target, paths) for name in ("powerloss", "smoke")]
    return changed(opened, limits, settings, paths)


def examine(opened: Opened, context: RunContext) -> tuple[Admission, Examined]:
    """Admission test and control. Raises GoldenRunError; nothing stays."""
    with scratch_folder(opened.target.on_shm) as scratch:
        context.progress.phase("admission", 1)
        admission = admit(opened.target, scratch, opened.campaign.configs()[0].options)
        context.progress.advance(False)
        works = works_of(opened.campaign, opened.name)
        return admission, examine_runs(opened.target, works, scratch, context, admission.audited)


def torture(
    store: Store, campaigns: list[Opened], examined: Examined, context: RunContext
) -> list[Summary]:
    """Runs the campaigns, of a target that was examined."""
    ours = replace(context, examined=examined)
    return [
        run_campaign(store, opened.campaign, opened.name, replace(ours, origin=opened.origin()))
        for opened in campaigns
    ]
