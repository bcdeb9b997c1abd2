"""`tornpage bench`: measurements, beside figures that others have published and of Tornpage itself."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tornpage.cli.options import (
    DEFAULT_JOBS,
    USAGE_ERROR,
    JobsOption,
    JsonOption,
    OutOption,
    seconds_of,
)
from tornpage.cli.progress import goes_on, make_progress
from tornpage.cli.terminal import make_console, print_object
from tornpage.lab.finds import measure_finds, sample
from tornpage.lab.measured import Effort
from tornpage.lab.mutant_build import MutantBuilder
from tornpage.lab.mutant_table import Mutant, choose_mutants, load_patches
from tornpage.lab.mutants import TABLE
from tornpage.lab.seeds import ROWS, TABLES, measure
from tornpage.lab.shipped import Order
from tornpage.lab.speed import SPEEDS, measure_speed
from tornpage.lab.statements import find_server, machine
from tornpage.reports.compared import FigureTable, render_figures
from tornpage.reports.page import replace_file
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import find_paths

__all__ = ["FINDS_EPILOG", "SEEDS_EPILOG", "SPEED_EPILOG", "finds", "seeds", "speed"]

SEEDS_EPILOG = (
    "Examples: [bold]tornpage bench seeds[/] · tornpage bench seeds --only 3 · "
    "tornpage bench seeds --rows 10000 --json · tornpage bench seeds --report figures.html"
)

FINDS_EPILOG = (
    "Examples: [bold]tornpage bench finds[/] · tornpage bench finds --all --jobs 2 · "
    "tornpage bench finds --order hunt --limit 60s · tornpage bench finds --only dblwr_off --seeds 5 --json"
)

SPEED_EPILOG = (
    "Examples: [bold]tornpage bench speed[/] · tornpage bench speed --only recorder --only crashes · "
    "tornpage bench speed --rounds 1 --share 5 --json · "
    "TORNPAGE_TMP=/mnt/tmpfs tornpage bench speed --only targets"
)


def seeds(
    rows: Annotated[
        int,
        typer.Option(min=1000, max=10_000_000, help="Rows of the table; MariaDB's had 100,000."),
    ] = ROWS,
    only: Annotated[list[int] | None, typer.Option(help="Only this table; repeatable.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir", exists=True, file_okay=False, help="Folder for the data; default: TMPDIR."
        ),
    ] = None,
    with_server: Annotated[
        bool, typer.Option("--server/--no-server", help="Measure MariaDB too, if it is installed.")
    ] = True,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts here.")
    ] = None,
    json_output: JsonOption = False,
) -> int:
    """Repeats published tables on the bundled engine, and on MariaDB if it is installed."""
    unknown = sorted(set(only or ()) - set(TABLES))
    if unknown:
        known = ", ".join(str(number) for number in TABLES)
        raise ConfigError(f"--only {unknown[0]}: there are {known}")
    notes = make_console(stderr=True, quiet=json_output)
    console = make_console(quiet=json_output)
    tables = []
    paths = find_paths()
    engine = paths.build / "engine" / "engine"
    place = folder or Path(tempfile.gettempdir())
    server = find_server() if with_server else None
    if with_server and server is None:
        notes.print(
            "MariaDB is not installed, nothing to compare with: "
            "apt install mariadb-server-core mariadb-client-core"
        )
    for table in measure(engine, rows, only or (), place, server):
        tables.append(table)
        console.print(_table(table))
    if report is not None:
        replace_file(report, render_figures(tables, rows, machine(), paths.templates))
        notes.print(f"report: {report}")
    if json_output:
        print_object({"rows": rows, "tables": [table.to_json() for table in tables]})
    return 0


def speed(
    only: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(SPEEDS)}; repeatable; default: all.")
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, help="Number of rounds, of which the median counts.")
    ] = 3,
    share: Annotated[
        int,
        typer.Option(
            min=1,
            max=100,
            help="Percentage of a round's trials and states; fewer give less precise figures.",
        ),
    ] = 100,
    json_output: JsonOption = False,
) -> int:
    """Measures Tornpage itself, side by side: writes under the preload, index loads, crashes per second by
    power loss and by kills beside kill -9 in a loop, other targets that are ready, reports."""
    unknown = sorted(set(only or ()) - set(SPEEDS))
    if unknown:
        raise ConfigError(f"--only {unknown[0]}: there are {', '.join(SPEEDS)}")
    console = make_console(quiet=json_output)
    console.print(machine(), highlight=False)
    tables = []
    for table in measure_speed(find_paths(), Effort(rounds, share / 100), only or ()):
        tables.append(table)
        console.print(table.table())
        for note in table.notes:
            console.print(note, highlight=False, soft_wrap=True)
    if json_output:
        told = {"machine": machine(), "rounds": rounds, "share": share}
        print_object({**told, "tables": [table.to_json() for table in tables]})
    return 0


def finds(
    only: Annotated[list[str] | None, typer.Option(help="Only this mutant; repeatable.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All mutants, in place of a few.")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each, 1 to N.")] = 3,
    limit: Annotated[
        str,
        typer.Option(metavar="TIME", help="Processor time after which a search is given up."),
    ] = "5m",
    order: Annotated[
        Order, typer.Option(help="What is tried first: as `run` has it, or as `hunt`.")
    ] = Order.RUN,
    jobs: JobsOption = DEFAULT_JOBS,
    json_output: JsonOption = False,
    out: OutOption = Path("out/finds"),
) -> int:
    """Measures the processor time until the default campaigns, as shipped, raise the first alarm about a
    planted bug, and until they find a broken state: medians over the seeds per bug, and their sums. Finished
    searches are kept in --out, so that the same command continues after an interruption.

    Exit codes: 0 measured, 2 usage or harness failure.
    """
    if every and only:
        raise ConfigError("--all or --only: one of them")
    rows = load_patches(Mutant, TABLE)
    chosen = choose_mutants(rows, only) if only else rows if every else sample(rows)
    with make_progress(False, "not found") as progress, goes_on():
        found = measure_finds(
            chosen,
            seeds,
            seconds_of("--limit", limit),
            MutantBuilder(),
            find_paths(),
            jobs,
            out,
            progress,
            order,
        )
    make_console(quiet=json_output).print(found.table())
    if json_output:
        print_object(found.to_json())
    return USAGE_ERROR if any(row.error for row in found.rows) else 0


def _table(found: FigureTable) -> Table:
    columns = found.columns()
    table = Table(title=f"{found.number}. {found.title} ({found.unit})", title_justify="left")
    table.add_column("what")
    for heading in columns:
        table.add_column(heading, justify="right")
    for what, *values in zip((one.what for one in found.figures), *columns.values(), strict=True):
        table.add_row(what, *("" if value is None else f"{value:,.2f}" for value in values))
    return table
