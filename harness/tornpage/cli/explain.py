"""`tornpage explain`: the cause of a finding, by experiment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tornpage.campaigns.fault_free import row_named, with_kept_image
from tornpage.causes.contrast import contrast_trial, require_engine
from tornpage.causes.explain import explain_trial
from tornpage.causes.pairs import RunCauses, explain_run
from tornpage.cli.options import (
    DebugFilesOption,
    JsonOption,
    OutOption,
    StoreOption,
)
from tornpage.cli.terminal import make_console, plain_printer, print_object, say
from tornpage.lab.traced import traced_program, tree_of
from tornpage.reports.dossier import cause_lines
from tornpage.store.place import Place, place_in
from tornpage.store.store import Store
from tornpage.vocabulary.cause import Explained, Kind
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.errors import ConfigError, Interrupted, MachineError
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "explain"]

_WORDS = {
    Kind.ORDER: "must be durable first",
    Kind.ACKNOWLEDGED: "must be durable before the acknowledgement",
    Kind.TORN: "must be there as a whole or not at all",
    Kind.NOTHING_LOST: "nothing lost: must be one step, or recovery is wrong",
}
EPILOG = (
    "Examples: [bold]tornpage explain 3.117[/] · tornpage explain --run 3 · "
    "tornpage explain 3.117 --good ../before"
)


def explain(
    trial: Annotated[
        str | None, typer.Argument(metavar="ID", help="RUN.NUMBER of a trial; or --run.")
    ] = None,
    run: Annotated[
        int | None, typer.Option(min=1, help="The causes of a whole run, by line of code.")
    ] = None,
    of_each: Annotated[
        int, typer.Option(min=1, max=100, help="With --run: this many trials of each bug.")
    ] = 3,
    good: Annotated[
        Path | None,
        typer.Option(
            metavar="TREE",
            help="Sources of a good version of the bundled engine: where do the two part?",
        ),
    ] = None,
    debug_files: DebugFilesOption = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Finds by experiment why a crash breaks a state: the smallest set of operations whose loss suffices,
    what relies on them, and which additional operation would have saved it. The result is kept with the
    finding."""
    if (trial is None) == (run is None):
        raise ConfigError("ID of a trial, or --run: one of them")
    if good is not None and trial is None:
        raise ConfigError("--good needs the ID of a trial")
    place, paths, folders = place_in(out, store_place), find_paths(), debug_files or ()
    told: dict[str, Any]
    with make_console(stderr=True, quiet=json_output).status(
        f"trial {trial}" if trial else f"run {run}"
    ) as status:
        if trial is not None:
            row = with_kept_image(row_named(trial, place), out)
            if good is not None:
                require_engine(row)
                status.update("builds programs that tell their calls")
                programs = traced_program(tree_of(paths.build)), traced_program(good)
            found = explain_trial(row, paths, folders, status.update)
            if good is not None:
                status.update("compares calls with those of the good build")
                contrast = contrast_trial(row, paths, *programs, str(good.resolve()))
                found = replace(found, contrast=contrast)
            _keep(place, trial, found)
            told, lines = {"trial": trial, **to_plain(found)}, cause_lines(found)
        else:
            assert run is not None, "one of both is there"
            keep = partial(_keep, place)
            with Store(place, write=False) as store, _told_what_is_kept():
                causes = explain_run(store, run, paths, out, folders, of_each, status.update, keep)
            told, lines = to_plain(causes), _run_lines(causes)
    if json_output:
        return print_object(told)
    show = plain_printer(make_console())
    for line in lines:
        show(line)
    return 0


@contextmanager
def _told_what_is_kept() -> Iterator[None]:
    try:
        yield
    except Interrupted as stop:
        stop.told = "trials that were explained keep their explanation"
        raise


def _keep(place: Place, trial: str, found: Explained) -> None:
    """With the finding. A store that cannot be written is no reason not to tell."""
    try:
        with Store(place, create=False) as store:
            store.put_explanation(trial, found)
    except (ConfigError, MachineError) as error:
        say(f"tornpage: the explanation of {trial} is not kept: {error}", sys.stderr)


def _run_lines(found: RunCauses) -> list[str]:
    lines = []
    for pair in found.pairs:
        bugs = ", ".join(map(str, pair.bugs))
        lines.append(f"{len(pair.trials)} x {_WORDS[pair.kind]} (bug {bugs}; {pair.trials[0]})")
        lines += [f"    {pair.lost}"] if pair.lost else []
        lines += [f"    before {pair.relied}"] if pair.relied else []
    return lines + [f"{name}: not explained: {why}" for name, why in found.unexplained.items()]
