"""Where a store is: a file, or a database on a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine

from tornpage.store.file import FILE, StoreFile
from tornpage.store.server import StoreServer
from tornpage.vocabulary.errors import MachineError

__all__ = ["Place", "place_in", "place_of"]


class Place(Protocol):
    """What differs between databases. shared: other machines may use it."""

    shared: bool

    @property
    def name(self) -> str:
        """As people are told."""

    @property
    def options(self) -> str:
        """What makes a command find it, "" where it does anyway."""

    @property
    def folder(self) -> Path | None:
        """Of the store, absolute and without links: what lies in it is named from there (below.py). None:
        it is on a server."""

    def open(self, *, create: bool, write: bool) -> Engine:
        """Opens it, creating it if asked. ConfigError: absent, no store, or one of another schema."""

    def failure(self, said: str) -> MachineError:
        """What the machine has done to it. said: by the database."""

    def begin(self, db: Connection, write: bool) -> None:
        """Begins a transaction."""

    def exclude(self, db: Connection) -> None:
        """From here on the transaction is the only one that numbers runs or tells whether a bug is new."""

    def lock(self, db: Connection, what: str) -> Callable[[], None]:
        """Takes the lock of "run 3" or "night 1"; the returned call lets go of it. ConfigError naming its
        owner if somebody has it."""

    def lock_again(self, db: Connection, what: str) -> Callable[[], None]:
        """The same when a lost connection is there again. ConfigError: somebody else has it now."""

    def compact(self, db: Connection) -> None:
        """Gives the space of deleted rows back."""


def place_of(name: str | Path) -> Place:
    """What --store names: an output folder or a file in it, or postgresql://USER@HOST/DATABASE."""
    if isinstance(name, str) and "://" in name:
        return StoreServer(name)
    path = Path(name)
    return StoreFile(path / FILE if path.is_dir() else path)


def place_in(out: Path, store: str | Path | None) -> Place:
    """Where the store is: what --store names, or in the folder --out. ConfigError."""
    return place_of(store) if store else StoreFile(out / FILE)
