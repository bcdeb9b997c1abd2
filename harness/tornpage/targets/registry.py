"""The targets that there are, by name.

May import: errors, target and the modules of the targets.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tornpage.targets.sqlite.target import SqliteTarget
from tornpage.targets.target import EngineTarget, Target
from tornpage.vocabulary.errors import ConfigError

__all__ = ["TARGETS", "make_target"]


def _preload(build: Path) -> Path:
    return build / "faults" / "libtornpage_preload.so"


def _explorer(build: Path) -> Path:
    return build / "explorer" / "tornpage-explore"


TARGETS: dict[str, Callable[[Path], Target]] = {
    "engine": lambda build: EngineTarget(
        build / "engine" / "engine", _preload(build), _explorer(build)
    ),
    "sqlite": lambda build: SqliteTarget(_preload(build), _explorer(build)),
}
"""Known targets: name -> constructor that takes the build folder."""


def make_target(name: str, build: Path) -> Target:
    """The target of this name from a build folder (as build/release). Raises ConfigError, TargetError."""
    if name not in TARGETS:
        raise ConfigError(f"unknown target {name!r} (known: {', '.join(sorted(TARGETS))})")
    target = TARGETS[name](build.resolve())
    target.check_ready()
    return target
