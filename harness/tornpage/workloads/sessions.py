"""Transactions of several clients at once, one statement of one of them after the other, in an order that the
seed draws. Keeps the newest version of each row and who has changed it, as far as the profiles ask for it.

A profile is a generator of statements in a transaction: it yields what each came to. A statement that meets a
row of another open transaction fails, as its client expects, and the client rolls back.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tornpage.workloads.script import Column, IndexDef, Script, Statement, Value, Verb

__all__ = ["Key", "Profile", "Row", "Sessions"]

Key = tuple[Value, ...]
"""Values of the primary key, in the order of its columns."""
Row = dict[str, Value]
Profile = Callable[["Sessions", str], Iterator[bool]]
"""Given the sessions and the name of its transaction. False: it is rolled back."""

HOUSEKEEPING_SHARE = 0.06
"""Of the turns: page cleaner, purge or a checkpoint."""
ROUNDS = 4


@dataclass(slots=True)
class _Rows:
    columns: dict[str, Column]
    primary: tuple[str, ...]
    rows: dict[Key, Row] = field(default_factory=dict)
    owner: dict[Key, str] = field(default_factory=dict)
    indexes: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Sessions:
    """One script in the making. undo: per open transaction the rows that it changed, as they were before."""

    rng: random.Random
    out: list[Statement] = field(default_factory=list)
    tables: dict[str, _Rows] = field(default_factory=dict)
    undo: dict[str, list[tuple[_Rows, Key, Row | None]]] = field(default_factory=dict)
    n_trx: int = 0

    def add(self, verb: Verb, **fields: object) -> None:
        """The next statement, of no client."""
        self.out.append(Statement(0, verb, **fields))  # type: ignore[arg-type]

    def script(self) -> Script:
        """All that was added."""
        return Script.of(self.out)

    # -- tables ---------------------------------------------------------------------------------

    def create(self, table: str, columns: Sequence[Column], primary: tuple[str, ...]) -> None:
        """A new table."""
        self.add(Verb.CREATE_TABLE, table=table, columns=tuple(columns), primary=primary)
        self.tables[table] = _Rows({column.name: column for column in columns}, primary)

    def keys(self, table: str) -> list[Key]:
        """Those of its rows, in the order in which they came."""
        return list(self.tables[table].rows)

    def row(self, table: str, key: Key) -> Row | None:
        """The newest version, whoever has made it."""
        return self.tables[table].rows.get(key)

    # -- changes: each says whether it may be done ------------------------------------------------

    def insert(self, trx: str, table: str, values: Row) -> bool:
        """A new row."""
        rows = self.tables[table]
        key = tuple(values[name] for name in rows.primary)
        self.add(Verb.INSERT, trx=trx, table=table, values=values)
        return key not in rows.rows and self._change(trx, rows, key, dict(values))

    def update(self, trx: str, table: str, key: Key, values: Mapping[str, Value]) -> bool:
        """New values for a row."""
        rows = self.tables[table]
        self.add(Verb.UPDATE, trx=trx, table=table, key=_named(rows, key), values=values)
        row = rows.rows.get(key)
        return row is not None and self._change(trx, rows, key, {**row, **values})

    def delete(self, trx: str, table: str, key: Key) -> bool:
        """A row goes."""
        rows = self.tables[table]
        self.add(Verb.DELETE, trx=trx, table=table, key=_named(rows, key))
        return key in rows.rows and self._change(trx, rows, key, None)

    def select(self, table: str, key: Key) -> bool:
        """Reads a row, which need not be there."""
        self.add(Verb.SELECT, table=table, key=_named(self.tables[table], key))
        return True

    def _change(self, trx: str, rows: _Rows, key: Key, row: Row | None) -> bool:
        if rows.owner.get(key, trx) != trx:
            return False
        rows.owner[key] = trx
        self.undo[trx].append((rows, key, rows.rows.get(key)))
        _put(rows, key, row)
        return True

    # -- transactions ---------------------------------------------------------------------------

    def run(self, profiles: Mapping[Profile, float], clients: int, transactions: int) -> None:
        """So many transactions, of profiles as often as their weights say; all of them have ended then."""
        waiting = self.rng.choices(list(profiles), list(profiles.values()), k=transactions)
        active: list[tuple[str, Iterator[bool]]] = []
        while active or waiting:
            if self.rng.random() < HOUSEKEEPING_SHARE:
                self._keep_house()
            elif waiting and len(active) < clients and (not active or self.rng.random() < 0.3):
                trx = self._begin()
                active.append((trx, waiting.pop()(self, trx)))
            else:
                client = self.rng.choice(active)
                done = next(client[1], None)
                if done is not True:
                    self._end(client[0], commit=done is None)
                    active.remove(client)

    def rounds(
        self,
        profiles: Mapping[Profile, float],
        clients: int,
        transactions: int,
        between: Callable[[], None],
    ) -> None:
        """So many transactions, in up to ROUNDS rounds; behind each of them `between` changes definitions."""
        rounds = min(transactions, ROUNDS)
        for number in range(rounds):
            share = transactions // rounds + (number < transactions % rounds)
            self.run(profiles, clients, share)
            between()

    def toggle_index(self, table: str, index: IndexDef) -> None:
        """Builds the index, or drops it if it is there. No transaction may be open."""
        indexes = self.tables[table].indexes
        if index.name in indexes:
            self.add(Verb.DROP_INDEX, table=table, name=index.name)
            indexes.remove(index.name)
        else:
            self.add(Verb.ADD_INDEX, table=table, indexes=(index,))
            indexes.add(index.name)

    def _begin(self) -> str:
        self.n_trx += 1
        trx = f"c{self.n_trx}"
        self.add(Verb.BEGIN, trx=trx)
        self.undo[trx] = []
        return trx

    def _end(self, trx: str, commit: bool) -> None:
        self.add(Verb.COMMIT if commit else Verb.ROLLBACK, trx=trx)
        for rows, key, before in reversed(self.undo.pop(trx)):
            rows.owner.pop(key, None)
            if not commit:
                _put(rows, key, before)

    def _keep_house(self) -> None:
        kind = self.rng.randrange(8)
        if kind < 4:
            self.add(Verb.CLEAN, number=self.rng.randint(1, 12))
        elif kind < 7:
            self.add(Verb.PURGE, number=self.rng.choice((4, 16, -1)))
        else:
            self.add(Verb.CHECKPOINT, full=self.rng.random() < 0.3)


def _put(rows: _Rows, key: Key, row: Row | None) -> None:
    if row is None:
        rows.rows.pop(key, None)
    else:
        rows.rows[key] = row


def _named(rows: _Rows, key: Key) -> dict[str, Value]:
    return dict(zip(rows.primary, key, strict=True))
