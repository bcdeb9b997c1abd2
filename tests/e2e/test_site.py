"""The documentation as a site: no link leads nowhere, and the report of a control run is part of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tornpage.vocabulary.paths import BUILD_VARIABLE, ROOT

pytestmark = pytest.mark.extended

SITE = ROOT / "build" / "site"


def call(*arguments: str, build: Path) -> subprocess.CompletedProcess[str]:
    """A program of this environment, in the checkout."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, BUILD_VARIABLE: str(build)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_site_is_built_and_whole(build: Path) -> None:
    """Every page is rendered; the example names a bug; a link that leads nowhere fails the build."""
    done = call("tools/site_pages.py", "--trials", "30", build=build)
    assert done.returncode == 0, done.stderr
    pages = {page.stem for page in (SITE / "html" / "docs").glob("*.html")}
    assert pages == {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert "doublewrite" in (SITE / "html" / "example" / "report-1.html").read_text("utf-8")
    page = SITE / "pages" / "CHANGELOG.md"
    page.write_text(page.read_text("utf-8") + "\n[nowhere](docs/STORE.md#nowhere)\n", "utf-8")
    done = call(
        "-c",
        "import sys; sys.path.append('tools'); import site_pages as s; sys.exit(s.render())",
        build=build,
    )
    assert done.returncode == 1 and "#nowhere" in done.stderr, done.stderr
