"""The programs of a mutant: a copy of the sources, its patch, an incremental build.

build/mutants/src is the copy. Only files that differ are written, so that ninja rebuilds what a patch
touches, in seconds; whatever an interrupted build left there is put right by the next one.
build/mutants/bin/NAME is laid out like a build folder (TORNPAGE_BUILD) and counts as long as sources and
patch are the same: whatever a campaign starts is there.

May import: errors, mutant_table, paths, process, registry.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import xxhash

from tornpage.faults.process import LAUNCHER, end_child, launch_argv
from tornpage.lab.mutant_table import Mutant
from tornpage.targets.registry import TARGETS
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import ROOT

__all__ = ["BuildFailed", "MutantBuilder"]

PRESET = "release"
"""The product's: mutants are compiled with its flags."""
JOBS = 2
STEP_DEADLINE_S = 1800.0
_SUBDIRECTORY = re.compile(r"^add_subdirectory\((\S+)\)", re.MULTILINE)


class BuildFailed(ConfigError):
    """A patched tree does not compile."""


class MutantBuilder:
    """Builds mutants one at a time, below `folder`; several processes take turns."""

    def __init__(self, root: Path = ROOT, folder: Path = ROOT / "build" / "mutants") -> None:
        self._root = root
        self._folder = folder
        self._src = folder / "src"
        self._build = self._src / "build" / PRESET
        target = TARGETS["engine"](Path())
        self._programs = (*target.programs().values(), LAUNCHER)
        self._sources = self._read_sources()
        digest = xxhash.xxh3_64()
        for path, content in sorted(self._sources.items()):
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
        self._digest = digest.hexdigest()

    def key(self, mutant: Mutant) -> str:
        """Changes with the sources, with the patch, and with the programs that are wanted."""
        programs = " ".join(str(path) for path in self._programs)
        return xxhash.xxh3_64_hexdigest(f"{self._digest}\0{programs}\0{mutant.diff}".encode())

    def is_built(self, mutant: Mutant) -> bool:
        """Whether the programs that are there are those of these sources and this patch."""
        return _read(self._folder / "bin" / mutant.name / "key") == self.key(mutant)

    def check_patches(self, mutants: list[Mutant]) -> None:
        """Raises ConfigError naming every patch that does not apply, and where."""
        with self._turn():
            self._restore()
            wrong = [f"{m.name}: {why}" for m in mutants if (why := self._apply(m, "--check"))]
        if wrong:
            raise ConfigError("\n".join([f"{len(wrong)} patches do not apply:", *wrong]))

    def build(self, mutant: Mutant) -> Path:
        """The folder with the mutant's programs, built unless they are there. Raises ConfigError if its
        patch does not apply, BuildFailed if it does not compile."""
        out = self._folder / "bin" / mutant.name
        with self._turn():
            if self.is_built(mutant):
                return out
            self._restore()
            why = self._apply(mutant)
            if why:
                raise ConfigError(f"{mutant.name}: the patch does not apply: {why}")
            try:
                self._compile(mutant)
                self._keep(out, self.key(mutant))
            finally:
                self._restore()
        return out

    # -- the copy -------------------------------------------------------------------------------

    def _read_sources(self) -> dict[str, bytes]:
        """What cmake reads: the files of the top folder that it needs, and the folders they name."""
        files = {name: (self._root / name).read_bytes() for name in _TOP}
        for folder in _SUBDIRECTORY.findall(files["CMakeLists.txt"].decode()):
            for path in (self._root / folder).rglob("*"):
                if path.is_file() and path.suffix not in _NOT_READ:
                    files[str(path.relative_to(self._root))] = path.read_bytes()
        return files

    def _restore(self) -> None:
        """Makes the copy equal to the sources."""
        found = {
            str(path.relative_to(self._src))
            for path in self._src.rglob("*")
            if path.is_file() and not path.is_relative_to(self._src / "build")
        }
        for name in found - self._sources.keys():
            (self._src / name).unlink()
        for name, content in self._sources.items():
            path = self._src / name
            if name not in found or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

    def _apply(self, mutant: Mutant, *options: str) -> str:
        """Patches the copy; why that is not possible, else ""."""
        # Without a ceiling git would find the checkout around the copy, and its paths would count from there.
        env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self._src.parent)}
        command = ["git", "apply", *options, "-"]
        done = _run(command, self._src, env, mutant.diff)
        return "" if done.returncode == 0 else done.stderr.strip().replace("\n", "; ")

    def _compile(self, mutant: Mutant) -> None:
        steps = [["cmake", "--build", "--preset", PRESET, "--parallel", str(JOBS), "--target"]]
        steps[0] += [str(path) for path in self._programs]
        if not (self._build / "build.ninja").is_file():
            steps.insert(0, ["cmake", "--preset", PRESET, "-DTORNPAGE_LTO=OFF"])
        for command in steps:
            done = _run(command, self._src, dict(os.environ))
            if done.returncode != 0:
                lines = (done.stdout + done.stderr).splitlines()
                errors = [line for line in lines if " error: " in line] or lines[-5:]
                raise BuildFailed(f"{mutant.name}: does not compile: " + "; ".join(errors[:3]))

    def _keep(self, out: Path, key: str) -> None:
        shutil.rmtree(out, ignore_errors=True)
        for path in self._programs:
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self._build / path, out / path)
        (out / "key").write_text(key, encoding="ascii")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        self._src.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


_TOP = ("CMakeLists.txt", "CMakePresets.json")
_NOT_READ = frozenset({".md", ".py", ".pyc"})


def _run(
    command: list[str], folder: Path, env: dict[str, str], text: str = ""
) -> subprocess.CompletedProcess[str]:
    program = shutil.which(command[0])
    if program is None:
        raise ConfigError(f"{command[0]}: no such program, and mutants are built with it")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        launch_argv([program, *command[1:]], STEP_DEADLINE_S),
        cwd=folder,
        env=env,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
    ) as child:
        try:
            out, err = child.communicate(text, STEP_DEADLINE_S)
        except BaseException:  # with the compilers that it has started
            end_child(child.pid)
            raise
    return subprocess.CompletedProcess(command, child.returncode, out, err)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
