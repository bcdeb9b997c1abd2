"""RocksDB through its C interface: the commands of rocksdb.toml.

    python -m tornpage.targets.bundled.rocksdb_store run LIBRARY DIR SYNC INGEST
    python -m tornpage.targets.bundled.rocksdb_store recover LIBRARY

Batches that change two column families at once, with a write buffer so small that tables are written and
compacted, in a store that is closed and opened again. SYNC: on or off. INGEST: whether some commits are files
of a table, made beside the store and ingested (on or off). The state is all pairs of each family.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tornpage_mark import Refused, ack, issue, ready

from tornpage.targets.bundled.library import lines_of, main

__all__ = ["recover", "run"]

FAMILIES = (b"default", b"second")
COMMITS = 60
KEYS = 8
ALL_KEYS = tuple(b"key%03d" % number for number in range(61))
REOPENED_EVERY = 15
INGESTED_EVERY = 6
WRITE_BUFFER_BYTES = 65536
"""The least that RocksDB takes."""
SCATTERED = 11
"""Values are up to so many times as long as their key's number."""


class Store:
    """All pairs and both families of a folder."""

    def __init__(self, library: str, folder: str, sync: bool = True) -> None:
        """Raises Refused if it does not open."""
        self._library = ctypes.CDLL(library)
        for name in _POINTERS:
            getattr(self._library, f"rocksdb_{name}").restype = ctypes.c_void_p
        self._options = self._make("options_create")
        self._call("options_set_create_if_missing", self._options, 1)
        self._call("options_set_create_missing_column_families", self._options, 1)
        size = ctypes.c_size_t(WRITE_BUFFER_BYTES)
        self._call("options_set_write_buffer_size", self._options, size)
        self._write = self._make("writeoptions_create")
        self._call("writeoptions_set_sync", self._write, int(sync))
        self._read = self._make("readoptions_create")
        self._folder = folder
        self._open()

    def _open(self) -> None:
        names = (ctypes.c_char_p * len(FAMILIES))(*FAMILIES)
        options = (ctypes.c_void_p * len(FAMILIES))(*[self._options] * len(FAMILIES))
        self._families = (ctypes.c_void_p * len(FAMILIES))()
        opened = (
            self._options,
            self._folder.encode(),
            len(FAMILIES),
            names,
            options,
            self._families,
        )
        self._store = ctypes.c_void_p(self._tried("open_column_families", *opened))

    def _call(self, name: str, *arguments: object) -> Any:
        return getattr(self._library, f"rocksdb_{name}")(*arguments)

    def _make(self, name: str, *arguments: object) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._call(name, *arguments))

    def _tried(self, name: str, *arguments: object) -> Any:
        """Raises Refused with what RocksDB says."""
        error = ctypes.c_char_p()
        answer = self._call(name, *arguments, ctypes.byref(error))
        if error.value is not None:
            raise Refused(error.value.decode(errors="replace").replace(self._folder, "DIR"))
        return answer

    def reopen(self) -> None:
        """Closes it, and opens it again."""
        for family in self._families:
            self._call("column_family_handle_destroy", ctypes.c_void_p(family))
        self._call("close", self._store)
        self._open()

    def put(self, pairs: list[tuple[int, bytes, bytes]], gone: list[tuple[int, bytes]]) -> None:
        """One batch. pairs, gone: each with the number of its family."""
        batch = self._make("writebatch_create")
        for family, key, value in pairs:
            handle = ctypes.c_void_p(self._families[family])
            self._call("writebatch_put_cf", batch, handle, *_sized(key), *_sized(value))
        for family, key in gone:
            handle = ctypes.c_void_p(self._families[family])
            self._call("writebatch_delete_cf", batch, handle, *_sized(key))
        self._tried("write", self._store, self._write, batch)
        self._call("writebatch_destroy", batch)

    def ingest(self, pairs: list[tuple[bytes, bytes]], name: str) -> None:
        """By a file of a table beside the store's own, which gets another name by a hard link. pairs: by key;
        into the second family."""
        file = str(Path(self._folder) / name).encode()
        environment = self._make("envoptions_create")
        writer = self._make("sstfilewriter_create", environment, self._options)
        self._tried("sstfilewriter_open", writer, file)
        for key, value in pairs:
            self._tried("sstfilewriter_put", writer, *_sized(key), *_sized(value))
        self._tried("sstfilewriter_finish", writer)
        self._call("sstfilewriter_destroy", writer)
        options = self._make("ingestexternalfileoptions_create")
        self._call("ingestexternalfileoptions_set_move_files", options, 1)
        family = ctypes.c_void_p(self._families[1])
        files = (ctypes.c_char_p * 1)(file)
        self._tried(
            "ingest_external_file_cf", self._store, family, files, ctypes.c_size_t(1), options
        )

    def state(self) -> dict[str, str]:
        """A line for each pair of a family, by a walk and by its key."""
        families = {
            name.decode(): ctypes.c_void_p(family)
            for name, family in zip(FAMILIES, self._families, strict=True)
        }
        return {
            name: lines_of(self._walk(family), partial(self._get, family), ALL_KEYS)
            for name, family in families.items()
        }

    def _get(self, family: ctypes.c_void_p, key: bytes) -> bytes | None:
        size = ctypes.c_size_t()
        where = (self._store, self._read, family, *_sized(key), ctypes.byref(size))
        found = self._tried("get_cf", *where)
        if found is None:
            return None
        value = ctypes.string_at(found, size.value)
        self._call("free", ctypes.c_void_p(found))
        return value

    def _walk(self, family: ctypes.c_void_p) -> Iterator[tuple[bytes, bytes]]:
        iterator = self._make("create_iterator_cf", self._store, self._read, family)
        self._call("iter_seek_to_first", iterator)
        while self._library.rocksdb_iter_valid(iterator) & 0xFF:
            key, value = (self._text(iterator, name) for name in ("iter_key", "iter_value"))
            yield key, value
            self._call("iter_next", iterator)
        self._tried("iter_get_error", iterator)
        self._call("iter_destroy", iterator)

    def _text(self, iterator: ctypes.c_void_p, name: str) -> bytes:
        size = ctypes.c_size_t()
        return ctypes.string_at(self._call(name, iterator, ctypes.byref(size)), size.value)


_POINTERS = (
    *("options_create", "writeoptions_create", "readoptions_create", "open_column_families"),
    *("writebatch_create", "envoptions_create", "sstfilewriter_create"),
    *("ingestexternalfileoptions_create", "create_iterator_cf", "iter_key", "iter_value", "get_cf"),
)
"""Functions that return a pointer."""


def _sized(text: bytes) -> tuple[bytes, ctypes.c_size_t]:
    return text, ctypes.c_size_t(len(text))


def _value(number: int, key: int) -> bytes:
    return b"%08d" % number + bytes([65 + key % 26]) * (key * SCATTERED)


def run(library: str, folder: str, sync: str, ingest: str) -> None:
    """Batches of puts and deletes in both families; every key comes again and again."""
    store = Store(library, folder, sync == "on")
    ready(store.state())
    for number in range(1, COMMITS + 1):
        issue(number)
        keys = sorted({(number * 7 + position * 5) % len(ALL_KEYS) for position in range(KEYS)})
        if ingest == "on" and number % INGESTED_EVERY == 0:
            store.ingest([(ALL_KEYS[key], _value(number, key)) for key in keys], "ingested.sst")
        else:
            pairs = [(key % 2, ALL_KEYS[key], _value(number, key)) for key in keys]
            store.put(pairs, [(number % 2, ALL_KEYS[number * 3 % len(ALL_KEYS)])])
        ack(number, store.state())
        if number % REOPENED_EVERY == 0:
            store.reopen()


def recover(library: str, folder: str) -> dict[str, str]:
    """Raises Refused where RocksDB finds its files corrupt."""
    return Store(library, folder).state()


if __name__ == "__main__":
    main(sys.argv[1:], run, recover)
