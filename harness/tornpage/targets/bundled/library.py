"""What the programs of stores that are libraries share: their two commands, and commits of several pairs."""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from tornpage_mark import ack, issue, ready, serve

__all__ = ["PairStore", "commit_pairs", "line_of", "lines_of", "main", "pairs_of"]

COMMITS = 40
KEYS = 6
"""Of one commit."""
ALL_KEYS = tuple(b"key%02d" % number for number in range(COMMITS))


class PairStore(Protocol):
    """Of keys and values, with transactions."""

    def get(self, key: bytes) -> bytes | None:
        """None: it has no such key."""

    def keys(self) -> Iterable[bytes]:
        """All that it has, as it goes through them."""

    def begin(self) -> bool:
        """Whether it did."""

    def put(self, key: bytes, value: bytes) -> bool:
        """Whether it did."""

    def commit(self) -> bool:
        """Whether it did."""


def pairs_of(store: PairStore) -> dict[str, str]:
    """The state: a line for each key that a walk comes to, or that is found when it is asked for. Where the
    two do not agree, no state of a run is like it."""
    walked = Counter(store.keys())
    found = ((key, store.get(key)) for key in sorted({*walked, *ALL_KEYS}))
    return {"pairs": "".join(_line(key, value, walked[key]) for key, value in found)}


def _line(key: bytes, value: bytes | None, walked: int) -> str:
    if value is not None and walked == 1:
        return line_of(key, value)
    what = "not there" if value is None else "there"
    return f"{key!r} is {what}, and met {walked} times\n" if walked or value is not None else ""


def lines_of(
    walked: Iterable[tuple[bytes, bytes]],
    get: Callable[[bytes], bytes | None],
    keys: Iterable[bytes],
) -> str:
    """A line for each pair that a walk comes to, in its order, and for each of these keys that no walk comes
    to, and that is found when it is asked for. Where the two do not agree, no state of a run is like it."""
    lines = []
    met = set()
    for key, value in walked:
        met.add(key)
        agreed = get(key) == value
        lines.append(line_of(key, value) if agreed else f"{key!r} has another value when asked\n")
    hidden = (key for key in keys if key not in met and get(key) is not None)
    return "".join([*lines, *(f"{key!r} is met by no walk\n" for key in hidden)])


def line_of(key: bytes, value: bytes) -> str:
    """A line of a state; of a value its beginning, which says of which commit it is, its length and its
    checksum."""
    begin = value[:8].decode("ascii", "replace")
    return (
        f"{key.decode('ascii', 'backslashreplace')} {begin} {len(value)} {zlib.crc32(value):08x}\n"
    )


def commit_pairs(store: PairStore) -> None:
    """The work: transactions of several keys, each of which comes again and again. Values grow, so that
    commits make the files grow."""
    ready(pairs_of(store))
    for number in range(1, COMMITS + 1):
        issue(number)
        done = store.begin()
        for position in range(KEYS):
            key = ALL_KEYS[(number * 5 + position * 3) % COMMITS]
            done = done and store.put(key, b"%08d" % number + b"x" * (number * 40 + position))
        if not done or not store.commit():
            sys.exit(f"transaction {number} failed")
        ack(number, pairs_of(store))


def main(
    arguments: Sequence[str], run: Callable[..., None], recover: Callable[[str, str], Any]
) -> None:
    """run LIBRARY DIR ...: run() gets all behind the command; recover LIBRARY: recover(LIBRARY, DIR) answers
    for each folder."""
    if arguments[0] == "run":
        run(*arguments[1:])
    else:
        serve(lambda folder: recover(arguments[1], folder))
