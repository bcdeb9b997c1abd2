"""What a recovered MariaDB says of its tables, as recovery reads it: a server that is a list of answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tornpage.targets.bundled import mariadb
from tornpage.targets.target import Command
from tornpage.vocabulary.errors import TargetError

WAITS = "Clustered index record not found for index a: COMPACT RECORD(info_bits=32, 2 fields)"
WRONG = "Index a is marked as corrupted"
OK = ("t.t1", "check", "status", "OK")


DEFINITION = """CREATE TABLE `t1` (
  `id` int(11) NOT NULL,
  `b``c` varchar(9) DEFAULT 'x',
  PRIMARY KEY (`id`),
  KEY `b` (`b``c`)
) ENGINE=InnoDB AUTO_INCREMENT=7"""


class Cursor:
    """Answers of CHECK TABLE in their order, the last one again and again; no index but the primary key."""

    def __init__(self, answers: list[list[tuple[str, ...]]], history: int) -> None:
        """answers: rows of each; history: transactions that purge has before it."""
        self.answers = answers
        self.status = f"------------\nTRANSACTIONS\nHistory list length {history}\nLIST OF"
        self.asked = 0
        self.counting: tuple[str, int, int | None] = ("", 0, 0)
        """Type of the column that counts by itself, "" if none does; its next number; the largest there."""

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, statement: str) -> None:
        """Of the few statements that are asked."""
        self.rows: Sequence[tuple[Any, ...]]
        if statement.startswith("CHECK TABLE"):
            self.rows = self.answers[min(self.asked, len(self.answers) - 1)]
            self.asked += 1
        elif statement.startswith("SHOW TABLES"):
            self.rows = [("t1",)]
        elif statement.startswith("SHOW COLUMNS"):
            self.rows = [
                ("id", self.counting[0], "NO", "PRI", None, "auto_increment"),
                ("b", "int(11)", "YES", "", None, ""),
            ][0 if self.counting[0] else 1 :]
        elif statement.startswith("SELECT AUTO_INCREMENT"):
            self.rows = [(self.counting[1],)]
        elif statement.startswith("SELECT MAX(`id`)"):
            self.rows = [(self.counting[2],)]
        elif statement.startswith("SHOW ENGINE"):
            self.rows = [("InnoDB", "", self.status)]
        else:
            self.rows = [("t1", 0, "PRIMARY", 1, "id")]

    def fetchall(self) -> Sequence[tuple[Any, ...]]:
        """Rows of the last statement."""
        return self.rows


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A time that passes by sleeping, and by nothing else."""
    clock = SimpleNamespace(now=100.0)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(mariadb, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep))
    return clock


def findings(*answers: list[tuple[str, ...]], history: int = 0) -> tuple[list[str], int]:
    """What is told of a server with these answers, and how often it was asked."""
    cursor = Cursor(list(answers), history)
    found = mariadb.findings_of(SimpleNamespace(cursor=lambda: cursor))  # type: ignore[arg-type]
    return [one["what"] for one in found], cursor.asked


def warning(text: str, kind: str = "Warning") -> tuple[str, ...]:
    """A row of CHECK TABLE."""
    return ("t.t1", "check", kind, text)


def test_an_entry_that_purge_removes_is_no_finding(clock: SimpleNamespace) -> None:
    """It is looked at again until it is gone, and no longer."""
    waiting = [warning(WAITS), OK]
    assert findings(waiting, waiting, [OK]) == ([], 3)
    assert clock.now - 100 < mariadb.PURGE_S / 10


def test_an_entry_that_stays_is_told(clock: SimpleNamespace) -> None:
    """After as long as purge may take, with all else that is wrong by then."""
    told, _asked = findings([warning(WAITS), OK], [warning(WAITS), warning(WRONG, "error"), OK])
    assert told == [f"CHECK TABLE t1: {WAITS}", f"CHECK TABLE t1: {WRONG}"]
    assert mariadb.PURGE_S <= clock.now - 100 < 2 * mariadb.PURGE_S


def test_what_is_wrong_at_once_waits_for_nothing(clock: SimpleNamespace) -> None:
    """Only what purge may still remove is worth another look."""
    assert findings([warning(WRONG, "error"), OK]) == ([f"CHECK TABLE t1: {WRONG}"], 1)
    assert clock.now == 100


def test_an_entry_stays_as_long_as_purge_has_not_come(clock: SimpleNamespace) -> None:
    """On a busy machine that takes longer than anybody waits; what else is wrong is told."""
    waiting = [warning(WAITS), warning(WRONG, "error"), OK]
    told, _asked = findings(waiting, history=3)
    assert told == [f"CHECK TABLE t1: {WRONG}"]
    assert mariadb.PURGE_S <= clock.now - 100 < 2 * mariadb.PURGE_S


@pytest.mark.parametrize(
    ("kind", "following", "newest", "told"),
    [
        ("int(11)", 8, 7, ""),
        ("int(11)", 1, None, ""),
        ("int(11)", 7, 7, "table t1: AUTO_INCREMENT is 7, and id has 7 already"),
        ("int(11)", 1, 7, "table t1: AUTO_INCREMENT is 1, and id has 7 already"),
        ("int(11)", 127, 127, "table t1: AUTO_INCREMENT is 127, and id has 127 already"),
        ("tinyint(4)", 127, 127, ""),
        (
            "tinyint(3) unsigned",
            127,
            127,
            "table t1: AUTO_INCREMENT is 127, and id has 127 already",
        ),
        ("bigint(20) unsigned", (1 << 64) - 1, (1 << 64) - 1, ""),
    ],
)
def test_a_number_that_a_row_has_is_not_the_next(
    kind: str, following: int, newest: int | None, told: str
) -> None:
    """It would come again, unless there is no larger one."""
    cursor = Cursor([[OK]], 0)
    cursor.counting = (kind, following, newest)
    found = mariadb.findings_of(SimpleNamespace(cursor=lambda: cursor))  # type: ignore[arg-type]
    assert [(one["invariant"], one["what"]) for one in found] == [(6, told)] * bool(told)


class Differing:
    """A server whose index has these entries, of two columns, and whose table has those."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __enter__(self) -> Differing:
        return self

    def __exit__(self, *_: object) -> None: ...

    def cursor(self) -> Differing:
        """A connection and its cursor in one."""
        return self

    def execute(self, statement: str) -> None:
        """Remembers it."""
        self.asked.append(statement)

    def fetchall(self) -> list[tuple[int, int]]:
        """The same of both."""
        return [(1, 2)]


def test_null_is_a_word_in_an_entry() -> None:
    """CONCAT_WS leaves NULL out: (NULL, 'x') would be ('x', NULL)."""
    server = Differing()
    columns = ["a", "b"]
    assert mariadb._wrong_with(server, "t.t1", "ab", columns) == ""  # type: ignore[arg-type]
    assert all("CONCAT_WS(',', QUOTE(`a`), QUOTE(`b`))" in statement for statement in server.asked)


class Shown:
    """A server with one table; it shows these rows of it, and counts so many."""

    def __init__(self, rows: str | None, count: int) -> None:
        """rows: a line of checksums each; None: of an empty table."""
        self.answers = {"SHOW TABLES": ("t1",), "SHOW CREATE": ("t1", DEFINITION)}
        self.answers["SELECT"] = (rows, count)
        self.asked: list[str] = []

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, *_: object) -> None: ...

    def cursor(self) -> Shown:
        """A connection and its cursor in one."""
        return self

    def execute(self, statement: str) -> None:
        """Remembers it."""
        self.asked.append(statement)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Of the last statement."""
        return [row for word, row in self.answers.items() if self.asked[-1].startswith(word)]


def test_a_state_is_definition_and_rows() -> None:
    """Read without indexes: one that has all columns is not the table. No row is left out."""
    server = Shown("0a\n0b\n", 2)
    definition = DEFINITION.replace(" AUTO_INCREMENT=7", "")
    assert mariadb.state_of(server) == {"t1": "0a\n0b\n", "t1 definition": definition}  # type: ignore[arg-type]
    (read,) = (statement for statement in server.asked if "CRC32" in statement)
    assert "QUOTE(`id`), QUOTE(`b``c`)" in read
    assert "ORDER BY `id`, `b``c`" in read
    assert read.endswith("USE INDEX ()")
    assert mariadb.state_of(Shown(None, 0))["t1"] == ""  # type: ignore[arg-type]


@pytest.mark.parametrize("shown", [Shown("0a\n", 2), Shown(None, 1), Shown("0a\n0", 2)])
def test_a_state_that_lacks_rows_is_none(shown: Shown) -> None:
    """A row, or a table, that the server cuts off would look as if it were lost, or never be missed."""
    with pytest.raises(ValueError, match="max_allowed_packet"):
        mariadb.state_of(shown)  # type: ignore[arg-type]


@pytest.mark.parametrize("module", ["mariadb", "mariadb_clients"])
def test_without_its_client_the_extra_is_named(module: str) -> None:
    """A failure of the installation, which says what to do; never one of the server."""
    hidden = f"import runpy, sys; sys.path = {sys.path}; sys.modules['pymysql'] = None"
    run = f"{hidden}; runpy.run_module('tornpage.targets.bundled.{module}')"
    with pytest.raises(TargetError, match=r"pip install 'tornpage\[mariadb\]'"):
        Command((sys.executable, "-c", run)).run({})
