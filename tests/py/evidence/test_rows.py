"""Rows that recovery came to otherwise: which, of which statement, and what of it was never synced."""

from __future__ import annotations

import json

import pytest
from fake_trace import FakeTrace

from tornpage.evidence.rows import row_changes
from tornpage.evidence.timeline import crash_point, recorded_steps
from tornpage.oracle.observed import rows_of, told_texts
from tornpage.vocabulary.evidence import RowChange

PAGE = 4096
TEXTS = {
    0: {"rows": ""},
    1: {"rows": "key1 1\n"},
    2: {"rows": "key1 1\nkey2 2\n"},
    3: {"rows": "key1 3\nkey2 2\n"},
}


def run(*, sync: bool = False) -> FakeTrace:
    """Three statements of one write each, numbers 4, 7 and 10 of the recording; the first is synced."""
    trace = FakeTrace().open("log").mark("ready").mark("issue n=1").write("log", 0, 10)
    trace.mark("ack n=1").mark("issue n=2").write("log", 10, 10).mark("ack n=2")
    trace.mark("issue n=3").write("log", 20, 10)
    return trace.fsync("log").mark("ack n=3") if sync else trace.mark("ack n=3")


def test_a_lost_row_names_its_acknowledgement_and_the_missing_fsync() -> None:
    """The statement since which it was there without a break, not the last one."""
    changes, note = row_changes(recorded_steps(run().trace()), TEXTS, {"rows": "key1 3\n"})
    why = "lost: acknowledged at operation 8 (statement 2), no fsync of log since operation 7"
    assert changes == [RowChange("rows", "key2 2", "", why)]
    assert note == "expected as after statement 3, acknowledged at operation 11"


def test_a_row_of_another_value_is_one_change() -> None:
    """It says which statement it is of."""
    (change,), _ = row_changes(recorded_steps(run().trace()), TEXTS, TEXTS[2])
    assert (change.expected, change.recovered) == ("key1 3", "key1 1")
    assert change.why.startswith(
        "lost: acknowledged at operation 11 (statement 3), no fsync of log"
    )
    assert change.why.endswith("recovered as it was after statement 2, acknowledged at operation 8")


def test_what_was_synced_is_not_called_unsynced() -> None:
    """Then the store had what it needed."""
    (change,), _ = row_changes(recorded_steps(run(sync=True).trace()), TEXTS, TEXTS[2])
    assert "all that it wrote was synced by operation 11" in change.why


def test_rows_of_a_statement_in_flight_and_of_none() -> None:
    """The first may be there; the second may not."""
    steps = crash_point(recorded_steps(run().trace()), 7)
    assert steps[-1].op == "issue"
    found = {"rows": "key1 3\nkey2 2\nkey9 9\n"}
    changes, note = row_changes(steps, TEXTS, found)
    assert note.startswith("expected as after statement 2")
    assert [change.why.rpartition("; ")[2] for change in changes] == [
        "recovered as it was after statement 3, issued at operation 9 and in flight",
        "no statement has ever led to it",
    ]


def test_a_name_that_was_not_synced_is_told_of_its_folder() -> None:
    """An fsync of the file covers its bytes alone."""
    trace = FakeTrace().mark("issue n=1").open("new", True).write("new", 0, 10).fsync("new")
    (change,), _ = row_changes(recorded_steps(trace.mark("ack n=1").trace()), TEXTS, TEXTS[0])
    assert change.why.endswith("no fsync of the folder of new since operation 2, its create")


def test_a_sync_of_another_folder_is_none_of_its_own() -> None:
    """Only that of the folder that has the name covers it; and the last one that was needed is told."""
    trace = FakeTrace().mark("issue n=1").open("sub/new", True).write("sub/new", 0, 10)
    trace.fsync("sub/new").sync_dir()
    ready = trace.mark("ack n=1")
    (change,), _ = row_changes(recorded_steps(ready.trace()), TEXTS, TEXTS[0])
    assert "no fsync of the folder of sub/new since operation 2, its create" in change.why
    (change,), _ = row_changes(recorded_steps(ready.sync_dir("sub").trace()), TEXTS, TEXTS[0])
    assert change.why.endswith("all that it wrote was synced by operation 7")


def test_clients_have_states_of_their_own() -> None:
    """The state of each is as it acknowledged last, whoever came later."""
    texts = {0: {"a": "", "b": ""}, 1: {"a": "x"}, 2: {"b": "y"}}
    trace = FakeTrace().open("log").mark("issue n=1 client=a").mark("issue n=2 client=b")
    trace.write("log", 0, 10).mark("ack n=2 client=b").mark("ack n=1 client=a")
    changes, _ = row_changes(recorded_steps(trace.trace()), texts, {"a": "x", "b": ""})
    assert [(change.table, change.expected) for change in changes] == [("b", "y")]
    assert "statement 2 of b" in changes[0].why


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a 1\nb 2\n", [("a", "a 1"), ("b", "b 2")]),
        ('{"a": "1", "b": [2]}', [("a", "a=1"), ("b", "b=[2]")]),
        ('["a 1", 2]', [("a", "a 1"), ("2", "2")]),
        ("", []),
        ("17", [("17", "17")]),
    ],
)
def test_rows_are_lines_members_or_items(text: str, rows: list[tuple[str, str]]) -> None:
    """What helpers write as JSON is not one row."""
    assert rows_of(text) == rows


def test_a_line_that_a_kill_cut_is_left_out() -> None:
    """The others are read."""
    whole = json.dumps({"n": 1, "state": {"rows": "x"}})
    assert told_texts(f'{whole}\n{{"n": 2, "sta'.encode()) == {1: {"rows": "x"}}
