"""Builds the documentation as a site: the pages with all that they link to, and the report of a control run.

The pages are laid out in build/site/pages as they are in the checkout, so that their links hold as they
stand. mkdocs (mkdocs.yml) renders them, and fails for a link or an anchor that leads nowhere.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "site"
LINK = re.compile(r"\]\(([^)\s#]+)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
CONTROL = ["run", "smoke", "--option", "doublewrite=off", "--scripts", "2", "--fault-free", "0"]


def first_pages() -> list[Path]:
    """Those that a reader begins with; others are found by their links."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def linked(page: Path) -> list[Path]:
    """Files and folders of the checkout that a page links to."""
    names = LINK.findall(FENCE.sub("", page.read_text("utf-8")))
    return [(page.parent / name).resolve() for name in names if ":" not in name]


def collect(pages: Path) -> list[Path]:
    """Copies all pages and what they link to; returns them."""
    waiting = first_pages()
    done: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in done or not path.is_file():
            continue
        done.add(path)
        copy = pages / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        if path.suffix == ".md":
            waiting += linked(path)
    return sorted(done)


def make_report(out: Path, trials: int) -> None:
    """The control run, which must find something."""
    command = [sys.executable, "-m", "tornpage", *CONTROL, "--trials", str(trials)]
    done = subprocess.run([*command, "--out", str(out)], check=False, stdout=subprocess.DEVNULL)
    if done.returncode != 1:
        raise SystemExit(f"site: the control run ended with exit code {done.returncode}, not 1")


def keep_pages_only(out: Path) -> None:
    """A site has no use for the store and the images."""
    for path in list(out.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix != ".html":
            path.unlink()


def main() -> int:
    """Exit code of mkdocs: 0, or 1 for a link that leads nowhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300, help="of the control run")
    trials = parser.parse_args().trials
    shutil.rmtree(FOLDER, ignore_errors=True)
    pages = FOLDER / "pages"
    collect(pages)
    make_report(pages / "example", trials)
    keep_pages_only(pages / "example")
    return render()


def render() -> int:
    """Runs mkdocs, which tells by a warning of each broken link; with --strict that is a failure."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("INFO")]
        print("\n".join(lines), file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
