"""The log of call stacks as the harness reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_stacks import FakeStacks

from tornpage.faults.stacks import Call, CallStack, StackLog, copy_stacks, stacks_path
from tornpage.vocabulary.errors import TraceError

MAIN = Call("/usr/bin/store", "ab" * 20, 0x1234)
LIBRARY = Call("/usr/lib/libstore.so", "", 0x99)


def test_a_stack_is_that_of_its_event() -> None:
    """By event number, frames from the innermost on; a stack that was stored once is that of many."""
    log = FakeStacks().stack(4, LIBRARY, MAIN).stack(7, MAIN, text="told").again(9, 4).log()
    assert log.of(4) == CallStack((LIBRARY, MAIN))
    assert log.of(7) == CallStack((MAIN,), "told")
    assert log.of(9) == log.of(4)
    assert log.of(5) is None


def test_a_note_has_the_stack_of_who_made_it() -> None:
    """Beside the operations, in the order in which they were made."""
    log = FakeStacks().stack(4, MAIN).note(4, "step n=1", LIBRARY).note(9, "step n=2", MAIN).log()
    assert [(note.event, note.text) for note in log.notes] == [(4, "step n=1"), (9, "step n=2")]
    stacks = [log.stack(note.stack) for note in log.notes]
    assert stacks == [CallStack((LIBRARY,)), CallStack((MAIN,))]
    assert log.of(4) == CallStack((MAIN,)) and log.of(9) is None


def test_times_are_those_of_the_call() -> None:
    """Nanoseconds; nothing where there are none."""
    log = FakeStacks().at(4, 1000, 2500, MAIN).stack(5, MAIN).log()
    assert [log.times(seq) for seq in (4, 5, 6)] == [(1000, 2500), (0, 0), (0, 0)]


def test_code_of_no_file_has_no_module() -> None:
    """A frame of code that was made while the program ran."""
    nowhere = Call("", "", 0)
    assert FakeStacks().stack(1, nowhere, MAIN).log().of(1) == CallStack((nowhere, MAIN))


def test_a_copy_has_no_room_behind(tmp_path: Path) -> None:
    """What is committed is copied, and only that; where no stacks were taken there is no copy."""
    whole = FakeStacks().stack(1, MAIN).log().data
    stacks_path(tmp_path / "trace").write_bytes(whole + bytes(1 << 16))
    copy_stacks(tmp_path / "trace", tmp_path / "copy")
    assert stacks_path(tmp_path / "copy").read_bytes() == whole
    copy_stacks(tmp_path / "other", tmp_path / "none")
    assert StackLog.load(tmp_path / "none") is None


@pytest.mark.parametrize("wrong", [b"", b"TPTRACE2" + bytes(56), bytes(64)])
def test_what_is_no_log_is_refused(tmp_path: Path, wrong: bytes) -> None:
    """Another file, or none of it."""
    stacks_path(tmp_path / "trace").write_bytes(wrong)
    with pytest.raises(TraceError, match="not a log of call stacks"):
        StackLog.load(tmp_path / "trace")


def test_a_log_that_is_cut_is_refused() -> None:
    """It says how long it is."""
    whole = FakeStacks().stack(1, MAIN).log().data
    with pytest.raises(TraceError, match="is cut"):
        StackLog(whole[:-1])


@pytest.mark.parametrize("damage", [b"\0", b"\x07", b"\xff", b"\xff" * 8])
def test_a_damaged_log_is_refused_or_read(damage: bytes, tmp_path: Path) -> None:
    """Whatever a byte or a number of it is: no other error, no more memory than the file has bytes."""
    stacks = FakeStacks().stack(4, LIBRARY, MAIN).stack(7, MAIN, text="told").again(9, 4)
    whole = stacks.note(9, "step", MAIN).log().data
    path = stacks_path(tmp_path / "trace")
    refused = 0
    for at in range(8, len(whole)):
        path.write_bytes(whole[:at] + damage + whole[at + len(damage) :])
        try:
            log = StackLog.load(tmp_path / "trace")
        except TraceError:
            refused += 1
            continue
        assert log is not None
        for seq in (4, 7, 9):
            log.of(seq)
        for note in log.notes:
            log.stack(note.stack)
    assert refused > 0


def test_what_a_record_names_is_of_its_kind() -> None:
    """An event's stack is one, and not a module or the event's own record."""
    whole = FakeStacks().stack(4, MAIN).log().data
    records = StackLog(whole)
    assert records.of(4) is not None
    last = len(whole) - 64
    for number in (1, 3, 4, 1 << 40):
        other = whole[: last + 32] + number.to_bytes(8, "little") + whole[last + 40 :]
        with pytest.raises(TraceError, match="is damaged"):
            StackLog(other)
