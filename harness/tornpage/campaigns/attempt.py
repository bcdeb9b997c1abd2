"""Everything that is done to a target file, one after the other: the admission test, the control, power
loss, kills.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tornpage.campaigns.fitting import Opened, absolute_options, changed, open_campaign
from tornpage.campaigns.runner import go_on, load_summary, run_campaign
from tornpage.faults.scratch import scratch_folder
from tornpage.live.admission import Admission, admit
from tornpage.plans.limits import Limits
from tornpage.powerloss.control import examine_runs, works_of
from tornpage.reports.summary import Summary
from tornpage.store.origin import Examined
from tornpage.store.rows import Run
from tornpage.store.store import Store
from tornpage.targets.option import RECORDER
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import Paths
from tornpage.workers.context import RunContext

__all__ = ["campaigns_of", "check_target", "examine", "may_go_below", "torture"]


def check_target(target: Target, options: Mapping[str, str] | None = None) -> Admission:
    """The admission test alone, under these options of the target. Raises GoldenRunError, and ConfigError if
    it has no such option."""
    options = absolute_options([target], options or {})
    target.check_needs(options)
    with scratch_folder(target.on_shm) as scratch:
        return admit(target, scratch, options)


def may_go_below(target: Target, options: Mapping[str, str]) -> bool:
    """A file system can record it, and nobody has chosen what does."""
    if RECORDER in options or target.is_below(options):
        return False
    return not target.why_not_below()


def campaigns_of(
    target: str, limits: Limits, options: Mapping[str, str], paths: Paths, *, stacks: bool
) -> list[Opened]:
    """Power loss, and kills, of a target by its name or file, each with the limits that it has, with or
    without call stacks. Raises ConfigError, TargetError."""
    opened = [open_campaign(name, target, paths) for name in ("powerloss", "smoke")]
    return [
        replace(one, campaign=one.campaign.changed({"stacks": stacks}))
        for one in changed(opened, limits, options, paths)
    ]


def examine(opened: Opened, context: RunContext) -> tuple[Admission, Examined]:
    """Admission test and control. Raises GoldenRunError; nothing stays."""
    with scratch_folder(opened.target.on_shm) as scratch:
        context.progress.phase("admission", 1)
        admission = admit(opened.target, scratch, opened.campaign.configs()[0].options)
        context.progress.advance(False)
        works = works_of(opened.campaign, opened.name)
        return admission, examine_runs(opened.target, works, scratch, context, admission.audited)


def torture(
    store: Store,
    campaigns: list[Opened],
    examined: Examined,
    context: RunContext,
    *,
    resume: bool = False,
) -> list[Summary]:
    """Runs the campaigns, of a target that was examined; resume: goes on with the newest ones of the same
    limits and options, of which one was interrupted. ConfigError if none was."""
    ours = replace(context, examined=examined)
    found = [_newest(store, one) if resume else None for one in campaigns]
    if resume and not any(map(_is_interrupted, found)):
        raise ConfigError(f"{store.name}: no interrupted try with these limits and options")
    summaries = []
    for number, (opened, run) in enumerate(zip(campaigns, found, strict=True), 1):
        here = replace(ours, origin=opened.origin())
        if run is not None and _is_interrupted(run):
            summaries.append(go_on(store, store.own_run(run.id), here))
        elif run is not None and any(map(_is_interrupted, found[number:])):
            summaries.append(load_summary(store, run))
        else:
            summaries.append(run_campaign(store, opened.campaign, opened.name, here))
    return summaries


def _newest(store: Store, opened: Opened) -> Run | None:
    settings = opened.campaign.model_dump(mode="json")
    ours = [run for run in store.runs() if opened.did(run) and run.settings == settings]
    return ours[-1] if ours else None


def _is_interrupted(run: Run | None) -> bool:
    return run is not None and not run.is_over
