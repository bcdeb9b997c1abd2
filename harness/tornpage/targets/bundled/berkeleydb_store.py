"""Berkeley DB through bsddb3: the commands of berkeleydb.toml.

    python -m tornpage.targets.bundled.berkeleydb_store run DIR SYNC PAGE_SIZE
    python -m tornpage.targets.bundled.berkeleydb_store recover

An environment whose shared memory is its process's own (DB_PRIVATE), opened each time with recovery, and in
it a B-tree in main.db. Its cache and its log files are small, so that pages are written amid transactions and
the log goes on in further files. Every few commits there is a checkpoint, and log files that nobody needs
then are removed. SYNC: on, or off (DB_TXN_NOSYNC). The state is all keys with the beginning of their values,
their length and checksum.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from bsddb3 import db
from tornpage_mark import Refused, serve

from tornpage.targets.bundled.library import commit_pairs, pairs_of

__all__ = ["recover", "run"]

FLAGS = (
    db.DB_CREATE
    | db.DB_PRIVATE
    | db.DB_RECOVER
    | db.DB_INIT_TXN
    | db.DB_INIT_LOG
    | db.DB_INIT_MPOOL
    | db.DB_INIT_LOCK
)
CACHE_BYTES = 65536
LOG_BYTES = 65536
LOG_BUFFER_BYTES = 16384
CHECKPOINT_EVERY = 7
"""Commits."""


class Store:
    """The environment in DIR with its only database."""

    def __init__(self, folder: str, sync: str = "on", page_size: str = "512") -> None:
        """Raises DBError if it does not open. page_size: of a new one."""
        self._environment = db.DBEnv()
        self._environment.set_cachesize(0, CACHE_BYTES)
        self._environment.set_lg_bsize(LOG_BUFFER_BYTES)
        self._environment.set_lg_max(LOG_BYTES)
        self._environment.open(folder, FLAGS)
        if sync == "off":
            self._environment.set_flags(db.DB_TXN_NOSYNC, 1)
        self._pairs = db.DB(self._environment)
        self._pairs.set_pagesize(int(page_size))
        self._pairs.open("main.db", dbtype=db.DB_BTREE, flags=db.DB_CREATE | db.DB_AUTO_COMMIT)
        self._transaction: Any = None
        self._commits = 0

    def get(self, key: bytes) -> bytes | None:
        """None: there is no such key."""
        value: bytes | None = self._pairs.get(key)
        return value

    def keys(self) -> Iterable[bytes]:
        """By a cursor."""
        found: list[bytes] = self._pairs.keys()
        return found

    def begin(self) -> bool:
        """True."""
        self._transaction = self._environment.txn_begin()
        return True

    def put(self, key: bytes, value: bytes) -> bool:
        """True."""
        self._pairs.put(key, value, txn=self._transaction)
        return True

    def commit(self) -> bool:
        """True."""
        self._transaction.commit()
        self._commits += 1
        if self._commits % CHECKPOINT_EVERY == 0:
            self._environment.txn_checkpoint()
            self._environment.log_archive(db.DB_ARCH_REMOVE)
        return True


def run(folder: str, sync: str, page_size: str) -> None:
    """Transactions, each of several keys."""
    commit_pairs(Store(folder, sync, page_size))


def recover(folder: str) -> dict[str, str]:
    """Raises Refused where it does not open, or its pages do not hold together."""
    try:
        pairs = pairs_of(Store(folder))
        db.DB().verify(f"{folder}/main.db")
    except db.DBError as error:
        raise Refused(str(error).replace(folder, "DIR")) from error
    return pairs


if __name__ == "__main__":
    run(*sys.argv[2:]) if sys.argv[1] == "run" else serve(recover)
