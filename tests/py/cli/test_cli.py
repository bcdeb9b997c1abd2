"""The command line as such; what its commands do is tested with real trials in tests/e2e."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys


def test_version_is_that_of_the_installed_package() -> None:
    """`python -m tornpage --version` prints one line and ends with 0."""
    command = [sys.executable, "-m", "tornpage", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"tornpage {importlib.metadata.version('tornpage')}\n"
