"""What a target needs and is not here: offered, or fetched with --fetch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tornpage.lab.fetch import bring, can_bring
from tornpage.targets.command.target import CommandTarget
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import ConfigError, MissingError
from tornpage.vocabulary.paths import find_paths

__all__ = ["with_needs"]

T = TypeVar("T")


def with_needs(fetch_them: bool, open_target: Callable[[], T]) -> T:
    """What is opened, which needs ready targets. What they need and is not here is fetched first, or the
    error offers to."""
    brought: set[str] = set()
    while True:
        try:
            return open_target()
        except MissingError as error:
            if error.target in brought:
                raise
            if not fetch_them:
                offer = ", or --fetch does it" if can_bring(error.remedy) else ""
                raise ConfigError(f"{error}{offer}") from error
            target = make_target(error.target, find_paths().build, ready=False)
            assert isinstance(target, CommandTarget), "nothing else misses anything"
            bring(target, error)
            brought.add(error.target)
