"""`make bench`: the speeds that the documents quote, measured side by side in one run.

Four tables: the cost of the preload for single writes against none, rows per second of an index load
in the engine, crashes judged per second: kills of real processes beside computed power-loss
states, the time to summarise a large store.
Medians over rounds; what is compared alternates, so that a slow moment of the machine hits both.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tornpage.campaigns.campaign import load_campaign
from tornpage.faults.preload import preload_path
from tornpage.faults.process import launch_argv
from tornpage.lab.statements import machine
from tornpage.store.store import Store
from tornpage.vocabulary.paths import find_paths

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("TORNPAGE_BUILD", ROOT / "build" / "release"))
SCRATCH = Path(os.environ.get("TORNPAGE_TMP", "/dev/shm"))
DEADLINE_S = 3600
"""Of one measurement: far more than it takes."""
ROUNDS = 7
TRIALS = 600
STATES = 20_000
SEEDS = 3
RIGHT = (0, 3)
"""Exit codes of a campaign without a violation; 3: so short that it misses what the whole one claims."""
QUOTED = (
    "Measured once on such a machine, for comparison: SQLite's crash tests 118/s, FUSE cycles 16/s."
)
LOAD_ROWS = 100_000
SUMMARY_TRIALS = 100_000
PATTERN_TRIALS = 100
"""Real trials of the control, which are stored again and again under other numbers."""


def _child(command: list[str]) -> list[str]:
    """So that it ends with this program, however that ends."""
    return launch_argv(command, DEADLINE_S)


@dataclass(frozen=True, slots=True)
class Campaign:
    """One row of the table of crash rates: `tornpage run` with these arguments, on this build."""

    name: str
    unit: str
    arguments: tuple[str, ...]
    build: Path = BUILD

    def rate(self, seed: int) -> float:
        """Kills or states per second, by the run's own clock: recordings and verdicts included."""
        with tempfile.TemporaryDirectory(dir=SCRATCH) as out:
            command = [str(ROOT / ".venv/bin/tornpage"), "run", *self.arguments, "--json"]
            command += ["--seed", str(seed), "--out", out]
            env = {**os.environ, "TORNPAGE_BUILD": str(self.build)}
            done = subprocess.run(
                _child(command), env=env, capture_output=True, text=True, check=False
            )
        if done.returncode not in RIGHT:
            raise SystemExit(f"bench: {' '.join(command)}: exit code {done.returncode}")
        rate = json.loads(done.stdout.splitlines()[-1])["trials_per_s"]
        return float(rate)


def campaigns() -> list[Campaign]:
    """Kills and power loss of the engine, on one worker and two; the asan build; SQLite."""
    one = ("--scripts", "1")
    kill = ("smoke", "--trials", str(TRIALS), *one, "--undisturbed", "0")
    flat = (*one, "--depth", "1", "--states")
    loss = ("powerloss", *flat, str(STATES))
    few = ("powerloss", *flat, str(STATES // 5))
    sqlite = ("powerloss", "--target", "sqlite", *flat, str(STATES // 20))
    return [
        Campaign("live kill, recovery, verdict", "kills", (*kill, "--jobs", "1")),
        Campaign("the same, two workers", "kills", (*kill, "--jobs", "2")),
        Campaign("power loss", "states", (*loss, "--jobs", "1")),
        Campaign("the same, two workers", "states", (*loss, "--jobs", "2")),
        Campaign(
            "the same, asan, one worker", "states", (*few, "--jobs", "1"), BUILD.parent / "asan"
        ),
        Campaign("power loss of SQLite", "states", (*sqlite, "--jobs", "1")),
    ]


def crash_rates(console: Console) -> None:
    """All campaigns, one after the other in each round."""
    table = Table(title="crashes judged per second, about 1 MB of data", title_justify="left")
    for heading in ("campaign", "unit"):
        table.add_column(heading)
    table.add_column("median", justify="right")
    table.add_column("runs")
    rows = campaigns()
    rounds = [[row.rate(seed) for row in rows] for seed in range(SEEDS)]
    for row, rates in zip(rows, zip(*rounds, strict=True), strict=True):
        runs = " ".join(f"{rate:.0f}" for rate in rates)
        table.add_row(row.name, row.unit, f"{statistics.median(rates):.0f}", runs)
    console.print(table)
    console.print(QUOTED)


def load_script(folder: Path) -> Path:
    """A table of LOAD_ROWS rows, fully purged and flushed, then one ADD INDEX between two statuses."""
    script = folder / "load.script"
    lines = [
        "create table t a:bigint b:char(64) c:char(16) primary a",
        f"insert_seq - t 1 {LOAD_ROWS}",
        "purge all",
        "checkpoint full",
        "status",
        "add index t ib(b) ic(c)",
        "status",
    ]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return script


def run_load(script: Path, logged: str, until: int) -> float:
    """CPU seconds of a run of the script's first `until` lines."""
    text = "\n".join(script.read_text(encoding="utf-8").splitlines()[:until]) + "\n"
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        command = [str(BUILD / "engine/engine"), "run", f"{folder}/db", "-", "--json", "--crash"]
        for option in (
            "buffer_pool_pages=16384",
            "log_file_size=256m",
            f"log_optimize_ddl={logged}",
        ):
            command += ["--set", option]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(_child(command), input=text, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def load_rates(console: Console) -> None:
    """Index rows per CPU second: the run with ADD INDEX less the run without it."""
    table = Table(title="ADD INDEX of two indexes: rows per CPU second", title_justify="left")
    table.add_column("log_optimize_ddl")
    table.add_column("median", justify="right")
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        script = load_script(Path(folder))
        for logged in ("on", "off"):
            spent = [
                run_load(script, logged, 7) - run_load(script, logged, 5) for _ in range(ROUNDS)
            ]
            table.add_row(logged, f"{2 * LOAD_ROWS / statistics.median(spent):,.0f}")
    console.print(table)


def write_costs(folder: Path, size: int, fsync: bool, preload: bool) -> float:
    """Nanoseconds per operation of the benchmark program, with or without the preload."""
    env = dict(os.environ)
    trace = folder / "trace"
    if preload:
        env |= {
            "LD_PRELOAD": str(preload_path(BUILD)),
            "TORNPAGE_ROOT": str(folder / "data"),
            "TORNPAGE_TRACE": str(trace),
        }
    command = [str(BUILD / "faults/bench_preload"), str(folder / "data" / "file"), str(size)]
    command.append("1" if fsync else "0")
    done = subprocess.run(_child(command), env=env, capture_output=True, text=True, check=True)
    trace.unlink(missing_ok=True)
    return float(json.loads(done.stdout)["ns_per_op"])


def preload_costs(console: Console) -> None:
    """pwrite with and without the preload: ratio of medians."""
    table = Table(title="cost of the preload, hashes recorded", title_justify="left")
    for heading in ("write", "fsync", "without ns", "with ns", "ratio"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory(dir=SCRATCH) as name:
        folder = Path(name)
        (folder / "data").mkdir()
        for size in (4096, 16384):
            for fsync in (False, True):
                pairs = [
                    (
                        write_costs(folder, size, fsync, False),
                        write_costs(folder, size, fsync, True),
                    )
                    for _ in range(ROUNDS)
                ]
                plain = statistics.median(pair[0] for pair in pairs)
                seen = statistics.median(pair[1] for pair in pairs)
                table.add_row(
                    str(size), str(fsync), f"{plain:.0f}", f"{seen:.0f}", f"{seen / plain:.2f}"
                )
    console.print(table)


def fill_store(folder: Path) -> Path:
    """A store with a finished run of SUMMARY_TRIALS trials. Returns its folder."""
    command = [
        str(ROOT / ".venv/bin/tornpage"),
        "run",
        "smoke",
        "--set",
        "doublewrite=off",
        "--json",
    ]
    command += ["--trials", str(PATTERN_TRIALS), "--scripts", "1", "--undisturbed", "0"]
    small, large = folder / "small", folder / "large"
    subprocess.run(_child([*command, "--out", str(small)]), capture_output=True, check=False)
    with Store(small / "tornpage.db", write=False) as store:
        rows = list(store.trials(1))
    settings = load_campaign("smoke", find_paths().workloads).model_dump(mode="json")
    with Store(large / "tornpage.db") as store:
        run = store.begin_run("smoke", "engine", 1, SUMMARY_TRIALS, settings).id
        for number in range(SUMMARY_TRIALS):
            row = rows[number % len(rows)]
            assert row.result is not None, "the run came to its end"
            store.start_trial(run, replace(row.spec, number=number), row.site, row.mask)
            store.finish_trial(run, replace(row.result, number=number))
        store.finish_run(run)
    return large


def summary_times(console: Console) -> None:
    """Seconds of `tornpage report`, from its start to its end."""
    table = Table(title=f"tornpage report, {SUMMARY_TRIALS:,} trials", title_justify="left")
    table.add_column("median s", justify="right")
    table.add_column("runs")
    with tempfile.TemporaryDirectory(dir=SCRATCH) as name:
        out = fill_store(Path(name))
        command = [str(ROOT / ".venv/bin/tornpage"), "report", "--json", "--out", str(out)]
        times = []
        for _ in range(SEEDS):
            started = time.monotonic()
            subprocess.run(_child(command), capture_output=True, check=False)
            times.append(time.monotonic() - started)
    table.add_row(f"{statistics.median(times):.1f}", " ".join(f"{t:.1f}" for t in times))
    console.print(table)


def main() -> None:
    """All tables."""
    console = Console()
    console.print(machine())
    preload_costs(console)
    load_rates(console)
    crash_rates(console)
    summary_times(console)


if __name__ == "__main__":
    main()
