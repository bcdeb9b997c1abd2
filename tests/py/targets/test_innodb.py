"""MariaDB's bytes: each rule on them has its breach; what people are shown of them."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_trace import FakeTrace
from innodb_pages import (
    FIRST_LSN,
    FREE,
    INIT,
    SIZE,
    checkpoint,
    full_crc32,
    group,
    log_file,
    page,
)

from tornpage.faults.stream import CREATED
from tornpage.faults.trace import WRITE_PAYLOAD, Op
from tornpage.targets.innodb.judge import _find, answer
from tornpage.targets.innodb.page import crc32c, doublewrite_blocks, tablespace_page_size
from tornpage.targets.innodb.rules import Rules, is_tablespace
from tornpage.targets.innodb.show import main, page_facts
from tornpage.targets.innodb.sites import site_of_write
from tornpage.vocabulary.model import Site

FULL_CRC32_4K = 0x13


def system_file() -> bytes:
    """ibdata1 with a doublewrite buffer in its pages 256 to 767."""
    pages = [bytearray(page(0, number, 1, 6)) for number in range(6)]
    struct.pack_into(">I", pages[0], 54, FULL_CRC32_4K)
    struct.pack_into(">III", pages[5], SIZE - 190, 536853855, 256, 512)
    return b"".join(pages)


def test_a_tablespace_tells_its_page_size_and_its_doublewrite_buffer() -> None:
    """Both are read from bytes, or not there."""
    data = system_file()
    assert tablespace_page_size(data) == SIZE
    assert doublewrite_blocks(data[5 * SIZE :]) == (256, 512)
    assert doublewrite_blocks(data[:SIZE]) is None
    assert tablespace_page_size(b"short") is None


class Judge:
    """Rules on a small database, and the names of those that were broken."""

    def __init__(self, ring: bytes = b"", system: bytes = b"") -> None:
        """ring: of the log that was there; system: the tablespace, with a doublewrite buffer."""
        self.broken: list[str] = []
        self.rules = Rules(lambda _number, rule, _what: self.broken.append(rule), True)
        self.rules.find("ibdata1", system or system_file())
        self.rules.find("t/t.ibd", page(5, 0, 1, 8))
        self.rules.find("ib_logfile0", bytes(log_file(ring)))

    def doublewrite(self, data: bytes, slot: int = 256) -> None:
        """A copy, fsynced."""
        self.rules.write("ibdata1", slot * SIZE, data)
        self.rules.sync("ibdata1")


@pytest.mark.parametrize(
    ("path", "pages"),
    [
        ("ibdata1", True),
        ("t/t.ibd", True),
        ("undo001", True),
        ("undo002", True),
        ("undo/undo003", True),
        ("ib_logfile0", False),
        ("ib_buffer_pool", False),
        ("t/t.frm", False),
        ("t/undo_list.frm", False),
    ],
)
def test_a_file_of_pages_is_known_by_its_name(path: str, pages: bool) -> None:
    """Undo tablespaces too, each of them, in whatever folder."""
    assert is_tablespace(path) is pages


def test_a_page_with_its_copy_is_right() -> None:
    """And counted."""
    judge = Judge()
    data = page(5, 9, FIRST_LSN)
    judge.doublewrite(data)
    judge.rules.write("t/t.ibd", 9 * SIZE, data)
    assert judge.broken == [] and judge.rules.counters["doublewritten"] == 1


def test_a_page_is_restored_from_one_of_its_copies() -> None:
    """Whichever of those that a crash left; not from one that another copy has replaced."""
    newer, older = page(5, 9, FIRST_LSN), page(5, 9, FIRST_LSN - 1)
    found = bytearray(system_file().ljust(512 * SIZE, b"\0"))
    for slot, copy in ((256, newer), (300, older)):
        found[slot * SIZE : (slot + 1) * SIZE] = copy
    for data in (newer, older):
        judge = Judge(system=bytes(found))
        judge.rules.write("t/t.ibd", 9 * SIZE, data)
        assert judge.broken == []
    judge = Judge(system=bytes(found))
    judge.doublewrite(page(5, 8, FIRST_LSN), 256)
    judge.rules.write("t/t.ibd", 9 * SIZE, newer)
    assert judge.broken == ["dblwr_skip"]


def test_every_rule_can_be_broken() -> None:
    """By one write each."""
    data = page(5, 9, FIRST_LSN)
    judge = Judge()
    judge.rules.write("t/t.ibd", 9 * SIZE, data)
    assert judge.broken == ["dblwr_skip"]

    judge = Judge()
    judge.rules.write("ibdata1", 256 * SIZE, data)
    judge.rules.write("t/t.ibd", 9 * SIZE, data)
    assert judge.broken == ["area_sync"]
    judge.rules.write("ibdata1", 256 * SIZE, page(5, 8, FIRST_LSN))
    assert judge.broken == ["area_sync", "area_reuse"]

    judge = Judge()
    late = page(5, 9, FIRST_LSN + 1)
    judge.doublewrite(late)
    assert judge.broken == []  # the page itself waits for the log
    judge.rules.write("t/t.ibd", 9 * SIZE, late)
    assert judge.broken == ["write_ahead"]

    judge = Judge()
    judge.rules.write("t/t.ibd", 8 * SIZE, data)
    assert judge.broken == ["home_page"]


def file_record(kind: int, space: int, *names: str) -> bytes:
    """FILE_CREATE 0x80, FILE_DELETE 0x90, FILE_RENAME 0xa0, FILE_MODIFY 0xb0."""
    body = bytes([space, 0]) + b"\0".join(name.encode() for name in names)
    return bytes([kind, len(body) + 2 - 16]) + body  # behind two bytes, as long texts have it


CREATE, RENAME, MODIFY = 0x80, 0xA0, 0xB0
LONG, OTHER, NEW = "./t/a_long_name.ibd", "./t/another_name.ibd", "./t/a_newer_name.ibd"


def log_of(*records: bytes) -> bytes:
    """Each a mini-transaction."""
    return b"".join(group(record) for record in records)


def home(judge: Judge, path: str, data: bytes, number: int) -> list[str]:
    """The page goes there with its copy, and is fsynced; what was broken then."""
    judge.broken.clear()
    judge.doublewrite(data)
    judge.rules.write(path.removeprefix("./"), number * SIZE, data)
    judge.rules.sync(path.removeprefix("./"))
    return list(judge.broken)


def test_a_file_has_the_space_that_it_was_found_with() -> None:
    """A page of another space is not its, wherever it says that it belongs; the system tablespace is 0."""
    judge = Judge()
    assert home(judge, "t/t.ibd", page(5, 9, FIRST_LSN), 9) == []
    assert home(judge, "t/t.ibd", page(6, 9, FIRST_LSN), 9) == ["home_page"]
    assert home(judge, "t/t.ibd", page(6, 0, FIRST_LSN, 8), 0) == ["home_page"]
    assert home(judge, "t/t.ibd", page(6, 9, FIRST_LSN), 9) == ["home_page"]
    assert home(judge, "ibdata1", page(5, 9, FIRST_LSN), 9) == ["home_page"]


def test_a_compressed_page_has_its_place_and_its_copy() -> None:
    """As any. One that only the server can read is counted."""
    right = page(5, 9, FIRST_LSN)
    compressed = full_crc32(right, zlib.compress(right))
    judge = Judge()
    assert home(judge, "t/t.ibd", compressed, 9) == []
    assert home(judge, "t/t.ibd", compressed, 8) == ["home_page"]
    other = full_crc32(right, zlib.compress(page(6, 9, FIRST_LSN)))
    assert home(judge, "t/t.ibd", other, 9) == ["home_page"]
    judge = Judge()
    judge.rules.write("t/t.ibd", 9 * SIZE, compressed)
    assert judge.broken == ["dblwr_skip"]
    judge = Judge()
    judge.rules.write("t/t.ibd", 9 * SIZE, full_crc32(right, b"by another algorithm"))
    assert judge.broken == [] and judge.rules.counters["pages_unread"] == 1
    judge.rules.write("t/t.ibd", 9 * SIZE, page(0xFFFFFFFF, 9, FIRST_LSN))
    assert judge.broken == ["home_page"]


def test_a_new_file_has_the_space_of_its_record() -> None:
    """Whatever its first page says, before or after that; without any it has none."""
    judge = Judge()
    ring = log_of(file_record(CREATE, 7, LONG))
    lsn = FIRST_LSN + len(ring)
    judge.rules.write("ib_logfile0", 12288, ring)
    judge.rules.sync("ib_logfile0")
    assert home(judge, LONG, page(8, 0, lsn, 8), 0) == ["home_page"]
    assert home(judge, LONG, page(7, 0, lsn, 8), 0) == []
    assert home(judge, OTHER, page(8, 3, lsn), 3) == ["home_page"]
    assert home(judge, OTHER, page(5, 0, lsn, 8), 0) == ["home_page"]  # t/t.ibd has it
    assert home(judge, OTHER, page(8, 0, lsn, 8), 0) == []
    assert home(judge, OTHER, page(7, 3, lsn), 3) == ["home_page"]
    assert home(judge, OTHER, page(8, 3, lsn), 3) == []


def test_the_first_page_of_a_new_file_must_agree_with_its_record() -> None:
    """Also where that comes later; a record that was none takes nothing along."""
    for space, broken in ((7, []), (8, ["home_page"])):
        judge = Judge()
        assert home(judge, LONG, page(space, 0, FIRST_LSN, 8), 0) == []
        judge.rules.write("ib_logfile0", 12288, log_of(file_record(CREATE, 7, LONG)))
        judge.rules.sync("ib_logfile0")
        assert judge.broken == broken
    judge = Judge()
    judge.rules.write("ib_logfile0", 12288, log_of(INIT, file_record(CREATE, 7, LONG)))
    judge.rules.sync("ib_logfile0")
    judge.rules.write("ib_logfile0", 12288, log_of(INIT, file_record(CREATE, 8, LONG)))
    judge.rules.sync("ib_logfile0")
    assert home(judge, LONG, page(7, 0, FIRST_LSN, 8), 0) == ["home_page"]
    assert home(judge, LONG, page(8, 0, FIRST_LSN, 8), 0) == []


def test_a_renamed_file_keeps_its_space() -> None:
    """And its old name is free for another."""
    judge = Judge()
    judge.rules.rename("t/t.ibd", "t/u.ibd")
    assert home(judge, "t/u.ibd", page(5, 9, FIRST_LSN), 9) == []
    assert home(judge, "t/u.ibd", page(6, 9, FIRST_LSN), 9) == ["home_page"]
    assert home(judge, "t/t.ibd", page(6, 0, FIRST_LSN, 8), 0) == []
    assert home(judge, "t/t.ibd", page(5, 9, FIRST_LSN), 9) == ["home_page"]


@pytest.mark.parametrize(
    ("records", "first", "space"),
    [
        ([], 5, 5),
        ([file_record(MODIFY, 5, LONG)], 5, 5),
        ([file_record(MODIFY, 6, LONG)], 5, 6),  # its first page lies
        ([file_record(MODIFY, 6, LONG)], None, 6),
        ([file_record(MODIFY, 5, LONG), file_record(RENAME, 6, OTHER, LONG)], 5, 5),  # not yet renamed
        ([file_record(MODIFY, 5, LONG), file_record(RENAME, 6, OTHER, LONG)], None, 6),
        ([], None, None),
    ],
)  # fmt: skip
def test_a_found_file_is_of_the_space_that_the_log_gives_its_name(
    records: list[bytes], first: int | None, space: int | None
) -> None:
    """Its first page decides between those, and where the log is silent."""
    judge = Judge(ring=log_of(*records))
    page0 = page(first, 0, 1, 8) if first is not None else b"torn" + page(5, 0, 1, 8)[4:]
    judge.rules.find(LONG.removeprefix("./"), page0)
    for says in (5, 6):
        broken = [] if says == space else ["home_page"]
        assert home(judge, LONG, page(says, 9, FIRST_LSN), 9) == broken


def test_the_first_write_of_an_initialised_page_needs_no_copy() -> None:
    """When the log has it durable; the second one does."""
    judge = Judge()
    record = group(INIT)
    data = page(5, 9, FIRST_LSN + len(record))
    judge.rules.write("ib_logfile0", 12288, record)
    judge.rules.sync("ib_logfile0")
    judge.rules.write("t/t.ibd", 9 * SIZE, data)
    assert judge.broken == [] and judge.rules.counters["first_flush_skips"] == 1
    judge.rules.write("t/t.ibd", 9 * SIZE, page(5, 9, FIRST_LSN + len(record), fill=b"new"))
    assert judge.broken == ["dblwr_skip"]


@pytest.mark.parametrize(
    ("overlaps", "record", "broken"),
    [
        (False, b"", []),
        (True, b"", ["ckpt_pages"]),
        (True, b"\x02\x05\x09", []),  # the page is free by then
        (True, INIT, []),
    ],
)
def test_a_checkpoint_passes_what_is_fsynced(
    overlaps: bool, record: bytes, broken: list[str]
) -> None:
    """An fsync that began before the write had ended does not count, whatever the server takes it for."""
    judge = Judge()
    ring = group(INIT)
    data = page(5, 9, FIRST_LSN + len(ring))
    ring += group(b"\x34\x05\x08\x10\xaa") + (group(record) if record else b"")
    judge.rules.write("ib_logfile0", 12288, ring, 1)
    judge.rules.sync("ib_logfile0")
    judge.doublewrite(data)
    judge.rules.write("t/t.ibd", 9 * SIZE, data, 3)
    judge.rules.sync("t/t.ibd", 2 if overlaps else 3)
    judge.rules.write("ib_logfile0", 4096, checkpoint(FIRST_LSN + len(ring)), 5)
    assert judge.broken == []
    judge.rules.sync("ib_logfile0")
    assert judge.broken == broken
    assert judge.rules.counters["checkpoints"] == 1
    judge.rules.write("ib_logfile0", 8192, checkpoint(FIRST_LSN + len(ring) + 9), 6)
    judge.rules.sync("ib_logfile0")
    assert judge.broken == broken  # told once


@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_another_replaces_needs_nothing(gone: bool) -> None:
    """Neither a home nor a copy of its pages; one that gets a new name needs both."""
    judge = Judge()
    judge.rules.find("t/u.ibd", page(6, 0, 1, 8))
    ring = group(INIT)
    data = page(5, 9, FIRST_LSN + len(ring))
    judge.rules.write("ib_logfile0", 12288, ring, 1)
    judge.rules.sync("ib_logfile0")
    judge.doublewrite(data)
    judge.rules.write("t/t.ibd", 9 * SIZE, data, 3)
    judge.rules.rename(*(("t/u.ibd", "t/t.ibd") if gone else ("t/t.ibd", "t/u.ibd")))
    judge.rules.write("ib_logfile0", 4096, checkpoint(FIRST_LSN + len(ring)), 5)
    judge.rules.sync("ib_logfile0")
    judge.doublewrite(page(5, 8, FIRST_LSN))
    assert judge.broken == ([] if gone else ["ckpt_pages", "area_reuse"])


def test_a_checkpoint_passes_an_earlier_write_of_a_page() -> None:
    """It is told although a later write of the page is beyond the checkpoint, and that one when its turn
    comes; an fsync covers all of them."""
    judge = Judge()
    ring = group(INIT)
    first = FIRST_LSN + len(ring)
    ring += group(b"\x34\x05\x09\x10\xaa")
    judge.rules.write("ib_logfile0", 12288, ring, 1)
    judge.rules.sync("ib_logfile0")
    second = FIRST_LSN + len(ring)
    for seq, lsn in ((3, first), (5, second)):
        data = page(5, 9, lsn)
        judge.doublewrite(data, 253 + seq)
        judge.rules.write("t/t.ibd", 9 * SIZE, data, seq)
    for seq, lsn in ((6, first), (7, second), (8, second + 1)):
        judge.rules.write("ib_logfile0", 4096 * (1 + seq % 2), checkpoint(lsn), seq)
        judge.rules.sync("ib_logfile0")
    assert judge.broken == ["ckpt_pages"] * 2
    assert judge.rules.counters["checkpoints_too_early"] == 2


def test_what_a_buffer_held_before_is_no_log() -> None:
    """It looks like more of it until its block is written again, with what comes next."""
    judge = Judge()
    right, stale = group(INIT), group(b"\x34\x05\x08\x10\xaa")
    judge.rules.write("ib_logfile0", 12288, right + stale)
    judge.rules.sync("ib_logfile0")
    following = group(b"\x35\x05\x08\x10\xaa\xbb") + group(INIT)
    judge.rules.write("ib_logfile0", 12288, right + following)
    judge.rules.sync("ib_logfile0")
    assert judge.rules.durable == FIRST_LSN + len(right + following)


def test_a_stale_group_initialises_and_frees_nothing() -> None:
    """Once it is known to be none, what was known of its pages before holds again."""
    judge = Judge()
    right = group(INIT)
    init, free = b"\x12\x05\x08", b"\x02\x05\x09"
    judge.rules.write("ib_logfile0", 12288, right + group(init) + group(free))
    judge.rules.sync("ib_logfile0")
    following = group(b"\x35\x05\x07\x10\xaa\xbb") * 2
    judge.rules.write("ib_logfile0", 12288, right + following)
    judge.rules.sync("ib_logfile0")
    judge.rules.write("t/t.ibd", 9 * SIZE, page(5, 9, FIRST_LSN + len(right)))
    assert judge.broken == [] and judge.rules.counters["first_flush_skips"] == 1
    judge.rules.write("t/t.ibd", 8 * SIZE, page(5, 8, FIRST_LSN + len(right)))
    assert judge.broken == ["dblwr_skip"]


def test_a_page_that_a_stale_group_frees_is_needed() -> None:
    """A checkpoint passes it, as one that was never freed."""
    judge = Judge()
    right = group(INIT)
    data = page(5, 9, FIRST_LSN + len(right))
    judge.rules.write("ib_logfile0", 12288, right + group(FREE), 1)
    judge.rules.sync("ib_logfile0")
    ring = right + group(b"\x35\x05\x08\x10\xaa\xbb")
    judge.rules.write("ib_logfile0", 12288, ring, 2)
    judge.rules.sync("ib_logfile0")
    judge.doublewrite(data)
    judge.rules.write("t/t.ibd", 9 * SIZE, data, 4)
    judge.rules.write("ib_logfile0", 4096, checkpoint(FIRST_LSN + len(ring)), 5)
    judge.rules.sync("ib_logfile0")
    assert judge.broken == ["ckpt_pages"]


@pytest.mark.parametrize(
    "records", [INIT, FREE + INIT, INIT + FREE + INIT], ids=["once", "twice", "thrice"]
)
def test_a_page_that_was_written_under_a_stale_group_was_written(records: bytes) -> None:
    """The next write of it is not its first, however often the group began with it."""
    judge = Judge()
    right, data = group(INIT), page(5, 9, FIRST_LSN)
    judge.rules.write("ib_logfile0", 12288, right + group(records))
    judge.rules.sync("ib_logfile0")
    judge.rules.write("t/t.ibd", 9 * SIZE, data)
    judge.rules.write("ib_logfile0", 12288, right + group(b"\x35\x05\x07\x10\xaa\xbb"))
    judge.rules.sync("ib_logfile0")
    judge.rules.write("t/t.ibd", 9 * SIZE, data)
    assert judge.broken == ["dblwr_skip"]


def log_block() -> bytes:
    """Of a log before 10.8, whose ring begins at 2048."""
    data = struct.pack(">IHHI", 0x80000007, 512, 12, 1) + b"r" * 496
    return data + crc32c(data).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("path", "number", "data", "site"),
    [
        ("ib_logfile0", 1, b"x", Site.CHECKPOINT_HEADER),
        ("ib_logfile0", 4, b"x", Site.REDO),
        ("ib_logfile0", 1, log_block(), Site.REDO),
        ("ib_logfile0", 2, log_block() * 2, Site.REDO),
        ("ib_logfile0", 0, log_block(), Site.CHECKPOINT_HEADER),
        ("ib_logfile0", 1, checkpoint(FIRST_LSN) + bytes(SIZE - 64), Site.CHECKPOINT_HEADER),
        ("t/t.ibd", 0, page(5, 0, 1, 8), Site.PAGE0),
        ("t/t.ibd", 9, page(5, 9, 1), Site.DATA_PAGE),
        ("ibdata1", 256, page(5, 9, 1), Site.DOUBLEWRITE),
        ("ibdata1", 45, page(0, 45, 1, 2), Site.UNDO_PAGE),
        ("ibdata1", 46, page(0, 46, 1, 6), Site.UNDO_PAGE),
        ("ibdata1", 7, page(0, 7, 1, 6), Site.SYSTEM_PAGE),
        ("ibdata1", 5, page(0, 5, 1, 7), Site.SYSTEM_PAGE),
        ("ibdata1", 45, page(0, 45, 1), Site.DICT_PAGE),
        ("t/t.frm", 0, b"x", None),
    ],
)
def test_a_write_is_named_by_its_contents(
    path: str, number: int, data: bytes, site: Site | None
) -> None:
    """Not by what a marker says."""
    assert site_of_write(path, number * SIZE, data) is site


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_without_a_name_is_judged_no_more(linked: bool, tmp_path: Path) -> None:
    """A page cleaner may still write to one that is dropped; a new file of its name is judged, and so is one
    that has another name left."""
    base = tmp_path / "base"
    (base / "t").mkdir(parents=True)
    files = {"ibdata1": system_file(), "t/t.ibd": page(5, 0, 1, 8), "ib_logfile0": log_file(b"")}
    for name, data in files.items():
        (base / name).write_bytes(data)
    dropped, new = 1, 2
    trace = FakeTrace().record(Op.OPEN, file=dropped, payload=b"t/t.ibd")
    if linked:
        trace.record(Op.LINK, file=dropped, payload=b"t/t.ibd\0t/s.ibd")
        trace.record(Op.UNLINK, file=dropped, payload=b"t/s.ibd")
    else:
        trace.record(Op.UNLINK, file=dropped, payload=b"t/t.ibd")
    written = page(5, 9, 1)
    wrong: dict[str, Any] = {
        "flags": WRITE_PAYLOAD,
        "offset": 8 * SIZE,
        "length": SIZE,
        "result": SIZE,
        "payload": written,
    }

    def findings() -> list[str]:
        (tmp_path / "trace").write_bytes(trace.data())
        asked = {"trace": str(tmp_path / "trace"), "base": str(base), "doublewrite": True}
        return [one["rule"] for one in answer(asked)["findings"]]

    trace.record(Op.WRITE, file=dropped, **wrong)
    if linked:
        assert findings() != []
        return
    assert findings() == []
    trace.record(Op.OPEN, flags=CREATED, file=new, payload=b"t/t.ibd")
    trace.record(Op.WRITE, file=new, **wrong)
    assert findings() == ["home_page"]


def test_a_page_is_shown_by_its_fields() -> None:
    """Those of its header, an index page more; what its checksum says."""
    shown = page_facts(page(5, 9, 4711))
    assert (shown["space"], shown["page"], shown["lsn"], shown["type"]) == (5, 9, 4711, "index")
    assert (shown["verdict"], shown["checksum"], shown["ok"]) == ("ok", "full_crc32", True)
    counted = bytearray(page(5, 9, 4711))
    struct.pack_into(">H", counted, 54, 77)
    torn = page_facts(bytes(counted))
    assert (torn["n_recs"], torn["verdict"], torn["ok"]) == (77, "bad checksum", False)
    first = bytearray(page(5, 0, 1, 8))
    struct.pack_into(">I", first, 46, 6)
    assert page_facts(bytes(first))["size"] == 6 and "n_recs" not in page_facts(bytes(first))
    assert page_facts(bytes(SIZE))["verdict"] == "zeros"


def test_what_is_shown_is_asked_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page by its number, the log by its folder; what cannot be read is one line on standard error."""
    (tmp_path / "t.ibd").write_bytes(page(5, 0, 1, 8) + page(5, 1, 22))
    (tmp_path / "ib_logfile0").write_bytes(log_file(group(INIT)))
    monkeypatch.setattr("sys.argv", ["show", "page", str(tmp_path / "t.ibd"), "1", str(SIZE)])
    assert main() == 0 and json.loads(capsys.readouterr().out)["lsn"] == 22
    monkeypatch.setattr("sys.argv", ["show", "log", str(tmp_path)])
    assert main() == 0 and "  init space=5 page=9" in capsys.readouterr().out
    for words in (["log", str(tmp_path / "no")], ["page", str(tmp_path / "t.ibd"), "2", str(SIZE)]):
        monkeypatch.setattr("sys.argv", ["show", *words])
        assert main() == 1 and capsys.readouterr().err.startswith(words[1])


def test_a_page_that_was_free_in_an_earlier_life_is_needed() -> None:
    """A checkpoint passes what it holds now."""
    judge = Judge()
    ring = group(FREE) + group(INIT)
    data = page(5, 9, FIRST_LSN + len(ring))
    ring += group(b"\x34\x05\x08\x10\xaa")
    judge.rules.write("ib_logfile0", 12288, ring, 1)
    judge.rules.sync("ib_logfile0")
    judge.doublewrite(data)
    judge.rules.write("t/t.ibd", 9 * SIZE, data, 3)
    judge.rules.write("ib_logfile0", 4096, checkpoint(FIRST_LSN + len(ring)), 5)
    judge.rules.sync("ib_logfile0")
    assert judge.broken == ["ckpt_pages"]


@pytest.mark.parametrize(("result", "broken"), [(0, []), (-5, ["write_ahead"])])
def test_an_fsync_that_failed_is_none(result: int, broken: list[str], tmp_path: Path) -> None:
    """Of the log: a page that relies on it is ahead of it."""
    base = tmp_path / "base"
    (base / "t").mkdir(parents=True)
    files = {"ibdata1": system_file(), "t/t.ibd": page(5, 0, 1, 8), "ib_logfile0": log_file(b"")}
    for name, data in files.items():
        (base / name).write_bytes(data)
    ring = group(INIT)
    data = page(5, 9, FIRST_LSN + len(ring))
    trace = FakeTrace().write("ib_logfile0", 12288, ring, full=True)
    trace.fsync("ib_logfile0", result).write("t/t.ibd", 9 * SIZE, data, full=True)
    (tmp_path / "trace").write_bytes(trace.data())
    asked = {"trace": str(tmp_path / "trace"), "base": str(base), "doublewrite": False}
    assert [one["rule"] for one in answer(asked)["findings"]] == broken


def test_the_system_tablespace_is_read_first(tmp_path: Path) -> None:
    """It tells of which size the pages of all files are."""
    for name in ("a.ibd", "ib_logfile0", "ibdata1", "z.ibd", "other.txt"):
        (tmp_path / name).write_bytes(name.encode())
    found: list[str] = []
    _find(cast(Any, SimpleNamespace(find=lambda path, _data: found.append(path))), str(tmp_path))
    assert found == ["ibdata1", "a.ibd", "ib_logfile0", "z.ibd"]
