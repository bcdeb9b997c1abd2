"""`tornpage store`: commands on a whole database."""

from __future__ import annotations

from typing import Annotated

import typer

from tornpage.cli.options import JsonOption
from tornpage.cli.terminal import print_object, say
from tornpage.store.copy import Copied, copy_runs
from tornpage.store.place import place_of
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError

__all__ = ["EPILOG", "copy"]

EPILOG = (
    "Examples: [bold]tornpage store copy out postgresql://lab@db/tornpage[/] · "
    "tornpage store copy postgresql://lab@db/tornpage night.db"
)
PLACE = "An output folder, a file, or postgresql://USER@HOST/DATABASE."


def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help=PLACE)],
    target: Annotated[str, typer.Argument(metavar="TO", help=f"{PLACE} Created if missing.")],
    json_output: JsonOption = False,
) -> int:
    """Copies all ended runs, with their bugs and nights, into another database. Its runs stay; the same copy
    again adds only what is new."""
    here, there = place_of(source), place_of(target)
    if here.name == there.name:
        raise ConfigError(f"{here.name}: a store is not copied into itself")
    with Store(here, write=False) as old, Store(there) as new:
        copied = copy_runs(old, new)
    if json_output:
        told = {"runs": copied.runs, "there": copied.there, "running": copied.running}
        return print_object(told)
    _print(copied, there.name)
    return 0


def _print(copied: Copied, name: str) -> None:
    say(f"{len(copied.runs)} runs copied to {name}, {len(copied.there)} were there")
    for old, new in copied.runs.items():
        if old != new:
            print(f"run {old} is run {new} there")
    for run in copied.running:
        print(f"run {run} has not ended: not copied")
