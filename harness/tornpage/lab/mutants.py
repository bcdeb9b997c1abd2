"""The mutation score: hunts for all planted bugs on worker processes, results kept so that an interrupted
run goes on, and what is shown of them.

A row lies in OUT/NAME.json and counts as long as sources, patch, limits, campaigns and the harness are the
same; one that was not caught at all is hunted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash
from rich.table import Table

from tornpage.faults.scratch import scratch_folder
from tornpage.lab.hunt import HuntJob, MutantRow, hunt
from tornpage.lab.mutant_build import MutantBuilder
from tornpage.lab.mutant_pool import KeptRows, each_done, maker_of
from tornpage.lab.mutant_table import Mutant
from tornpage.lab.source_copy import BuildFailed
from tornpage.lab.tryout import Catch
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import ROOT, Paths
from tornpage.workers.context import Progress

__all__ = [
    "TABLE",
    "Effort",
    "Score",
    "build_all",
    "mutants_table",
    "run_mutants",
]

TABLE = ROOT / "tests" / "mutants"


@dataclass(frozen=True, slots=True)
class Effort:
    """states: most power-loss states per mutant; strikes: random kills per mutant of the base line."""

    states: int = 200_000
    strikes: int = 200


@dataclass(frozen=True, slots=True)
class Score:
    """All rows, in the order of the table."""

    rows: tuple[MutantRow, ...]

    @property
    def caught(self) -> int:
        """How many were caught by an invariant of their row, in either way."""
        return sum(row.catch is not None for row in self.rows)

    @property
    def by_state(self) -> int:
        """How many were caught by what a crash left."""
        return sum(row.by_state is not None for row in self.rows)

    @property
    def by_rule(self) -> int:
        """How many were caught by a rule, or by a fault-free run."""
        return sum(row.by_rule is not None for row in self.rows)

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
            "by_state": self.by_state,
            "by_rule": self.by_rule,
            "score": round(100 * self.caught / len(self.rows), 1),
            "score_by_state": round(100 * self.by_state / len(self.rows), 1),
            "baseline_caught": sum(row.baseline > 0 for row in self.rows),
            "rows": [{**to_plain(row), "caught": row.catch is not None} for row in self.rows],
        }


@dataclass(frozen=True, slots=True)
class _Task:
    mutant: Mutant
    effort: Effort
    scratch: Path
    out: Path


def run_mutants(
    mutants: list[Mutant],
    effort: Effort,
    builder: MutantBuilder,
    paths: Paths,
    jobs: int,
    out: Path,
    progress: Progress,
) -> Score:
    """Hunts for each of them; jobs: how many at a time, while the next one is built. Raises ConfigError
    naming the patches that do not apply."""
    builder.check_patches(mutants)
    out = out.resolve()
    kept = KeptRows(out, MutantRow, maker_of(paths.workloads))
    keys = {mutant.name: _key(mutant, effort, builder) for mutant in mutants}
    rows: dict[str, MutantRow] = {}
    for name, key in keys.items():
        row = kept.load(name, key)
        if row is not None and row.catch is not None:
            rows[name] = row
    left = [mutant for mutant in mutants if mutant.name not in rows]
    progress.phase("mutants", len(left))
    with scratch_folder() as scratch:
        tasks = ((mutant, _Task(mutant, effort, scratch, out)) for mutant in left)
        for task, row in each_done(tasks, _hunt, _failed, builder, paths, jobs):
            rows[row.name] = row
            if not row.error:
                kept.keep(row.name, keys[task.mutant.name], row)
            progress.advance(row.catch is None)
    return Score(tuple(rows[mutant.name] for mutant in mutants))


def build_all(mutants: list[Mutant], builder: MutantBuilder, progress: Progress) -> None:
    """Applies and compiles every patch. Raises ConfigError naming all that do not apply, or do not
    compile."""
    builder.check_patches(mutants)
    progress.phase("patches compiled", len(mutants))
    wrong = []
    for mutant in mutants:
        try:
            builder.build(mutant)
        except BuildFailed as error:
            wrong.append(str(error))
        progress.advance(bool(wrong))
    if wrong:
        raise ConfigError("\n".join([f"{len(wrong)} mutants do not compile:", *wrong]))


def _hunt(task: _Task, paths: Paths) -> MutantRow:
    """On a worker."""
    effort = task.effort
    return hunt(HuntJob(task.mutant, paths, task.scratch, task.out, effort.states, effort.strikes))


def _failed(task: _Task, why: str) -> MutantRow:
    return MutantRow(task.mutant.name, error=why)


def _key(mutant: Mutant, effort: Effort, builder: MutantBuilder) -> str:
    parts = (builder.key(mutant), mutant.model_dump_json(), effort.states, effort.strikes)
    return xxhash.xxh3_64_hexdigest(repr(parts).encode())


def mutants_table(score: Score) -> Table:
    """For a terminal."""
    caught, total = score.caught, len(score.rows)
    base = sum(row.baseline > 0 for row in score.rows)
    table = Table(
        title=f"{caught} of {total} mutants caught ({100 * caught / total:.1f} %), {score.by_state} by state "
        f"and {score.by_rule} by rule; by random kills: {base}"
    )
    for column in ("mutant", "by state", "by rule", "tried", "seconds", "kill -9", "also"):
        table.add_column(column, overflow="fold")
    for row in score.rows:
        table.add_row(
            row.name,
            _caught(row.by_state) or f"[red]no[/] {row.error}",
            _caught(row.by_rule) or "no",
            f"{row.trials} trials, {row.states} states",
            f"{row.seconds:.1f}",
            _base_line(row),
            ", ".join(f"I{number}" for number in row.also),
        )
    return table


def _caught(catch: Catch | None) -> str:
    return f"I{catch.invariant}, {catch.model}, {catch.tries}" if catch else ""


def _base_line(row: MutantRow) -> str:
    return f"after {row.baseline}" if row.baseline else "no"
