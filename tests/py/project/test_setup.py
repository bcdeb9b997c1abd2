"""`tools/setup.sh` has two sizes, tells what it does, and does nothing twice."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# What the script calls, as programs that write down how they were called.
CALLED = {
    "id": "echo 0",
    "dpkg-query": 'grep -qx "${@: -1}" "$HERE/installed" 2>/dev/null && echo "install ok installed"',
    "apt-get": """case "$*" in
        *--print-uris*) echo "'http://somewhere/a.deb' a.deb 2000000 SHA256:0" ;;
        install*) for word in "${@:2}"; do echo "$word" >> "$HERE/installed"; done ;;
        esac""",
    "python3": """case "$*" in
        "-m venv .venv") mkdir -p .venv/bin; ln -s "$HERE/bin/pip" .venv/bin/pip ;;
        *) exec /usr/bin/env -i "$REAL_PYTHON" "$@" ;;
        esac""",
    "pip": 'echo "${@: -1}" >> "$HERE/pip"',
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script, what it reads, and stand-ins for what it calls."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "setup.sh", tmp_path / "tools")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "bin").mkdir()
    for name, text in CALLED.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/usr/bin/env bash\n{text}\n")
        program.chmod(0o755)
    return tmp_path


def set_up(checkout: Path, *size: str) -> subprocess.CompletedProcess[str]:
    python = shutil.which("python3")
    assert python is not None
    env = {"PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", "HERE": str(checkout)}
    env["REAL_PYTHON"] = python
    command = ["bash", str(checkout / "tools" / "setup.sh"), *size]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def words(path: Path) -> set[str]:
    return set(path.read_text().split()) if path.exists() else set()


def test_the_small_size_brings_no_browser_server_or_linter(checkout: Path) -> None:
    """What a build needs, and of Python the package alone."""
    told = set_up(checkout)
    assert told.returncode == 0, told.stderr
    installed = words(checkout / "installed")
    assert {"build-essential", "cmake", "ninja-build", "libfiu-dev", "python3-venv"} <= installed
    assert (
        not {"chromium", "mariadb-server-core", "postgresql", "clang-tidy", "cppcheck"} & installed
    )
    assert (checkout / "pip").read_text().splitlines() == ["."]
    assert "2 MB to fetch" in told.stdout
    assert all(line.startswith("setup: ") for line in told.stdout.splitlines())


def test_the_large_size_adds_to_the_small_one(checkout: Path) -> None:
    """Behind the small one it installs what is missing, and every extra."""
    set_up(checkout)
    small = words(checkout / "installed")
    assert set_up(checkout, "all").returncode == 0
    assert {"chromium", "mariadb-server-core", "cppcheck"} <= words(checkout / "installed") - small
    first, second = (checkout / "pip").read_text().splitlines()
    assert first == "." and "dev" in second and "package" in second


@pytest.mark.parametrize("size", [[], ["all"]])
def test_a_second_call_does_nothing_and_says_nothing(checkout: Path, size: list[str]) -> None:
    """As each target of the Makefile calls it."""
    set_up(checkout, *size)
    before = (checkout / "pip").read_text()
    again = set_up(checkout, *size)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert (checkout / "pip").read_text() == before


def test_another_pyproject_makes_the_environment_again(checkout: Path) -> None:
    """The stamp knows what it was made from."""
    set_up(checkout, "all")
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert "making the Python environment" in set_up(checkout).stdout


def test_an_unknown_size_is_refused(checkout: Path) -> None:
    """With the two that there are."""
    refused = set_up(checkout, "some")
    assert refused.returncode == 2
    assert "tools/setup.sh all" in refused.stderr
    assert not (checkout / "installed").exists()
