"""What a process makes once and keeps for whatever it does next: programs that answer questions, recordings,
folders. Everything that is kept so is in a ProcessCache, or, where nothing has to be ended, under
functools.cache.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["ProcessCache"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ProcessCache(Generic[K, V]):
    """Values by key, at most `most` of them: the one that was not used for longest makes room for the next.
    end: is called with each that goes, at the latest when the process exits."""

    def __init__(self, most: int, end: Callable[[V], None] | None = None) -> None:
        self._most = most
        self._end = end
        self._kept: dict[K, V] = {}
        """From the one that was used first to the one that was used last."""
        atexit.register(self.clear)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of this key, which is made if there is none. Raises what `make` raises."""
        if key not in self._kept:
            made = make()  # if that fails, nothing has gone
            while len(self._kept) >= self._most:
                self._drop(next(iter(self._kept)))
            self._kept[key] = made
        value = self._kept[key] = self._kept.pop(key)
        return value

    def take(self, key: K) -> V | None:
        """Takes it out, to be ended by the caller; None: there is none."""
        return self._kept.pop(key, None)

    def keep(self, wanted: Callable[[K], bool]) -> None:
        """Ends those whose key is not wanted."""
        for key in [key for key in self._kept if not wanted(key)]:
            self._drop(key)

    def clear(self) -> None:
        """Ends all."""
        while self._kept:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: K) -> None:
        value = self._kept.pop(key)
        if self._end is not None:
            self._end(value)
