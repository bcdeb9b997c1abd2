"""`tornpage diff`: two runs side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from tornpage.campaigns.runner import load_summary
from tornpage.cli.console import print_verdict
from tornpage.cli.options import JsonOption, OutOption, StoreOption
from tornpage.cli.terminal import print_object, say
from tornpage.reports.difference import RunDifference, difference_of, verdict_of_difference
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.paths import DEFAULT_OUT

__all__ = ["EPILOG", "diff"]

EPILOG = "Examples: [bold]tornpage diff 3 7[/] · tornpage diff 3 7 --json"

NAMES_SHOWN = 20


def diff(
    old: Annotated[int, typer.Argument(metavar="OLD", min=1, help="A run.")],
    new: Annotated[int, typer.Argument(metavar="NEW", min=1, help="A later one.")],
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Compares two runs: the bugs that only NEW has, that both have, and that are gone, and what only one of
    them exercised. Exit code 1 if NEW has a bug that OLD lacks."""
    with Store(place_in(out, store_place), write=False) as store:
        before, after = (load_summary(store, store.run(run)) for run in (old, new))
    found = difference_of(before, after)
    verdict = verdict_of_difference(found)
    if json_output:
        return print_object({**found.to_json(), **verdict.to_json()}, verdict.exit_code)
    _print(found)
    print_verdict(verdict)
    return verdict.exit_code


def _print(found: RunDifference) -> None:
    for word, bugs in (
        ("new", found.new_bugs),
        ("still there", found.still_there),
        ("gone", found.gone),
    ):
        for bug in bugs:
            say(f"{word}: bug {bug.id} ({bug.status}), {bug.title}")
    for word, names in (("only now", found.gained), ("no more", found.lost)):
        for name in names[:NAMES_SHOWN]:
            say(f"exercised {word}: {name}")
        if len(names) > NAMES_SHOWN:
            print(f"    and {len(names) - NAMES_SHOWN} more")
    if not (found.new_bugs or found.gone or found.gained or found.lost):
        print("the same bugs, the same coverage")
