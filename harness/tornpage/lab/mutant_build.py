"""The programs of a mutant: a copy of the sources, its patch, an incremental build.

build/mutants/src is the copy. build/mutants/bin/NAME is laid out like a build folder (TORNPAGE_BUILD) and
counts as long as sources and patch are the same: whatever a campaign starts is there.
"""

from __future__ import annotations

import fcntl
import itertools
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import xxhash

from tornpage.faults.audit import AUDITOR
from tornpage.faults.process import LAUNCHER
from tornpage.lab.changed import changed_functions
from tornpage.lab.mutant_table import Mutant
from tornpage.lab.source_copy import BuildFailed, SourceCopy, sources_digest, touched_files
from tornpage.lab.traced import traced_program
from tornpage.targets.registry import DEFAULT_TARGET, TARGETS
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import ROOT

__all__ = ["MutantBuilder", "wanted_programs"]

TRACED = "traced"
"""Beside the mutant's other programs, and gone with them."""
_SUBDIRECTORY = re.compile(r"^add_subdirectory\((\S+)\)", re.MULTILINE)


def wanted_programs() -> tuple[Path, ...]:
    """All that a campaign starts, below a build folder."""
    return (*TARGETS[DEFAULT_TARGET](Path()).programs().values(), LAUNCHER, AUDITOR)


class MutantBuilder:
    """Builds mutants one at a time, below `folder`; several processes take turns."""

    def __init__(self, root: Path = ROOT, folder: Path = ROOT / "build" / "mutants") -> None:
        self._root = root
        self._folder = folder
        self._programs = wanted_programs()
        sources = self._read_sources()
        self._digest = sources_digest(sources)
        self._copy = SourceCopy(root, sources, folder / "src")

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
            self._copy.restore()
            wrong = [
                f"{m.name}: {why}" for m in mutants if (why := self._copy.apply(m.diff, "--check"))
            ]
        if wrong:
            raise ConfigError("\n".join([f"{len(wrong)} patches do not apply:", *wrong]))

    def changed(self, mutant: Mutant) -> tuple[str, ...]:
        """The functions in C that the patch changes. Raises ConfigError if it does not apply."""
        with self._turn():
            self._copy.restore()
            files = [name for name in touched_files(mutant.diff) if name.endswith((".c", ".h"))]
            before = {name: self._copy.text(name) for name in files}
            why = self._copy.apply(mutant.diff)
            if why:
                raise ConfigError(f"{mutant.name}: the patch does not apply: {why}")
            after = {name: self._copy.text(name) for name in files}
            self._copy.restore()
        found = (changed_functions(before[name], after[name]) for name in files)
        return tuple(dict.fromkeys(itertools.chain.from_iterable(found)))

    def build(self, mutant: Mutant) -> Path:
        """The folder with the mutant's programs, built unless they are there. Raises ConfigError if its
        patch does not apply, BuildFailed if it does not compile."""
        out = self._folder / "bin" / mutant.name
        with self._turn():
            if self.is_built(mutant):
                return out
            with self._patched(mutant):
                self._copy.build(self._programs)
                self._keep(out, self.key(mutant))
        return out

    def traced(self, mutant: Mutant) -> Path:
        """The program of a mutant that is built, as one that tells its calls. Raises as build()."""
        out = self._folder / "bin" / mutant.name / TRACED
        with self._turn():
            if not out.is_file():
                with self._patched(mutant):
                    shutil.copy2(traced_program(self._copy.folder), out)
        return out

    @contextmanager
    def _patched(self, mutant: Mutant) -> Iterator[None]:
        self._copy.restore()
        why = self._copy.apply(mutant.diff)
        if why:
            raise ConfigError(f"{mutant.name}: the patch does not apply: {why}")
        try:
            yield
        except BuildFailed as error:
            raise BuildFailed(f"{mutant.name}: {error}") from error
        finally:
            self._copy.restore()

    def _read_sources(self) -> dict[str, bytes]:
        """What cmake reads: the files of the top folder that it needs, the folders they name, and the header
        that programs include."""
        files = {name: (self._root / name).read_bytes() for name in _TOP}
        for folder in (*_SUBDIRECTORY.findall(files["CMakeLists.txt"].decode()), _HEADERS):
            for path in (self._root / folder).rglob("*"):
                if path.is_file() and path.suffix not in _NOT_READ:
                    files[str(path.relative_to(self._root))] = path.read_bytes()
        return files

    def _keep(self, out: Path, key: str) -> None:
        shutil.rmtree(out, ignore_errors=True)
        for path in self._programs:
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self._copy.build_folder / path, out / path)
        (out / "key").write_text(key, encoding="ascii")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


_TOP = ("CMakeLists.txt", "CMakePresets.json")
_HEADERS = "marking"
_NOT_READ = frozenset({".md", ".py", ".pyc"})


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
