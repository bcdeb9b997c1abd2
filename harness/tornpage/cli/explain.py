"""`tornpage explain`: the cause of a finding, by experiment."""

from __future__ import annotations

import textwrap

from tornpage.campaigns.fault_free import row_named, with_kept_image
from tornpage.causes.explain import Explained, explain_trial
from tornpage.cli.options import (
    DebugFilesOption,
    JsonOption,
    OutOption,
    StoreOption,
    TrialArgument,
)
from tornpage.cli.terminal import make_console, plain_printer, print_object
from tornpage.store.place import place_in
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "explain"]

FRAMES_SHOWN = 4
"""Innermost ones of an operation."""
EPILOG = "Example: [bold]tornpage explain 3.117[/]"


def explain(
    trial: TrialArgument,
    debug_files: DebugFilesOption = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Says why a crash breaks a state, by experiment: the smallest set of operations whose loss is enough,
    what relies on them, and which single operation more would have saved it."""
    row = with_kept_image(row_named(trial, place_in(out, store_place)), out)
    with make_console(stderr=True, quiet=json_output).status(f"trial {trial}") as status:
        found = explain_trial(row, find_paths(), debug_files or (), status.update)
    if json_output:
        return print_object(to_plain(found))
    show = plain_printer(make_console())
    for line in _lines(found):
        show(line)
    return 0


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
