"""A copy of the sources that is patched, built, and put right again.

Only files that differ are written, so that ninja rebuilds what a patch touches, in seconds; whatever an
interrupted user left in the copy is put right by the next one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import xxhash

from tornpage.faults.process import ChildResult, run_child
from tornpage.vocabulary.errors import ConfigError

__all__ = [
    "JOBS",
    "PRESET",
    "BuildFailed",
    "SourceCopy",
    "build_step",
    "printed",
    "read_tree",
    "run_tool",
    "sources_digest",
    "touched_files",
]

PRESET = "release"
"""The product's: mutants are compiled with its flags."""
JOBS = 2
STEP_DEADLINE_S = 1800.0
_MADE = frozenset({"build", "out", "__pycache__"})
"""Folders of what is made from sources, beside the hidden ones."""
_TOUCHED = re.compile(r"^(?:---|\+\+\+) [ab]/(\S+)", re.MULTILINE)


class BuildFailed(ConfigError):
    """A patched tree does not compile."""


def read_tree(root: Path) -> dict[str, bytes]:
    """Every file below `root`, by its relative path, but for hidden folders and what is made from them."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(_files(root))}


def _files(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            if entry.name not in _MADE and not entry.name.startswith("."):
                yield from _files(entry)
        elif entry.is_file() and entry.suffix != ".pyc":
            yield entry


def sources_digest(sources: Mapping[str, bytes]) -> str:
    """Of names and contents."""
    digest = xxhash.xxh3_64()
    for path, content in sorted(sources.items()):
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def touched_files(diff: str) -> list[str]:
    """The files that a patch is about, each once."""
    return list(dict.fromkeys(_TOUCHED.findall(diff)))


class SourceCopy:
    """The copy at `folder` of `sources`: contents by path relative to `root`, which is read for modes only.
    One user at a time."""

    def __init__(self, root: Path, sources: Mapping[str, bytes], folder: Path) -> None:
        self._root = root
        self._sources = sources
        self.folder = folder
        self.build_folder = folder / "build" / PRESET

    def restore(self) -> None:
        """Makes the copy equal to the sources."""
        self.folder.mkdir(parents=True, exist_ok=True)
        found = {str(path.relative_to(self.folder)) for path in _files(self.folder)}
        wrong = {
            name
            for name, content in self._sources.items()
            if name not in found or (self.folder / name).read_bytes() != content
        }
        if any(Path(name).name == "CMakeLists.txt" for name in wrong) or (
            found != self._sources.keys()
        ):
            (self.build_folder / "build.ninja").unlink(missing_ok=True)  # configured anew
        for name in found - self._sources.keys():
            (self.folder / name).unlink()
            self._forget_bytecode(name)
        for name in wrong:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._sources[name])
            shutil.copymode(self._root / name, path)
            self._forget_bytecode(name)

    def apply(self, diff: str, *options: str) -> str:
        """Patches the copy (options: of git apply); why that is not possible, else ""."""
        # Without a ceiling git would find the checkout around the copy, and its paths would count from there.
        env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
        patch = self.folder.with_name(f"{self.folder.name}.patch")
        patch.write_text(diff, encoding="utf-8")
        done = run_tool(["git", "apply", *options, str(patch)], self.folder, env)
        for name in touched_files(diff):
            self._forget_bytecode(name)
        return "" if done.exit_code == 0 else "; ".join(printed(done)) or done.describe()

    def text(self, name: str) -> str:
        """The contents of a file as they are now; "" if there is none."""
        path = self.folder / name
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def configure(self) -> None:
        """Makes the build folder, unless it is there."""
        if not (self.build_folder / "build.ninja").is_file():
            build_step(["cmake", "--preset", PRESET, "-DTORNPAGE_LTO=OFF"], self.folder)

    def build(self, targets: Iterable[str | Path]) -> None:
        """Builds these, which are named as ninja names them. Raises BuildFailed with the errors."""
        names = [str(target) for target in targets]
        self.configure()
        if names:
            command = ["cmake", "--build", "--preset", PRESET, "--parallel", str(JOBS)]
            build_step([*command, "--target", *names], self.folder)

    def _forget_bytecode(self, name: str) -> None:
        """Python tells by second and size whether it is that of the source; a patch may change neither."""
        path = self.folder / name
        if path.suffix == ".py":
            for old in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                old.unlink()


def build_step(command: list[str], folder: Path) -> None:
    """Runs a step of a build in `folder`. Raises BuildFailed with the errors."""
    done = run_tool(command, folder, os.environ)
    if done.exit_code != 0:
        lines = printed(done)
        errors = [line for line in lines if " error: " in line] or lines[-5:]
        errors = errors or [done.describe()]
        raise BuildFailed("does not compile: " + "; ".join(errors[:3]))


def run_tool(
    command: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    deadline_s: float = STEP_DEADLINE_S,
) -> ChildResult:
    """Runs a program of the tool chain in `folder`. ConfigError: no such program; else as run_child()."""
    programs = [shutil.which(name) for name in ("env", command[0])]
    if not programs[0] or not programs[1]:
        raise ConfigError(f"{command[0]}: no such program, and mutants are built with it")
    argv = [programs[0], f"--chdir={folder}", programs[1], *command[1:]]
    return run_child(argv, env, deadline_s)


def printed(child: ChildResult) -> list[str]:
    """Lines of its output, then those of its errors."""
    return (child.stdout + child.stderr).decode("utf-8", "replace").splitlines()
