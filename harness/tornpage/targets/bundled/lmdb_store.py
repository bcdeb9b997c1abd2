"""LMDB through its C interface: the commands of lmdb.toml.

    python -m tornpage.targets.bundled.lmdb_store run LIBRARY DIR MODE SYNC
    python -m tornpage.targets.bundled.lmdb_store recover LIBRARY

MODE: write, or map (MDB_WRITEMAP). SYNC: on, or off (MDB_NOSYNC). The state is all keys with the beginning of
their values, their length and checksum.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable

from tornpage_mark import Refused

from tornpage.targets.bundled.library import commit_pairs, main, pairs_of

__all__ = ["recover", "run"]

NO_SYNC = 0x10000
"""MDB_NOSYNC."""
WRITE_MAP = 0x80000
"""MDB_WRITEMAP."""
CREATE = 0x40000
"""MDB_CREATE."""
READ_ONLY = 0x20000
"""MDB_RDONLY."""
NEXT = 8
"""MDB_NEXT; of a new cursor the first."""
NOT_FOUND = -30798
"""MDB_NOTFOUND."""
MAP_BYTES = 8 << 20


class Data(ctypes.Structure):
    """MDB_val."""

    _fields_ = (("size", ctypes.c_size_t), ("text", ctypes.c_void_p))

    @classmethod
    def of(cls, text: bytes) -> Data:
        """Valid as long as the text is."""
        return cls(len(text), ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p))


class Store:
    """An environment in DIR with its unnamed database."""

    def __init__(self, library: str, folder: str, flags: int) -> None:
        """Raises Refused if it does not open."""
        self._library = ctypes.CDLL(library)
        self._library.mdb_strerror.restype = ctypes.c_char_p
        self._environment = ctypes.c_void_p()
        self._transaction = ctypes.c_void_p()
        self._database = ctypes.c_uint()
        self._call("mdb_env_create", ctypes.byref(self._environment))
        self._call("mdb_env_set_mapsize", self._environment, ctypes.c_size_t(MAP_BYTES))
        self._call("mdb_env_open", self._environment, folder.encode(), flags, 0o644)
        self.begin()
        self._call("mdb_dbi_open", self._transaction, None, CREATE, ctypes.byref(self._database))
        self.commit()

    def _call(self, name: str, *arguments: object) -> None:
        """Raises Refused if it fails."""
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            raise Refused(f"{name}: {self._library.mdb_strerror(code).decode()}")

    def begin(self, flags: int = 0) -> bool:
        """True."""
        transaction = ctypes.byref(self._transaction)
        self._call("mdb_txn_begin", self._environment, None, flags, transaction)
        return True

    def put(self, key: bytes, value: bytes) -> bool:
        """True."""
        pair = (Data.of(key), Data.of(value))
        self._call("mdb_put", self._transaction, self._database, *map(ctypes.byref, pair), 0)
        return True

    def keys(self) -> Iterable[bytes]:
        """By a cursor, in a transaction of its own."""
        self.begin(READ_ONLY)
        cursor, key, value = ctypes.c_void_p(), Data(), Data()
        self._call("mdb_cursor_open", self._transaction, self._database, ctypes.byref(cursor))
        found = []
        step = (cursor, ctypes.byref(key), ctypes.byref(value), NEXT)
        while (code := self._library.mdb_cursor_get(*step)) == 0:
            found.append(ctypes.string_at(key.text, key.size))
        self._library.mdb_cursor_close(cursor)
        self._library.mdb_txn_abort(self._transaction)
        if code != NOT_FOUND:
            raise Refused(f"mdb_cursor_get: {self._library.mdb_strerror(code).decode()}")
        return found

    def commit(self) -> bool:
        """True."""
        self._call("mdb_txn_commit", self._transaction)
        return True

    def get(self, key: bytes) -> bytes | None:
        """In a transaction of its own. None: there is no such key."""
        self.begin(READ_ONLY)
        found = Data()
        wanted = ctypes.byref(Data.of(key))
        code = self._library.mdb_get(self._transaction, self._database, wanted, ctypes.byref(found))
        value = ctypes.string_at(found.text, found.size) if code == 0 else None
        self._library.mdb_txn_abort(self._transaction)
        if code not in (0, NOT_FOUND):
            raise Refused(f"mdb_get: {self._library.mdb_strerror(code).decode()}")
        return value


def run(library: str, folder: str, mode: str, sync: str) -> None:
    """Transactions, each of several keys."""
    flags = (WRITE_MAP if mode == "map" else 0) | (NO_SYNC if sync == "off" else 0)
    commit_pairs(Store(library, folder, flags))


def recover(library: str, folder: str) -> dict[str, str]:
    """Raises Refused where LMDB does not open its file."""
    return pairs_of(Store(library, folder, 0))


if __name__ == "__main__":
    main(sys.argv[1:], run, recover)
