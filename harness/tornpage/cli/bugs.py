"""`tornpage bugs`: all bugs of the database, or one, and its mark."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from tornpage.campaigns.fault_free import replay_line
from tornpage.campaigns.marking import Mark, mark_bug
from tornpage.cli.console import print_bug, print_bugs
from tornpage.cli.options import JsonOption, OutOption, StoreOption
from tornpage.cli.terminal import make_console, print_object
from tornpage.store.bugs import Bug, BugStatus
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import DEFAULT_OUT

__all__ = ["EPILOG", "bugs"]

EPILOG = (
    "Examples: [bold]tornpage bugs[/] · tornpage bugs --status new --status back · tornpage bugs 3 · "
    'tornpage bugs 3 --mark fixed --reason "flush before the marker"'
)


def bugs(
    bug: Annotated[
        int | None, typer.Argument(metavar="[ID]", min=1, help="One bug, with its history.")
    ] = None,
    status: Annotated[
        list[BugStatus] | None, typer.Option(help="Only bugs of this status; repeatable.")
    ] = None,
    mark: Annotated[Mark | None, typer.Option(help="Gives the bug this status.")] = None,
    reason: Annotated[str, typer.Option(help="Why; needs --mark.")] = "",
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Lists all bugs, or shows one: its history, its sightings, and the command that replays it."""
    if mark is not None and bug is None:
        raise ConfigError("--mark needs the number of a bug, as: tornpage bugs 3 --mark fixed")
    if reason and mark is None:
        raise ConfigError("--reason needs --mark")
    if status and bug is not None:
        raise ConfigError("--status chooses among all bugs; one that is named has only one")
    with Store(place_in(out, store_place), create=False, write=mark is not None) as store:
        if mark is not None and bug is not None:
            mark_bug(store, bug, mark, reason)
        found = store.bugs() if bug is None else [store.bug(bug)]
        found = [one for one in found if not status or one.status in status]
        lines = {one.id: replay_line(store, one) for one in found}
        history = store.sightings_of(bug) if bug else []
        replays = store.replays(bug=bug) if bug else []
    if json_output:
        return print_object({"bugs": [_to_json(one, lines[one.id]) for one in found]})
    if bug is None:
        print_bugs(make_console(), found)
    else:
        print_bug(make_console(), found[0], lines[bug], history, replays)
    return 0


def _to_json(bug: Bug, line: str) -> dict[str, Any]:
    return {**asdict(bug), "replay": line}
