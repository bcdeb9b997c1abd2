"""A store on a PostgreSQL server, which several machines may use at once. Owners hold advisory locks, which
go with their sessions.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import shlex
from collections.abc import Callable

from sqlalchemy import (
    Cast,
    Connection,
    Engine,
    Integer,
    NullPool,
    cast,
    create_engine,
    func,
    make_url,
    select,
    text,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from tornpage.store.create import create_store, schema_there
from tornpage.store.schema import VERSION
from tornpage.store.sql import line_of
from tornpage.vocabulary.errors import ConfigError, MachineError

__all__ = ["StoreServer"]

FAMILY = 0x746F726E
"""First number of our advisory locks that are no run's and no night's; those follow it."""
KINDS = {"run": FAMILY + 1, "night": FAMILY + 2}
SECRETS = ("password", "sslpassword")
"""Parameters of libpq in a URL that nobody is told."""
NAME_MAX = 63
"""Bytes of a name in PostgreSQL; a longer one is cut by the server."""
KEPT_ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""A machine that is gone without a word loses its session, and its runs, after a minute."""
_sessions = itertools.count(1)
_OWNER = text(
    "select activity.pid, activity.application_name"
    " from pg_locks join pg_stat_activity activity on activity.pid = pg_locks.pid"
    " where locktype = 'advisory' and granted and pg_locks.objsubid = 2"
    " and database = (select oid from pg_database where datname = current_database())"
    " and cast(cast(classid as text) as bigint) = :kind"
    " and cast(cast(objid as text) as bigint) = :number"
)


class StoreServer:
    """The place of a store that many machines may use."""

    shared = True
    folder = None

    def __init__(self, url: str) -> None:
        """url: as libpq takes it, postgresql://USER@HOST/DATABASE. ConfigError for another one."""
        try:
            self._url = make_url(url)
        except (ArgumentError, ValueError) as error:
            raise ConfigError(f"--store: {error}") from error
        if self._url.drivername not in ("postgresql", "postgres"):
            raise ConfigError(
                f"--store: {self._url.drivername}://...: a file, or postgresql://USER@HOST/DATABASE"
            )
        self._session = f"tornpage process {os.getpid()} on {platform.node()}"
        self._session = f"{self._session[: NAME_MAX - 6]} #{next(_sessions)}"

    @property
    def name(self) -> str:
        """Without a password."""
        bare = URL.create(
            "postgresql",
            self._url.username,
            None,
            self._url.host,
            self._url.port,
            self._url.database,
            {key: value for key, value in self._url.query.items() if key not in SECRETS},
        )
        return bare.render_as_string(hide_password=False)

    @property
    def options(self) -> str:
        """What makes a command find it."""
        return f"--store {shlex.quote(self.name)}"

    def open(self, *, create: bool, write: bool) -> Engine:
        """Connects to it, and makes its tables if asked; a store of an older schema gets what it lacks.
        ConfigError: no connection, no store, or one of another schema."""
        engine = self._engine(write)
        try:
            with engine.connect() as db, db.begin():
                if write:
                    self.exclude(db)
                there = schema_there(db, self.name)
                if there is None and not (create and write):
                    raise ConfigError(
                        f"{self.name}: no result database here; `tornpage run` makes one"
                    )
                if there != VERSION and write:
                    create_store(db, self.name, None)
        except DBAPIError as error:
            raise ConfigError(f"{self.name}: {line_of(error)}") from error
        if there != VERSION and not write:
            self.open(create=False, write=True).dispose()
        return engine

    def failure(self, said: str) -> MachineError:
        """The server knows best."""
        return MachineError(f"{self.name}: {said}")

    def begin(self, db: Connection, write: bool) -> None:
        """What is read in one transaction is of one moment."""
        db.begin()
        if not write:
            db.exec_driver_sql("set transaction isolation level repeatable read, read only")

    def exclude(self, db: Connection) -> None:
        """From here on the transaction is the only one that numbers runs or tells whether a bug is new."""
        db.execute(select(func.pg_advisory_xact_lock(FAMILY, 0)))

    def lock(self, db: Connection, what: str) -> Callable[[], None]:
        """Takes the lock of "run 3" or "night 1"; the returned call lets go of it. ConfigError naming its
        owner if somebody has it."""
        kind, number = what.split()
        key = (cast(KINDS[kind], Integer), cast(int(number), Integer))
        if not db.execute(select(func.pg_try_advisory_lock(*key))).scalar_one():
            owners = [name for _session, name in self._owners(db, what)]
            told = owners[0].removeprefix("tornpage ").split(" #")[0] if owners else "it ends now"
            raise ConfigError(f"{what} has a running owner: {told}")
        return lambda: _unlock(db, key)

    def lock_again(self, db: Connection, what: str) -> Callable[[], None]:
        """The same after a connection was lost, of which the server may not know yet. ConfigError: somebody
        else has it now."""
        for session, name in self._owners(db, what):
            if name == self._session:
                db.execute(select(func.pg_terminate_backend(cast(session, Integer), 5000)))
        return self.lock(db, what)

    def compact(self, db: Connection) -> None:
        """The server does it by itself."""

    def _owners(self, db: Connection, what: str) -> list[tuple[int, str]]:
        kind, number = what.split()
        rows = db.execute(_OWNER, {"kind": KINDS[kind], "number": int(number)})
        return [(row[0], row[1]) for row in rows]

    def _engine(self, write: bool) -> Engine:
        given = {"connect_timeout": 10, "client_encoding": "utf8", **KEPT_ALIVE}
        given["application_name"] = self._session
        if not write:
            given["options"] = "-c default_transaction_read_only=on"
        given = {key: value for key, value in given.items() if key not in self._url.query}
        url = self._url.set(drivername="postgresql+psycopg")
        try:
            return create_engine(url, poolclass=NullPool, connect_args=given)
        except ModuleNotFoundError as error:
            raise ConfigError(
                "a store in PostgreSQL needs psycopg: pip install 'tornpage[store]'"
            ) from error


def _unlock(db: Connection, key: tuple[Cast[int], Cast[int]]) -> None:
    """A connection that is lost has no locks."""
    with contextlib.suppress(SQLAlchemyError):
        db.execute(select(func.pg_advisory_unlock(*key)))
        db.rollback()
