"""What pytest collects from campaign files: one item per portion of a campaign. An item plays what it found
before, then runs its campaign; what it finds is shrunk, and told with the line that plays it again.
"""

from __future__ import annotations

import math
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tornpage import api
from tornpage.campaigns.fault_free import replay_line, row_named
from tornpage.campaigns.fitting import Opened, changed, open_campaign
from tornpage.campaigns.publish import write_report
from tornpage.campaigns.recheck import recheck_bugs
from tornpage.campaigns.runner import run_campaign
from tornpage.evidence.evidence import load_evidence
from tornpage.plans.campaign import Campaign
from tornpage.plans.changes import change, has, own
from tornpage.plans.limits import BOUNDS, OF_PYTEST, Limits
from tornpage.plans.origin import command_line
from tornpage.plans.portions import portions_of
from tornpage.powerloss.explorer import loss_models
from tornpage.reports.dossier import page_lines, way_lines
from tornpage.reports.summary import BugSeen, Finding, Summary
from tornpage.store.bugs import BugStatus
from tornpage.store.memory import Answer
from tornpage.store.place import Place, place_in
from tornpage.store.store import Store
from tornpage.targets.registry import explorer_path
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.paths import find_paths
from tornpage.vocabulary.shown import one_line
from tornpage.workers.context import QuietProgress, RunContext

__all__ = [
    "TortureFile",
    "TortureItem",
    "owner_of",
    "require_heard",
    "store_folder",
    "told_findings",
]

STORE = ".tornpage"
NOT_IN_K = re.compile(r"[^\w:+.\[\]/-]")
"""What the language of -k has no place for."""
SHOWN = 3
"""Bugs of an item that are shrunk and told in full."""


class Found(Exception):
    """A campaign found bugs. lines: what a person is told."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines[0])
        self.lines = lines


def store_folder(config: pytest.Config) -> Path:
    """Where findings are remembered from session to session."""
    return config.rootpath / (config.getoption("--torture-out") or STORE)


def store_place(config: pytest.Config) -> Place:
    """Where the store is: what --torture-store names, or in that folder."""
    return place_in(store_folder(config), store_name(config))


def store_name(config: pytest.Config) -> str | None:
    """What --torture-store says, a file from the root of the tests on."""
    named = config.getoption("--torture-store")
    return str(config.rootpath / named) if named and "://" not in named else named


def session_limits(config: pytest.Config) -> Limits:
    """What the options of the session say. The budget is of a whole item, and its own. ConfigError."""
    given = {name: config.getoption(bound.of_pytest) for name, bound in OF_PYTEST.items()}
    models = given["models"]
    return Limits.of({**given, "models": models.split(",") if models else ()})


def require_heard(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """UsageError for a limit that no campaign among the items has."""
    try:
        limits = session_limits(config)
    except TornpageError as error:
        raise pytest.UsageError(one_line(str(error))) from error
    campaigns = [item.campaign for item in items if isinstance(item, TortureItem)]
    for name in limits.given():
        if name != "seed" and not any(has(campaign, name) for campaign in campaigns):
            raise pytest.UsageError(
                f"{BOUNDS[name].of_pytest}: no campaign that was collected has it"
            )


class TortureFile(pytest.File):
    """A campaign file; its errors are errors of collection, with the line and no traceback."""

    def collect(self) -> Iterator[pytest.Item]:
        """An item per portion."""
        paths = find_paths()
        try:
            opened = open_campaign(str(self.path), None, paths)
            limits = own(opened.campaign, session_limits(self.config))
            campaign = changed([opened], limits, {}, paths)[0].campaign
            cells = self.config.getoption("--torture-cells")
            models = loss_models(explorer_path(paths.build)) if cells and campaign.explore else ()
            portions = portions_of(campaign, cells=cells, models=tuple(models))
        except TornpageError as error:
            raise self.CollectError(one_line(str(error))) from error
        for label, portion in portions:
            name = NOT_IN_K.sub("-", label)
            yield TortureItem.from_parent(self, name=name, opened=opened, campaign=portion)


class TortureItem(pytest.Item):
    """A portion of a campaign. Passes if what was to be exercised was, and nothing broke; is skipped if
    nothing was exercised."""

    def __init__(self, opened: Opened, campaign: Campaign, **given: Any) -> None:
        super().__init__(**given)
        self._opened = opened
        self.campaign = campaign
        self._ours = replace(opened, campaign=campaign)
        self._paths = find_paths()
        self._out = store_folder(self.config)
        self._place = store_place(self.config)
        self._named = store_name(self.config)

    def runtest(self) -> None:
        """Past findings, then the campaign; or the one trial that was asked for."""
        replay = self.config.getoption("--torture-replay")
        if replay is not None:
            self._play(replay)
            return
        budget = self.config.getoption("--torture-budget")
        stop_at = math.inf if budget is None else time.monotonic() + budget
        context = RunContext(
            paths=self._paths,
            jobs=self.config.getoption("--torture-jobs"),
            out=self._out,
            progress=QuietProgress(),
            origin=self._opened.origin(shlex.join(["pytest", f"{self.path}::{self.name}"])),
            stop_at=stop_at,
        )
        with Store(self._place) as store:
            self._play_past(store, context)
            summary = run_campaign(store, self._limited(budget), self._opened.name, context)
            self.user_properties.append(("torture_crashes", summary.units))
            code = summary.exit_code()
            if code == 1:
                lines = list(self._told(summary))
                raise Found(
                    [*lines, f"report: {write_report(store, summary, self._paths, self._out)}"]
                )
        if code == 2:
            raise TornpageError("; ".join([*summary.errors, summary.missing]).strip("; "))
        if code:
            missed = ", ".join([*summary.claims_missed, *summary.run_claims_missed])
            never = f"never happened: {missed}" if missed else "no crash was exercised"
            pytest.skip(summary.unproved or never)

    def known_bugs(self, store: Store) -> set[int]:
        """Numbers of the bugs that earlier runs of this item have seen."""
        runs = [run for run in store.runs() if self._ours.did(run)]
        return {bug for run in runs for bug in store.sightings(run.id)}

    def owns(self, store: Store, run: int, bugs: set[int]) -> bool:
        """A trial of this run, with these bugs, is one of this item's, or a smaller one of such."""
        return self._ours.did(store.run(run)) or bool(bugs & self.known_bugs(store))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What was found, without the way through the harness; a failure of the harness in its line."""
        if isinstance(excinfo.value, Found):
            return "\n".join(map(one_line, excinfo.value.lines))
        if isinstance(excinfo.value, TornpageError):
            return one_line(f"{type(excinfo.value).__name__}: {excinfo.value}")
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """The file, and the name of the item."""
        return self.path, None, self.name

    def _limited(self, budget: float | None) -> Campaign:
        """The explorations of a power-loss campaign share the time."""
        explore = self.campaign.explore
        if explore is None or budget is None:
            return self.campaign
        count = len(self.campaign.parts()) * len(self.campaign.configs())
        share = Limits(budget_s=max(1.0, budget / count), states=explore.states)
        return change(self.campaign, share)

    def _play_past(self, store: Store, context: RunContext) -> None:
        """Found, if a bug of an earlier session is still there."""
        known = self.known_bugs(store)
        run = recheck_bugs(store, self._opened.name, context, only=known) if known else None
        answers = store.replays(run.id) if run is not None else []
        left = [answer.bug for answer in answers if answer.answer is Answer.REPRODUCED]
        bugs = [bug for bug in map(store.bug, left) if bug.status is not BugStatus.IGNORED]
        lines = [
            line
            for bug in bugs[:SHOWN]
            for line in (
                f"still there, bug {bug.id}: {bug.title}",
                *_script_lines(store, bug.reproducer.run, bug.reproducer.trial),
                f"replay: {replay_line(store, bug)}",
            )
        ]
        if lines:
            raise Found(lines)

    def _told(self, summary: Summary) -> Iterator[str]:
        failing = [seen for seen in summary.bugs if seen.fails(only_news=False)]
        for seen in failing[:SHOWN]:
            yield from self._tell(seen)
        if failing[SHOWN:]:
            yield f"and {len(failing) - SHOWN} more bugs"

    def _tell(self, seen: BugSeen) -> Iterator[str]:
        finding = seen.findings[0]
        yield f"{seen.headline}: {finding.count} of {finding.config}"
        yield from _told_finding(finding, seen.replay, self.config)

    def _play(self, trial: str) -> None:
        done = api.replay(trial, out=self._out, store=self._named)
        if done.answer is Answer.NOT_PLAYED:
            raise TornpageError(f"trial {trial} cannot be played: {done.note}")
        if done.answer is Answer.REPRODUCED:
            what = [f"  I{one.invariant}: {one.what}" for one in done.result.violations]
            line = command_line(f"tornpage replay {trial}", self._place.options)
            raise Found([f"trial {trial} reproduced", *what, f"replay: {line}"])


def told_findings(findings: Sequence[Finding], config: pytest.Config) -> list[str]:
    """What a test of one's own has found: of each bug the first finding, as that of an item."""
    firsts = {finding.bug: finding for finding in reversed(findings)}
    told = sorted(firsts.items())
    lines = []
    for bug, finding in told[:SHOWN]:
        lines += [f"bug {bug}: {finding.count} of {finding.config}"]
        lines += _told_finding(finding, finding.replay, config)
    if told[SHOWN:]:
        lines.append(f"and {len(told) - SHOWN} more bugs")
    return [*map(one_line, lines)]


def _told_finding(finding: Finding, replay: str, config: pytest.Config) -> Iterator[str]:
    """What is broken, by the smallest script and crash that show it: the way of the crash, what was expected
    and what recovered, and the line that plays it. replay: of the finding as it was found."""
    yield f"  I{finding.invariant} at {finding.site}: {finding.what}"
    budget, place = config.getoption("--torture-shrink"), store_place(config)
    image = finding.image
    if budget > 0 and finding.of_trial:
        try:
            small = api.shrink(
                finding.trial, budget_s=budget, out=store_folder(config), store=store_name(config)
            )
        except TornpageError as error:
            yield f"  not shrunk: {error}"
        else:
            yield f"  {small.before.statements} statements, shrunk to {small.after.statements}:"
            yield from (f"    {line}" for line in small.script.splitlines())
            yield f"  crash: {small.crash}"
            replay, result = small.replay, row_named(small.shrunk, place).result
            image = result.image if result else None
    evidence = load_evidence(image)
    yield from (*way_lines(evidence), *page_lines(evidence))
    yield f"replay: {replay}"


def owner_of(trial: str, items: Sequence[pytest.Item]) -> TortureItem:
    """The item that found a trial, or that of which it is a smaller one. UsageError if there is none."""
    for item in items:
        if not isinstance(item, TortureItem):
            continue
        place = store_place(item.config)
        try:
            row = row_named(trial, place)
            with Store(place, write=False) as store:
                if item.owns(store, row.run, {bug for bug in row.bugs if bug is not None}):
                    return item
        except TornpageError as error:
            raise pytest.UsageError(f"--torture-replay: {error}") from error
    raise pytest.UsageError(f"--torture-replay: no collected item is that of trial {trial}")


def _script_lines(store: Store, run: int, trial: int | None) -> list[str]:
    """The script of a trial that was shrunk, else nothing."""
    if trial is None:
        return []
    script = str(store.trial(run, trial).spec.params.get("script", ""))
    return [f"    {line}" for line in script.splitlines()]
