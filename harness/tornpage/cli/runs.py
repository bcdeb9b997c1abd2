"""`tornpage runs`: all runs of the database."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.cells import cell_len
from rich.table import Table

from tornpage.cli.options import JsonOption, OutOption, StoreOption
from tornpage.cli.terminal import make_console, print_object, told
from tornpage.store.memory import RunFacts
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.paths import DEFAULT_OUT

__all__ = ["EPILOG", "runs"]

EPILOG = (
    "Examples: [bold]tornpage runs[/] · tornpage runs --campaign smoke --last 5 · "
    "tornpage runs --json"
)


NUMBERS = frozenset({"crashes", "broken", "bugs", "new", "night"})
LESS_IMPORTANT = ("night", "seed", "broken", "target", "started")
"""In which order columns go."""


def runs(
    campaign: Annotated[str | None, typer.Option(help="Only runs of this campaign.")] = None,
    last: Annotated[int | None, typer.Option(min=1, help="Only this many of the newest.")] = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Lists all runs: verdict, crashes, bugs, and how many of them were new."""
    with Store(place_in(out, store_place), write=False) as store:
        found = [one for one in store.overview() if campaign in (None, one.campaign)]
    found = found[-last:] if last else found
    if json_output:
        return print_object({"runs": [asdict(one) for one in found]})
    console = make_console()
    console.print(_table(found, console.width))
    return 0


def _table(found: list[RunFacts], width: int) -> Table:
    """What fits into so many columns, whole; the least important goes first."""
    cells = {
        "run": [str(one.id) for one in found],
        "started": [(one.started or "")[:16] for one in found],
        "campaign": [told(one.campaign) for one in found],
        "target": [told(one.target) for one in found],
        "seed": [str(one.seed) for one in found],
        "verdict": [_verdict(one) for one in found],
        "crashes": [str(one.crashes) for one in found],
        "broken": [str(one.broken) for one in found],
        "bugs": [str(one.bugs) for one in found],
        "new": [str(one.news) for one in found],
        "night": [str(one.night or "") for one in found],
    }
    for name in LESS_IMPORTANT:
        if sum(2 + max(map(cell_len, [title, *texts])) for title, texts in cells.items()) > width:
            del cells[name]
    table = Table(box=None)
    for name in cells:
        table.add_column(name, justify="right" if name in NUMBERS else "left", overflow="fold")
    for row in zip(*cells.values(), strict=True):
        table.add_row(*row)
    return table


def _verdict(one: RunFacts) -> str:
    return one.verdict if one.state == "finished" else f"{one.verdict} ({one.state})".strip()
