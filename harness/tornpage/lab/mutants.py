"""The mutation score: hunts for all planted bugs on worker processes, results kept so that an interrupted
run goes on, and what is shown of them.

A caught mutant's row lies in OUT/NAME.json and counts as long as programs, table row and limits are the
same; one that was not caught is hunted again.

May import: codec, errors, hunt, mutant_table, paths, runner, target, workers.
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash
from rich.table import Table

from tornpage.campaigns.runner import Progress
from tornpage.campaigns.workers import worker_pool
from tornpage.faults.scratch import scratch_folder
from tornpage.lab.hunt import HuntJob, MutantRow, hunt
from tornpage.lab.mutant_table import Mutant
from tornpage.targets.target import MUTANT_VARIABLE
from tornpage.vocabulary.codec import from_json, to_json, to_plain
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import ROOT, Paths

__all__ = ["TABLE", "Effort", "Score", "bugs_page", "mutants_table", "run_mutants"]

TABLE = ROOT / "tests" / "mutants" / "mutants.toml"


@dataclass(frozen=True, slots=True)
class Effort:
    """states: most power-loss states per mutant; strikes: random kills per mutant of the base line."""

    states: int = 200_000
    strikes: int = 200


@dataclass(frozen=True, slots=True)
class _Kept:
    """OUT/NAME.json. key: hash of what the row depends on."""

    key: str
    row: MutantRow


@dataclass(frozen=True, slots=True)
class Score:
    """All rows, in the order of the table."""

    rows: tuple[MutantRow, ...]

    @property
    def caught(self) -> int:
        """How many were caught by an invariant of their row."""
        return sum(row.caught for row in self.rows)

    def exit_code(self) -> int:
        """0: all caught; 1: not all; 2: the harness failed at one of them."""
        if any(row.error for row in self.rows):
            return 2
        return 0 if self.caught == len(self.rows) else 1

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "mutants": len(self.rows),
            "caught": self.caught,
            "score": round(100 * self.caught / len(self.rows), 1),
            "baseline_caught": sum(row.baseline > 0 for row in self.rows),
            "rows": to_plain(list(self.rows)),
        }


def run_mutants(
    mutants: list[Mutant], effort: Effort, paths: Paths, jobs: int, out: Path, progress: Progress
) -> Score:
    """Hunts for each of them; jobs: how many at a time."""
    _check_build(paths.build)
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    keys = {mutant.name: _key(mutant, effort, paths.build) for mutant in mutants}
    rows = {name: row for name, key in keys.items() if (row := _kept(out, name, key)) is not None}
    left = [mutant for mutant in mutants if mutant.name not in rows]
    progress.phase("mutants", len(left))
    with scratch_folder() as scratch, worker_pool(jobs) as pool:
        futures = {
            pool.submit(
                hunt, HuntJob(m, paths, scratch, out, effort.states, effort.strikes)
            ): m.name
            for m in left
        }
        try:
            for future in as_completed(futures):
                name, row = futures[future], future.result()
                rows[name] = row
                text = to_json(_Kept(keys[name], row))
                (out / f"{name}.json").write_text(text + "\n", encoding="utf-8")
                progress.advance(not row.caught)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return Score(tuple(rows[mutant.name] for mutant in mutants))


def _check_build(build: Path) -> None:
    """A build without mutants would ignore the choice and prove nothing."""
    program = build / "engine" / "engine"
    if not program.is_file():
        raise ConfigError(f"{program} is missing: cmake --build --preset mutants, or make mutants")
    env = {**os.environ, MUTANT_VARIABLE: "none of these"}
    done = subprocess.run([program, "--help"], env=env, capture_output=True, check=False)
    if done.returncode != 2:
        raise ConfigError(f"{build} is not a mutant build: cmake --preset mutants")


def _key(mutant: Mutant, effort: Effort, build: Path) -> str:
    digest = xxhash.xxh3_64()
    for name in ("engine/engine", "explorer/tornpage-explore"):
        path = build / name
        digest.update(path.read_bytes() if path.is_file() else b"")
    digest.update(mutant.model_dump_json().encode())
    digest.update(repr((effort.states, effort.strikes)).encode())
    return digest.hexdigest()


def _kept(out: Path, name: str, key: str) -> MutantRow | None:
    """The row of an earlier run, if it is complete and still true."""
    try:
        kept = from_json(_Kept, (out / f"{name}.json").read_bytes())
    except (OSError, ConfigError):
        return None
    return kept.row if kept.key == key and kept.row.caught and not kept.row.error else None


def mutants_table(score: Score) -> Table:
    """For a terminal."""
    caught, total = score.caught, len(score.rows)
    base = sum(row.baseline > 0 for row in score.rows)
    table = Table(
        title=f"{caught} of {total} mutants caught ({100 * caught / total:.1f} %); "
        f"by random kills: {base}"
    )
    for column in ("mutant", "caught by", "crash model", "tries", "seconds", "kill -9", "also"):
        table.add_column(column, overflow="fold")
    for row in score.rows:
        table.add_row(
            row.name,
            f"I{row.invariant}" if row.caught else f"[red]no[/] {row.error}",
            row.model or f"{row.trials} trials, {row.states} states",
            str(row.tries) if row.caught else "",
            f"{row.seconds:.1f}",
            f"after {row.baseline}" if row.baseline else "no",
            ", ".join(f"I{number}" for number in row.also),
        )
    return table


def bugs_page(mutants: list[Mutant], score: Score) -> str:
    """docs/BUGS.md."""
    found = {row.name: row for row in score.rows}
    base = sum(row.baseline > 0 for row in score.rows)
    lines = [
        "# Bugs",
        "",
        "Each is planted in the mutant build ([rules](../tests/mutants/README.md)) and must be found by the",
        "campaigns that torture the product, with an [invariant](INVARIANTS.md) of its row.",
        "Written by `tornpage mutants --table docs/BUGS.md`; do not edit.",
        "",
        f"**{score.caught} of {len(score.rows)} caught**; plain random `kill -9`, no preload: {base}.",
        "",
        "| mutant | bug or rule | mechanism | must be caught by | caught | kill -9 |",
        "|---|---|---|---|---|---|",
    ]
    for mutant in mutants:
        row = found[mutant.name]
        wanted = ", ".join(f"I{number}" for number in mutant.invariants)
        where = f"I{row.invariant}, {row.model}, {row.tries}" if row.caught else "**no**"
        base_line = f"after {row.baseline}" if row.baseline else "no"
        cells = (f"`{mutant.name}`", mutant.bug, mutant.mechanism, wanted, where, base_line)
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "*caught*: the first invariant of the row that broke, the crash model, and how many trials or",
        "power-loss states that took (rounded up to a slice of the exploration). *census*: the order of",
        "writes and fsyncs of the undisturbed run is wrong already. *kill -9*: first kill that found any.",
    ]
    return "\n".join(lines) + "\n"
