"""Real programs, real kills: everything here runs the built engine under the built preload."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_support import Answer, Tornpage

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 300


@pytest.fixture(scope="session")
def build() -> Path:
    """Folder of the programs under test; TORNPAGE_BUILD chooses another."""
    folder = Path(os.environ.get("TORNPAGE_BUILD", ROOT / "build" / "release")).resolve()
    assert (folder / "engine" / "engine").is_file(), f"{folder} is not built: make build"
    return folder


@pytest.fixture
def tornpage(tmp_path: Path, build: Path) -> Tornpage:
    """Calls the command line with a store of its own below tmp_path."""

    def call(*arguments: str, out: Path = tmp_path / "out", **environment: str) -> Answer:
        command = [
            sys.executable,
            "-m",
            "tornpage",
            *arguments,
            "--out",
            str(out),
            "--json",
        ]
        env = {**os.environ, "TORNPAGE_BUILD": str(build), **environment}
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        lines = done.stdout.splitlines()
        data = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        return Answer(done.returncode, data, done.stdout + done.stderr)

    return call
