"""What a recovered DuckDB says of its indexes: a database of SQLite that answers in its place."""

from __future__ import annotations

import importlib
import sqlite3
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROWS = 40


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Without DuckDB."""
    monkeypatch.setitem(sys.modules, "duckdb", SimpleNamespace())  # type: ignore[arg-type]
    name = "tornpage.targets.bundled.duckdb_store"
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


class Store:
    """A table whose index on `a` does not find the row of one key, or finds it twice."""

    def __init__(self, lost: int, found: int) -> None:
        """found: times that the row of the key `lost` is found."""
        self._store = sqlite3.connect(":memory:")
        self._store.create_function("hash", 1, lambda key: key * 7 % 31)
        self._store.execute("CREATE TABLE t (a INTEGER, b INTEGER)")
        self._store.executemany("INSERT INTO t VALUES (?, ?)", [(n, n % 3) for n in range(ROWS)])
        self._store.execute("INSERT INTO t VALUES (NULL, 0)")
        self.lost, self.found = lost, found

    def execute(self, query: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Of DuckDB's catalogue what there is."""
        if "duckdb_columns" in query:
            return self._store.execute("SELECT 'a' UNION SELECT 'b'")
        if "information_schema" in query:
            return self._store.execute("SELECT 't'")
        if query.endswith('"a" = ?') and values[0] == self.lost:
            return self._store.execute(f"SELECT {self.found}")
        return self._store.execute(query, values)


@pytest.mark.parametrize("lost", [0, ROWS - 1])
@pytest.mark.parametrize("found", [0, 1, 2])
def test_an_index_that_finds_other_rows_is_told(module: ModuleType, lost: int, found: int) -> None:
    """None, or one twice."""
    what = "index on a of t: 1 keys have other rows than a scan shows"
    told = module.findings_of(Store(lost, found))
    assert told == [{"invariant": 10, "what": what}] * (found != 1)
