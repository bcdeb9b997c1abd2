"""What the oracle keeps of a table: committed rows, the versions of open transactions, indexes and their
digests. Knows no statements.

May import: errors, rowlog, script, state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import xxhash

from tornpage.oracle.rowlog import RowLogs
from tornpage.oracle.state import TableDigest, names_hash
from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.script import Column, IndexDef, Value

__all__ = ["Failure", "Index", "Table", "built_index", "index_cuts"]

MASK64 = (1 << 64) - 1


class Failure(Exception):
    """A predicted run-time error of a statement; the argument is its DB_ name."""


@dataclass(slots=True)
class Index:
    name: str
    cuts: tuple[tuple[int, int], ...]
    """Ranges of the row bytes: key columns, then primary key."""
    unique_cuts: tuple[tuple[int, int], ...] = ()
    """Of a unique index: those of the key columns."""
    entries: int = 0
    hash: int = 0
    holders: dict[bytes, set[bytes]] = field(default_factory=dict)
    """Of a unique index: primary keys of the rows that have, or once had, these key columns."""

    def hold(self, key: bytes, row: bytes | None) -> None:
        """The row of this primary key gets a version."""
        if self.unique_cuts and row is not None:
            self.holders.setdefault(self.unique_key(row), set()).add(key)

    def unique_key(self, row: bytes) -> bytes:
        return b"".join(row[start:end] for start, end in self.unique_cuts)


@dataclass(slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    offsets: dict[str, tuple[int, int]]
    primary: tuple[str, ...]
    committed: dict[bytes, bytes] = field(default_factory=dict)
    newest: dict[bytes, bytes | None] = field(default_factory=dict)
    """Rows changed by open transactions; None = deleted."""
    owner: dict[bytes, str] = field(default_factory=dict)
    versions: dict[bytes, list[bytes | None]] = field(default_factory=dict)
    """Of the rows in `newest`: every version that the owner has made."""
    hash: int = 0
    indexes: dict[str, Index] = field(default_factory=dict)
    build: tuple[IndexDef, ...] | None = None
    """New indexes of the build that is running, a rebuild's none: until it ends, the table can be read but
    not changed."""
    logs: RowLogs | None = None
    """With LOCK=NONE it can be changed, too: what the build knows of that."""

    def current(self, key: bytes) -> bytes | None:
        return self.newest[key] if key in self.newest else self.committed.get(key)

    def digest(self) -> TableDigest:
        indexes = tuple(
            (index.name, index.entries, index.hash)
            for index in sorted(self.indexes.values(), key=lambda index: index.name)
        )
        return len(self.committed), (self.hash + names_hash(self.columns)) & MASK64, indexes

    def encode(self, name: str, value: Value) -> bytes:
        start, end = self.offsets[name]
        column = next(item for item in self.columns if item.name == name)
        if column.is_char:
            if not isinstance(value, bytes) or len(value.rstrip(b" ")) > column.length:
                raise WorkloadError(f"{self.name}.{name}: not a CHAR({column.length}): {value!r}")
            return value.ljust(end - start, b" ")[: end - start]
        if not isinstance(value, int):
            raise WorkloadError(f"{self.name}.{name}: not a BIGINT: {value!r}")
        return ((value & MASK64) ^ (1 << 63)).to_bytes(8, "big")

    def row(self, values: Mapping[str, Value]) -> bytes:
        parts = []
        for column in self.columns:
            default: Value = b"" if column.is_char else 0
            parts.append(self.encode(column.name, values.get(column.name, default)))
        return b"".join(parts)

    def key_of(self, row: bytes) -> bytes:
        return b"".join(row[slice(*self.offsets[name])] for name in self.primary)

    def rename_index(self, name: str, new: str) -> None:
        """An index gets another name."""
        index = self.indexes.pop(name)
        index.name = new
        self.indexes[new] = index

    def rename_column(self, name: str, new: str) -> None:
        """A column gets another name; its values stay."""
        self.columns = tuple(
            replace(item, name=new) if item.name == name else item for item in self.columns
        )
        self.offsets = {new if item == name else item: at for item, at in self.offsets.items()}
        self.primary = tuple(new if item == name else item for item in self.primary)

    def change(self, key: bytes, row: bytes | None, trx: str) -> None:
        """Gives a row a version of an open transaction."""
        self.log(self.current(key), row)
        self.newest[key] = row
        self.owner[key] = trx
        self.versions.setdefault(key, []).append(row)
        for index in self.indexes.values():
            index.hold(key, row)

    def log(self, before: bytes | None, after: bytes | None) -> None:
        """Tells a build with LOCK=NONE of a change."""
        if self.logs is not None:
            self.logs.add(before, after)

    def log_refused(self, attempts: Sequence[tuple[bytes, bytes | None]]) -> None:
        """A statement was refused after it had made these changes, which are undone."""
        for key, row in attempts:
            self.log(self.current(key), row)
            self.log(row, self.current(key))

    def undo(self, key: bytes) -> None:
        """Forgets the versions of a transaction that is rolled back, one after the other."""
        versions = [self.committed.get(key), *self.versions[key]]
        for after, before in pairwise(versions):
            self.log(before, after)
        self.settle(key)

    def settle(self, key: bytes) -> bytes | None:
        """Forgets the versions of a transaction that ends, and returns the newest one."""
        del self.owner[key]
        del self.versions[key]
        return self.newest.pop(key)

    def check_unique(
        self,
        trx: str,
        key: bytes,
        row: bytes,
        old: bytes | None,
        planned: Sequence[tuple[bytes, bytes | None]] = (),
    ) -> None:
        """May the row of this primary key become `row`? old: what an update replaces; planned: rows that
        the same statement has made."""
        for index in self.indexes.values():
            if not index.unique_cuts:
                continue
            wanted = index.unique_key(row)
            if old is not None and index.unique_key(old) == wanted:
                continue
            if any(index.unique_key(other) == wanted for _, other in planned if other):
                raise Failure("DB_DUPLICATE_KEY")
            for other in sorted(index.holders.get(wanted, set()) - {key}):
                self._check_holder(trx, other, index, wanted)

    def _check_holder(self, trx: str, key: bytes, index: Index, wanted: bytes) -> None:
        """Another row with the wanted key, now or once. What a transaction that is still open will leave of
        it is not known: each version that it has made, or the one before."""
        versions = [self.current(key)]
        if self.owner.get(key, trx) != trx:
            versions = [*self.versions[key], self.committed.get(key)]
        has = [version is not None and index.unique_key(version) == wanted for version in versions]
        if all(has):
            raise Failure("DB_DUPLICATE_KEY")
        if any(has):
            raise Failure("DB_LOCK_CONFLICT")

    def put(self, key: bytes, row: bytes | None) -> None:
        """Sets or removes a committed row, keeping all digests."""
        old = self.committed.pop(key, None)
        if row is not None:
            self.committed[key] = row
        self.hash = (self.hash - _row_hash(old) + _row_hash(row)) & MASK64
        for index in self.indexes.values():
            change = _entry_hash(index, row) - _entry_hash(index, old)
            index.hash = (index.hash + change) & MASK64
            index.entries += (row is not None) - (old is not None)


def _row_hash(row: bytes | None) -> int:
    return 0 if row is None else xxhash.xxh64_intdigest(row)


def _entry_hash(index: Index, row: bytes | None) -> int:
    if row is None:
        return 0
    return xxhash.xxh64_intdigest(b"".join(row[start:end] for start, end in index.cuts))


def built_index(table: Table, definition: IndexDef) -> Index:
    """The index over the committed rows."""
    cuts = index_cuts(table, definition)
    index = Index(
        definition.name, cuts, cuts[: len(definition.columns)] if definition.unique else ()
    )
    for key, row in table.committed.items():
        index.hash = (index.hash + _entry_hash(index, row)) & MASK64
        index.hold(key, row)
    index.entries = len(table.committed)
    index.hash = (index.hash + definition.unique) & MASK64
    if any(len(keys) > 1 for keys in index.holders.values()):
        raise Failure("DB_DUPLICATE_KEY")
    return index


def index_cuts(table: Table, definition: IndexDef) -> tuple[tuple[int, int], ...]:
    cuts = []
    for name, length in definition.columns:
        if name not in table.offsets:
            raise WorkloadError(f"index {definition.name}: no column {name!r}")
        start, end = table.offsets[name]
        if length > end - start:
            raise WorkloadError(f"index {definition.name}: prefix longer than {name!r}")
        cuts.append((start, start + length if length else end))
    cuts.extend(table.offsets[name] for name in table.primary)
    return tuple(cuts)
