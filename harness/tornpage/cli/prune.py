"""`tornpage prune`: old runs deleted."""

from __future__ import annotations

from typing import Annotated

import typer

from tornpage.campaigns.prune import needed_runs, old_runs, prune_runs, size_beside
from tornpage.cli.options import JsonOption, OutOption, StoreOption
from tornpage.cli.terminal import print_object
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "prune"]

EPILOG = "Examples: [bold]tornpage prune --keep 10 --dry-run[/] · tornpage prune --keep 10"
MIB = 1 << 20


def prune(
    keep: Annotated[int, typer.Option(min=0, help="Number of newest runs to keep.")],
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only list the runs that would be deleted, with sizes."),
    ] = False,
    json_output: JsonOption = False,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Deletes old runs from the store, with their images and reports. One with the reproducer of a bug stays,
    unless the bug is marked as ignored."""
    with Store(place_in(out, store_place), create=False, write=not dry_run) as store:
        sizes = {run: size_beside(out, run) for run in old_runs(store, keep)}
        gone = [*sizes] if dry_run else prune_runs(store, find_paths(), out, keep)
        left = len(store.runs()) - (len(gone) if dry_run else 0)
        needed = needed_runs(store, keep)
    told = {run: sizes[run] for run in gone}
    if json_output:
        return print_object({"dry_run": dry_run, "deleted": gone, "bytes": told, "left": left})
    for run, size in told.items():
        print(f"run {run}: {size / MIB:.1f} MiB of images and report")
    would = " would be" if dry_run else ""
    why = f", {len(needed)} of them for the reproducers of bugs" if needed else ""
    print(f"{len(gone)} runs{would} deleted, {sum(told.values()) / MIB:.1f} MiB, {left} left{why}")
    return 0
