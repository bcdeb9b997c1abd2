"""What the oracle keeps of a table: committed rows, the versions of open transactions, indexes and their
digests. Reads no statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import xxhash

from tornpage.oracle.rowlog import RowLogs
from tornpage.oracle.state import TableDigest, names_hash
from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.script import Column, IndexDef, Statement, Value

__all__ = [
    "NEW",
    "Failure",
    "Index",
    "Recast",
    "Row",
    "Table",
    "built_index",
    "default_of",
    "encoded",
    "entry_maker",
    "index_parts",
]

MASK64 = (1 << 64) - 1
BIGINT = 8
"""Bytes of one."""
Row = tuple[bytes, ...]
"""The bytes of each column, as the digest of a table is over them."""
NEW = -1
"""In place of a position: there was no such column."""
NULL, VALUE = b"\0", b"\1"
"""In front of a column that may be NULL."""


class Failure(Exception):
    """A predicted run-time error of a statement; the argument is its DB_ name."""


@dataclass(frozen=True, slots=True)
class Part:
    """A column in a key: where it stands in a row, and how much of it counts."""

    position: int
    column: Column
    length: int

    def of(self, row: Row) -> bytes:
        """Its bytes in the key of a row: cut or padded, with a byte in front if it may be NULL."""
        value = row[self.position]
        flag = b""
        if self.column.nullable:
            flag, value = value[:1], value[1:]
            if flag == NULL:
                return NULL + bytes(self.length)
        if self.column.varying:
            value = value[2:]
        return flag + value[: self.length].ljust(self.length, b" ")


@dataclass(slots=True)
class Index:
    name: str
    parts: tuple[Part, ...]
    """Key columns, then primary key."""
    unique_parts: tuple[Part, ...] = ()
    """Of a unique index: the key columns."""
    entries: int = 0
    hash: int = 0
    holders: dict[bytes, set[bytes]] = field(default_factory=dict)
    """Of a unique index: primary keys of the rows that have, or once had, these key columns."""

    def has_whole(self, position: int, length: int) -> bool:
        """Is all of the column, which has this length, in the key?"""
        return any(part.position == position and part.length == length for part in self.parts)

    def hold(self, key: bytes, row: Row | None) -> None:
        """The row of this primary key gets a version."""
        wanted = None if row is None else self.unique_key(row)
        if wanted is not None:
            self.holders.setdefault(wanted, set()).add(key)

    def unique_key(self, row: Row) -> bytes | None:
        """What no other row may have; None: nothing, because it is NULL or the index is not unique."""
        parts = self.unique_parts
        if not parts or any(
            part.column.nullable and row[part.position][:1] == NULL for part in parts
        ):
            return None
        return b"".join(part.of(row) for part in parts)


@dataclass(frozen=True, slots=True)
class Recast:
    """The columns that a table gets. origins: the position that each has had, NEW: none, and all rows have
    the bytes `added` there."""

    columns: tuple[Column, ...]
    origins: tuple[int, ...]
    added: bytes = b""

    def of(self, row: Row) -> Row:
        """What a row becomes."""
        return tuple(self.added if origin == NEW else row[origin] for origin in self.origins)


@dataclass(slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    positions: dict[str, int]
    primary: tuple[str, ...]
    system: bool = False
    """It has no file of its own."""
    committed: dict[bytes, Row] = field(default_factory=dict)
    newest: dict[bytes, Row | None] = field(default_factory=dict)
    """Rows changed by open transactions; None = deleted."""
    owner: dict[bytes, str] = field(default_factory=dict)
    versions: dict[bytes, list[Row | None]] = field(default_factory=dict)
    """Of the rows in `newest`: every version that the owner has made."""
    hash: int = 0
    indexes: dict[str, Index] = field(default_factory=dict)
    build: tuple[IndexDef, ...] | None = None
    """New indexes of the build that is running, a rebuild's none: until it ends, the table can be read but
    not changed."""
    cast: Recast | None = None
    """The build gives it other columns."""
    new_primary: tuple[str, ...] = ()
    """The build gives it another primary key."""
    clauses: tuple[Statement, ...] = ()
    """What the build makes of it, all together."""
    logs: RowLogs | None = None
    """With LOCK=NONE it can be changed, too: what the build knows of that."""
    packing: bool = False
    """The build is a defragmentation, which need not know."""
    exported: bool = False
    """There is no build but an export, until the table is unlocked."""
    exclusive: bool = False
    """With LOCK=EXCLUSIVE it cannot even be read."""

    @property
    def is_read_only(self) -> bool:
        """May its rows not change while the build goes on?"""
        return self.build is not None and self.logs is None and not self.packing

    def copy(self, rows: bool) -> Table:
        """The same while no transaction holds a row; without rows: no more than its definition."""
        indexes = {
            name: replace(
                index,
                holders={key: set(held) for key, held in index.holders.items()} if rows else {},
            )
            for name, index in self.indexes.items()
        }
        committed = dict(self.committed) if rows else {}
        return replace(self, committed=committed, newest={}, owner={}, versions={}, indexes=indexes)

    def current(self, key: bytes) -> Row | None:
        return self.newest[key] if key in self.newest else self.committed.get(key)

    def digest(self) -> TableDigest:
        indexes = tuple(
            (index.name, index.entries, index.hash)
            for index in sorted(self.indexes.values(), key=lambda index: index.name)
        )
        return len(self.committed), (self.hash + names_hash(self.columns)) & MASK64, indexes

    def encode(self, name: str, value: Value) -> bytes:
        """The bytes of a column with this value."""
        return encoded(self.name, self.columns[self.positions[name]], value)

    def row(self, values: Mapping[str, Value]) -> Row:
        """The row of these values; NULL, 0 or no text where there is none."""
        return tuple(
            self.encode(column.name, values.get(column.name, default_of(column)))
            for column in self.columns
        )

    def key_of(self, row: Row) -> bytes:
        return b"".join(row[self.positions[name]] for name in self.primary)

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
        self.positions = {new if item == name else item: at for item, at in self.positions.items()}
        self.primary = tuple(new if item == name else item for item in self.primary)

    def resize_column(self, position: int, length: int) -> None:
        """A VARCHAR gets another length; an index that has all of it still has all of it. Fails if a value is
        longer."""
        column = self.columns[position]
        rows = self.committed.values()
        if any(len(row[position]) - 2 - column.nullable > length for row in rows):
            raise Failure("DB_ERROR")
        self.columns = tuple(
            replace(item, length=length) if item is column else item for item in self.columns
        )
        for index in list(self.indexes.values()):
            parts = tuple(
                replace(part, length=length)
                if part.position == position
                and (part.length == column.length or part.length > length)
                else part
                for part in index.parts
            )
            if parts != index.parts:
                unique = parts[: len(index.unique_parts)]
                self.indexes[index.name] = _filled(self, Index(index.name, parts, unique))

    def recast(self, cast: Recast) -> None:
        """Gets other columns, while no transaction holds a row."""
        self.columns = cast.columns
        self.positions = {column.name: at for at, column in enumerate(cast.columns)}
        places = {origin: at for at, origin in enumerate(cast.origins)}
        for index in self.indexes.values():
            index.parts = tuple(
                replace(part, position=places[part.position]) for part in index.parts
            )
            index.unique_parts = index.parts[: len(index.unique_parts)]
        self.committed = {key: cast.of(row) for key, row in self.committed.items()}
        self.hash = sum(map(_row_hash, self.committed.values())) & MASK64

    def change_primary(self, primary: tuple[str, ...]) -> None:
        """Gets another primary key, while no transaction holds a row. Fails if two rows have the same."""
        rows = {
            b"".join(row[self.positions[name]] for name in primary): row
            for row in self.committed.values()
        }
        if len(rows) < len(self.committed):
            raise Failure("DB_DUPLICATE_KEY")
        suffix, self.primary, self.committed = len(self.primary), primary, rows
        for index in list(self.indexes.values()):
            keys = index.parts[:-suffix]
            parts = (*keys, *key_parts(self))
            unique = keys if index.unique_parts else ()
            self.indexes[index.name] = _filled(self, Index(index.name, parts, unique))

    def change(self, key: bytes, row: Row | None, trx: str) -> None:
        """Gives a row a version of an open transaction."""
        self.log(self.current(key), row)
        self.newest[key] = row
        self.owner[key] = trx
        self.versions.setdefault(key, []).append(row)
        for index in self.indexes.values():
            index.hold(key, row)

    def log(self, before: Row | None, after: Row | None) -> None:
        """Tells a build with LOCK=NONE of a change."""
        if self.logs is not None:
            self.logs.add(before, after)

    def log_refused(self, attempts: Sequence[tuple[bytes, Row | None]]) -> None:
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

    def settle(self, key: bytes) -> Row | None:
        """Forgets the versions of a transaction that ends, and returns the newest one."""
        del self.owner[key]
        del self.versions[key]
        return self.newest.pop(key)

    def check_unique(
        self,
        trx: str,
        key: bytes,
        row: Row,
        old: Row | None,
        planned: Sequence[tuple[bytes, Row | None]] = (),
    ) -> None:
        """May the row of this primary key become `row`? old: what an update replaces; planned: rows that
        the same statement has made."""
        for index in self.indexes.values():
            wanted = index.unique_key(row)
            if wanted is None:
                continue
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

    def has_definition_of(self, other: Table) -> bool:
        """The same columns, primary key and indexes?"""
        mine, theirs = (
            {
                index.name: (
                    [(part.position, part.length) for part in index.parts],
                    len(index.unique_parts),
                )
                for index in table.indexes.values()
            }
            for table in (self, other)
        )
        same = self.columns == other.columns and self.primary == other.primary
        return same and mine == theirs

    def take_rows_of(self, other: Table) -> None:
        """The committed rows of a table of the same definition, and what its indexes know of them."""
        self.committed, self.hash = dict(other.committed), other.hash
        self.indexes = {
            name: replace(index, holders={key: set(held) for key, held in index.holders.items()})
            for name, index in other.indexes.items()
        }

    def empty(self) -> None:
        """All rows go at once, and whatever an index knew of them."""
        for key in list(self.committed):
            self.put(key, None)
        for index in self.indexes.values():
            index.holders.clear()

    def put(self, key: bytes, row: Row | None) -> None:
        """Sets or removes a committed row, keeping all digests."""
        old = self.committed.pop(key, None)
        if row is not None:
            self.committed[key] = row
        self.hash = (self.hash - _row_hash(old) + _row_hash(row)) & MASK64
        for index in self.indexes.values():
            change = _entry_hash(index, row) - _entry_hash(index, old)
            index.hash = (index.hash + change) & MASK64
            index.entries += (row is not None) - (old is not None)


def encoded(table: str, column: Column, value: Value) -> bytes:
    """The bytes of a column of the table with this value."""
    if value is None:
        if not column.nullable:
            raise WorkloadError(f"{table}.{column.name}: cannot be NULL")
        return NULL
    data = _encode(column, value)
    if data is None:
        raise WorkloadError(f"{table}.{column.name}: not a value of the column: {value!r}")
    return VALUE + data if column.nullable else data


def default_of(column: Column) -> Value:
    """What it is where nothing else is said."""
    if column.nullable:
        return None
    return b"" if column.is_text else 0


def _encode(column: Column, value: int | bytes) -> bytes | None:
    """The bytes of a value that is not NULL; None if the column cannot have it."""
    if column.is_text != isinstance(value, bytes):
        return None
    if isinstance(value, int):
        return ((value & MASK64) ^ (1 << 63)).to_bytes(8, "big")
    if column.varying:
        return len(value).to_bytes(2, "big") + value if len(value) <= column.length else None
    if len(value.rstrip(b" ")) > column.length:
        return None
    return value.ljust(column.length, b" ")[: column.length]


def _row_hash(row: Row | None) -> int:
    return 0 if row is None else xxhash.xxh64_intdigest(b"".join(row))


def entry_maker(parts: Sequence[Part]) -> Callable[[Row], bytes]:
    """What makes the entry of a row."""
    return lambda row: b"".join(part.of(row) for part in parts)


def _entry_hash(index: Index, row: Row | None) -> int:
    if row is None:
        return 0
    return xxhash.xxh64_intdigest(b"".join(part.of(row) for part in index.parts))


def built_index(table: Table, definition: IndexDef) -> Index:
    """The index over the committed rows."""
    parts = index_parts(table, definition)
    unique = parts[: len(definition.columns)] if definition.unique else ()
    return _filled(table, Index(definition.name, parts, unique))


def _filled(table: Table, index: Index) -> Index:
    """The same index with the entries of the committed rows. Fails for a duplicate."""
    for key, row in table.committed.items():
        index.hash = (index.hash + _entry_hash(index, row)) & MASK64
        index.hold(key, row)
    index.entries = len(table.committed)
    index.hash = (index.hash + bool(index.unique_parts)) & MASK64
    if any(len(keys) > 1 for keys in index.holders.values()):
        raise Failure("DB_DUPLICATE_KEY")
    return index


def key_parts(table: Table) -> tuple[Part, ...]:
    """Of the primary key."""
    positions = [table.positions[name] for name in table.primary]
    columns = [(position, table.columns[position]) for position in positions]
    return tuple(Part(position, column, column.length or BIGINT) for position, column in columns)


def index_parts(table: Table, definition: IndexDef) -> tuple[Part, ...]:
    """Of an entry: key columns, then the primary key."""
    parts = []
    for name, length in definition.columns:
        if name not in table.positions:
            raise WorkloadError(f"index {definition.name}: no column {name!r}")
        position = table.positions[name]
        column = table.columns[position]
        whole = column.length or BIGINT
        if length > whole:
            raise WorkloadError(f"index {definition.name}: prefix longer than {name!r}")
        parts.append(Part(position, column, length or whole))
    return (*parts, *key_parts(table))
