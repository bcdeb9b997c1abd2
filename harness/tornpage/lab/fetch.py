"""Gets what a target needs by the clients of package registries: pip, Maven, apt, go, cargo.

What its file fetches comes into a new folder that takes the place of the old one at the end, so that what
failed leaves nothing behind.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tornpage.faults.process import run_child
from tornpage.targets.command.file import Fetch, TargetFile
from tornpage.targets.command.target import CommandTarget
from tornpage.vocabulary.errors import ConfigError, MissingError
from tornpage.vocabulary.paths import fetched_folder

__all__ = ["bring", "can_bring", "fetch"]

CLIENT_S = 600.0
BUILD_S = 1800.0
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
DEBIAN = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def bring(target: CommandTarget, error: MissingError | None = None) -> None:
    """Carries out the commands that the target's file names for what is missing: `tornpage target fetch`,
    `apt-get install`, `pip install`. error: also for what that is about. Raises ConfigError: it names another
    remedy, or a command failed."""
    needs = target.missing()
    for need in needs:
        if not can_bring(need.remedy):
            raise ConfigError(str(need))
    if error is not None and not can_bring(error.remedy):
        raise ConfigError(str(error))
    also = [error.remedy] if error is not None else []
    for remedy in dict.fromkeys([*(need.remedy for need in needs), *also]):
        words = _words(remedy)
        if words[0] == "tornpage":
            fetch(target.file, target.path.parent)
        elif words[0] == "apt-get":
            _call(("apt-get", "-qq", "update"))
            _call(("apt-get", "-qq", "-y", *words[1:]))
        else:
            _call((sys.executable, "-m", "pip", "--quiet", *words[1:]))


def can_bring(remedy: str) -> bool:
    """Whether it is one of these commands, and not words for a person."""
    words = _words(remedy)
    return words[:2] in (["apt-get", "install"], ["pip", "install"]) or (
        words[:3] == ["tornpage", "target", "fetch"]
    )


def _words(remedy: str) -> list[str]:
    """Of a command; what is none may have an open quote."""
    with suppress(ValueError):
        return shlex.split(remedy)
    return []


def fetch(target: TargetFile, beside: Path) -> Path:
    """The folder with what was fetched. beside: the folder of its file. Raises ConfigError: there is nothing
    to fetch, a client is not installed, or it failed."""
    wanted = target.fetch
    if not (wanted.pip or wanted.maven or wanted.debian or wanted.go or wanted.cargo):
        raise ConfigError(f"target {target.name} fetches nothing")
    folder = fetched_folder(target.name)
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        _fetch_into(new, wanted)
        for name, source in wanted.go.items():
            _build_go(beside / source, new / name)
        for name, source in wanted.cargo.items():
            _build_crate(beside / source, new / name)
        for name, place in wanted.links.items():
            (new / name).symlink_to(place)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return folder


def _fetch_into(folder: Path, wanted: Fetch) -> None:
    if wanted.pip:
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target")
        _call((*pip, str(folder), *wanted.pip))
    for artifact in wanted.maven:
        _fetch_artifact(folder, artifact)
    if wanted.debian:
        _fetch_packages(folder, wanted)


def _fetch_artifact(folder: Path, artifact: str) -> None:
    """Unpacks the jar into a folder of the artifact's name. Its programs can be run."""
    jars = folder / "jars"
    _call(("mvn", "-q", "-B", MAVEN_COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={jars}"))
    place = folder / artifact.split(":")[1]
    for jar in jars.iterdir():
        try:
            with zipfile.ZipFile(jar) as archive:
                archive.extractall(place)
        except (zipfile.BadZipFile, OSError) as error:
            raise ConfigError(f"{artifact}: {error}") from error
    for path in place.rglob("*"):
        path.chmod(0o755)
    shutil.rmtree(jars)


def _fetch_packages(folder: Path, wanted: Fetch) -> None:
    """With lists and a cache of its own: what this machine's apt knows stays as it is, and what is installed
    does not count, for it is of another release."""
    apt = folder / "apt"
    (apt / "lists" / "partial").mkdir(parents=True)
    (apt / "archives" / "partial").mkdir(parents=True)
    (apt / "sources.list").write_text(
        f"deb [signed-by={KEYRING}] {DEBIAN} {wanted.debian} main\n", "utf-8"
    )
    settings = {
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": apt / "lists",
        "Dir::State::status": os.devnull,
        "Dir::Cache": apt,
        "APT::Sandbox::User": "",
    }
    own = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    _call(("apt-get", "-qq", *own, "update"))
    _call(("sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(apt), "apt-get", "-qq", *own,
           "download", *wanted.packages))  # fmt: skip
    for package in sorted(apt.glob("*.deb")):
        _call(("dpkg-deb", "-x", str(package), str(folder)))
    shutil.rmtree(apt)


def _build_go(source: Path, program: Path) -> None:
    """Without C, so that it is linked statically."""
    build = ("build", "-trimpath", "-buildvcs=false", "-mod=readonly")
    env = {**os.environ, "CGO_ENABLED": "0"}
    _call(("go", "-C", str(source), *build, "-o", str(program), "."), BUILD_S, env)


def _build_crate(source: Path, program: Path) -> None:
    built = program.with_name(f"{program.name}.built")
    crate = ("--manifest-path", str(source / "Cargo.toml"), "--target-dir", str(built))
    binary = ("--bin", program.name)
    _call(("cargo", "build", "--quiet", "--release", "--locked", *crate, *binary), BUILD_S)
    (built / "release" / program.name).rename(program)
    shutil.rmtree(built)


def _call(
    command: Sequence[str], limit_s: float = CLIENT_S, env: Mapping[str, str] = os.environ
) -> None:
    """Runs a client. ConfigError with its last line."""
    program = shutil.which(command[0])
    if program is None:
        raise ConfigError(f"{command[0]} is not installed, which fetches this")
    child = run_child((program, *command[1:]), env, limit_s)
    if child.exit_code != 0:
        raise ConfigError(f"{command[0]} failed: {child.describe()}")
