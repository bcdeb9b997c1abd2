"""`tornpage mutants`: which planted bugs do the campaigns catch, and which slips in the harness do its tests?

Exit codes: 0 all caught (as shipped: with every seed; --harness: all killed; --check: all compile), 1 not
all, 2 usage or harness failure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tornpage.cli.options import DEFAULT_JOBS, JobsOption, JsonOption, OutOption
from tornpage.cli.progress import goes_on, make_progress
from tornpage.cli.terminal import make_console, print_object
from tornpage.lab.explained import (
    ExplainedScore,
    draw_mutants,
    explained_page,
    explained_table,
    run_explained,
)
from tornpage.lab.harness_mutants import (
    HARNESS_TABLE,
    HarnessSources,
    check_harness,
    harness_page,
    harness_table,
    run_harness,
    write_bugs,
)
from tornpage.lab.harness_table import HarnessMutant
from tornpage.lab.mutant_build import MutantBuilder
from tornpage.lab.mutant_table import Mutant, choose_mutants, load_patches
from tornpage.lab.mutants import (
    TABLE,
    Effort,
    Score,
    build_all,
    mutants_table,
    run_mutants,
)
from tornpage.lab.shipped import ShippedScore, bugs_page, run_shipped, shipped_table
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "mutants"]

SEEDS = 5
SEED, COUNT = 1, 20
"""Of --explain."""

EPILOG = (
    "Examples: [bold]tornpage mutants[/] · tornpage mutants --only dblwr_off --only ckpt_partial · "
    "tornpage mutants --check · tornpage mutants --as-shipped --seeds 3 · tornpage mutants --harness · "
    "tornpage mutants --explain --count 20"
)


def mutants(
    only: Annotated[list[str] | None, typer.Option(help="Only this mutant; repeatable.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only apply and compile the patches.")
    ] = False,
    as_shipped: Annotated[
        bool, typer.Option("--as-shipped", help="The default campaigns as they are, seeds 1 to N.")
    ] = False,
    harness: Annotated[
        bool,
        typer.Option(
            "--harness", help="Slips in the harness itself, and the tests that kill them."
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Count how often `explain` names the changed function."),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(min=1, help=f"--explain: of the draw and the campaigns; default {SEED}."),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(min=1, help=f"--explain: number of mutants drawn; default {COUNT}."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help=f"--as-shipped: number of seeds; default {SEEDS}.")
    ] = None,
    states: Annotated[
        int | None,
        typer.Option(min=1, help=f"Power-loss states per mutant; default {Effort().states}."),
    ] = None,
    kills: Annotated[
        int | None,
        typer.Option(
            min=0, help=f"Random kills per mutant of the base line; default {Effort().strikes}."
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            help="Write docs/BUGS.md here; --harness: its second table; --explain: EXPLAINED.md."
        ),
    ] = None,
    jobs: JobsOption = DEFAULT_JOBS,
    json_output: JsonOption = False,
    out: OutOption = Path("out/mutants"),
) -> int:
    """Builds every planted bug, runs the campaigns on it and says which they catch. Finished results are kept
    in --out, so that the same command continues after an interruption.

    Exit codes: 0 all caught (as shipped: with every seed; --harness: all killed; --explain: all named), 1 not
    all, 2 usage or harness failure.
    """
    if (seed is not None or count is not None) and not explain:
        raise ConfigError("--seed and --count need --explain")
    if explain:
        if as_shipped or harness or check or states is not None or kills is not None:
            raise ConfigError(
                "--explain runs the default campaigns: no --as-shipped, --harness, --check, --states, --kills"
            )
        return _explain(only or [], seed or SEED, count, table, jobs, json_output, out)
    if check and (as_shipped or table is not None):
        raise ConfigError("--check runs nothing: no --as-shipped, no --table")
    if seeds is not None and not as_shipped:
        raise ConfigError("--seeds needs --as-shipped")
    if (states is not None or kills is not None) and (as_shipped or check):
        raise ConfigError("--states and --kills limit a plain search: no --as-shipped, no --check")
    if harness:
        if as_shipped or states is not None or kills is not None:
            raise ConfigError("--harness runs tests: no --as-shipped, no --states, no --kills")
        return _try_harness(only or [], check, table, jobs, json_output, out)
    rows = load_patches(Mutant, TABLE)
    chosen = choose_mutants(rows, only or [])
    if table is not None and (len(chosen) < len(rows) or not as_shipped):
        raise ConfigError("--table needs --as-shipped for all mutants: no --only")
    builder, paths = MutantBuilder(), find_paths()
    # Hours of work: how much is left is told with --json too.
    quiet = json_output and not as_shipped
    with make_progress(quiet, "not caught") as progress, goes_on():
        if check:
            build_all(chosen, builder, progress)
            if json_output:
                print_object({"mutants": len(chosen), "compiled": len(chosen)})
            return 0
        if as_shipped:
            shipped = run_shipped(chosen, seeds or SEEDS, builder, paths, jobs, out, progress)
        else:
            usual = Effort()
            effort = Effort(states or usual.states, usual.strikes if kills is None else kills)
            score = run_mutants(chosen, effort, builder, paths, jobs, out, progress)
    if not as_shipped:
        return _show(score, json_output)
    if table is not None:
        write_bugs(table, first=bugs_page(rows, shipped))
    return _show_shipped(shipped, json_output)


def _explain(
    only: list[str],
    seed: int,
    count: int | None,
    table: Path | None,
    jobs: int,
    json_output: bool,
    out: Path,
) -> int:
    if only and (count is not None or table is not None):
        raise ConfigError("--only names mutants, and --count and --table are of a draw")
    rows = load_patches(Mutant, TABLE)
    chosen = choose_mutants(rows, only) if only else draw_mutants(rows, seed, count or COUNT)
    with make_progress(False, "not named") as progress, goes_on():
        score: ExplainedScore = run_explained(
            chosen, seed, MutantBuilder(), find_paths(), jobs, out, progress
        )
    if table is not None:
        table.write_text(explained_page(score, seed), encoding="utf-8")
    if json_output:
        print_object(score.to_json(), score.exit_code())
    else:
        make_console().print(explained_table(score))
    return score.exit_code()


def _try_harness(
    only: list[str], check: bool, table: Path | None, jobs: int, json_output: bool, out: Path
) -> int:
    rows = load_patches(HarnessMutant, HARNESS_TABLE)
    chosen = choose_mutants(rows, only)
    if table is not None and len(chosen) < len(rows):
        raise ConfigError("--table needs all mutants: no --only")
    sources = HarnessSources()
    with make_progress(False, "not killed") as progress, goes_on():
        if check:
            check_harness(chosen, sources, jobs, progress)
            if json_output:
                print_object({"mutants": len(chosen), "compiled": len(chosen)})
            return 0
        score = run_harness(chosen, sources, jobs, out, progress)
    if table is not None:
        write_bugs(table, second=harness_page(rows, score))
    if json_output:
        print_object(score.to_json(), score.exit_code())
    else:
        make_console().print(harness_table(score))
    return score.exit_code()


def _show(score: Score, json_output: bool) -> int:
    if json_output:
        print_object(score.to_json(), score.exit_code())
        return score.exit_code()
    console = make_console()
    console.print(mutants_table(score))
    for row in score.rows:
        if row.catch is not None:
            console.print(f"{row.name}: {row.catch.replay}", soft_wrap=True, highlight=False)
    return score.exit_code()


def _show_shipped(score: ShippedScore, json_output: bool) -> int:
    if json_output:
        print_object(score.to_json(), score.exit_code())
    else:
        make_console().print(shipped_table(score))
    return score.exit_code()
