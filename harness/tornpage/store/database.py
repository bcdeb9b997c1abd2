"""The store's database: opened, read and written in transactions, found again when it was away; and the locks
of its owners.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable
from json import JSONDecodeError
from pathlib import Path
from typing import Self, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DatabaseError, DBAPIError, InternalError, OperationalError

from tornpage.store.place import Place, place_of
from tornpage.store.sql import line_of
from tornpage.vocabulary.errors import ConfigError, DamagedError, MachineError

__all__ = ["Database"]

AWAY_S = 120.0
"""How long a server may be away: it is restarted, or the network is."""
AGAIN_S = 0.5
T = TypeVar("T")


_SPOILT = re.compile(r"malformed|decode to UTF-8")
"""What SQLite says of bytes that are not what they were, where it does not say DatabaseError."""


class Database:
    """One open store. Not shared between processes: workers hand their results to the owner."""

    def __init__(self, place: Path | Place, *, create: bool = True, write: bool = True) -> None:
        """Opens it, creating it if asked; write False: changes nothing. ConfigError: absent, no store,
        or one of another schema."""
        self.place = place_of(place) if isinstance(place, Path) else place
        self._locks: dict[str, Callable[[], None]] = {}
        self._engine = self.place.open(create=create, write=write)
        self._db = self._engine.connect()

    @property
    def name(self) -> str:
        """As people are told."""
        return self.place.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(DBAPIError):
            self._db.rollback()
        for release in self._locks.values():
            release()
        self._db.close()
        self._engine.dispose()

    def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` finds, all of one moment."""
        return self._transact(work, False)

    def write(self, work: Callable[[Connection], T]) -> T:
        """All or nothing. `work` is done again where the server went away: twice is the same as once.
        MachineError where the disk is full, or the server stays away; ConfigError where a number is larger
        than a database holds; DamagedError where what is stored cannot be read."""
        return self._transact(work, True)

    def _apart(self, work: Callable[[Connection], None]) -> None:
        """What can be in no transaction."""
        self._db.rollback()
        work(self._db)

    def _transact(self, work: Callable[[Connection], T], write: bool) -> T:
        while True:
            try:
                if self._db.in_transaction():  # a signal ended the last one in its middle
                    self._db.rollback()
                self.place.begin(self._db, write)
                try:
                    found = work(self._db)
                except BaseException:
                    self._db.rollback()
                    raise
                self._db.commit()
                return found
            except DBAPIError as error:
                if error.connection_invalidated:
                    self._await(error)
                elif type(error) is DatabaseError or _SPOILT.search(line_of(error)):
                    raise self._damaged(line_of(error)) from error
                elif isinstance(error, OperationalError | InternalError):
                    raise self.place.failure(line_of(error)) from error
                else:
                    raise
            except OverflowError as error:
                raise ConfigError(
                    f"{self.name}: no run, trial or bug has so large a number"
                ) from error
            except (DamagedError, UnicodeDecodeError, JSONDecodeError) as error:
                raise self._damaged(str(error)) from error

    def _damaged(self, what: str) -> DamagedError:
        return DamagedError(
            f"{self.name}: the result database is damaged: {what}; put a whole copy in its place, where "
            "--resume can go on, or choose another"
        )

    def _await(self, lost: DBAPIError) -> None:
        """Comes back when the server does, with all locks."""
        _say(f"{self.name} is away ({line_of(lost)}); waiting for it up to {AWAY_S:.0f} s")
        deadline = time.monotonic() + AWAY_S
        while True:
            with contextlib.suppress(DBAPIError):
                self._db.close()
            try:
                self._db = self._engine.connect()
                for what in self._locks:
                    self._locks[what] = self.place.lock_again(self._db, what)
                self._db.rollback()
            except OperationalError as error:
                if time.monotonic() > deadline:
                    raise MachineError(
                        f"{self.name} is still unreachable: {line_of(error)}"
                    ) from error
                time.sleep(AGAIN_S)
            else:
                _say(f"{self.name} is back; nothing is lost")
                return

    def _lock(self, db: Connection, what: str) -> None:
        """Takes the lock of "run 3" or "night 1" until the store is closed. ConfigError: it is taken."""
        if what not in self._locks:
            self._locks[what] = self.place.lock(db, what)

    def _own(self, what: str) -> None:
        """The same, outside a transaction."""
        self.read(lambda db: self._lock(db, what))


def _say(text: str) -> None:
    print(f"tornpage: {text}", file=sys.stderr, flush=True)
