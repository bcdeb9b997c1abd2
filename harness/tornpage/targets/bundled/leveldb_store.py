"""LevelDB through plyvel: the commands of the target files leveldb*.toml.

    python -m tornpage.targets.bundled.leveldb_store run DIR
    python -m tornpage.targets.bundled.leveldb_store recover

The state is all keys and values. The memory for writes is small and the store is opened again and again, so
that tables, manifests and logs change.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import plyvel
from tornpage_mark import Refused, ack, issue, ready, serve

from tornpage.targets.bundled.library import lines_of

__all__ = ["main"]

BATCHES = 60
KEYS = 12
ALL_KEYS = tuple(b"key%03d" % number for number in range(97))
REOPENED_EVERY = 12
WRITE_BUFFER_BYTES = 65536
"""The least that LevelDB takes."""


def open_store(folder: str) -> Any:
    """As an application does: paranoid checks refuse a torn end of the log, which is nobody's fault."""
    return plyvel.DB(folder, create_if_missing=True, write_buffer_size=WRITE_BUFFER_BYTES)


def state_of(store: Any) -> dict[str, str]:
    """A line for each pair, by a walk and by its key."""
    get = partial(store.get, verify_checksums=True)
    with store.iterator(verify_checksums=True) as pairs:
        return {"pairs": lines_of(pairs, get, ALL_KEYS)}


def run(folder: str) -> None:
    """Synced batches of puts and deletes; every key comes again and again."""
    store = open_store(folder)
    ready(state_of(store))
    for number in range(1, BATCHES + 1):
        issue(number)
        with store.write_batch(sync=True) as batch:
            for position in range(KEYS):
                key = (number * 7 + position * 5) % len(ALL_KEYS)
                batch.put(ALL_KEYS[key], b"%08d" % number + bytes([key]) * (key * 11))
            batch.delete(ALL_KEYS[(number * 3) % len(ALL_KEYS)])
        ack(number, state_of(store))
        if number % REOPENED_EVERY == 0:
            store.close()
            store = open_store(folder)


def recover(folder: str) -> dict[str, str]:
    """Raises Refused where LevelDB finds its files corrupt."""
    try:
        store = open_store(folder)
        return state_of(store)
    except plyvel.Error as error:
        raise Refused(str(error).replace(folder, "DIR")) from error


def main(arguments: Sequence[str]) -> None:
    """One of the two commands."""
    if arguments[0] == "run":
        run(arguments[1])
    else:
        serve(recover)


if __name__ == "__main__":
    main(sys.argv[1:])
