"""How full the logs of a build with LOCK=NONE are, to the byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.oracle.rowlog import RowLogs
from tornpage.workloads.parse import parse_script
from tornpage.workloads.script import row_size

OPTIONS = {"sort_buffer_size": "64k", "online_alter_log_max_size": "64k"}
TABLE = "create table t k:bigint v:char(10) primary k\n"
ROW, KEY = 18, 8
ENTRY = 13
"""Of an index on v:5."""
Row = tuple[bytes, ...]


def row(key: int, text: bytes) -> Row:
    """A row, by columns."""
    return (key.to_bytes(8, "big"), text.ljust(10))


def entry(values: Row) -> bytes:
    """That of a row in the index."""
    return values[1][:5] + values[0]


def logs(*entries: Callable[[Row], bytes]) -> RowLogs:
    """Of a build that adds these indexes; without any, of a rebuild."""
    return RowLogs(OPTIONS, entries or None, ROW, KEY)


def test_an_index_logs_entries_that_change() -> None:
    """One record comes or goes, two if the entry becomes another, none if it stays."""
    log = logs(entry)
    log.add(None, row(1, b"abcdefg"))
    assert log.written == [1 + ENTRY]
    log.add(row(1, b"abcdefg"), row(1, b"abcdexx"))
    assert log.written == [1 + ENTRY]
    log.add(row(1, b"abcdefg"), row(1, b"x"))
    assert log.written == [3 * (1 + ENTRY)]
    log.add(row(1, b"x"), None)
    assert log.written == [4 * (1 + ENTRY)]


def test_a_rebuild_logs_rows() -> None:
    """The row as it is then, or the key of one that goes."""
    log = logs()
    log.add(None, row(1, b"a"))
    log.add(row(1, b"a"), row(1, b"a"))
    assert log.written == [2 * (1 + ROW)]
    log.add(row(1, b"a"), None)
    assert log.written == [2 * (1 + ROW) + 1 + KEY]


@pytest.mark.parametrize(("entries", "capacity"), [(1, 65536), (3, 65535)])
def test_what_a_log_has_room_for(entries: int, capacity: int) -> None:
    """Whole blocks, which are the smaller, the more logs there are."""
    log = logs(*[entry] * entries)
    log.written[-1] = capacity
    assert not log.overflowed
    log.written[-1] += 1
    assert log.overflowed


def errors(text: str) -> list[str]:
    """Of the statements that failed, in order."""
    return [step.error for step in Oracle(parse_script(TABLE + text), OPTIONS).steps if step.error]


FITS = (1 << 16) // (1 + ROW)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (f"insert_seq - t 1 {FITS}\n", []),
        (f"insert_seq - t 1 {FITS + 1}\n", ["DB_ONLINE_LOG_TOO_BIG"]),
        (f"begin T\ninsert_seq T t 1 {FITS // 2}\nrollback T\n", []),
        (
            f"begin T\ninsert_seq T t 1 {FITS * 2 // 3 + 99}\nrollback T\n",
            ["DB_ONLINE_LOG_TOO_BIG"],
        ),
        ("begin T\ninsert T t k=1\n", ["DB_TABLE_LOCKED"]),
        ("insert - t k=1\ninsert - t k=1\n", ["DB_DUPLICATE_KEY"]),
    ],
)
def test_a_rebuild_ends_as_its_log_allows(changes: str, expected: list[str]) -> None:
    """Rollbacks count too. While a transaction is open that has changed the table it does not end."""
    assert errors(f"start rebuild t lock=none\n{changes}finish index t\n") == expected


def test_a_build_that_cannot_end_goes_on() -> None:
    """It can be finished when the transaction has ended, and with it every commit shows."""
    text = "start index t i(v) lock=none\nbegin T\ninsert T t k=1\nfinish index t\ncommit T\n"
    oracle = Oracle(parse_script(f"{TABLE}{text}finish index t\nfinish index t\n"), OPTIONS)
    assert [step.error for step in oracle.steps if step.error] == [
        "DB_TABLE_LOCKED",
        "DB_NOT_FOUND",
    ]
    rows, _, (index,) = oracle.states[-1]["t"]
    assert (rows, index[:2]) == (1, ("i", 1))


def test_duplicates_count_at_the_end() -> None:
    """They may come and go while the index is built."""
    start = 'insert - t k=1 v="a"\nstart unique index t u(v) lock=none\ninsert - t k=2 v="a"\n'
    assert errors(f"{start}finish index t\n") == ["DB_DUPLICATE_KEY"]
    assert errors(f"{start}delete - t k=1\nfinish index t\n") == []
    assert errors(f'{start}delete - t k=1\nfinish index t\ninsert - t k=1 v="a"\n') == [
        "DB_DUPLICATE_KEY"
    ]


def test_a_copy_has_no_log() -> None:
    """Nor does a statement that is refused leave a build behind."""
    assert errors("start rebuild t algorithm=copy lock=none\nfinish index t\n") == [
        "DB_UNSUPPORTED",
        "DB_NOT_FOUND",
    ]


def test_a_row_of_any_size_is_logged_whole() -> None:
    """VARCHAR at its full length, whatever it has, and the NULL bits."""
    columns = parse_script("create table t k:bigint v:varchar(100) null w:char(3) primary k\n")
    assert row_size(columns.statements[0].columns) == 8 + 102 + 3 + 1
