"""`tornpage bench doublewrite`: what doublewrite costs on a user's disk, and what its skip saves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tornpage.cli.options import JsonOption
from tornpage.cli.terminal import make_console, print_object
from tornpage.lab.doublewrite import LOAD_ROWS, Priced, price_doublewrite
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "doublewrite"]

EPILOG = (
    "Examples: [bold]tornpage bench doublewrite --dir /mnt/disk[/] · "
    "tornpage bench doublewrite --dir . --rows 1000000 --iologs iologs --json"
)


def doublewrite(
    folder: Annotated[
        Path,
        typer.Option(
            "--dir", exists=True, file_okay=False, help="A folder on the disk to measure."
        ),
    ],
    rows: Annotated[
        int, typer.Option(min=100, max=10_000_000, help="Rows of the load; five fill 4 kB.")
    ] = LOAD_ROWS,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Replays of each recording.")] = 5,
    iologs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", file_okay=False, help="Keep what fio replays here."),
    ] = None,
    json_output: JsonOption = False,
) -> int:
    """Measures what doublewrite of new pages costs on your disk, and what its skip (MDEV-19738) saves: a load
    is recorded both ways, and fio replays the recordings there."""
    notes = make_console(stderr=True, quiet=json_output)
    build = find_paths().build
    with notes.status("") as status:
        found = price_doublewrite(build, rows, rounds, folder, iologs, status.update)
    if json_output:
        print_object(found.to_json())
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
