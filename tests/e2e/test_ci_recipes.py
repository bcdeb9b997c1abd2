"""The recipes for pull requests and containers: their scripts run as they stand, but for what is installed
from a network and for the size of the campaign; what cannot be run here is held against the sources."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from junitparser import JUnitXml

from tornpage.vocabulary.paths import BUILD_VARIABLE, ROOT

pytestmark = pytest.mark.extended

EXAMPLES = ROOT / "examples"
CONTAINER = EXAMPLES / "container" / "Containerfile"
FETCHES = re.compile(r"apt-get|pip install")
SMALL = "--trials 12 --scripts 1 --fault-free 0"


def load(path: str) -> dict[str, Any]:
    """A YAML file of examples/."""
    data: dict[str, Any] = yaml.safe_load((EXAMPLES / path).read_text("utf-8"))
    return data


def run_lines(lines: list[str], folder: Path, build: Path, **environment: str) -> list[int]:
    """Exit codes of shell lines, with `python` and `venv/bin` those of this environment; lines that fetch
    something are only parsed."""
    home = Path(sys.executable).parent
    path = f"{home}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, BUILD_VARIABLE: str(build), **environment}
    codes = []
    for line in lines:
        flags = "-n" if FETCHES.search(line) else "-e"
        done = subprocess.run(
            ["bash", flags, "-c", line],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode in (0, 1, 3), line + done.stdout + done.stderr
        codes.append(done.returncode)
    return codes


def test_gitlab(build: Path, tmp_path: Path) -> None:
    """The job writes the JUnit file and the report that it hands on, and keeps what it caches."""
    job = load("gitlab/gitlab-ci.yml")["torture"]
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "bin").symlink_to(Path(sys.executable).parent)
    lines = [
        line.replace("run smoke", f"run smoke {SMALL}")
        for line in (*job["before_script"], *job["script"])
    ]
    scratch = job["variables"]["TORNPAGE_TMP"].replace("$CI_PROJECT_DIR", str(tmp_path))
    run_lines(lines, tmp_path, build, TORNPAGE_TMP=scratch)
    assert len(list(JUnitXml.fromfile(str(tmp_path / job["artifacts"]["reports"]["junit"])))) == 1
    for pattern in (*job["artifacts"]["paths"], *job["cache"]["paths"]):
        assert list(tmp_path.glob(pattern)), pattern


def test_github_with_pytest(build: Path, tmp_path: Path) -> None:
    """In the sample project, the workflow's own line passes; what it uploads and caches is there."""
    shutil.copytree(EXAMPLES / "pytest", tmp_path, dirs_exist_ok=True)
    (job,) = load("github/pytest.yml")["jobs"].values()
    lines = [step["run"] for step in job["steps"] if "run" in step]
    assert run_lines(lines, tmp_path, build)[-1] == 0
    cases = [case for suite in JUnitXml.fromfile(str(tmp_path / "junit.xml")) for case in suite]
    assert {case.name for case in cases} >= {"journal_mode-delete", "journal_mode-wal"}
    assert len(cases) == 4 and "torture_crashes" in (tmp_path / "junit.xml").read_text("utf-8")
    (upload,) = [step["with"] for step in job["steps"] if "upload" in step.get("uses", "")]
    for pattern in upload["path"].split():
        assert list(tmp_path.glob(pattern)), pattern


def container_steps(word: str) -> list[str]:
    """What stands behind a word of the container file, continued lines joined."""
    text = re.sub(r"\\\n\s*", "", CONTAINER.read_text("utf-8"))
    return re.findall(rf"^{word} (.+)$", text, re.M)


def test_the_container_builds_what_the_wheel_needs() -> None:
    """Two stages of the same system; the first installs no more than set-up does, and the wheel is made and
    installed by the commands that test_wheel.py runs."""
    assert container_steps("FROM") == ["debian:12-slim AS build", "debian:12-slim"]
    setup = (ROOT / "tools" / "setup.sh").read_text("utf-8")
    (known,) = re.findall(r"packages=\((.*?)\)", setup, re.S)
    for step in container_steps("RUN"):
        assert subprocess.run(["bash", "-n", "-c", step], check=False).returncode == 0, step
        if "apt-get" in step:
            words = shlex.split(step.split("install")[1].split("&&")[0])
            assert {word for word in words if not word.startswith("-")} <= set(known.split())
    assert "tools/dist.sh /dist" in container_steps("RUN")
    assert (ROOT / "tools" / "dist.sh").stat().st_mode & 0o111
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert {".git", ".venv", "build", "out"} <= set(ignored)


def test_the_container_starts_what_is_installed(build: Path, tmp_path: Path) -> None:
    """The default command of the image, small, in the folder that a user mounts."""
    (entry,), (command,) = container_steps("ENTRYPOINT"), container_steps("CMD")
    line = shlex.join([*yaml.safe_load(entry), *yaml.safe_load(command)]) + f" {SMALL}"
    assert run_lines([line], tmp_path, build)[0] in (0, 3)
    assert (tmp_path / "out" / "index.html").is_file()
    folder = container_steps("WORKDIR")[-1]
    assert f'-v "$PWD/out:{folder}/out"' in CONTAINER.read_text("utf-8")


@pytest.mark.parametrize("unit", ["tornpage-nightly.service", "tornpage-nightly.timer"])
def test_systemd_accepts_its_units(unit: str, tmp_path: Path) -> None:
    """Where there is systemd-analyze, it has nothing to say but that /opt/tornpage is not there."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze on this machine")
    for file in (EXAMPLES / "systemd").iterdir():
        text = file.read_text("utf-8").replace("/opt/tornpage/.venv/bin/tornpage", "/bin/true")
        (tmp_path / file.name).write_text(text, "utf-8")
    done = subprocess.run(
        [analyze, "verify", tmp_path / unit],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
