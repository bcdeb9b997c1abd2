"""`tornpage explain`: the cause of a finding, by experiment."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from tornpage.campaigns.fault_free import row_named, with_kept_image
from tornpage.causes.cause import Kind
from tornpage.causes.explain import Explained, explain_trial
from tornpage.causes.pairs import RunCauses, explain_run
from tornpage.cli.options import (
    DebugFilesOption,
    JsonOption,
    OutOption,
    StoreOption,
)
from tornpage.cli.terminal import make_console, plain_printer, print_object
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "explain"]

_WORDS = {
    Kind.ORDER: "must be durable first",
    Kind.ACKNOWLEDGED: "must be durable before the acknowledgement",
    Kind.TORN: "must be there as a whole or not at all",
    Kind.NOTHING_LOST: "nothing lost: must be one step, or recovery is wrong",
}
FRAMES_SHOWN = 4
"""Innermost ones of an operation."""
EPILOG = "Examples: [bold]tornpage explain 3.117[/] · tornpage explain --run 3"


def explain(
    trial: Annotated[
        str | None, typer.Argument(metavar="ID", help="RUN.NUMBER of a trial; or --run.")
    ] = None,
    run: Annotated[
        int | None, typer.Option(min=1, help="The causes of a whole run, by line of code.")
    ] = None,
    of_each: Annotated[
        int, typer.Option(min=1, max=100, help="With --run: so many trials of each bug.")
    ] = 3,
    debug_files: DebugFilesOption = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Says why a crash breaks a state, by experiment: the smallest set of operations whose loss is enough,
    what relies on them, and which single operation more would have saved it."""
    if (trial is None) == (run is None):
        raise ConfigError("ID of a trial, or --run: one of them")
    place, paths, folders = place_in(out, store_place), find_paths(), debug_files or ()
    found: Explained | RunCauses
    with make_console(stderr=True, quiet=json_output).status(
        f"trial {trial}" if trial else f"run {run}"
    ) as status:
        if trial is not None:
            row = with_kept_image(row_named(trial, place), out)
            found = explain_trial(row, paths, folders, status.update)
        else:
            assert run is not None, "one of both is there"
            with Store(place, write=False) as store:
                found = explain_run(store, run, paths, out, folders, of_each, status.update)
    if json_output:
        return print_object(to_plain(found))
    show = plain_printer(make_console())
    for line in _lines(found) if isinstance(found, Explained) else _run_lines(found):
        show(line)
    return 0


def _run_lines(found: RunCauses) -> list[str]:
    lines = []
    for pair in found.pairs:
        bugs = ", ".join(map(str, pair.bugs))
        lines.append(f"{len(pair.trials)} x {_WORDS[pair.kind]} (bug {bugs}; {pair.trials[0]})")
        lines += [f"    {pair.lost}"] if pair.lost else []
        lines += [f"    before {pair.relied}"] if pair.relied else []
    return lines + [f"{name}: not explained: {why}" for name, why in found.unexplained.items()]


def _lines(found: Explained) -> list[str]:
    cause = found.cause
    lines = textwrap.wrap(found.sentence, 100)
    groups = {"lost": cause.lost, "must be there": cause.beside}
    groups["from then on"] = (cause.relied,) if cause.relied else ()
    groups["until"] = (cause.until,) if cause.until else ()
    for name, operations in groups.items():
        for one in operations:
            line = f", statement {one.line}" if one.line else ""
            site = f", {one.site}" if one.site else ""
            lines.append(f"  {name + ':':15}{one.what}{site}{line}")
            lines += [f"{'':17}{frame}" for frame in one.frames[:FRAMES_SHOWN]]
    lines.append(
        f"  {found.probes} crashes were made and recovered for this; recording {found.recording}"
    )
    return lines
