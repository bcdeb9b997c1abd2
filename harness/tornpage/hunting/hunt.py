"""A hunt: looks at scripts one after the other, some at a time, and keeps what breaks something new as a run
of the store, of a campaign of that one script, so that replay, show and shrink know it. The first script is
kept whatever it shows: its run has the audit, the control and the canaries without which nothing is clean.

Which look comes next hangs on those that are WINDOW behind it, however many workers there are and whatever
comes back first. Only its end is told by a clock, or by --looks.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import xxhash

from tornpage.campaigns.fitting import Opened, open_campaign
from tornpage.campaigns.runner import go_on, resumable, run_campaign
from tornpage.evidence.images import images_of
from tornpage.faults.image import remove_image
from tornpage.faults.scratch import scratch_folder
from tornpage.hunting.corpus import Corpus, Look
from tornpage.hunting.journal import Entry, Journal
from tornpage.hunting.look import Looked, look_at, scripts_of_campaign
from tornpage.oracle.fingerprint import kind_of
from tornpage.plans.campaign import Campaign, PowerLoss
from tornpage.reports.summary import Summary
from tornpage.store.rows import Run
from tornpage.store.store import Store
from tornpage.targets.registry import make_target
from tornpage.vocabulary.codec import to_json
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.model import Violation
from tornpage.vocabulary.paths import Paths
from tornpage.workers.context import Executor, Pending, QuietProgress, RunContext
from tornpage.workers.pool import executor_of, machine_errors

__all__ = ["Hunt", "Hunted", "hunt", "one_script"]

WINDOW = 8
"""Looks that are handed out before what the first of them came to is asked for."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """seed: of all that is drawn; campaigns: whose scripts are the first ones, on one target; looks: its end,
    0: the time alone."""

    seed: int
    campaigns: tuple[Opened, ...]
    looks: int

    @property
    def target(self) -> str:
        """Which all of them are on."""
        return self.campaigns[0].name

    def key(self, context: RunContext) -> str:
        """Of the journal."""
        works = [opened.campaign.content for opened in self.campaigns]
        told = to_json((self.seed, works, self.campaigns[0].identity, context.origin.programs))
        return xxhash.xxh3_64_hexdigest(told.encode())


@dataclass(slots=True)
class Hunted:
    """What it came to. by_source: looks of each campaign, and of mutation; states: that were judged; marks:
    kinds of things that were shown; refused: scripts that the target could not run; runs: ids, of the first
    script and of what was found; lost: those of them that do not show each new kind that their look has
    shown."""

    by_source: Counter[str] = field(default_factory=Counter)
    states: int = 0
    marks: int = 0
    refused: int = 0
    runs: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)

    @property
    def looks(self) -> int:
        """Of all sources."""
        return self.by_source.total()


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker needs for a look."""

    look: Look
    paths: Paths
    scratch: Path
    images: Path


def work(task: Task) -> Looked:
    """On a worker, in a folder of its own: two looks may be at one script."""
    folder = task.scratch / f"look-{task.look.number}"
    target = make_target(task.look.spec.target, task.paths.build)
    with machine_errors():
        folder.mkdir(parents=True)
        try:
            return look_at(task.look, target, folder)
        finally:
            remove_image(folder)


def hunt(store: Store, asked: Hunt, context: RunContext) -> Hunted:
    """Goes on where the journal of context.out ends, until there are so many looks, the time is up, or no
    script is left."""
    target = asked.campaigns[0].target
    with (
        closing(Journal(context.out, asked.key(context))) as journal,
        scratch_folder(target.on_shm) as scratch,
        executor_of(context) as executor,
    ):
        hunting = _Hunting(store, asked, context, journal)
        context.progress.phase("scripts looked at", asked.looks)
        numbers = range(asked.looks) if asked.looks else itertools.count()
        for number in numbers:
            if context.is_late() or not hunting.begin(number, executor, scratch):
                break
        hunting.end()
    return hunting.came_to


def one_script(look: Look) -> Campaign:
    """The campaign that makes the states of a look, and no others."""
    spec = look.spec
    return Campaign(
        name="hunt",
        description=f"script {look.number} of a hunt",
        workload=spec.workload,
        crash_model="power_loss",
        seed=spec.seed,
        options=dict(spec.options),
        params=dict(spec.params),
        explore=PowerLoss(
            models=list(look.limits.models),
            states=look.limits.states or 0,
            depth=look.limits.depth or 1,
        ),
    )


class _Hunting:
    """One that is under way."""

    def __init__(self, store: Store, asked: Hunt, context: RunContext, journal: Journal) -> None:
        self.came_to = Hunted()
        self._store, self._asked, self._context, self._journal = store, asked, context, journal
        each = {
            one.campaign.name: scripts_of_campaign(one.campaign, one.name)
            for one in asked.campaigns
        }
        self._corpus = Corpus.of(asked.seed, each)
        self._known: set[str] = set()
        self._waiting: deque[tuple[Look, Entry | Pending[Looked]]] = deque()

    def begin(self, number: int, executor: Executor, scratch: Path) -> bool:
        """Hands out the look of this number, when those that it hangs on are learnt. False: there is none."""
        while len(self._waiting) >= WINDOW:
            self._learn(*self._waiting.popleft())
        look = self._in_turn(number)
        if look is None:
            return False
        if number < len(self._journal.entries):
            self._waiting.append((look, self._journal.entries[number]))
            return True
        task = Task(look, self._context.paths, scratch, images_of(self._context.out, 0))
        self._waiting.append((look, executor.submit(work, task)))
        return True

    def _in_turn(self, number: int) -> Look | None:
        """Waits for what can be mutated, if the scripts are all out. None: nothing that came back can be."""
        while (look := self._corpus.next(number)) is None and self._waiting:
            self._learn(*self._waiting.popleft())
        return look

    def end(self) -> None:
        """Learns those that are left."""
        while self._waiting:
            self._learn(*self._waiting.popleft())

    def _learn(self, look: Look, answer: Entry | Pending[Looked]) -> None:
        if isinstance(answer, Entry):
            entry = answer
            self._require_run(look, entry)
        else:
            entry = self._judged(look, answer.result())
        self._corpus.learn(look, entry.seen)
        self._known.update(entry.kinds)
        came_to = self.came_to
        came_to.by_source[look.source] += 1
        came_to.states += entry.seen.states
        came_to.marks = len(self._corpus.shown)
        came_to.refused += entry.refused
        came_to.runs += [entry.run] if entry.run else []
        came_to.lost += [entry.run] if entry.lost else []
        self._context.progress.advance(bool(entry.kinds))

    def _judged(self, look: Look, looked: Looked) -> Entry:
        """Keeps the first script, and what is found of a kind that no look before it has shown."""
        kinds = tuple(sorted(_kinds(itertools.chain(*looked.broken.values()))))
        entry = Entry(looked.seen, kinds, refused=looked.refused)
        if look.number == 0 or not self._known.issuperset(kinds):
            kept = self._keep(look)
            found = _kinds(Violation(one.invariant, one.what) for one in kept.findings)
            lost = not found.issuperset(set(kinds) - self._known)
            entry = replace(entry, run=kept.run.id, lost=lost)
        self._journal.put(entry)
        return entry

    def _require_run(self, look: Look, entry: Entry) -> None:
        """ConfigError: an earlier part of this hunt has kept the look, and the result database has another
        run of that number, or none."""
        runs = {run.id: run for run in self._store.runs()} if entry.run else {}
        if entry.run and (
            entry.run not in runs
            or Campaign.model_validate(runs[entry.run].settings) != self._campaign(look).campaign
        ):
            raise ConfigError(
                f"run {entry.run} of this hunt is not in the result database: choose another --out, or "
                f"delete {self._journal.file}"
            )

    def _campaign(self, look: Look) -> Opened:
        return open_campaign(one_script(look), self._asked.target, self._context.paths)

    def _keep(self, look: Look) -> Summary:
        """Of the run in which the states of this look are; it is made whole, even if the time is up."""
        context = self._context
        opened = self._campaign(look)
        begun = self._begun(opened)
        whole = replace(context, progress=QuietProgress(), origin=opened.origin(), stop_at=math.inf)
        if begun is not None:
            return go_on(self._store, self._store.own_run(begun.id), whole)
        return run_campaign(self._store, opened.campaign, opened.name, whole)

    def _begun(self, opened: Opened) -> Run | None:
        """The run of this campaign in which an earlier part of the hunt was interrupted."""
        ours = resumable(self._store, opened.origin())
        left = self._store.interrupted(opened.campaign.name, opened.name, ours)
        same = (run for run in left if Campaign.model_validate(run.settings) == opened.campaign)
        return next(same, None)


def _kinds(broken: Iterable[Violation]) -> set[str]:
    """Invariants, and what recovery did or why it refused, wherever the crash was."""
    return {f"I{invariant}: {path}" for invariant, path in map(kind_of, broken)}
