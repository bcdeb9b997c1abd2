"""`tornpage list`: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tornpage.campaigns.catalogue import KINDS, list_items
from tornpage.cli.options import JsonOption
from tornpage.cli.terminal import make_console, print_object
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.paths import find_paths

__all__ = ["EPILOG", "listing"]

EPILOG = "Examples: [bold]tornpage list campaigns[/] · tornpage list options --json"


def listing(
    kind: Annotated[str, typer.Argument(metavar="|".join(KINDS), help="What to list.")],
    json_output: JsonOption = False,
) -> int:
    """Lists what can be chosen, each with one line of explanation."""
    items = list_items(kind, find_paths())
    if json_output:
        return print_object({"kind": kind, "items": to_plain(items)})
    facts = list(items[0].facts) if items else []
    table = Table("name", *facts, "meaning")
    for item in items:
        cells = (item.name, *(item.facts[name] for name in facts), item.what)
        table.add_row(*(escape(cell) for cell in cells))
    make_console().print(table)
    return 0
