"""`tornpage bench`: measurements beside figures that others have published, and of a user's own disk.

May import: compared, console, doublewrite, errors, options, page, paths, seeds, statements.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tornpage.cli.console import make_console
from tornpage.cli.options import JsonOption
from tornpage.lab.doublewrite import LOAD_ROWS, Priced, price_doublewrite
from tornpage.lab.seeds import ROWS, TABLES, measure
from tornpage.lab.statements import find_server, machine
from tornpage.reports.compared import FigureTable, render_figures
from tornpage.reports.page import replace_file
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import find_paths

__all__ = ["DOUBLEWRITE_EPILOG", "EPILOG", "doublewrite", "seeds"]

EPILOG = (
    "Examples: [bold]tornpage bench seeds[/] · tornpage bench seeds --only 3 · "
    "tornpage bench seeds --rows 10000 --json · tornpage bench seeds --report figures.html"
)

DOUBLEWRITE_EPILOG = (
    "Examples: [bold]tornpage bench doublewrite --dir /mnt/disk[/] · "
    "tornpage bench doublewrite --dir . --rows 1000000 --iologs iologs --json"
)


def seeds(
    rows: Annotated[
        int,
        typer.Option(min=1000, max=10_000_000, help="Rows of the table; MariaDB's had 100,000."),
    ] = ROWS,
    only: Annotated[list[int] | None, typer.Option(help="Only this table; repeatable.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", exists=True, file_okay=False, help="Where the data goes; TMPDIR."),
    ] = None,
    with_server: Annotated[
        bool, typer.Option("--server/--no-server", help="Beside it MariaDB, if it is installed.")
    ] = True,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts here.")
    ] = None,
    json_output: JsonOption = False,
) -> int:
    """Measures the tables of the documents that Tornpage grew from on the bundled engine, and beside it on
    MariaDB, where it is installed."""
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
            "MariaDB is not installed, nothing to compare with: apt install mariadb-server-core"
        )
    for table in measure(engine, rows, only or (), place, server):
        tables.append(table)
        console.print(_table(table))
    if report is not None:
        replace_file(report, render_figures(tables, rows, machine(), paths.templates))
        notes.print(f"report: {report}")
    if json_output:
        print(json.dumps({"rows": rows, "tables": [table.to_json() for table in tables]}))
    return 0


def doublewrite(
    folder: Annotated[
        Path,
        typer.Option("--dir", exists=True, file_okay=False, help="On the disk in question."),
    ],
    rows: Annotated[
        int, typer.Option(min=100, max=10_000_000, help="Rows of the load; three fill 4 kB.")
    ] = LOAD_ROWS,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Replays of each recording.")] = 5,
    iologs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", file_okay=False, help="Keep what fio replays here."),
    ] = None,
    json_output: JsonOption = False,
) -> int:
    """Prices the doublewrite of new pages, and what its skip (MDEV-19738) saves, on a disk of yours: a load
    is recorded both ways, and fio replays the recordings there."""
    notes = make_console(stderr=True, quiet=json_output)
    build = find_paths().build
    with notes.status("") as status:
        found = price_doublewrite(build, rows, rounds, folder, iologs, status.update)
    if json_output:
        print(json.dumps(found.to_json()))
    else:
        make_console().print(_prices(found))
        print(
            f"the skip saves {found.bytes_saved:.0%} of the bytes, {found.time_saved:.0%} of the time here"
        )
    return 0


def _prices(found: Priced) -> Table:
    table = Table(title=f"A load of {found.rows:,} rows, flushed", title_justify="left")
    table.add_column("what")
    for heading in ("writes", "MB", "of them doublewrite", "syncs", "median s", "best", "worst"):
        table.add_column(heading, justify="right")
    for one in (found.every, found.skipping):
        table.add_row(
            one.what,
            *(str(one.writes), f"{one.bytes / 1e6:.1f}", f"{one.area / 1e6:.1f}", str(one.syncs)),
            *(f"{value:.3f}" for value in (one.median, min(one.seconds), max(one.seconds))),
        )
    return table


def _table(found: FigureTable) -> Table:
    columns = found.columns()
    table = Table(title=f"{found.number}. {found.title} ({found.unit})", title_justify="left")
    table.add_column("what")
    for heading in columns:
        table.add_column(heading, justify="right")
    for what, *values in zip((one.what for one in found.figures), *columns.values(), strict=True):
        table.add_row(what, *("" if value is None else f"{value:,.2f}" for value in values))
    return table
