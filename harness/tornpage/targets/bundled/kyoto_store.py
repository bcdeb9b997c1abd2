"""Kyoto Cabinet through its C interface: the commands of kyoto.toml.

    python -m tornpage.targets.bundled.kyoto_store run LIBRARY DIR
    python -m tornpage.targets.bundled.kyoto_store recover LIBRARY

A hash database whose transactions are hard, as Kyoto Cabinet calls those that are synced, and which maps no
memory. The state is all keys with the beginning of their values, their length and checksum.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from pathlib import Path

from tornpage_mark import Refused

from tornpage.targets.bundled.library import commit_pairs, main, pairs_of

__all__ = ["recover", "run"]

WRITER_CREATE = 2 | 4
"""KCOWRITER, KCOCREATE."""
HARD = 1
TUNING = "#bnum=31#msiz=0"


class Store:
    """DIR/main.kch."""

    def __init__(self, library: str, folder: str) -> None:
        """Raises Refused if it does not open."""
        self._library = ctypes.CDLL(library)
        for name in ("kcdbnew", "kcdbget", "kcdbcursor", "kccurgetkey"):
            getattr(self._library, name).restype = ctypes.c_void_p
        self._library.kcdbemsg.restype = ctypes.c_char_p
        self._handle = ctypes.c_void_p(self._library.kcdbnew())
        path = f"{Path(folder) / 'main.kch'}{TUNING}".encode()
        if not self.call("kcdbopen", path, WRITER_CREATE):
            raise Refused(f"kcdbopen: {self._library.kcdbemsg(self._handle).decode()}")

    def call(self, name: str, *more: object) -> bool:
        """Whether a function of it says that it has done its work."""
        return bool(getattr(self._library, name)(self._handle, *more))

    def put(self, key: bytes, value: bytes) -> bool:
        """Whether it did."""
        sizes = (ctypes.c_size_t(len(key)), ctypes.c_size_t(len(value)))
        return self.call("kcdbset", key, sizes[0], value, sizes[1])

    def get(self, key: bytes) -> bytes | None:
        """None: it has no such key."""
        size = ctypes.c_size_t()
        length = ctypes.c_size_t(len(key))
        found = self._library.kcdbget(self._handle, key, length, ctypes.byref(size))
        if not found:
            return None
        value = ctypes.string_at(found, size.value)
        self._library.kcfree(ctypes.c_void_p(found))
        return value

    def keys(self) -> Iterable[bytes]:
        """By a cursor."""
        cursor = ctypes.c_void_p(self._library.kcdbcursor(self._handle))
        self._library.kccurjump(cursor)
        size = ctypes.c_size_t()
        while text := self._library.kccurgetkey(cursor, ctypes.byref(size), 1):
            yield ctypes.string_at(text, size.value)
            self._library.kcfree(ctypes.c_void_p(text))
        self._library.kccurdel(cursor)

    def begin(self) -> bool:
        """A hard transaction."""
        return self.call("kcdbbegintran", HARD)

    def commit(self) -> bool:
        """Whether it did."""
        return self.call("kcdbendtran", 1)


def run(library: str, folder: str) -> None:
    """Hard transactions, each of several keys."""
    store = Store(library, folder)
    if not store.call("kcdbsync", HARD, None, None):
        sys.exit("kyoto: the new database is not synced")
    commit_pairs(store)


def recover(library: str, folder: str) -> dict[str, str]:
    """Raises Refused where it does not open."""
    return pairs_of(Store(library, folder))


if __name__ == "__main__":
    main(sys.argv[1:], run, recover)
