"""`tornpage prune`: old runs deleted."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tornpage.campaigns.prune import prune_runs
from tornpage.cli.options import JsonOption, OutOption, StoreOption
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "prune"]

EPILOG = "Example: [bold]tornpage prune --keep 10[/]"


def prune(
    keep: Annotated[int, typer.Option(min=0, help="So many of the newest runs stay.")],
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Deletes old runs from the store, with their images and reports."""
    with Store(place_in(out, store_place), create=False) as store:
        gone = prune_runs(store, find_paths(), out, keep)
        left = len(store.runs())
    if json_output:
        print(json.dumps({"deleted": gone, "left": left}))
    else:
        print(f"{len(gone)} runs deleted, {left} left")
    return 0
