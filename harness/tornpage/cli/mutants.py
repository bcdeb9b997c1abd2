"""`tornpage mutants`: which planted bugs do the campaigns catch?

May import: options, console, and everything below cli.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tornpage.campaigns.runner import QuietProgress
from tornpage.cli.console import RichProgress
from tornpage.cli.options import DEFAULT_JOBS, JobsOption, JsonOption, OutOption
from tornpage.lab.mutant_table import choose_mutants, load_mutants
from tornpage.lab.mutants import TABLE, Effort, bugs_page, mutants_table, run_mutants
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import BUILD_VARIABLE, find_paths

__all__ = ["EPILOG", "mutants"]

EPILOG = (
    "Examples: [bold]tornpage mutants[/] · tornpage mutants --only dblwr_off --only ckpt_partial"
)


def mutants(
    only: Annotated[list[str] | None, typer.Option(help="Only this mutant; repeatable.")] = None,
    states: Annotated[
        int, typer.Option(min=1, help="Power-loss states per mutant.")
    ] = Effort().states,
    kills: Annotated[
        int, typer.Option(min=0, help="Random kills per mutant of the base line.")
    ] = Effort().strikes,
    table: Annotated[Path | None, typer.Option(help="Write docs/BUGS.md here.")] = None,
    jobs: JobsOption = DEFAULT_JOBS,
    json_output: JsonOption = False,
    out: OutOption = Path("out/mutants"),
) -> int:
    """Runs the campaigns on every planted bug (mutant build) and says which they catch. Finished mutants
    are kept in --out, so that the same command goes on after an interruption."""
    rows = load_mutants(TABLE)
    chosen = choose_mutants(rows, only or [])
    if table is not None and len(chosen) < len(rows):
        raise ConfigError("--table needs all mutants, no --only")
    progress = QuietProgress() if json_output else RichProgress(Console(stderr=True))
    with progress:
        paths = find_paths(default_build="mutants")
        os.environ[BUILD_VARIABLE] = str(paths.build)  # that of the workers' children too
        score = run_mutants(chosen, Effort(states, kills), paths, jobs, out, progress)
    if table is not None:
        table.write_text(bugs_page(rows, score), encoding="utf-8")
    if json_output:
        print(json.dumps(score.to_json()))
    else:
        console = Console()
        console.print(mutants_table(score))
        for row in score.rows:
            if row.caught:
                console.print(f"{row.name}: {row.replay}", soft_wrap=True, highlight=False)
    return score.exit_code()
