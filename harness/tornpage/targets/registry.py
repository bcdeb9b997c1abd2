"""The targets that there are, by name.

May import: errors, preload, target.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tornpage.faults.preload import preload_path
from tornpage.targets.sqlite.target import SqliteTarget
from tornpage.targets.target import EngineTarget, Target
from tornpage.vocabulary.errors import ConfigError

__all__ = ["TARGETS", "explorer_path", "make_target"]


def explorer_path(build: Path) -> Path:
    """The power-loss explorer of a build folder."""
    return build / "explorer" / "tornpage-explore"


TARGETS: dict[str, Callable[[Path], Target]] = {
    "engine": lambda build: EngineTarget(
        build / "engine" / "engine", preload_path(build), explorer_path(build)
    ),
    "sqlite": lambda build: SqliteTarget(preload_path(build), explorer_path(build)),
}
"""Known targets: name -> constructor that takes the build folder."""


def make_target(name: str, build: Path) -> Target:
    """The target of this name from a build folder (as build/release). Raises ConfigError, TargetError."""
    if name not in TARGETS:
        raise ConfigError(f"unknown target {name!r} (known: {', '.join(sorted(TARGETS))})")
    target = TARGETS[name](build.resolve())
    target.check_ready()
    return target
