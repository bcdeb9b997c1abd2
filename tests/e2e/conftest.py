"""Real programs, real kills: everything here runs the built engine under the built preload."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from e2e_support import Answer, Tornpage, call

from tornpage.vocabulary.paths import BUILD_VARIABLE, ROOT

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background: what is started here must hear Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def build() -> Path:
    """Folder of the programs under test; TORNPAGE_BUILD chooses another."""
    folder = Path(os.environ.get(BUILD_VARIABLE, ROOT / "build" / "release")).resolve()
    assert (folder / "engine" / "engine").is_file(), f"{folder} is not built: make build"
    return folder


@pytest.fixture
def tornpage(tmp_path: Path, build: Path) -> Tornpage:
    """Calls the command line with a store of its own below tmp_path."""

    def answer(
        *arguments: str, out: Path = tmp_path / "out", process: bool = False, **environment: str
    ) -> Answer:
        environment = {BUILD_VARIABLE: str(build), **environment}
        words = (*arguments, "--out", str(out), "--json")
        done = call(Path.cwd(), *words, process=process, **environment)
        lines = done.stdout.splitlines()
        data = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        return Answer(done.returncode, data, done.stdout + done.stderr)

    return answer
