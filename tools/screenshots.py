"""Takes the pictures of the report in docs/: a torn page of the control run, at the widths that tests use.

.venv/bin/python tools/screenshots.py        (make screenshots)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from browser import headless_browser  # noqa: E402 - it lies with the tests that use it

WIDTHS = {"report.png": 1400, "report-800.png": 800, "report-390.png": 390}
RUN = ("run", "smoke", "--option", "doublewrite=off", "--trials", "40", "--scripts", "1")


def main() -> None:
    """Runs the control in a folder of its own, and writes the pictures."""
    with tempfile.TemporaryDirectory() as folder, headless_browser() as browser:
        out = Path(folder) / "out"
        words = [sys.executable, "-P", "-m", "tornpage", *RUN, "--fault-free", "0"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 1:
            sys.exit(f"the control found nothing: {done.stdout[-500:]}{done.stderr[-500:]}")
        for name, width in WIDTHS.items():
            browser.open(out / "report-1.html", width, "light")
            browser.run("document.querySelector('.timeline .torn, figure').scrollIntoView()")
            browser.save(ROOT / "docs" / name)
            print(f"docs/{name}")


if __name__ == "__main__":
    main()
