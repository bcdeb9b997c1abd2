"""A store in a file: SQLite in WAL mode. Owners hold lock files beside it."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, StaticPool, create_engine, event
from sqlalchemy.exc import DatabaseError, OperationalError

from tornpage.store.create import create_store, schema_there
from tornpage.store.runlock import RunLock
from tornpage.store.schema import VERSION
from tornpage.vocabulary.errors import ConfigError, MachineError
from tornpage.vocabulary.outputs import FULL, full_disk
from tornpage.vocabulary.paths import DEFAULT_OUT

__all__ = ["FILE", "StoreFile"]

FILE = "tornpage.db"
"""Its name in an output folder."""
BUSY_S = 60.0
"""How long a transaction waits for another process's."""


class StoreFile:
    """The place of a store that this machine's processes may use."""

    shared = False

    def __init__(self, path: Path) -> None:
        """path: of the file."""
        self._path = path

    @property
    def name(self) -> str:
        """As people are told."""
        return str(self._path)

    @property
    def options(self) -> str:
        """What makes a command find it, "" where it does anyway."""
        if self._path.name != FILE:
            return f"--store {shlex.quote(self.name)}"
        folder = self._path.parent
        return "" if folder == DEFAULT_OUT else f"--out {shlex.quote(str(folder))}"

    @property
    def folder(self) -> Path:
        """In which it lies; a link to it is another name of it."""
        return self._path.resolve().parent

    def open(self, *, create: bool, write: bool) -> Engine:
        """Opens it, creating it if asked; write False: changes nothing, but that a store of an older schema
        gets what it lacks. ConfigError: absent, no store, or one of another schema."""
        path = self._path
        create = create and write
        if not create and not path.exists():
            raise ConfigError(f"{path}: no result database here; `tornpage run` makes one")
        if path.is_dir():
            raise ConfigError(f"{path}: a folder, and not a result database")
        try:
            if write:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._require_one_name()
            return self._open(create, write)
        except OSError as error:
            if error.errno in FULL:
                raise self.failure("") from error
            raise ConfigError(f"{error.filename or path}: {error.strerror}") from error
        except OperationalError as error:
            if full_disk([self.folder]):
                raise self.failure("") from error
            raise ConfigError(f"{path}: {error.orig}") from error
        except DatabaseError as error:
            raise ConfigError(
                f"{path}: not a result database of Tornpage, or a damaged one ({error.orig})"
            ) from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: a damaged result database ({error})") from error

    def failure(self, said: str) -> MachineError:
        """A full disk is called by many names, as "disk I/O error"."""
        return MachineError(full_disk([self.folder]) or f"{self.name}: {said}")

    def begin(self, db: Connection, write: bool) -> None:
        """A writing transaction waits for its turn at once, so that it never fails in its middle."""
        db.info["begin"] = "begin immediate" if write else "begin"
        db.begin()

    def exclude(self, db: Connection) -> None:
        """Writing transactions exclude each other anyway."""

    def lock(self, db: Connection, what: str) -> Callable[[], None]:  # noqa: ARG002
        """Takes the lock of "run 3" or "night 1"; the returned call lets go of it. ConfigError naming its
        owner if somebody has it."""
        own = self._path.resolve()  # a link is another name, not another store
        return RunLock(own.with_name(f"{what.replace(' ', '-')}.lock"), what).release

    def lock_again(self, db: Connection, what: str) -> Callable[[], None]:
        """The same; a file does not go away."""
        return self.lock(db, what)

    def compact(self, db: Connection) -> None:
        """Gives the space of deleted rows back to the file system."""
        raw = db.connection.driver_connection
        assert raw is not None, "it is open"
        try:
            raw.execute("vacuum")
            raw.execute("pragma wal_checkpoint(truncate)")
        except sqlite3.OperationalError as error:
            raise self.failure(str(error)) from error

    def _open(self, create: bool, write: bool) -> Engine:
        engine = self._engine("mode=rwc" if write else "mode=ro")
        try:
            with engine.connect() as db:
                self.begin(db, False)
                there = schema_there(db, self.name)
                db.rollback()
                if there is None and not create:
                    raise ConfigError(
                        f"{self.name}: no result database here; `tornpage run` makes one"
                    )
                if there != VERSION and write:
                    self._create(db)
        except BaseException:
            engine.dispose()
            raise
        if there == VERSION or write:
            return engine
        engine.dispose()
        self._require_own(there)
        self._open(False, True).dispose()
        return self._open(False, False)

    def _require_own(self, there: int | None) -> None:
        """A store of an older schema must be ours to write."""
        if not all(os.access(path, os.W_OK) for path in (self._path, self._path.parent)):
            raise ConfigError(
                f"{self.name}: a store of schema {there}, which is upgraded to schema {VERSION} where it "
                "can be written: copy it to a folder of yours"
            )
        self._require_one_name()

    def _require_one_name(self) -> None:
        """SQLite's log and our locks lie beside a name: under a second one there is a second of both."""
        if self._path.exists() and self._path.stat().st_nlink > 1:
            raise ConfigError(
                f"{self._path}: the file has another name (a hard link), under which it may have another "
                "owner; copy it, or use a symbolic link"
            )

    def _create(self, db: Connection) -> None:
        """In one transaction, which excludes all others. The log that the file gets lets others read."""
        self._write_ahead(db)
        db.info["begin"] = "begin exclusive"
        with db.begin():
            create_store(db, self.name, self.folder)

    def _write_ahead(self, db: Connection) -> None:
        """Outside of a transaction, which SQLAlchemy would begin. MachineError."""
        raw = db.connection.driver_connection
        assert raw is not None, "it is open"
        try:
            raw.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as error:
            raise self.failure(str(error)) from error

    def _engine(self, mode: str) -> Engine:
        """On one connection, whose transactions begin as its info says: the driver would begin some by
        itself. A folder that cannot be written has no place for the shared memory of WAL."""
        if mode == "mode=ro" and not os.access(self._path.parent, os.W_OK):
            mode += "&immutable=1"
        uri = f"file:{quote(str(self._path.absolute()))}?{mode}"

        def connect() -> sqlite3.Connection:
            db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_S)
            if mode == "mode=rwc":
                db.execute("pragma synchronous = normal")
            return db

        engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool)

        @event.listens_for(engine, "begin")
        def _begin(db: Connection) -> None:
            db.exec_driver_sql(db.info.get("begin", "begin"))

        return engine
