"""Writes of the engine's log, taken to pieces: which record groups they bring, and what they would have been
with fewer of them. Writes of pages: who changed the page last."""

from __future__ import annotations

import struct

import google_crc32c
import pytest
from fake_stacks import FakeStacks
from fake_trace import FakeTrace

from tornpage.faults.stacks import Call
from tornpage.faults.trace import Op
from tornpage.targets.engine.log_groups import LogGroups, cut_blocks

START = 8192
EPOCH = 3


def block(number: int, used: int, first_group: int = 12) -> bytes:
    """A block of the log as FORMAT.md has it, with a payload that is not zero."""
    head = struct.pack(">IIHH", number, EPOCH, used, first_group)
    data = (head + bytes([number]) * (min(used, 508) - 12)).ljust(508, b"\0")
    return data + struct.pack(">I", google_crc32c.value(data))


THREE = block(16, 512) + block(17, 512) + block(18, 100)
"""From LSN 8192 to 9316."""


@pytest.mark.parametrize("used", [13, 57, 507])
def test_a_cut_block_ends_there(used: int) -> None:
    """Its header and checksum say so, and nothing is behind; the blocks before it are as they were."""
    cut = cut_blocks(THREE, 8204, START + 512 + used)
    assert cut[:512] == THREE[:512]
    assert cut[512:1024] == block(17, used)
    assert cut[1024:] == bytes(512)


def test_a_group_that_begins_behind_the_cut_is_not_named() -> None:
    """The offset of the first one that begins in the block is 0 then."""
    blocks = block(16, 300, first_group=200)
    cut = cut_blocks(blocks, 8204, START + 200)
    assert struct.unpack_from(">HH", cut, 8) == (200, 0)
    assert struct.unpack_from(">HH", cut_blocks(blocks, 8204, START + 201), 8) == (201, 200)


def test_a_cut_at_the_end_changes_nothing() -> None:
    """Of the last block, or where the last one is full."""
    assert cut_blocks(THREE, 8204, START + 1024 + 100) == THREE
    assert cut_blocks(THREE[:1024], 8204, START + 1024 + 12) == THREE[:1024]


def test_a_write_has_the_groups_that_end_in_it() -> None:
    """By the mark before it and by the notes; one that began in an earlier write is of this one."""
    call = [Call("/bin/engine", "", at) for at in range(4)]
    stacks = FakeStacks().note(1, "log_group start=8204 end=8300", call[0])
    stacks.note(1, "another_step start=8204 end=8300", call[0])
    stacks.note(1, "log_group start=8300 end=8750", call[1])
    stacks.note(4, "log_group start=8750 end=9316", call[2])
    log = stacks.log()
    trace = FakeTrace().mark("log_write start=8204 end=8400").mark("point name=log.before_write")
    trace.write("log", 2048, THREE[:512])
    trace.mark("log_write start=8400 end=9316").write("log", 2048, THREE, full=True).write(
        "other", 0, b"x"
    )
    recorded = trace.trace()
    first, second, other = (event.seq for event in recorded.events(kinds=(Op.WRITE,)))
    groups = LogGroups(recorded, log.notes)
    assert [part.end for part in groups.of(first)] == [8300]
    later = groups.of(second)
    assert [part.what for part in later] == [
        "the records of LSN 8300 to 8750",
        "the records of LSN 8750 to 9316",
    ]
    assert [log.stack(part.stack).calls for part in later] == [(call[1],), (call[2],)]
    assert groups.of(other) == ()
    assert groups.cut(second, 2) == THREE
    assert groups.cut(second, 1) == cut_blocks(THREE, 8400, 8750)
    assert groups.cut(second, 0) == cut_blocks(THREE, 8400, 8400)


def test_a_page_was_changed_last_by_the_group_of_its_lsn() -> None:
    """Unless it was changed without a record since it was written before: no recovery makes that again. The
    last such change counts, of this page, of those before the write."""
    call = [Call("/bin/engine", "", at) for at in range(6)]
    stacks = FakeStacks().note(1, "log_group start=8204 end=8300", call[0])
    for event, page, place in ((1, 3, 1), (2, 3, 2), (2, 4, 3), (8, 3, 4)):
        stacks.note(event, f"page_noredo space=1 page={page} lsn=8204", call[place])
    stacks.note(9, "log_group start=8300 end=8400", call[5])
    log = stacks.log()
    trace = FakeTrace().mark("ready").mark("ready").open("t1.ibd")
    for page, lsn in ((3, 8300), (3, 8400), (5, 8300), (6, 0), (3, 8400)):
        told = f"page_write space=1 page={page} lsn={lsn} type=index"
        trace.mark(told).write("t1.ibd", 4096 * page, b"x")
    recorded = trace.write("log", 0, b"x").trace()
    groups = LogGroups(recorded, log.notes)
    changers = [groups.changer(event.seq) for event in recorded.events(kinds=(Op.WRITE,))]
    found = [(one.what, log.stack(one.stack).calls) if one else None for one in changers]
    assert found == [
        ("a change without a record, at LSN 8204", (call[2],)),
        ("the records of LSN 8300 to 8400", (call[5],)),
        ("the records of LSN 8204 to 8300", (call[0],)),
        None,
        ("a change without a record, at LSN 8204", (call[4],)),
        None,
    ]
