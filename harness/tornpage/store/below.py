"""Paths in a store that is a file: what lies below its folder, as images/1/0, is named from there, so that
the folder may be moved or copied as a whole. All other paths are absolute; a name of a target has no slash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, and_, select

from tornpage.store import schema
from tornpage.vocabulary.model import TrialResult

__all__ = ["found_path", "kept_path", "name_from_folder", "with_image", "with_paths"]

_PATHS = {"target": "", "spec": "target", "result": "image"}
"""Columns that have a path, and its key in those that hold JSON."""


def kept_path(path: str, folder: Path | None) -> str:
    """As it is stored. folder: of the store, absolute and without links; None: it is on a server."""
    if folder is None or not Path(path).is_relative_to(folder):
        return path
    kept = str(Path(path).relative_to(folder))
    return kept if "/" in kept else path


def found_path(kept: str, folder: Path | None) -> str:
    """Where that is now."""
    return str(folder / kept) if folder is not None and "/" in kept else kept


def with_image(result: TrialResult, change: Callable[[str], str]) -> TrialResult:
    """The result with the path of its image changed."""
    if result.image is None:
        return result
    return replace(result, image=Path(change(str(result.image))))


def with_paths(row: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """A row of any table with its paths changed."""
    changed = dict(row)
    for column, key in _PATHS.items():
        text = changed.get(column)
        if text is None:
            continue
        if not key:
            changed[column] = change(text)
            continue
        told = json.loads(text)
        if told.get(key) is not None:
            told[key] = change(told[key])
            changed[column] = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return changed


def name_from_folder(db: Connection, folder: Path | None) -> None:
    """Names what lies in the folder from there, in a store that has but absolute paths; also what lay in the
    folder before that was moved."""
    if folder is None:
        return
    runs, trials = schema.run, schema.trial
    with_path = trials.c.spec.contains('"target":"/') | trials.c.result.contains('"image":"/')
    for table, number, where in (
        (runs, "id", runs.c.target.startswith("/")),
        (trials, "run", with_path),
    ):
        for found in db.execute(select(table).where(where)).all():
            row = found._asdict()
            changed = with_paths(row, partial(_from_folder, folder=folder, run=row[number]))
            this = and_(*(column == row[column.name] for column in table.primary_key.columns))
            db.execute(table.update().where(this).values(changed))


def _from_folder(path: str, folder: Path, run: int) -> str:
    images = f"images/{run}/"
    _, there, name = path.rpartition(f"/{images}")
    moved = folder / f"{images}{name}"
    return kept_path(str(moved) if there and moved.exists() else path, folder)
