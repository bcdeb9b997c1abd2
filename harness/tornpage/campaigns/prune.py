"""Deletes old runs with all that they left beside the store: images, reports and slices."""

from __future__ import annotations

import platform
from pathlib import Path

from tornpage.campaigns.publish import write_index
from tornpage.faults.image import remove_image
from tornpage.powerloss.runner import forget_slices
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import Paths

__all__ = ["prune_runs"]


def prune_runs(store: Store, paths: Paths, out: Path, keep: int) -> list[int]:
    """Deletes all but the newest `keep` runs, in a shared store of this machine; one whose owner lives stays,
    and one that holds the reproducer of a bug that is not ignored. The index tells of the others. Returns the
    numbers of those that are gone."""
    gone = []
    shared = store.place.shared
    runs = [run for run in store.runs() if not shared or run.origin.host == platform.node()]
    needed = store.reproducing_runs()
    for run in runs[: max(0, len(runs) - keep)]:
        if run.id in needed:
            continue
        try:
            store.delete_run(run.id)
        except ConfigError:
            continue
        remove_image(out / "images" / str(run.id))
        forget_slices(out, run.id)
        (out / f"report-{run.id}.html").unlink(missing_ok=True)
        gone.append(run.id)
    if gone:
        store.compact()
        write_index(store, paths, out)
    return gone
