"""A night: past findings are played again, then campaigns run in turn, each round with seeds of its own, for
as long as the plan says. It can be ended at any moment and goes on where it was.
"""

from __future__ import annotations

import itertools
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tornpage.campaigns.fault_free import replay_line
from tornpage.campaigns.fitting import Opened, changed, open_campaign
from tornpage.campaigns.publish import write_report
from tornpage.campaigns.recheck import REPLAY_RUN, recheck_bugs
from tornpage.campaigns.runner import begin_run, go_on, load_summary, run_campaign
from tornpage.plans.campaign import Campaign, default_campaigns
from tornpage.plans.limits import BOUNDS, UNLIMITED, Limits
from tornpage.plans.origin import difference
from tornpage.powerloss.runner import give_up
from tornpage.reports.night import NightBug, NightSummary, Standing
from tornpage.store.bugs import Novelty
from tornpage.store.memory import Answer, Night
from tornpage.store.origin import Origin
from tornpage.store.rows import Run
from tornpage.store.store import Store
from tornpage.targets.registry import family_of
from tornpage.vocabulary.errors import ConfigError, Interrupted, MachineError, TornpageError
from tornpage.vocabulary.paths import Paths
from tornpage.vocabulary.seeds import derive_seed
from tornpage.workers.context import Progress, RunContext

__all__ = ["NightPlan", "Team", "names_of_campaigns", "open_night", "run_night"]

_OPTIONS = {"seed": "--seed", "target": "--target", "campaigns": "campaigns"} | {
    "options": "--option",
    "seconds": "--for",
}
"""What `tornpage nightly` calls the fields of a plan."""
SEEDS = 1_000_000_000
"""Seeds of a night's runs are below: a person can read them."""
FLOOR_S = 30.0
"""A turn that is shorter comes to no crash: where not all campaigns can have as much, the others begin the
next night."""
OF_A_DAY = 100
"""The first night of a day has the date as its seed; the others so many times that, and their number more."""
SAID_BY_PROGRAMS = frozenset({"seed"})


@dataclass(frozen=True, slots=True)
class NightPlan:
    """What a night is about. target: of all campaigns, "" = each has its own; campaigns: names, or absolute
    paths of files; options: the target's and params.NAME, for all of them; seconds: 0 = one round, however
    long it takes; limits: of each run, but for its seed."""

    seed: int
    target: str
    campaigns: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    seconds: float
    limits: Limits = UNLIMITED

    def differs(self, asked: NightPlan, said: Set[str]) -> list[str]:
        """What somebody says that this plan has otherwise, by options. said: fields of `asked` that are not
        its defaults."""
        theirs, ours = asdict(asked), asdict(self)
        found = [_OPTIONS[name] for name in theirs if name in said and theirs[name] != ours[name]]
        limits = asked.limits.given()
        return found + [
            BOUNDS[name].option for name in limits if limits[name] != ours["limits"][name]
        ]


@dataclass(frozen=True, slots=True)
class Team:
    """Who makes it. tell: gets a line after each run; clock: seconds, as time.monotonic()."""

    paths: Paths
    jobs: int
    out: Path
    progress: Progress
    tell: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic


def names_of_campaigns(paths: Paths, target: str) -> tuple[str, ...]:
    """Those that a night has if none is chosen: the target's own, or the default ones."""
    own = sorted(path.stem for path in paths.workloads.glob(f"*-{family_of(target)}.toml"))
    if own:
        return tuple(name.removesuffix(f"-{family_of(target)}") for name in own)
    return tuple(campaign.name for campaign in default_campaigns(paths.workloads))


def open_night(
    store: Store,
    plan: NightPlan,
    paths: Paths,
    out: Path,
    *,
    resume: bool,
    anew: bool,
    said: Set[str] = SAID_BY_PROGRAMS,
) -> Night:
    """The newest interrupted night if asked to resume, else, or if there is none to go on with and anew is
    allowed, a new one. said: fields of the plan that somebody named, as of NightPlan.differs(); a seed that
    nobody named is not that of an earlier night. ConfigError: there is none, its owner lives, it was made by
    other programs, or what is said is not its plan."""
    found = _interrupted(store, paths) if resume else None
    if found is not None:
        others = [_changed(found, paths), *_plan_of(found).differs(plan, said)]
        changed = ", ".join(filter(None, others))
        if not changed:
            return found
        if not anew:
            raise ConfigError(f"night {found.id} was made with another {changed}; start a new one")
        for run in store.runs():
            if run.night == found.id:
                give_up(store, run.id, out)
        store.end_night(found.id, "failed")
    elif resume and not anew:
        raise ConfigError(f"{store.name}: no interrupted night to resume")
    if "seed" not in said:
        plan = replace(plan, seed=_unused(store, plan.seed))
    return store.begin_night(asdict(plan), _origin_of(_load(plan, paths)))


def _unused(store: Store, seed: int) -> int:
    """The seed, or one made of it, that no night has had."""
    taken = {night.plan["seed"] for night in store.nights()}
    others = (seed * OF_A_DAY + number for number in itertools.count(2))
    return next(one for one in itertools.chain([seed], others) if one not in taken)


def _interrupted(store: Store, paths: Paths) -> Night | None:
    """The newest night to go on with, now owned; in a shared store one of this machine and programs."""
    for night in store.interrupted_nights():
        if not store.place.shared or _is_ours(night, paths):
            return store.own_night(night.id)
    return None


def _is_ours(night: Night, paths: Paths) -> bool:
    try:
        return night.origin.host == platform.node() and not _changed(night, paths)
    except ConfigError:  # it has campaigns or a target that are only in another branch
        return False


def _changed(night: Night, paths: Paths) -> str:
    return difference(night.origin, _origin_of(_load(_plan_of(night), paths)))


def run_night(store: Store, night: Night, team: Team) -> NightSummary:
    """Does what is left of the night."""
    left = _Left(store, night, team)
    try:
        _run_rest(store, left, team)
    except Interrupted as stop:
        stop.kept = True
        raise
    return _load_night(store, store.end_night(night.id, "finished"), left.runs_by_label())


def _run_rest(store: Store, left: _Left, team: Team) -> None:
    for opened in {opened.name: opened for opened in left.campaigns}.values():
        past = left.past_findings(opened)
        if past is None or not past.is_over:
            with left.step(opened, 1) as context:
                going_on = past and store.own_run(past.id)
                only = left.past_bugs()
                past = recheck_bugs(store, opened.name, context, going_on, only)
            team.tell(left.line_of(past) if past else f"no past findings of {opened.identity}")
    for round_ in itertools.count():
        if left.is_over(round_):
            break
        turns = left.turns()
        for place, opened in enumerate(turns):
            left.run(opened, round_, len(turns) - place)


class _Left:
    """What is left to be done."""

    def __init__(self, store: Store, night: Night, team: Team) -> None:
        self._store = store
        self._night = night
        self._team = team
        self._tried: set[int] = set()
        self.plan = _plan_of(night)
        loaded = _load(self.plan, team.paths)
        self.campaigns = [opened for opened, _ in loaded]
        self._chosen = {_key(opened): campaign for opened, campaign in loaded}

    def is_over(self, round_: int) -> bool:
        """No time, or no campaign that can be run."""
        if self.plan.seconds:
            return self._seconds() <= 0 or not self._alive()
        return round_ > 0

    def turns(self) -> list[Opened]:
        """The campaigns, first those whose last turn, in any night before this one, is the longest ago."""
        earlier = [run for run in self._store.runs() if run.night not in (None, self._night.id)]

        def last_turn(opened: Opened) -> int:
            ours = replace(opened, campaign=self._chosen[_key(opened)])
            return max((run.id for run in earlier if ours.did(run)), default=0)

        return sorted(self.campaigns, key=last_turn)

    def past_findings(self, opened: Opened) -> Run | None:
        """The night's run of those of a target."""
        name = (REPLAY_RUN, opened.name)
        return next((run for run in self._runs() if (run.campaign, run.target) == name), None)

    def past_bugs(self) -> set[int]:
        """Those that were there before the night: what it has found itself is no past finding, and is not
        played again where it goes on."""
        ours = {run.id for run in self._runs()}
        return {bug.id for bug in self._store.bugs() if bug.first.run not in ours}

    def runs_by_label(self) -> dict[str, set[int]]:
        """The night's runs of each campaign, which is told by its name, and by file and target where that is
        not enough."""
        names = Counter(opened.campaign.name for opened in self.campaigns)
        places = Counter((opened.campaign.name, opened.name) for opened in self.campaigns)
        found = {}
        for number, opened in enumerate(self.campaigns, 1):
            label = opened.campaign.name
            if names[label] > 1:
                label += f" on {opened.name}"
            if places[opened.campaign.name, opened.name] > 1:
                label += f" ({number})"
            found[label] = {run.id for run in self._runs_of(opened)}
        return found

    def _runs_of(self, opened: Opened) -> list[Run]:
        """All rounds of a campaign: by what it says and where its target is, since names are not enough."""
        said = _without_seed(self._chosen[_key(opened)].model_dump(mode="json"))
        return [
            run
            for run in self._runs()
            if run.target == opened.name and _without_seed(run.settings) == said
        ]

    def _run_of(self, opened: Opened, seed: int) -> Run | None:
        return next((run for run in self._runs_of(opened) if run.seed == seed), None)

    def run(self, opened: Opened, round_: int, waiting: int) -> None:
        """Runs a campaign for its share of the time, or what is left of it; `waiting`: campaigns that share
        the time. One that cannot be run, or begun, has a failed run, and is left out from then on."""
        seed = derive_seed(self.plan.seed, "night", opened.campaign.name, round_) % SEEDS
        known = self._run_of(opened, seed)
        if self.is_over(0) or opened not in self._alive():
            return
        if known is not None and (known.is_over or known.id in self._tried):
            return
        with self.step(opened, waiting) as context:
            chosen = self._chosen[_key(opened)].changed({"seed": seed})
            try:
                if known is not None:
                    summary = go_on(self._store, self._store.own_run(known.id), context)
                else:
                    summary = run_campaign(self._store, chosen, opened.name, context)
            except MachineError:
                raise
            except TornpageError as error:
                failed = self._run_of(opened, seed) or begin_run(
                    self._store, chosen, opened.name, context
                )
                give_up(self._store, failed.id, self._team.out)
                self._team.tell(f"{self.line_of(failed)}: {error}")
                return
        self._tried.add(summary.run.id)
        write_report(self._store, summary, self._team.paths, self._team.out)
        self._team.tell(self.line_of(self._store.run(summary.run.id)))

    def _share(self, waiting: int) -> float:
        """Seconds of a turn: as many turns as can have the floor share what is left."""
        left = self._seconds()
        return left / min(waiting, max(1, int(left // FLOOR_S)))

    @contextmanager
    def step(self, opened: Opened, waiting: int) -> Iterator[RunContext]:
        """The context of a run that may take its share of the time; what it takes is written down."""
        team = self._team
        began = team.clock()
        context = RunContext(
            team.paths,
            team.jobs,
            team.out,
            team.progress,
            opened.origin(),
            self._night.id,
        )
        if self.plan.seconds:
            context = replace(context, stop_at=began + self._share(waiting))
        try:
            yield context
        finally:
            self._store.add_night_seconds(self._night.id, team.clock() - began)

    def line_of(self, run: Run) -> str:
        """A run in one line."""
        (facts,) = [facts for facts in self._store.overview() if facts.id == run.id]
        return (
            f"run {run.id}: {run.campaign} on {run.identity}, seed {run.seed}, {run.state}: "
            f"{facts.crashes} crashes, {facts.bugs} bugs, {facts.news} of them new"
        )

    def _runs(self) -> list[Run]:
        return [run for run in self._store.runs() if run.night == self._night.id]

    def _seconds(self) -> float:
        return self.plan.seconds - self._store.night(self._night.id).seconds

    def _alive(self) -> list[Opened]:
        return [
            opened
            for opened in self.campaigns
            if not any(run.state == "failed" for run in self._runs_of(opened))
        ]


def _without_seed(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name != "seed"}


def _load_night(store: Store, night: Night, campaigns: Mapping[str, Set[int]]) -> NightSummary:
    """What the store holds of a night of these campaigns, by their labels, and runs."""
    runs = [facts for facts in store.overview() if facts.night == night.id]
    before = [one.origin.examined for one in store.runs() if one.night == night.id]
    return NightSummary(
        night=night,
        campaigns=campaigns,
        runs=runs,
        bugs=_bugs_of(store, [facts.id for facts in runs]),
        errors=[
            error
            for facts in runs
            if facts.unsure
            for error in load_summary(store, store.run(facts.id)).errors
        ],
        examined=list(dict.fromkeys(one for one in before if one is not None)),
    )


def _bugs_of(store: Store, runs: Sequence[int]) -> list[NightBug]:
    seen = {run: store.sightings(run) for run in runs}
    answers = {replayed.bug: replayed for run in runs for replayed in store.replays(run)}
    found = []
    for bug in store.bugs():
        sightings = [seen[run][bug.id] for run in runs if bug.id in seen[run]]
        answer = answers.get(bug.id)
        if not sightings and answer is None:
            continue
        novelties = {sighting.novelty for sighting in sightings} - {Novelty.AGAIN}
        if novelties:
            standing = Standing(novelties.pop())
        elif sightings:
            standing = Standing.AGAIN
        else:
            played = answer is not None and answer.answer is not Answer.NOT_PLAYED
            standing = Standing.NOT_REPRODUCED if played else Standing.NOT_PLAYED
        found.append(
            NightBug(
                bug=bug,
                standing=standing,
                count=sum(sighting.count for sighting in sightings),
                note=answer.note if answer else "",
                replay=replay_line(store, bug),
            )
        )
    return sorted(found, key=lambda one: (list(Standing).index(one.standing), one.bug.id))


def _plan_of(night: Night) -> NightPlan:
    plan = night.plan
    return NightPlan(
        seed=plan["seed"],
        target=plan["target"],
        campaigns=tuple(plan["campaigns"]),
        options=tuple((name, value) for name, value in plan["options"]),
        seconds=plan["seconds"],
        limits=Limits.of(plan["limits"]),
    )


def _load(plan: NightPlan, paths: Paths) -> list[tuple[Opened, Campaign]]:
    """Each of them once: the same campaign on the same target is one, however it is named; and as the night
    runs it, but for the seed. ConfigError for what none of them can have."""
    found: dict[tuple[str, str], Opened] = {}
    for name in plan.campaigns:
        opened = open_campaign(name, plan.target or None, paths)
        found.setdefault(_key(opened), opened)
    campaigns = list(found.values())
    chosen = changed(campaigns, plan.limits, dict(plan.options), paths)
    return [(opened, one.campaign) for opened, one in zip(campaigns, chosen, strict=True)]


def _key(opened: Opened) -> tuple[str, str]:
    return opened.campaign.content, opened.name


def _origin_of(loaded: Sequence[tuple[Opened, Campaign]]) -> Origin:
    """Of all of them, as they were before the night changed them: it goes on with the same files only."""
    campaigns = [opened for opened, _ in loaded]
    origins = [opened.origin() for opened in campaigns]
    programs: dict[str, str] = {}
    for number, (opened, origin) in enumerate(zip(campaigns, origins, strict=True), 1):
        for program, value in origin.programs.items():
            key = f"campaign {opened.campaign.name}" if program == "campaign" else program
            if programs.get(key, value) != value:
                key = f"{key} ({number})"
            programs[key] = value
    target = " + ".join(dict.fromkeys(origin.target for origin in origins))
    return replace(origins[0], target=target, programs=programs)
