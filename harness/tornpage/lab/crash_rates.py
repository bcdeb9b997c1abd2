"""Crashes judged per second: power losses and kills of the bundled engine and of every target that is here,
beside what people do without Tornpage, kill -9 in a loop, and beside the raw cost of a recovery; and the same
crashes on the workers of a cluster, beside worker processes.

What is compared is measured in turn, so that a slow moment of the machine hits all of it. Campaigns run as a
user runs them, with the store and the report; their rate is that of their own clock.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tornpage.faults.image import copy_image, remove_image
from tornpage.faults.process import launch_argv, run_child
from tornpage.faults.scratch import scratch_folder
from tornpage.lab.measured import Effort, Measured, spent
from tornpage.lab.randomkill import KillLoop
from tornpage.plans.campaign import fault_free_spec, load_campaign
from tornpage.targets.command.target import CommandTarget
from tornpage.targets.engine.target import EngineTarget
from tornpage.targets.registry import DEFAULT_TARGET, TARGETS, make_target, target_names
from tornpage.vocabulary.errors import TargetError
from tornpage.vocabulary.model import TrialSpec
from tornpage.vocabulary.paths import BUILD_VARIABLE, Paths
from tornpage.workloads.workload import generate

__all__ = ["cluster_rates", "crash_rates", "target_rates"]

COLUMNS = ("what", "unit", "workers", "median per s", "cpu ms of one", "runs per s")
DEADLINE_S = 3600
"""Of one measurement: far more than it takes."""
CLEAN = (0, 3)
"""Exit codes of a campaign without a violation; 3: so short that it misses what the whole one claims."""
STRANGE = (0, 1, 3)
"""Of a third-party engine, which may have bugs."""
ROWS = 48
"""Of the smoke table in the shipped campaign."""
STATES = 20_000
TRIALS = 600
STRIKES = 200
JUDGES = ("--check", "--backups")
"""Options of a recovery that is judged."""
WORKERS = (1, 2)
TARGET_STATES = 100
TARGET_TRIALS = 10


@dataclass(frozen=True, slots=True)
class _Rate:
    """per_s: crashes; cpu_ms: processor time of one, with all that belongs to it."""

    per_s: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class _Row:
    """measure: one round, with this seed."""

    what: str
    unit: str
    workers: int
    measure: Callable[[int], _Rate]


def _table(name: str, title: str, rows: Sequence[_Row], rounds: int, notes: list[str]) -> Measured:
    """All rows, one after the other in each round."""
    found = [[row.measure(seed) for row in rows] for seed in range(1, rounds + 1)]
    cells = [
        (
            row.what,
            row.unit,
            row.workers,
            statistics.median(one.per_s for one in rates),
            statistics.median(one.cpu_ms for one in rates),
            " ".join(f"{one.per_s:,.1f}" for one in rates),
        )
        for row, rates in zip(rows, zip(*found, strict=True), strict=True)
    ]
    return Measured(name, title, COLUMNS, cells, notes)


@dataclass(frozen=True, slots=True)
class _Campaign:
    """`tornpage run` with these arguments, on this build. codes: exit codes that are no failure."""

    arguments: tuple[str, ...]
    build: Path
    codes: tuple[int, ...]

    def rate(self, seed: int) -> _Rate:
        """TargetError if it ends in another way."""
        command = [sys.executable, "-m", "tornpage", "run", *self.arguments, "--json"]
        with scratch_folder() as out, spent() as taken:
            command += ["--seed", str(seed), "--out", str(out / "out")]
            done = subprocess.run(
                launch_argv(command, DEADLINE_S),
                env={**os.environ, BUILD_VARIABLE: str(self.build)},
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode not in self.codes:
            last = done.stderr.strip().rpartition("\n")[2]
            raise TargetError(f"{' '.join(command[1:])}: exit code {done.returncode}: {last}")
        told = json.loads(done.stdout.splitlines()[-1])
        return _Rate(float(told["trials_per_s"]), 1000 * taken.cpu / told["trials"])


def crash_rates(paths: Paths, effort: Effort) -> Measured:
    """The engine by power loss, with more data and under sanitizers; SQLite; kills, and what there is without
    Tornpage."""
    notes = []
    flat = ("--scripts", "1", "--depth", "1", "--states")
    rows = []
    for times in (1, 4, 16):
        states = str(effort.of(STATES // times))
        loss = ("powerloss", *flat, states, "--option", f"params.rows={ROWS * times}")
        what = f"power loss, {ROWS * times} rows"
        rows += [_row(what, "states", workers, loss, paths.build) for workers in WORKERS]
    asan = paths.build.parent / "asan"
    if (asan / "explorer" / "tornpage-explore").is_file():
        few = ("powerloss", *flat, str(effort.of(STATES // 5)))
        rows.append(_row("power loss, sanitizers", "states", 1, few, asan))
    else:
        notes.append(f"no sanitizers: {asan} is not built")
    sqlite = ("powerloss", "--target", "sqlite", *flat, str(effort.of(STATES // 4)))
    rows += [_row("power loss, SQLite", "states", n, sqlite, paths.build) for n in WORKERS]
    kill = ("smoke", "--trials", str(effort.of(TRIALS)), "--scripts", "1", "--fault-free", "0")
    rows += [_row("live kills", "kills", workers, kill, paths.build) for workers in WORKERS]
    rows.append(_Row("kill -9 in a loop", "kills", 1, _Loop(paths, effort).rate))
    rows.append(_Row("recovery alone", "recoveries", 1, _Recovery(paths, effort).rate))
    title = "crashes judged per second; processor time with recordings, store and report"
    return _table("crashes", title, rows, effort.rounds, notes)


def _row(
    what: str,
    unit: str,
    workers: int,
    arguments: tuple[str, ...],
    build: Path,
    codes: tuple[int, ...] = CLEAN,
) -> _Row:
    campaign = _Campaign((*arguments, "--jobs", str(workers)), build, codes)
    return _Row(what, unit, workers, campaign.rate)


def _smoke_spec(paths: Paths, seed: int) -> TrialSpec:
    """A script of the campaign `smoke`."""
    campaign = load_campaign("smoke", paths.workloads).model_copy(update={"seed": seed})
    return fault_free_spec(campaign, DEFAULT_TARGET, campaign.configs()[0])


@dataclass(frozen=True, slots=True)
class _Loop:
    """Kills by a clock: no preload, recovery, the oracle's verdict."""

    paths: Paths
    effort: Effort

    def rate(self, seed: int) -> _Rate:
        """The clock is stopped while the run without a kill is measured."""
        strikes = self.effort.of(STRIKES)
        target = make_target(DEFAULT_TARGET, self.paths.build)
        with scratch_folder() as scratch:
            loop = KillLoop(_smoke_spec(self.paths, seed), target, scratch / "loop")
            with spent() as taken:
                for number in range(strikes):
                    found = loop.strike(number)
                    if found:
                        raise TargetError(f"kill -9 in a loop: {found[0].what}")
        return _Rate(strikes / taken.wall, 1000 * taken.cpu / strikes)


@dataclass(frozen=True, slots=True)
class _Recovery:
    """`engine recover`, and no scan, on what a run leaves that ends without a clean close."""

    paths: Paths
    effort: Effort

    def rate(self, seed: int) -> _Rate:
        """Copies of the image are not on the clock."""
        times = self.effort.of(STRIKES)
        target = make_target(DEFAULT_TARGET, self.paths.build)
        assert isinstance(target, EngineTarget), "it is the bundled one"
        spec = _smoke_spec(self.paths, seed)
        wall = cpu = 0.0
        with scratch_folder() as scratch:
            for _ in self._images(spec, target, scratch, times):
                command = target.recover_command(scratch / "image", spec.options)
                argv = [word for word in command.argv if word not in JUDGES]
                with spent() as taken:
                    child = run_child(argv, command.env, DEADLINE_S)
                if child.exit_code != 0:
                    raise TargetError(f"recovery: {child.describe()}")
                wall, cpu = wall + taken.wall, cpu + taken.cpu
        return _Rate(times / wall, 1000 * cpu / times)

    def _images(
        self, spec: TrialSpec, target: EngineTarget, scratch: Path, times: int
    ) -> Iterator[None]:
        """The same image again and again, in scratch/image."""
        script, data = scratch / "script", scratch / "data"
        script.write_text(generate(spec.workload, spec.params, spec.workload_seed).text, "ascii")
        data.mkdir()
        command = target.loop_command(data, script, spec.options)
        run_child([*command.argv, "--crash"], command.env, DEADLINE_S)
        for _ in range(times):
            remove_image(scratch / "image")
            copy_image(data, scratch / "image")
            yield


def target_rates(paths: Paths, effort: Effort) -> Measured:
    """Power loss and kills of every target with a target file that is ready."""
    rows, notes = [], []
    for name in target_names():
        if name in TARGETS:
            continue
        target = make_target(name, paths.build, ready=False)
        missing = target.missing() if isinstance(target, CommandTarget) else []
        if missing:
            notes.append(str(missing[0]))
            continue
        states, trials = str(effort.of(TARGET_STATES)), str(effort.of(TARGET_TRIALS))
        loss = ("powerloss", "--target", name, "--depth", "1", "--states", states)
        kill = ("smoke", "--target", name, "--trials", trials, "--fault-free", "0")
        rows += [_row(name, "states", n, loss, paths.build, STRANGE) for n in WORKERS]
        rows += [_row(name, "kills", n, kill, paths.build, STRANGE) for n in WORKERS]
    title = "the same of other targets that are ready"
    return _table("targets", title, rows, effort.rounds, notes)


def cluster_rates(paths: Paths, effort: Effort) -> Measured:
    """One exploration, whose states go to a cluster in slices, and kills: by worker processes, and by the
    workers of a cluster on this machine, which is there before the clock of a campaign begins."""
    states, trials = str(effort.of(STATES)), str(effort.of(TRIALS))
    loss = ("powerloss", "--scripts", "1", "--depth", "1", "--states", states)
    kill = ("smoke", "--trials", trials, "--scripts", "1", "--fault-free", "0")
    rows, notes = [], []
    for what, unit, arguments in (("power loss", "states", loss), ("live kills", "kills", kill)):
        rows += [_row(f"{what}, processes", unit, n, arguments, paths.build) for n in WORKERS]
        if importlib.util.find_spec("distributed") is None:
            notes = ["no cluster: pip install 'tornpage[cluster]'"]
            continue
        for n in WORKERS:
            clustered = (*arguments, "--cluster", f"local:{n}")
            campaign = _Campaign(clustered, paths.build, CLEAN)
            rows.append(_Row(f"{what}, cluster", unit, n, campaign.rate))
    title = "the same work by worker processes and by a cluster of this machine"
    return _table("cluster", title, rows, effort.rounds, notes)
