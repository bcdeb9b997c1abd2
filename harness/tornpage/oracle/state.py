"""The logical state of a database as judges compare it: the digest of every table and index, and its JSON,
which is that of a scanner's `tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import xxhash

from tornpage.workloads.script import Column

__all__ = [
    "IndexDigest",
    "State",
    "TableDigest",
    "names_hash",
    "plain_tables",
    "read_tables",
    "state_digest",
]

IndexDigest = tuple[str, int, int]
"""Name, entries, hash."""
TableDigest = tuple[int, int, tuple[IndexDigest, ...]]
"""Rows, hash, indexes sorted by name."""
State = Mapping[str, TableDigest]
"""Every table by name."""


def names_hash(columns: Iterable[Column]) -> int:
    """What the names of a table's columns, and the most that a VARCHAR holds, add to its hash."""
    names = (f"{c.name}({c.length})" if c.varying else c.name for c in columns)
    return xxhash.xxh64_intdigest("".join(f"{name}," for name in names).encode("ascii"))


def plain_tables(state: State) -> list[dict[str, Any]]:
    """The tables by name, for JSON."""
    return [
        {
            "name": name,
            "rows": rows,
            "hash": f"{table_hash:016x}",
            "indexes": [
                {"name": index, "entries": entries, "hash": f"{index_hash:016x}"}
                for index, entries, index_hash in sorted(indexes)
            ],
        }
        for name, (rows, table_hash, indexes) in sorted(state.items())
    ]


def read_tables(tables: Iterable[Mapping[str, Any]]) -> State:
    """The state that plain_tables(), or a scanner, has told."""
    state: dict[str, TableDigest] = {}
    for table in tables:
        indexes = tuple(
            (str(item["name"]), int(item["entries"]), int(item["hash"], 16))
            for item in table["indexes"]
        )
        state[table["name"]] = (int(table["rows"]), int(table["hash"], 16), indexes)
    return state


def state_digest(state: State) -> str:
    """One number for a logical state, 16 hexadecimal digits."""
    return xxhash.xxh3_64_hexdigest(repr(sorted(state.items())).encode())
