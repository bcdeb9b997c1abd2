"""The store's file: opened, brought up to date, written in transactions; and the locks of its owners.

May import: errors, migrate, runlock.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Self
from urllib.parse import quote

from tornpage.store.migrate import SCHEMA_VERSION, prepare, version_of
from tornpage.store.runlock import RunLock
from tornpage.vocabulary.errors import ConfigError, MachineError

__all__ = ["Database"]

BUSY_S = 60.0
"""How long a transaction waits for another process's."""


class Database:
    """One open store. Not shared between processes: workers hand their results to the owner."""

    def __init__(self, path: Path, *, create: bool = True, write: bool = True) -> None:
        """Opens `path`, creating it if asked; write False: changes nothing but to bring an older version up
        to date. ConfigError: absent, no store, or a newer version."""
        self.path = path
        self._locks: dict[str, RunLock] = {}
        if not (create and write) and not path.exists():
            raise ConfigError(f"{path}: no result store here; `tornpage run` makes one")
        try:
            if write:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._db = self._open(write)
        except OSError as error:
            raise ConfigError(f"{error.filename or path}: {error.strerror}") from error
        except sqlite3.OperationalError as error:
            raise ConfigError(f"{path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise ConfigError(f"{path}: not a result store of Tornpage ({error})") from error

    def _open(self, write: bool) -> sqlite3.Connection:
        if not write:
            db = self._connect("mode=ro")
            if version_of(db) == SCHEMA_VERSION:
                return db
            if not os.access(self.path, os.W_OK) or not os.access(self.path.parent, os.W_OK):
                return self._brought_up_to_date_in_memory(db)
            db.close()
        db = self._connect("mode=rwc")
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        prepare(db, self.path)
        if write:
            return db
        db.close()
        return self._connect("mode=ro")

    def _brought_up_to_date_in_memory(self, db: sqlite3.Connection) -> sqlite3.Connection:
        """A store of an older version in a place that cannot be written."""
        memory = sqlite3.connect(":memory:", isolation_level=None)
        db.backup(memory)
        db.close()
        prepare(memory, self.path)
        memory.execute("pragma query_only = on")
        return memory

    def _connect(self, mode: str) -> sqlite3.Connection:
        """A folder that cannot be written has no place for the shared memory of WAL."""
        if mode == "mode=ro" and not os.access(self.path.parent, os.W_OK):
            mode += "&immutable=1"
        uri = f"file:{quote(str(self.path.absolute()))}?{mode}"
        return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
        for lock in self._locks.values():
            lock.release()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing. MachineError where the disk is full."""
        try:
            if self._db.in_transaction:  # a signal ended the last one in its middle
                self._db.execute("rollback")
            self._db.execute("begin immediate")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise
            self._db.execute("commit")
        except sqlite3.OperationalError as error:
            raise MachineError(f"{self.path}: {error}") from error

    def _lock(self, what: str) -> None:
        """Takes the lock of "run 3" or "night 1" until the store is closed. ConfigError: it is taken."""
        if what not in self._locks:
            path = self.path.with_name(f"{what.replace(' ', '-')}.lock")
            self._locks[what] = RunLock(path, what)
