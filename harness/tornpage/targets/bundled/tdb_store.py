"""TDB through its C interface: the commands of tdb.toml.

    python -m tornpage.targets.bundled.tdb_store run LIBRARY DIR
    python -m tornpage.targets.bundled.tdb_store recover LIBRARY

The state is all keys with the beginning of their values and their length. Values grow, so that commits make
the file grow. Recovery also asks tdb_check (I6).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tornpage_mark import Refused, ack, issue, ready, serve

__all__ = ["main"]

COMMITS = 40
KEYS = 6
"""Of one commit."""
HASH_SIZE = 31
NO_MAPPING = 8
"""TDB_NOMMAP."""
REPLACE = 1
"""TDB_REPLACE."""


class Data(ctypes.Structure):
    """TDB_DATA."""

    _fields_ = (("text", ctypes.c_void_p), ("size", ctypes.c_size_t))

    @classmethod
    def of(cls, text: bytes) -> Data:
        """Valid as long as the text is."""
        return cls(ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p), len(text))


class Store:
    """DIR/main.tdb."""

    def __init__(self, library: str, folder: str, mode: int) -> None:
        """Raises Refused if it does not open."""
        self._library = ctypes.CDLL(library, use_errno=True)
        self._library.tdb_open.restype = ctypes.c_void_p
        self._library.tdb_fetch.restype = Data
        self._library.tdb_fetch.argtypes = (ctypes.c_void_p, Data)
        self._library.tdb_store.argtypes = (ctypes.c_void_p, Data, Data, ctypes.c_int)
        path = str(Path(folder) / "main.tdb").encode()
        found = self._library.tdb_open(path, HASH_SIZE, NO_MAPPING, mode, 0o644)
        if not found:
            raise Refused(f"tdb_open: {os.strerror(ctypes.get_errno())}")
        self._handle = ctypes.c_void_p(found)

    def call(self, name: str, *more: object) -> bool:
        """Whether a function of it says that it has done its work."""
        return bool(getattr(self._library, name)(self._handle, *more) == 0)

    def put(self, key: bytes, value: bytes) -> bool:
        """Whether it did."""
        return self.call("tdb_store", Data.of(key), Data.of(value), REPLACE)

    def pairs(self) -> dict[str, str]:
        """A line for each key that there may be."""
        lines = []
        for key in (b"key%02d" % number for number in range(COMMITS)):
            found = self._library.tdb_fetch(self._handle, Data.of(key))
            if found.text:
                value = ctypes.string_at(found.text, found.size)
                lines.append(f"{key.decode()} {value[:8].decode()} {len(value)}\n")
        return {"pairs": "".join(lines)}


def run(library: str, folder: str) -> None:
    """Transactions, each of several keys."""
    store = Store(library, folder, os.O_RDWR | os.O_CREAT)
    ready(store.pairs())
    for number in range(1, COMMITS + 1):
        issue(number)
        done = store.call("tdb_transaction_start")
        for position in range(KEYS):
            key = b"key%02d" % ((number * 5 + position * 3) % COMMITS)
            done = done and store.put(key, b"%08d" % number + b"x" * (number * 40 + position))
        if not done or not store.call("tdb_transaction_commit"):
            sys.exit(f"tdb: transaction {number} failed")
        ack(number, store.pairs())


def recover(library: str, folder: str) -> tuple[dict[str, str], list[str]]:
    """Raises Refused where TDB does not open its file."""
    store = Store(library, folder, os.O_RDWR)
    is_right = store.call("tdb_check", None, None)
    return store.pairs(), [] if is_right else ["tdb_check fails"]


def main(arguments: Sequence[str]) -> None:
    """One of the two commands."""
    if arguments[0] == "run":
        run(*arguments[1:])
    else:
        serve(lambda folder: recover(arguments[1], folder))


if __name__ == "__main__":
    main(sys.argv[1:])
