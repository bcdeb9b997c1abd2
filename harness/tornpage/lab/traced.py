"""Programs of the bundled engine that tell which functions they call: any tree of its sources is built with
the hooks of this checkout, in its folder build/traced.
"""

from __future__ import annotations

import fcntl
import re
from pathlib import Path

from tornpage.lab.source_copy import JOBS, build_step
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import ROOT

__all__ = ["traced_program", "tree_of"]

HOOKS = ROOT / "faults" / "calls.cmake"
PROGRAM = Path("engine", "engine")
_HOME = re.compile(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.+)$", re.MULTILINE)


def tree_of(build: Path) -> Path:
    """The sources of a build folder. ConfigError: it does not say."""
    cache = build / "CMakeCache.txt"
    home = _HOME.search(cache.read_text("utf-8")) if cache.is_file() else None
    if home is None:
        raise ConfigError(f"{build} has no {cache.name}, which names the sources of its programs")
    return Path(home[1])


def traced_program(tree: Path) -> Path:
    """Builds what is not built yet. Raises BuildFailed; ConfigError: they are no sources of the engine."""
    tree = tree.resolve()
    build = tree / "build" / "traced"
    if not (tree / "engine" / "cli" / "main.c").is_file():
        raise ConfigError(
            f"{tree} is no checkout with the bundled engine: it has no engine/cli/main.c"
        )
    build.mkdir(parents=True, exist_ok=True)
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (build / "build.ninja").is_file():
            sets = ("CMAKE_C_COMPILER=gcc", "TORNPAGE_TESTS=OFF", f"CMAKE_PROJECT_INCLUDE={HOOKS}")
            where = ["-S", str(tree), "-B", str(build), "-G", "Ninja"]
            build_step(["cmake", *where, *(f"-D{one}" for one in sets)], tree)
        command = ["cmake", "--build", str(build), "--parallel", str(JOBS)]
        build_step([*command, "--target", str(PROGRAM)], tree)
    return build / PROGRAM
