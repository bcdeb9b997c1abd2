"""`tornpage list`: what there is to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from tornpage.campaigns.catalogue import KINDS, Item, list_items
from tornpage.cli.options import JsonOption
from tornpage.cli.terminal import PIPE_COLUMNS, make_console, print_object, told
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "listing", "print_items"]

EPILOG = "Examples: [bold]tornpage list campaigns[/] · tornpage list options --json"
INDENT = 4


def listing(
    kind: Annotated[str, typer.Argument(metavar="|".join(KINDS), help="What to list.")],
    json_output: JsonOption = False,
) -> int:
    """Lists what can be chosen, each with one line of explanation."""
    items = list_items(kind, find_paths())
    if json_output:
        return print_object({"kind": kind, "items": to_plain(items)})
    print_items(make_console(), items)
    return 0


def print_items(console: Console, items: Sequence[Item]) -> None:
    """A table, or where it is too wide for the terminal a paragraph each, so that no word is cut."""
    facts = list(items[0].facts) if items else []
    table = Table("name", *facts, "meaning")
    for item in items:
        cells = (item.name, *(item.facts[name] for name in facts), item.what)
        table.add_row(*(told(cell) for cell in cells))
    if (
        console.measure(table, options=console.options.update(max_width=PIPE_COLUMNS)).maximum
        <= console.width
    ):
        console.print(table)
        return
    for item in items:
        console.print(f"[bold]{told(item.name)}[/]", highlight=False)
        said = [f"{name}: {item.facts[name]}" for name in facts if item.facts[name]]
        for text in filter(None, ("; ".join(said), item.what)):
            console.print(Padding(told(text), (0, 0, 0, INDENT)), highlight=False)
