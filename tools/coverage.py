"""`make coverage`: which lines of the buffer pool and of recovery do the campaigns alone reach?

Runs the campaigns of coverage.toml on the coverage build (build/coverage, or TORNPAGE_BUILD), then holds what
no campaign reached against the reasons of that file: each uncovered range needs one, and each must fit. At
last the C tests run alone, because a reason that leans on them must be true. gcovr counts.

Exit codes: 0 all right, 1 below the aim or explanations that do not fit, 2 something could not be run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from coverage_gaps import (
    Explanations,
    Gap,
    Run,
    SourceFile,
    Total,
    below_aim,
    contradicted,
    explain,
    gaps_of,
    load_table,
    read_counts,
    total_of,
)
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tornpage.faults.process import launch_argv
from tornpage.vocabulary.errors import ChildError, ConfigError, TornpageError
from tornpage.vocabulary.paths import BUILD_VARIABLE, ROOT

TABLE = Path(__file__).with_suffix(".toml")
FOLDERS = ("engine/buf", "engine/recv")
PLAIN_WIDTH = 120
DEADLINE_S = 900
"""Of one campaign, and of the C tests: far more than they take."""
NO_BRANCHES = r".*\b(CHECK|PROBE_MARK|PROBE_POINT)\(.*"
"""Branches of these macros say nothing: a CHECK that fails ends the run, a probe is armed or not."""


def call(argv: Sequence[str], exit_code: int = 0, **env: str) -> None:
    """Runs a program that must end with this exit code before its deadline."""
    env = {**os.environ, **env}
    try:
        program = shutil.which(argv[0]) or argv[0]
        done = subprocess.run(
            launch_argv([program, *argv[1:]], DEADLINE_S),
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ChildError(f"{' '.join(argv)}: hung: killed after {DEADLINE_S} s") from error
    if done.returncode != exit_code:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise ChildError(f"{' '.join(argv)}: exit code {done.returncode}, not {exit_code}: {said}")


def forget(build: Path) -> None:
    """Counters of earlier runs are none of this one's."""
    for path in build.rglob("*.gcda"):
        path.unlink()


def count(build: Path, html: Path | None = None) -> list[SourceFile]:
    """What gcovr says now; html: also as pages, of which this is the first."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder, "counts.json")
        argv = [
            "gcovr",
            "--root",
            str(ROOT),
            "--object-directory",
            str(build),
            "--json",
            str(found),
        ]
        argv += ["--exclude-branches-by-pattern", NO_BRANCHES]
        for name in FOLDERS:
            argv += ["--filter", f"{ROOT}/{name}/"]
        if html is not None:
            argv += ["--html-details", str(html), "--html-title", "Tornpage: reached by campaigns"]
        call(argv)
        return read_counts(found.read_text(encoding="utf-8"))


def run_campaigns(runs: Sequence[Run], build: Path, out: Path, console: Console) -> None:
    """One after the other, each with what had been reached when it ended."""
    table = Table(title="campaigns", title_justify="left")
    table.add_column("tornpage run")
    for name in ("s", *(f"not reached in {folder}" for folder in FOLDERS)):
        table.add_column(name, justify="right")
    for run in runs:
        clock = time.monotonic()
        argv = [str(ROOT / ".venv/bin/tornpage"), "run", *run.args, "--json", "--out", str(out)]
        call(argv, run.exit_code, TORNPAGE_BUILD=str(build))
        seconds = time.monotonic() - clock
        files = count(build)
        left = [
            sum(line.count == 0 for file in files if in_folder(file, folder) for line in file.lines)
            for folder in FOLDERS
        ]
        table.add_row(" ".join(run.args), f"{seconds:.0f}", *map(str, left))
    console.print(table)


def run_c_tests(build: Path) -> list[SourceFile]:
    """What tests/c reaches without any campaign."""
    forget(build)
    call(["ctest", "--test-dir", str(build / "tests" / "c"), "--parallel", "2"])
    return count(build)


def in_folder(file: SourceFile, folder: str) -> bool:
    return file.file.startswith(folder + "/")


def print_totals(console: Console, files: dict[str, Total], folders: dict[str, Total]) -> None:
    table = Table(title="reached by the campaigns alone", title_justify="left")
    table.add_column("file", no_wrap=True)
    for name in ("lines", "reached", "%", "cannot", "% of rest", "branches", "taken", "%"):
        table.add_column(name, justify="right")
    for folder, total in folders.items():
        for name, part in files.items():
            if name.startswith(folder + "/"):
                table.add_row(Path(name).name, *cells(part))
        table.add_row(f"[bold]{folder}[/]", *cells(total), end_section=True)
    console.print(table)


def cells(total: Total) -> list[str]:
    return [
        str(total.lines),
        str(total.covered),
        f"{100 * total.covered / max(total.lines, 1):.1f}",
        str(total.excused),
        f"{total.percent_of_reachable:.1f}",
        str(total.branches),
        str(total.taken),
        f"{100 * total.taken / max(total.branches, 1):.1f}",
    ]


def print_gaps(console: Console, explained: Sequence[tuple[Gap, str]], table: Explanations) -> None:
    """Every uncovered range below its reason."""
    for name, reason in table.reason.items():
        gaps = [gap for gap, its in explained if its == name]
        n = sum(len(gap.numbers) for gap in gaps)
        kind = "could be reached" if reason.reachable else "cannot be reached"
        console.print(f"\n[bold]{name}[/]: {n} lines, {kind}. {escape(reason.why)}")
        for gap in gaps:
            console.print(escape(f"  {gap.where} {gap.function}: {gap.text[:100]}"), soft_wrap=True)


def measure(out: Path, console: Console) -> list[str]:
    """The whole of it. Returns what is wrong."""
    build = ROOT / "build" / "coverage"
    os.environ[BUILD_VARIABLE] = str(build)
    table = load_table(TABLE)
    if shutil.which("gcovr") is None or not (build / "engine" / "engine").is_file():
        raise ConfigError(f"gcovr or {build}/engine/engine is missing; make coverage provides both")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    forget(build)
    run_campaigns(table.run, build, out / "campaigns", console)
    files = count(build, out / "index.html")
    gaps = [
        gap
        for file in files
        for gap in gaps_of(file, (ROOT / file.file).read_text(encoding="utf-8").splitlines())
    ]
    explained, problems = explain(gaps, table)
    problems += contradicted(explained, table, run_c_tests(build))
    totals = {file.file: total_of(file, explained, table) for file in files}
    folders = {
        folder: sum((totals[f.file] for f in files if in_folder(f, folder)), Total())
        for folder in FOLDERS
    }
    print_gaps(console, explained, table)
    print_totals(console, totals, folders)
    console.print(f"pages: {out / 'index.html'}")
    return problems + below_aim(folders, table.aim)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Coverage of engine/buf and engine/recv by campaigns"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "coverage")
    out = parser.parse_args().out.resolve()
    try:
        problems = measure(out, Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH))
    except TornpageError as error:
        print(f"coverage: {error}", file=sys.stderr)
        return 2
    for problem in problems:
        print(f"coverage: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
