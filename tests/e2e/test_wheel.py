"""The files of a release work where there is no checkout: the wheel that is built from the sdist is installed
into an empty virtual environment, and runs in an empty folder."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tornpage import __version__
from tornpage.vocabulary.paths import BUILD_VARIABLE, ROOT

pytestmark = pytest.mark.extended

TIMEOUT_S = 300
# What a wheel may ask of the machine: newer C libraries are not everywhere (Debian 12 has 2.36).
WHEEL = re.compile(r"py3-none-manylinux_2_(\d+)_x86_64")
GLIBC_MAX = 36


def made(folder: Path, *arch: str) -> Path:
    """The folder, with what tools/dist.sh makes."""
    done = subprocess.run(
        [ROOT / "tools" / "dist.sh", folder, *arch],
        capture_output=True,
        text=True,
        timeout=3 * TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sdist and wheel, made as `make dist` makes them."""
    return made(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def installed(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, what it says that it needs, and nothing else; no network is used."""
    (wheel,) = release.glob("*.whl")
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    subprocess.run(
        [*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel)],
        check=True,
        timeout=TIMEOUT_S,
    )
    (site,) = home.glob("lib/python*/site-packages")
    for name in needed(site):
        link_package(name, site)
    return home


def needed(site: Path) -> set[str]:
    """Names of all that the wheel in this environment says that it needs to run, and what that needs."""
    (wheel,) = distributions(name="tornpage", path=[str(site)])
    found: set[str] = set()
    waiting: list[tuple[Distribution, set[str]]] = [(wheel, set())]
    while waiting:
        package, extras = waiting.pop()
        for line in package.requires or []:
            wanted = Requirement(line)
            marker = wanted.marker
            meant = marker is None or any(
                marker.evaluate({"extra": extra}) for extra in ("", *extras)
            )
            if meant and wanted.name not in found:
                found.add(wanted.name)
                waiting.append((distribution(wanted.name), wanted.extras))
    return found


def link_package(name: str, site: Path) -> None:
    """Makes an installed distribution, as it is, part of another environment."""
    package = distribution(name)
    tops = {
        file.parts[0] for file in package.files or [] if file.parts[0] not in ("..", "__pycache__")
    }
    for top in tops:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(package.locate_file(top))))


def call(home: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The installed command, as on a machine that knows nothing of the checkout."""
    env = {key: os.environ[key] for key in ("HOME", "LANG", "TORNPAGE_TMP") if key in os.environ}
    return subprocess.run(
        [home / "bin" / "tornpage", *arguments],
        cwd=folder,
        env={**env, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_names_and_contents(release: Path) -> None:
    """One sdist, one wheel for any Python 3 on machines as old as Debian 12; the licences travel."""
    (sdist,) = release.glob("*.tar.gz")
    (wheel,) = release.glob("*.whl")
    assert sdist.name == f"tornpage-{__version__}.tar.gz"
    tag = WHEEL.search(wheel.name)
    assert tag is not None and int(tag[1]) <= GLIBC_MAX, wheel.name
    names = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", wheel],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    for name in (
        "LICENSE",
        "THIRD_PARTY.md",
        "py.typed",
        "views.sql",
        "INVARIANTS.md",
        "tornpage.libs",
    ):
        assert name in names, name


def test_the_environment_has_only_the_wheel(installed: Path, tmp_path: Path) -> None:
    """No package of the development environment slipped in, so that a missing requirement would show."""
    (site,) = installed.glob("lib/python*/site-packages")
    assert not (site / "pytest").exists()
    told = call(installed, tmp_path, "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(told.stdout)["checks"]}
    assert told.returncode == 0, told.stdout
    assert checks["engine"]["seen"].startswith(str(site / "tornpage" / "data"))
    assert checks["preload"]["seen"].startswith(str(site / "tornpage" / "data"))


def test_campaign_replay_and_report(installed: Path, tmp_path: Path) -> None:
    """The control finds torn pages, a finding comes again, and the report is there; so is power loss."""
    few = ("--scripts", "1", "--fault-free", "0", "--jobs", "1")
    run = call(
        installed,
        tmp_path,
        "run",
        "smoke",
        "--option",
        "doublewrite=off",
        "--trials",
        "40",
        *few,
        "--json",
    )
    assert run.returncode == 1, run.stdout + run.stderr
    summary = json.loads(run.stdout.splitlines()[-1])
    again = call(installed, tmp_path, "replay", summary["bugs"][0]["trial"])
    assert again.returncode == 1 and "the same verdict" in again.stdout, again.stdout + again.stderr
    assert BUILD_VARIABLE not in again.stdout
    assert call(installed, tmp_path, "report").returncode == 1
    assert (tmp_path / "out" / "index.html").is_file()
    for target in ("engine", "sqlite"):
        few_states = ("--scripts", "1", "--fault-free", "0", "--states", "60", "--jobs", "1")
        done = call(installed, tmp_path, "run", "powerloss", "--target", target, *few_states)
        assert done.returncode in (0, 3), done.stdout + done.stderr


def test_a_store_of_ones_own(installed: Path, tmp_path: Path) -> None:
    """From the first command to a shrunk bug, in the folder that was made: it fits, it is clean, its fsync
    is taken out, and the bug is found and shrunk."""
    few = ("--states", "60", "--trials", "6", "--jobs", "1", "--json")
    for command in (("target", "new", "mykv"), ("target", "check", "mykv")):
        done = call(installed, tmp_path, *command)
        assert done.returncode == 0, done.stdout + done.stderr
    clean = call(installed, tmp_path, "try", "mykv", *few)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    store = tmp_path / "mykv" / "store.py"
    store.write_text(store.read_text("utf-8").replace("        os.fsync(log)\n", ""), "utf-8")
    broken = call(installed, tmp_path, "try", "mykv", *few)
    assert broken.returncode == 1, broken.stdout + broken.stderr
    trial = json.loads(broken.stdout.splitlines()[-1])["runs"][0]["bugs"][0]["trial"]
    small = call(installed, tmp_path, "shrink", trial, "--budget", "5", "--json")
    assert small.returncode == 0, small.stdout + small.stderr
    assert json.loads(small.stdout.splitlines()[-1])["shrunk"]


def test_pipx_runs_it(release: Path, tmp_path: Path) -> None:
    """Without an installation, from the wheel's file; what it requires comes from a network."""
    (wheel,) = release.glob("*.whl")
    own = {"PIPX_HOME": str(tmp_path / "pipx")}
    done = subprocess.run(
        [sys.executable, "-m", "pipx", "run", "--spec", wheel, "tornpage", "doctor", "--json"],
        cwd=tmp_path,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout.splitlines()[-1])["checks"]}
    assert checks["engine"]["seen"].startswith(str(tmp_path / "pipx"))


@pytest.mark.parametrize(
    ("machine", "told"),
    [
        ("platform.libc_ver = lambda *_: ('', '')", "is not glibc"),
        ("platform.machine = lambda: 'riscv64'", "this processor is riscv64"),
    ],
)
def test_pip_refuses_where_no_wheel_can_be(
    release: Path, machine: str, told: str, tmp_path: Path
) -> None:
    """On a machine that is said to be another one: it takes the sdist, and tells why and what to do."""
    (sdist,) = release.glob("*.tar.gz")
    (tmp_path / "sitecustomize.py").write_text(f"import platform\n{machine}\n", "utf-8")
    command = ("install", "--no-index", "--no-deps", "--no-build-isolation")
    done = subprocess.run(
        [sys.executable, "-m", "pip", *command, "--target", tmp_path / "site", sdist],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode != 0 and not (tmp_path / "site").exists()
    words = " ".join(said.replace("│", " ").split())
    assert told in words and "wheels are for Linux with glibc" in words and "make build" in words


@pytest.mark.skipif(
    shutil.which("aarch64-linux-gnu-gcc") is None or shutil.which("qemu-aarch64") is None,
    reason="needs gcc-aarch64-linux-gnu and qemu-user",
)
@pytest.mark.skipif(platform.machine() == "aarch64", reason="the wheel of this machine is one")
def test_the_wheel_for_arm64(tmp_path: Path) -> None:
    """Every program in it is for arm64; under an emulator its engine recovers a crash and finds no damage,
    and its explorer tells its models. What needs more of the kernel is not emulated."""
    (wheel,) = made(tmp_path / "dist", "arm64").iterdir()
    assert re.search(r"py3-none-manylinux_2_(\d+)_aarch64\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path)
    programs = tmp_path / "tornpage" / "data" / "programs"
    binaries = {
        file.name: file
        for file in tmp_path.rglob("*")
        if file.is_file() and file.open("rb").read(4) == b"\x7fELF"
    }
    assert {"engine", "tornpage-explore", "tornpage-judge", "libtornpage_preload.so"} <= set(
        binaries
    )
    for file in binaries.values():
        (processor,) = struct.unpack_from("<H", file.read_bytes(), 18)
        assert processor == 183, file

    def emulated(*words: str, text: str = "") -> str:
        program = programs / words[0]
        program.chmod(0o755)
        done = subprocess.run(
            ["qemu-aarch64", "-L", ROOT / "build" / "arm64" / "root", program, *words[1:]],
            input=text,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    database = str(tmp_path / "db")
    script = "create table t a:bigint b:char(40) primary a\ninsert_seq - t 1 200\n"
    emulated("engine/engine", "run", database, "-", "--crash", text=script)
    told = json.loads(emulated("engine/engine", "recover", database, "--check", "--json"))
    assert told, told
    assert "one-torn" in emulated("explorer/tornpage-explore", "--list-models")
