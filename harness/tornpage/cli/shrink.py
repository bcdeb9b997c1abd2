"""`tornpage shrink`: a smaller script and a smaller crash for a finding."""

from __future__ import annotations

from typing import Annotated

import typer

from tornpage.campaigns.fault_free import row_named
from tornpage.cli.console import print_shrunk
from tornpage.cli.options import (
    JsonOption,
    OutOption,
    StacksOption,
    StoreOption,
    TrialArgument,
    seconds_of,
)
from tornpage.cli.terminal import make_console, print_object
from tornpage.shrinking.shrink import shrink_trial
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "shrink"]

EPILOG = "Example: [bold]tornpage shrink 3.117[/] · tornpage shrink 3.117 --budget 20s"


def shrink(
    trial: TrialArgument,
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="Time for the search, such as 60s, 5m, 2h.")
    ] = "60s",
    stacks: StacksOption = True,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Finds a smaller script and a smaller crash with the same finding, and stores them as a trial."""
    seconds = seconds_of("--budget", budget)
    row = row_named(trial, place_in(out, store_place))
    console = make_console(stderr=True, quiet=json_output)
    with (
        Store(place_in(out, store_place), create=False) as store,
        console.status(f"trial {trial}") as status,
    ):
        paths, tell = find_paths(), status.update
        result = shrink_trial(store, row, paths, out, seconds, tell, stacks=stacks)
    if json_output:
        return print_object(to_plain(result))
    print_shrunk(make_console(), result)
    return 0
