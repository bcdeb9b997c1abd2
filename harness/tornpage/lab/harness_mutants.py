"""The harness on trial: slips are planted in it, one at a time, and its own tests must fail.

A row lies in OUT/harness/NAME.json and counts as long as the slip, its tests and the sources that they
depend on are the same. Each worker has a copy of the sources below build/mutants, in which it patches, builds
and runs tests.
"""

from __future__ import annotations

import fcntl
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash
from rich.table import Table

from tornpage.lab.harness_table import HarnessMutant, Killer
from tornpage.lab.harness_tests import build_for, failed_test
from tornpage.lab.mutant_pool import KeptRows
from tornpage.lab.source_copy import SourceCopy, read_tree, sources_digest
from tornpage.vocabulary.codec import to_plain
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import ROOT
from tornpage.workers.context import Progress
from tornpage.workers.pool import submit, worker_pool

__all__ = [
    "HARNESS_TABLE",
    "HEADING",
    "HarnessRow",
    "HarnessScore",
    "HarnessSources",
    "check_harness",
    "harness_page",
    "harness_table",
    "run_harness",
    "write_bugs",
]

HARNESS_TABLE = ROOT / "tests" / "mutants" / "harness"
HEADING = "## Slips in the harness"
"""Of the second part of docs/BUGS.md."""
FORMAT = "1"
"""Of rows: another one makes those that are kept void."""
_C_FOLDERS = ("disk/", "engine/", "faults/", "explorer/", "tests/c/")
_IN_C = ("CMakeLists.txt", "CMakePresets.json", *_C_FOLDERS)
"""What tests in C depend on; all others may depend on anything."""
_PATCHES = "tests/mutants/harness/"


@dataclass(frozen=True, slots=True)
class HarnessRow:
    """What became of a slip. killer: the line of its header whose tests failed, "" if none did; test: the
    first one that failed; error: why there is no answer."""

    name: str
    killer: str = ""
    test: str = ""
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class HarnessScore:
    """All rows, in the order of the table."""

    rows: tuple[HarnessRow, ...]

    @property
    def killed(self) -> int:
        """How many a test has found."""
        return sum(bool(row.killer) for row in self.rows)

    def exit_code(self) -> int:
        """0: all killed; 1: not all; 2: of one there is no answer."""
        if any(row.error for row in self.rows):
            return 2
        return 0 if self.killed == len(self.rows) else 1

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "mutants": len(self.rows),
            "killed": self.killed,
            "rows": [{**to_plain(row), "killed": bool(row.killer)} for row in self.rows],
        }


class HarnessSources:
    """The sources as they are now, and what results depend on."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.files = read_tree(root)
        used = {n: text for n, text in self.files.items() if not n.startswith(_PATCHES)}
        self._all = sources_digest(used)
        self._in_c = sources_digest({n: text for n, text in used.items() if n.startswith(_IN_C)})

    def key(self, diff: str, killers: Sequence[Killer]) -> str:
        """Changes with the patch, the tests, and all that they may depend on."""
        whole = any(killer.runner != "ctest" for killer in killers)
        parts = (self._all if whole else self._in_c, diff, [killer.text for killer in killers])
        return xxhash.xxh3_64_hexdigest(repr(parts).encode())


@dataclass(frozen=True, slots=True)
class _Task:
    """name, diff and killers: of a mutant, or of tests without a patch; only_build: nothing is run."""

    name: str
    diff: str
    killers: tuple[Killer, ...]
    root: Path
    files: Mapping[str, bytes]
    folder: Path
    only_build: bool = False


def run_harness(
    mutants: list[HarnessMutant],
    sources: HarnessSources,
    jobs: int,
    out: Path,
    progress: Progress,
    folder: Path = ROOT / "build" / "mutants",
) -> HarnessScore:
    """Plants each slip and runs its tests, which must pass without it: else there is no answer. jobs: how
    many at a time; out: where results are kept; folder: of the copies."""
    kept = KeptRows(out / "harness", HarnessRow, FORMAT)
    keys = {mutant.name: sources.key(mutant.diff, mutant.killers) for mutant in mutants}
    rows: dict[str, HarnessRow] = {}
    for name, key in keys.items():
        row = kept.load(name, key)
        if row is not None and row.killer:
            rows[name] = row
    left = [mutant for mutant in mutants if mutant.name not in rows]
    wrong = _wrong_tests(left, sources, jobs, kept, progress, folder)
    for mutant in left:
        errors = [wrong[one.text] for one in mutant.killers if one.text in wrong]
        if errors:
            rows[mutant.name] = HarnessRow(mutant.name, error=errors[0])
    left = [mutant for mutant in left if mutant.name not in rows]
    # What is built is built for those in C first, and then once for all others.
    left.sort(key=lambda mutant: mutant.killers[0].runner)
    tasks = [_task(m.name, m.diff, m.killers, sources, folder) for m in left]
    progress.phase("slips in the harness", len(tasks))
    for row in _each_done(tasks, jobs):
        rows[row.name] = row
        if not row.error:
            kept.keep(row.name, keys[row.name], row)
        progress.advance(not row.killer)
    return HarnessScore(tuple(rows[mutant.name] for mutant in mutants))


def _wrong_tests(
    mutants: list[HarnessMutant],
    sources: HarnessSources,
    jobs: int,
    kept: KeptRows[HarnessRow],
    progress: Progress,
    folder: Path,
) -> dict[str, str]:
    """Lines of tests of these that do not pass without any patch, each with what is wrong."""
    tests = {f"tests-{sources.key('', [one])}": one for m in mutants for one in m.killers}
    waiting = {name: one for name, one in tests.items() if kept.load(name, name) is None}
    tasks = [_task(name, "", (one,), sources, folder) for name, one in sorted(waiting.items())]
    progress.phase("tests without a slip", len(tasks))
    wrong = {}
    for row in _each_done(tasks, jobs):
        if row.killer or row.error:
            text = waiting[row.name].text
            wrong[text] = f"without the slip too: {text}: {row.test or row.error}"
        else:
            kept.keep(row.name, row.name, row)
        progress.advance(bool(row.killer or row.error))
    return wrong


def check_harness(
    mutants: list[HarnessMutant],
    sources: HarnessSources,
    jobs: int,
    progress: Progress,
    folder: Path = ROOT / "build" / "mutants",
) -> None:
    """Applies every patch, and builds what its tests start. Raises ConfigError naming all that do not apply
    or compile."""
    tasks = [_task(m.name, m.diff, m.killers, sources, folder, only_build=True) for m in mutants]
    progress.phase("slips compiled", len(tasks))
    wrong = []
    for row in _each_done(tasks, jobs):
        wrong += [f"{row.name}: {row.error}"] if row.error else []
        progress.advance(bool(row.error))
    if wrong:
        lines = [f"{len(wrong)} slips do not apply or compile:", *sorted(wrong)]
        raise ConfigError("\n".join(lines))


def _task(
    name: str,
    diff: str,
    killers: tuple[Killer, ...],
    sources: HarnessSources,
    folder: Path,
    only_build: bool = False,
) -> _Task:
    return _Task(name, diff, killers, sources.root, sources.files, folder, only_build)


def _each_done(tasks: list[_Task], jobs: int) -> Iterator[HarnessRow]:
    if not tasks:
        return
    with worker_pool(min(jobs, len(tasks))) as pool:
        for done in as_completed([submit(pool, _try, task) for task in tasks]):
            yield done.result()


def _try(task: _Task) -> HarnessRow:
    """On a worker."""
    began = time.monotonic()
    with _free_copy(task) as copy:
        copy.restore()
        killer = test = error = ""
        try:
            why = copy.apply(task.diff) if task.diff else ""
            if why:
                raise ConfigError(f"does not apply: {why}")
            _compile_python(task.diff, copy)
            for one in task.killers:
                build_for(one, copy)
                test = "" if task.only_build else failed_test(one, copy)
                if test:
                    killer = one.text
                    break
        except ConfigError as wrong:
            error = str(wrong)
        finally:
            copy.restore()
    seconds = round(time.monotonic() - began, 1)
    return HarnessRow(task.name, killer, test, seconds, error)


def _compile_python(diff: str, copy: SourceCopy) -> None:
    """What a patch has made of modules is Python."""
    for line in diff.splitlines():
        name = line.removeprefix("+++ b/").strip()
        if line.startswith("+++ b/") and name.endswith(".py"):
            try:
                compile((copy.folder / name).read_bytes(), name, "exec")
            except SyntaxError as error:
                raise ConfigError(f"{name}: {error}") from error


@contextmanager
def _free_copy(task: _Task) -> Iterator[SourceCopy]:
    """The first copy that nobody uses."""
    task.folder.mkdir(parents=True, exist_ok=True)
    for number in itertools.count():
        with (task.folder / f"harness-{number}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield SourceCopy(task.root, task.files, task.folder / f"harness-{number}")
            return


# -- shown ------------------------------------------------------------------------------------------


def harness_table(score: HarnessScore) -> Table:
    """For a terminal."""
    table = Table(title=f"{score.killed} of {len(score.rows)} slips in the harness killed")
    for column in ("slip", "killed by", "test", "seconds"):
        table.add_column(column, overflow="fold")
    for row in score.rows:
        killer = row.killer or f"[red]no[/] {row.error}"
        table.add_row(row.name, killer, row.test, f"{row.seconds:.1f}")
    return table


def harness_page(mutants: list[HarnessMutant], score: HarnessScore) -> str:
    """The second table of docs/BUGS.md."""
    rows = {row.name: row for row in score.rows}
    lines = [
        HEADING,
        "",
        "The judges are tested too: each slip is a patch ([rules](../tests/mutants/harness/README.md)) that",
        "makes the harness more lenient, or makes it look in the wrong place. Written by",
        "`tornpage mutants --harness --table docs/BUGS.md`; do not edit.",
        "",
        f"**{score.killed} of {len(score.rows)} are killed** by the named tests.",
        "",
        "| slip | what is written | what then passes as clean | killed by |",
        "|---|---|---|---|",
    ]
    for mutant in mutants:
        row = rows[mutant.name]
        killed = (
            f"`{row.test}` ({row.killer})" if row.killer else "*no answer*" if row.error else "*no*"
        )
        cells = (f"`{mutant.name}`", mutant.slip, mutant.verdict, killed)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def write_bugs(path: Path, first: str = "", second: str = "") -> None:
    """Writes docs/BUGS.md. first: bugs of the engine, second: slips in the harness; of the one that is not
    given what is there stays."""
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    before, heading, after = old.partition(HEADING)
    parts = [first or before, second or heading + after]
    text = "\n\n".join(part.strip("\n") for part in parts if part)
    path.write_text(text + "\n", encoding="utf-8")
