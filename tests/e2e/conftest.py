"""Real programs, real kills: everything here runs the built engine under the built preload."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from e2e_support import Answer, Tornpage, call
from trials import make_spec

from tornpage.live.golden_run import take_golden_run
from tornpage.targets.engine.target import EngineTarget
from tornpage.targets.registry import make_target
from tornpage.vocabulary.model import GoldenRun
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


@pytest.fixture(scope="module")
def target(build: Path) -> EngineTarget:
    """The engine of the build under test."""
    made = make_target("engine", build)
    assert isinstance(made, EngineTarget)
    return made


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One scratch folder, so that the golden run is taken once."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def golden_run(target: EngineTarget, scratch: Path) -> GoldenRun:
    """The golden run of make_spec()."""
    return take_golden_run(make_spec(), target, scratch)
