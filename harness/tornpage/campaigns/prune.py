"""Deletes old runs with all that they left beside the store: images, reports and slices."""

from __future__ import annotations

import platform
from pathlib import Path

from tornpage.campaigns.publish import write_index
from tornpage.evidence.images import images_of
from tornpage.faults.image import remove_image
from tornpage.powerloss.runner import forget_slices
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import Paths

__all__ = ["needed_runs", "old_runs", "prune_runs", "size_beside"]


def old_runs(store: Store, keep: int) -> list[int]:
    """The numbers of all but the newest `keep` runs, in a shared store of this machine, without those that
    hold the reproducer of a bug that is not ignored."""
    needed = store.reproducing_runs()
    return [run for run in _older(store, keep) if run not in needed]


def needed_runs(store: Store, keep: int) -> list[int]:
    """Those that old_runs() leaves out for it."""
    needed = store.reproducing_runs()
    return [run for run in _older(store, keep) if run in needed]


def _older(store: Store, keep: int) -> list[int]:
    shared = store.place.shared
    runs = [run.id for run in store.runs() if not shared or run.origin.host == platform.node()]
    return runs[: max(0, len(runs) - keep)]


def size_beside(out: Path, run: int) -> int:
    """Bytes on the disk of what a run has left beside the store."""
    image, report = _left_by(out, run)
    files = [report, *(path for path in image.rglob("*") if not path.is_symlink())]
    return sum(512 * path.stat().st_blocks for path in files if path.is_file())


def _left_by(out: Path, run: int) -> tuple[Path, Path]:
    """Images and report."""
    return images_of(out, run), out / f"report-{run}.html"


def prune_runs(store: Store, paths: Paths, out: Path, keep: int) -> list[int]:
    """Deletes old runs; one whose owner lives stays. The index tells of the others. Returns the numbers of
    those that are gone."""
    gone = []
    for run in old_runs(store, keep):
        try:
            store.delete_run(run)
        except ConfigError:
            continue
        image, report = _left_by(out, run)
        remove_image(image)
        forget_slices(out, run)
        report.unlink(missing_ok=True)
        gone.append(run)
    if gone:
        store.compact()
        write_index(store, paths, out)
    return gone
