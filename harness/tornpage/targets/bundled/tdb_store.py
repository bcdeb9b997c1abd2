"""TDB through its C interface: the commands of tdb.toml.

    python -m tornpage.targets.bundled.tdb_store run LIBRARY DIR
    python -m tornpage.targets.bundled.tdb_store recover LIBRARY

The state is all keys with the beginning of their values, their length and checksum. Recovery also asks
tdb_check (I6).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tornpage_mark import Refused

from tornpage.targets.bundled.library import commit_pairs, main, pairs_of

__all__ = ["recover", "run"]

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


VISIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, Data, Data, ctypes.c_void_p)


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

    def get(self, key: bytes) -> bytes | None:
        """None: it has no such key."""
        found = self._library.tdb_fetch(self._handle, Data.of(key))
        return ctypes.string_at(found.text, found.size) if found.text else None

    def keys(self) -> Iterable[bytes]:
        """By its traversal, as far as that comes: tdb_check says more of a chain that ends in nothing."""
        found: list[bytes] = []

        def meet(_store: object, key: Data, _value: Data, _context: object) -> int:
            found.append(ctypes.string_at(key.text, key.size))
            return 0

        self._library.tdb_traverse_read(self._handle, VISIT(meet), None)
        return found

    def begin(self) -> bool:
        """Whether it did."""
        return self.call("tdb_transaction_start")

    def commit(self) -> bool:
        """Whether it did."""
        return self.call("tdb_transaction_commit")


def run(library: str, folder: str) -> None:
    """Transactions, each of several keys."""
    commit_pairs(Store(library, folder, os.O_RDWR | os.O_CREAT))


def recover(library: str, folder: str) -> tuple[dict[str, str], list[str]]:
    """Raises Refused where TDB does not open its file."""
    store = Store(library, folder, os.O_RDWR)
    is_right = store.call("tdb_check", None, None)
    return pairs_of(store), [] if is_right else ["tdb_check fails"]


if __name__ == "__main__":
    main(sys.argv[1:], run, recover)
