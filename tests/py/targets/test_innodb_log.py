"""MariaDB's logs: what of them is complete is read, of each format, and what is wrong is no error."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from innodb_pages import FIRST_LSN, FREE, INIT, RING, SIZE, group, log_file

from tornpage.targets.innodb.log import Log, open_log
from tornpage.targets.innodb.old_records import Reader, read_group
from tornpage.targets.innodb.page import crc32c, read_page, tablespace_page_size
from tornpage.targets.innodb.records import Kind, Record, end_of_group, read_records
from tornpage.targets.innodb.show import log_lines

OLD_INIT = b"\x9d\x05\x09"
"""INIT with a record of before 10.5, a mini-transaction of its own."""


@pytest.mark.parametrize(
    ("data", "records"),
    [
        (INIT, [Record(Kind.INIT, 5, 9)]),
        (FREE, [Record(Kind.FREE, 5, 9)]),
        (b"\x13\x05\x80\x01", [Record(Kind.INIT, 5, 129)]),
        (b"\x34\x05\x09\x10\xaa\xb2\x01\xbb", [Record(Kind.CHANGE, 5, 9)] * 2),
        (b"\xb5\x05\x00./a", [Record(Kind.FILE_MODIFY, 5, 0, b"./a")]),
        (
            INIT + b"\x34\x06\x0a\x10\xaa\xb2\x01\xbb",
            [Record(Kind.INIT, 5, 9), *[Record(Kind.CHANGE, 6, 10)] * 2],
        ),
    ],
    ids=["init", "free", "long number", "same page", "file", "two pages"],
)
def test_records_name_their_pages(data: bytes, records: list[Record]) -> None:
    """Each its own; one that does not is of the page before; files come without one."""
    assert list(read_records(data)) == records


def test_a_log_ends_where_a_group_is_not_whole() -> None:
    """Of the right lap and with its checksum."""
    two = group(INIT) + group(b"\x34\x05\x09\x10\xaa")
    log = open_log(log_file(two + group(INIT, lap=0)))
    assert log is not None
    ends = [found.end for found in log.groups(log.checkpoint())]
    assert ends == [FIRST_LSN + len(group(INIT)), FIRST_LSN + len(two)]
    cut = open_log(log_file(two[:-1]))
    assert cut is not None and len(list(cut.groups(FIRST_LSN))) == 1


def test_a_log_goes_round() -> None:
    """The second lap has the other mark."""
    record = group(INIT)
    ring = bytearray(RING)
    at = RING - len(record)
    ring[at:] = record
    ring[: len(record)] = group(INIT, lap=0)
    log = open_log(log_file(bytes(ring)))
    assert log is not None
    assert len(list(log.groups(FIRST_LSN + at))) == 2


@pytest.mark.parametrize("length", [1000, 100_000, 600_000])
def test_a_long_group_is_read(length: int) -> None:
    """However much of the ring must be looked at; what follows too."""
    long = INIT + (b"\xbf" + bytes(15)) * (length // 16)
    log = open_log(log_file(group(long) + group(FREE), 1 << 20))
    assert log is not None
    found = list(log.groups(FIRST_LSN))
    assert [len(one.records) for one in found] == [1 + length // 16, 1]
    assert found[0].end == FIRST_LSN + len(group(long))


def test_records_of_before_are_walked_over() -> None:
    """An insert with its index, a change, and the end of the group; INDEX_LOAD is a group of its own."""
    insert = b"\x26\x05\x09" + b"\0\x02\0\x01" + bytes(4) + b"\0\x63" + b"\x06" + b"abc"
    change = b"\x02\x05\x09\0\x28\x07"
    load = b"\xbd\x01\x80\xa5" + bytes(7) + b"\x14"
    ended = read_group(insert + change + b"\x1f" + load, 0)
    assert ended is not None
    end, records = ended
    assert [(found.kind, found.space, found.page) for found in records] == [(Kind.CHANGE, 5, 9)] * 2
    assert read_group(load, 0) == (len(load), [Record(Kind.INDEX_LOAD, 1, 165, bytes(7) + b"\x14")])
    assert end == len(insert + change) + 1
    assert read_group(insert + change, 0) is None
    rename = b"\xb6\x05\0\0\x04./a\0\0\x04./b\0"
    assert read_group(rename, 0) == (len(rename), [Record(Kind.FILE_RENAME, 5, 0, b"./a\0./b")])
    create = b"\xaf\x05\0" + bytes(4) + b"\0\x04./a\0"
    assert read_group(create, 0) == (len(create), [Record(Kind.FILE_CREATE, 5, 0, b"./a")])


def old_log(lsn: int, *slots: bytes) -> bytearray:
    """A log of 10.2 whose first block has this LSN, with one group there."""
    block = bytearray(512)
    struct.pack_into(">IHHI", block, 0, lsn // 512 + 1, 12 + len(OLD_INIT), 12, 1)
    block[12 : 12 + len(OLD_INIT)] = OLD_INIT
    struct.pack_into(">I", block, 508, crc32c(block[:508]))
    data = bytearray(2048 + 32 * 512)
    struct.pack_into(">I", data, 0, 1)
    for place, slot in zip((512, 1536), slots, strict=True):
        data[place : place + 512] = slot
    data[2048 : 2048 + 512] = block
    return data


def old_slot(number: int, lsn: int, offset: int) -> bytes:
    """A checkpoint, and where its LSN lies in the file."""
    slot = bytearray(512)
    struct.pack_into(">QQQ", slot, 0, number, lsn, offset)
    struct.pack_into(">I", slot, 508, crc32c(slot[:508]))
    return bytes(slot)


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("torn", [False, True])
def test_a_log_of_before_lies_where_its_newest_checkpoint_says(second: bool, torn: bool) -> None:
    """In either slot; the other one is of another place, or torn."""
    lsn = 20 * 512
    newest, other = old_slot(8, lsn + 12, 2048 + 12), old_slot(7, lsn - 512, 2048 + 3 * 512)
    if torn:
        other = old_slot(9, lsn + 512, 2048)[:100].ljust(512, b"?")
    log = open_log(old_log(lsn, *((other, newest) if second else (newest, other))))
    assert log is not None and log.checkpoint() == lsn + 12
    (found,) = log.groups(log.checkpoint())
    assert (found.end, found.records) == (lsn + 15, (Record(Kind.INIT, 5, 9),))


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, "00"),
        (0x7F, "7f"),
        (0x80, "8080"),
        (0x3FFF, "bfff"),
        (0x4000, "c04000"),
        (0x1FFFFF, "dfffff"),
        (0x200000, "e0200000"),
        (0xFFFFFFF, "efffffff"),
        (0x10000000, "f010000000"),
        (0xFEFFFFFF, "f0feffffff"),
        (0xFF000000, "fe000000"),
        (0xFFFDFFFF, "fefdffff"),
        (0xFFFE0000, "fc0000"),
        (0xFFFFFBFF, "fdfbff"),
        (0xFFFFFC00, "f800"),
        (0xFFFFFFFF, "fbff"),
    ],
)
def test_a_number_of_before_is_short_near_both_ends(number: int, data: str) -> None:
    """The smallest and the largest of each length."""
    reader = Reader(bytes.fromhex(data) + b"?", 0)
    assert (reader.short(), reader.at) == (number, len(data) // 2)


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0x7F, "7f"),
        (0x80, "8000"),
        (0x407F, "bfff"),
        (0x4080, "c00000"),
        (0x20407F, "dfffff"),
        (0x204080, "e0000000"),
        (0x1020407F, "efffffff"),
        (0x10204080, "f000000000"),
        (0xFFFFFFFF, "f0efdfbf7f"),
    ],
)
def test_a_number_counts_from_what_is_shorter(number: int, data: str) -> None:
    """Of a page, since 10.5: the smallest and the largest of each length."""
    body = b"\x05" + bytes.fromhex(data)
    assert list(read_records(bytes([0x10 + len(body)]) + body)) == [Record(Kind.INIT, 5, number)]


@given(st.binary(max_size=600))
def test_no_bytes_are_an_error(data: bytes) -> None:
    """Pages, logs and records of garbage are read or not there."""
    read_page((data + bytes(SIZE))[:SIZE])
    tablespace_page_size(data)
    end_of_group(data, 0)
    read_group(data, 0)
    with contextlib.suppress(ValueError):
        list(read_records(data))
    for version in (0x50687973, 0x50485953, 1):
        log = log_file(data)
        struct.pack_into(">I", log, 0, version)
        found = open_log(log)
        assert found is not None
        list(found.groups(found.checkpoint()))
        list(found.groups(FIRST_LSN))
    open_log(bytearray(data))


def test_the_ring_of_a_log_that_is_too_short_is_empty() -> None:
    """A log is at least a header and a block."""
    assert open_log(bytearray(100)) is None
    assert isinstance(open_log(log_file(b"")), Log)


def test_a_log_is_shown_by_groups() -> None:
    """With the LSNs of each, from the checkpoint on."""
    lines = log_lines(bytes(log_file(group(INIT) + group(FREE))))
    one = FIRST_LSN + len(group(INIT))
    assert lines == [
        f"{FIRST_LSN}..{one}",
        "  init space=5 page=9",
        f"{one}..{one + len(group(FREE))}",
        "  free space=5 page=9",
    ]
    with pytest.raises(ValueError, match="no format that is known"):
        log_lines(b"?" * 20000)
