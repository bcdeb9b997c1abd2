"""A night: past findings are played again, then campaigns run in turn, each round with seeds of its own, for
as long as the plan says. It can be ended at any moment and goes on where it was.

May import: bugs, campaign, crew, errors, fitting, lossrunner, memory, night, origin, paths, publish, recheck,
registry, rows, runner, seeds, store.
"""

from __future__ import annotations

import itertools
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tornpage.campaigns.campaign import Campaign, default_campaigns
from tornpage.campaigns.crew import Crew, Progress
from tornpage.campaigns.fitting import campaign_of
from tornpage.campaigns.lossrunner import give_up
from tornpage.campaigns.origin import difference, origin_of
from tornpage.campaigns.publish import write_report
from tornpage.campaigns.recheck import REPLAY_RUN, recheck_bugs, replay_line
from tornpage.campaigns.runner import go_on, load_summary, run_campaign
from tornpage.reports.night import NightBug, NightSummary, Standing
from tornpage.store.bugs import Novelty
from tornpage.store.memory import Answer, Night
from tornpage.store.origin import Origin
from tornpage.store.rows import Run
from tornpage.store.store import Store
from tornpage.targets.registry import family_of, make_target
from tornpage.vocabulary.errors import ConfigError, Interrupted, MachineError, TornpageError
from tornpage.vocabulary.paths import Paths
from tornpage.vocabulary.seeds import derive_seed

__all__ = ["NightPlan", "Team", "names_of_campaigns", "open_night", "run_night"]

SEEDS = 1_000_000_000
"""Seeds of a night's runs are below: a person can read them."""


@dataclass(frozen=True, slots=True)
class NightPlan:
    """What a night is about. campaigns: names or files; settings: target options and params.NAME, for all of
    them; seconds: 0 = one round, however long it takes."""

    seed: int
    target: str
    campaigns: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Team:
    """Who makes it. tell: gets a line after each run."""

    paths: Paths
    jobs: int
    out: Path
    progress: Progress
    tell: Callable[[str], None]


def names_of_campaigns(paths: Paths, target: str) -> tuple[str, ...]:
    """Those that a night has if none is chosen: the target's own, or the default ones."""
    own = sorted(path.stem for path in paths.workloads.glob(f"*-{family_of(target)}.toml"))
    if own:
        return tuple(name.removesuffix(f"-{family_of(target)}") for name in own)
    return tuple(campaign.name for campaign in default_campaigns(paths.workloads))


def open_night(
    store: Store, plan: NightPlan, paths: Paths, out: Path, *, resume: bool, anew: bool
) -> Night:
    """The newest interrupted night if asked to resume, else, or if there is none to go on with and anew is
    allowed, a new one. ConfigError: there is none, its owner lives, or it was made by other programs."""
    found = _interrupted(store, paths) if resume else None
    if found is not None:
        changed = _changed(found, paths)
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
    origin = _origin_of(_load(plan, paths), plan.target, paths)
    return store.begin_night(asdict(plan), origin)


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
    plan = _plan_of(night)
    return difference(night.origin, _origin_of(_load(plan, paths), plan.target, paths))


def run_night(store: Store, night: Night, team: Team) -> NightSummary:
    """Does what is left of the night."""
    left = _Left(store, night, team)
    try:
        _run_rest(store, left, team)
    except Interrupted as stop:
        stop.kept = True
        raise
    names = [campaign.name for campaign in left.campaigns]
    return _load_night(store, store.end_night(night.id, "finished"), names)


def _run_rest(store: Store, left: _Left, team: Team) -> None:
    past = left.run_named(REPLAY_RUN, 0)
    if past is None or past.state == "running":
        with left.step(left.campaigns[0], 1) as crew:
            past = recheck_bugs(store, left.plan.target, crew, past and store.own_run(past.id))
        team.tell(left.line_of(past) if past else "no past findings")
    for round_ in itertools.count():
        if left.is_over(round_):
            break
        for place, campaign in enumerate(left.campaigns):
            left.run(campaign, round_, len(left.campaigns) - place)


class _Left:
    """What is left to be done."""

    def __init__(self, store: Store, night: Night, team: Team) -> None:
        self._store = store
        self._night = night
        self._team = team
        self._tried: set[int] = set()
        self.plan = _plan_of(night)
        self.campaigns = _load(self.plan, team.paths)
        self._target = make_target(self.plan.target, team.paths.build)

    def is_over(self, round_: int) -> bool:
        """No time, or no campaign that can be run."""
        if self.plan.seconds:
            return self._seconds() <= 0 or not self._alive()
        return round_ > 0

    def run_named(self, campaign: str, seed: int) -> Run | None:
        """The night's run of a campaign with a seed."""
        found = [run for run in self._runs() if (run.campaign, run.seed) == (campaign, seed)]
        return found[-1] if found else None

    def run(self, campaign: Campaign, round_: int, waiting: int) -> None:
        """Runs a campaign for its share of the time, or what is left of it; `waiting`: campaigns that share
        the time. One that cannot be run is left out from then on."""
        seed = derive_seed(self.plan.seed, "night", campaign.name, round_) % SEEDS
        known = self.run_named(campaign.name, seed)
        if self.is_over(0) or campaign not in self._alive():
            return
        if known is not None and (known.state != "running" or known.id in self._tried):
            return
        with self.step(campaign, waiting) as crew:
            try:
                if known is not None:
                    summary = go_on(self._store, self._store.own_run(known.id), crew)
                else:
                    chosen = campaign.with_settings(dict(self.plan.settings))
                    summary = run_campaign(
                        self._store, chosen.changed({"seed": seed}), self.plan.target, crew
                    )
            except MachineError:
                raise
            except TornpageError as error:
                failed = self.run_named(campaign.name, seed)
                if failed is None:
                    raise
                self._team.tell(f"{self.line_of(failed)}: {error}")
                return
        self._tried.add(summary.run.id)
        write_report(self._store, summary, self._team.paths, self._team.out)
        self._team.tell(self.line_of(self._store.run(summary.run.id)))

    @contextmanager
    def step(self, campaign: Campaign, waiting: int) -> Iterator[Crew]:
        """The crew of a run that may take its share of the time; what it takes is written down."""
        clock = time.monotonic()
        team = self._team
        crew = Crew(
            team.paths,
            team.jobs,
            team.out,
            team.progress,
            origin_of(campaign, self._target),
            self._night.id,
        )
        if self.plan.seconds:
            crew = replace(crew, stop_at=clock + self._seconds() / waiting)
        try:
            yield crew
        finally:
            self._store.add_night_seconds(self._night.id, time.monotonic() - clock)

    def line_of(self, run: Run) -> str:
        """A run in one line."""
        (facts,) = [facts for facts in self._store.overview() if facts.id == run.id]
        return (
            f"run {run.id}: {run.campaign}, seed {run.seed}, {run.state}: {facts.crashes} crashes, "
            f"{facts.bugs} bugs, {facts.news} of them new"
        )

    def _runs(self) -> list[Run]:
        return [run for run in self._store.runs() if run.night == self._night.id]

    def _seconds(self) -> float:
        return self.plan.seconds - self._store.night(self._night.id).seconds

    def _alive(self) -> list[Campaign]:
        failed = {run.campaign for run in self._runs() if run.state == "failed"}
        return [campaign for campaign in self.campaigns if campaign.name not in failed]


def _load_night(store: Store, night: Night, campaigns: Sequence[str]) -> NightSummary:
    """What the store holds of a night of these campaigns."""
    runs = [facts for facts in store.overview() if facts.night == night.id]
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
            standing = Standing.GONE if played else Standing.NOT_PLAYED
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
        settings=tuple((name, value) for name, value in plan["settings"]),
        seconds=plan["seconds"],
    )


def _load(plan: NightPlan, paths: Paths) -> list[Campaign]:
    target = make_target(plan.target, paths.build)
    campaigns = [campaign_of(name, paths.workloads, target) for name in plan.campaigns]
    for campaign in campaigns:
        campaign.with_settings(dict(plan.settings))
    return campaigns


def _origin_of(campaigns: Sequence[Campaign], target: str, paths: Paths) -> Origin:
    """Of all of them: a night goes on with the same files only."""
    origins = {c.name: origin_of(c, make_target(target, paths.build)) for c in campaigns}
    programs = {
        f"campaign {name}" if program == "campaign" else program: value
        for name, origin in origins.items()
        for program, value in origin.programs.items()
    }
    return replace(origins[campaigns[0].name], programs=programs)
