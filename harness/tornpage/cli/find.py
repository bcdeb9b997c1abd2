"""`tornpage export` and `tornpage import`: a finding in a file, from one machine to another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tornpage.campaigns.packed import export_find
from tornpage.campaigns.unpacked import Imported, import_find
from tornpage.cli.options import (
    JsonOption,
    OutOption,
    StoreOption,
    TargetOptions,
    TrialArgument,
    options_of,
)
from tornpage.cli.terminal import print_object, say
from tornpage.plans.origin import command_line
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.targets.registry import target_name
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EXPORT_EPILOG", "IMPORT_EPILOG", "export", "import_"]

EXPORT_EPILOG = "Example: [bold]tornpage export 3.17 find.tar.zst[/]"
IMPORT_EPILOG = (
    "Examples: [bold]tornpage import find.tar.zst[/] · "
    "tornpage import find.tar.zst --target mykv/mykv.toml replays it on your own build"
)


def export(
    trial: TrialArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write, such as find.tar.zst.")
    ],
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Packs a finding and its kept evidence into a file, to show and replay it on another machine."""
    with Store(place_in(out, store_place), write=False) as store:
        packed = export_find(store, trial, find_paths(), out, file)
    if json_output:
        return print_object({**asdict(packed), "file": str(file)})
    say(f"{file}: {packed.files} files of {packed.unpacked:,} bytes in {packed.size:,}")
    return 0


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file made by `tornpage export`.")],
    target: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The target on this machine; default: that of the file."),
    ] = None,
    options: TargetOptions = None,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Adds an exported finding to the database, as a run of its own, and its files to --out. It runs nothing;
    `replay` does."""
    place = place_in(out, store_place)
    named = target_name(target) if target is not None else None
    imported = import_find(place, file, find_paths(), out, named, options_of(options, None))
    if json_output:
        return print_object(asdict(imported))
    _print(imported, lambda line: command_line(line, place.options))
    return 0


def _print(imported: Imported, line: Callable[[str], str]) -> None:
    bugs = ", ".join(f"bug {bug}" for bug in imported.bugs)
    say(f"{imported.trial}, of {bugs}" + (": was here before" if imported.there else ""))
    if imported.differs:
        say(f"others here than when it was found: {imported.differs}")
    if imported.own_target:
        say(f"a replay runs what came in the file: {imported.own_target}; --target names your own")
    say(line(f"tornpage show {imported.trial}"))
    say(line(f"tornpage replay {imported.trial}"))
