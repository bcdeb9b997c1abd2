"""Kyoto Cabinet through its C interface: the commands of kyoto.toml.

    python -m tornpage.targets.bundled.kyoto_store run LIBRARY DIR
    python -m tornpage.targets.bundled.kyoto_store recover LIBRARY

A hash database whose transactions are hard, as Kyoto Cabinet calls those that are synced, and which maps no
memory. The state is all keys with the beginning of their values and their length.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path

from tornpage_mark import Refused, ack, issue, ready, serve

__all__ = ["main"]

COMMITS = 40
KEYS = 6
"""Of one commit."""
WRITER_CREATE = 2 | 4
"""KCOWRITER, KCOCREATE."""
HARD = 1
TUNING = "#bnum=31#msiz=0"


class Store:
    """DIR/main.kch."""

    def __init__(self, library: str, folder: str) -> None:
        """Raises Refused if it does not open."""
        self._library = ctypes.CDLL(library)
        for name in ("kcdbnew", "kcdbget"):
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

    def pairs(self) -> dict[str, str]:
        """A line for each key that there may be."""
        lines = []
        size = ctypes.c_size_t()
        for key in (b"key%02d" % number for number in range(COMMITS)):
            length = ctypes.c_size_t(len(key))
            found = self._library.kcdbget(self._handle, key, length, ctypes.byref(size))
            if found:
                value = ctypes.string_at(found, size.value)
                lines.append(
                    f"{key.decode()} {value[:8].decode('ascii', 'replace')} {len(value)}\n"
                )
                self._library.kcfree(ctypes.c_void_p(found))
        return {"pairs": "".join(lines)}


def run(library: str, folder: str) -> None:
    """Hard transactions, each of several keys."""
    store = Store(library, folder)
    if not store.call("kcdbsync", HARD, None, None):
        sys.exit("kyoto: the new database is not synced")
    ready(store.pairs())
    for number in range(1, COMMITS + 1):
        issue(number)
        done = store.call("kcdbbegintran", HARD)
        for position in range(KEYS):
            key = b"key%02d" % ((number * 5 + position * 3) % COMMITS)
            done = done and store.put(key, b"%08d" % number + b"x" * (number * 40 + position))
        if not done or not store.call("kcdbendtran", 1):
            sys.exit(f"kyoto: transaction {number} failed")
        ack(number, store.pairs())


def recover(library: str, folder: str) -> dict[str, str]:
    """Raises Refused where it does not open."""
    return Store(library, folder).pairs()


def main(arguments: Sequence[str]) -> None:
    """One of the two commands."""
    if arguments[0] == "run":
        run(*arguments[1:])
    else:
        serve(lambda folder: recover(arguments[1], folder))


if __name__ == "__main__":
    main(sys.argv[1:])
