"""What every run over planted bugs needs: the next mutant is built while workers try the last ones, and
finished results are kept, so that an interrupted run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeVar

import xxhash

from tornpage.lab.mutant_build import MutantBuilder
from tornpage.lab.mutant_table import Mutant
from tornpage.lab.source_copy import BuildFailed
from tornpage.plans.origin import harness_hash
from tornpage.vocabulary.codec import from_json, to_plain
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import Paths
from tornpage.workers.pool import submit, worker_pool

__all__ = ["KeptRows", "each_done", "maker_of"]

REPLACED = "its programs were built anew during the run, because the sources have changed"

Task = TypeVar("Task")
Row = TypeVar("Row")


def maker_of(workloads: Path) -> str:
    """What makes the results of campaigns: this harness, and the campaigns of a folder."""
    digest = xxhash.xxh3_64(harness_hash().encode())
    for path in sorted(workloads.glob("*.toml")):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


class KeptRows(Generic[Row]):
    """Results as files NAME.json of a folder, each with a key that tells whether it is still true. One of
    another maker is not."""

    def __init__(self, folder: Path, row: type[Row], maker: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._row = row
        self._maker = maker

    def load(self, name: str, key: str) -> Row | None:
        """The result of an earlier run, if it was kept under the same key."""
        try:
            data = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
            same = data["key"] == key and data["maker"] == self._maker
            return from_json(self._row, json.dumps(data["row"])) if same else None
        except (OSError, ValueError, KeyError, ConfigError):
            return None

    def keep(self, name: str, key: str, row: Row) -> None:
        """Keeps a result, in place of an older one."""
        text = json.dumps({"key": key, "maker": self._maker, "row": to_plain(row)}, indent=1)
        (self._folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def each_done(
    tasks: Iterable[tuple[Mutant, Task]],
    work: Callable[[Task, Paths], Row],
    failed: Callable[[Task, str], Row],
    builder: MutantBuilder,
    paths: Paths,
    jobs: int,
) -> Iterator[tuple[Task, Row]]:
    """Runs every task on a worker, with the programs of its mutant in `paths`, and yields results as they
    come. failed: the result of a task whose mutant does not compile, or was built anew meanwhile."""
    pending: dict[Future[Row], tuple[Mutant, Task]] = {}

    def finished(timeout: float | None) -> Iterator[tuple[Task, Row]]:
        for future in wait(pending, timeout, FIRST_COMPLETED).done:
            mutant, task = pending.pop(future)
            row = future.result()
            yield task, row if builder.is_built(mutant) else failed(task, REPLACED)

    with worker_pool(jobs) as pool:
        for mutant, task in tasks:
            try:
                build = builder.build(mutant)
            except BuildFailed as error:
                yield task, failed(task, str(error))
                continue
            done = submit(pool, work, task, replace(paths, build=build))
            pending[done] = mutant, task
            yield from finished(0)
        while pending:
            yield from finished(None)
