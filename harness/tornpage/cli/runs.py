"""`tornpage runs`: all runs of the store."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
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


def runs(
    campaign: Annotated[str | None, typer.Option(help="Only runs of this campaign.")] = None,
    last: Annotated[int | None, typer.Option(min=1, help="Only so many of the newest.")] = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Lists the runs of the store: verdict, crashes, bugs, and how many of them were new."""
    with Store(place_in(out, store_place), write=False) as store:
        found = [one for one in store.overview() if campaign in (None, one.campaign)]
    found = found[-last:] if last else found
    if json_output:
        return print_object({"runs": [asdict(one) for one in found]})
    make_console().print(_table(found))
    return 0


def _table(found: list[RunFacts]) -> Table:
    table = Table(box=None)
    for name in ("run", "started", "campaign", "target", "seed", "verdict"):
        table.add_column(name, no_wrap=True)
    for name in ("crashes", "broken", "bugs", "new", "night"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found:
        table.add_row(
            *(
                str(one.id),
                (one.started or "")[:16],
                told(one.campaign),
                told(one.target),
                str(one.seed),
            ),
            one.verdict if one.state == "finished" else f"{one.verdict} ({one.state})".strip(),
            *(str(one.crashes), str(one.broken), str(one.bugs), str(one.news)),
            str(one.night or ""),
        )
    return table
