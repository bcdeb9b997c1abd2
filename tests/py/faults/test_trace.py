"""The trace reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_trace import FakeTrace
from hypothesis import given
from hypothesis import strategies as st

from tornpage.faults.trace import (
    FLAG_REFUSED,
    RENAME_EXCHANGE,
    WRITE_PAYLOAD,
    FilePaths,
    Op,
    Trace,
    parse_mark,
    refusal,
)
from tornpage.vocabulary.errors import TraceError


def _sample() -> FakeTrace:
    fake = FakeTrace().open("t1.ibd", created=True).mark("issue n=3 trx=T1")
    return fake.write("t1.ibd", 4096, b"x" * 512).fsync("t1.ibd").rename("t1.ibd", "t2.ibd")


def test_events_tell_what_was_written() -> None:
    """Every field of every record comes back, in order."""
    trace = _sample().trace()
    events = list(trace.events())
    assert [event.kind for event in events] == [Op.OPEN, Op.MARK, Op.WRITE, Op.FSYNC, Op.RENAME]
    assert [event.seq for event in events] == [1, 2, 3, 4, 5]
    assert trace.text(events[0]) == "t1.ibd"
    assert trace.mark(events[1]) == ("issue", {"n": "3", "trx": "T1"})
    assert (events[2].offset, events[2].length, events[2].result) == (4096, 512, 512)
    assert trace.renamed(events[4]) == ("t1.ibd", "t2.ibd")
    assert list(trace.events(events[1].end)) == events[2:]


def test_a_refusal_of_the_preload_is_told(tmp_path: Path) -> None:
    """Whatever became of the standard error of the process that it ended."""
    fake = _sample().mark("refused no memory to follow another file")
    assert fake.trace().hash()
    fake.flags |= FLAG_REFUSED
    with pytest.raises(TraceError, match="the preload refused: no memory to follow another file"):
        fake.trace()
    path = tmp_path / "trace"
    path.write_bytes(fake.data())
    assert refusal(path) == "the preload refused: no memory to follow another file"
    assert refusal(tmp_path / "none") == ""


def test_events_of_some_kinds_and_marks() -> None:
    """The same records as among all, and no others."""
    trace = _sample().mark("ack n=3").write("t2.ibd", 0, b"y" * 9).trace()
    wanted = {Op.MARK, Op.WRITE}
    assert list(trace.events(kinds=wanted)) == [e for e in trace.events() if e.kind in wanted]
    assert [(event.seq, mark.verb) for event, mark in trace.marks()] == [(2, "issue"), (6, "ack")]


def test_without_contents_only_the_contents_are_gone() -> None:
    """Every other byte is there, and the committed length is that of what is left."""
    fake = _sample().record(
        Op.WRITE, flags=WRITE_PAYLOAD, length=512, result=512, payload=b"x" * 512
    )
    fake = fake.record(Op.WRITE, flags=WRITE_PAYLOAD, length=9, result=9, payload=b"y" * 9)
    trace = fake.close("t2.ibd").trace()
    bare = trace.without_contents()
    assert b"xx" in trace.data and b"xx" not in bare.data and b"yy" not in bare.data
    assert all(event.flags == 0 for event in bare.events(kinds={Op.WRITE}))
    there = [(e.kind, e.seq, e.offset, e.length, e.result, e.hash) for e in trace.events()]
    assert [(e.kind, e.seq, e.offset, e.length, e.result, e.hash) for e in bare.events()] == there
    assert [bare.payload(e) for e in bare.events() if e.kind != Op.WRITE] == [
        trace.payload(e) for e in trace.events() if e.kind != Op.WRITE
    ]
    assert len(trace.data) - len(bare.data) == 512 + 16
    assert Trace(bare.data).data == bare.data
    assert bare.without_contents().data == bare.data


@given(st.integers(min_value=0, max_value=400))
def test_cut_last_record_is_ignored(cut: int) -> None:
    """Whatever number of bytes is missing at the end, the complete records before it are read."""
    data = _sample().data()
    whole = list(Trace(data).events())
    cut = min(cut, len(data) - 64)
    rest = list(Trace(data[: len(data) - cut]).events())
    assert rest == whole[: len(rest)]
    assert len(rest) == sum(1 for event in whole if event.end <= len(data) - cut)


def test_hash_depends_on_events_only() -> None:
    """Two runs under different pids have the same hash, a different event another one."""
    fake = _sample()
    assert Trace(fake.data(pid=1)).hash() == Trace(fake.data(pid=2)).hash()
    assert fake.fsync("t2.ibd").trace().hash() != _sample().trace().hash()


def test_load_reads_committed_part_of_larger_file(tmp_path: Path) -> None:
    """The file is larger than what was committed; the rest is not read."""
    data = _sample().data()
    path = tmp_path / "trace"
    path.write_bytes(data + b"\xff" * 5000)
    assert Trace.load(path).data == data


def test_a_mapped_trace_reads_as_one_in_memory(tmp_path: Path) -> None:
    """Events, marks, contents, hash and comparison; what lies behind the committed part is not there."""
    data = _sample().data()
    path = tmp_path / "trace"
    path.write_bytes(data + b"\xff" * 5000)
    read, mapped = Trace.load(path), Trace.load(path, mapped=True)
    assert len(mapped.data) == len(data) and bytes(mapped.data[:]) == data
    assert list(mapped.events()) == list(read.events())
    assert list(mapped.marks()) == list(read.marks()) == list(mapped.marks("issue"))
    assert not list(mapped.marks("issued")) and not list(mapped.marks("iss"))
    assert mapped.hash() == read.hash() and mapped.starts() == read.starts()
    assert list(read.starts()) == [event.at for event in read.events()]
    assert mapped.without_contents().data == read.without_contents().data
    other = bytearray(data)
    other[70] ^= 1
    for trace in (read, mapped):
        assert trace.begins_with(memoryview(data)[64:200])
        assert trace.begins_with(memoryview(data)[64:])
        assert not trace.begins_with(memoryview(other)[64:200])
        assert not trace.begins_with(memoryview(data + b"more")[64:])


def test_a_long_beginning_is_compared_to_its_end() -> None:
    """It is compared part by part: what differs may be in any of them."""
    fake = FakeTrace().open("t1.ibd", created=True)
    for number in range(3):
        fake.write("t1.ibd", number << 18, b"%d" % number * (1 << 18), full=True)
    data = fake.data()
    trace = Trace(data)
    assert trace.begins_with(memoryview(data)[64:])
    for at in (70, 1 << 18, (1 << 18) + 63, (1 << 18) + 64, 1 << 19, len(data) - 1):
        other = bytearray(data)
        other[at] ^= 1
        assert not trace.begins_with(memoryview(other)[64:]), at
    assert not trace.begins_with(memoryview(data + data)[64:])


def test_events_of_kinds_from_any_place() -> None:
    """From the beginning, where all records are known by then or not, and from behind one of them."""
    for known in (False, True):
        trace = _sample().trace()
        every = list(trace.events()) if known else []
        first = list(trace.events(kinds=(Op.WRITE, Op.FSYNC)))
        assert [event.kind for event in first] == [Op.WRITE, Op.FSYNC]
        assert list(trace.events(first[0].end, kinds=(Op.RENAME, Op.WRITE))) == list(
            trace.events(kinds=(Op.RENAME,))
        )
        assert list(trace.events(first[1].end)) == list(trace.events())[4:]
        assert not every or every[2:4] == first


def test_kill_shows_sectors_and_contents() -> None:
    """Damage of a kill: sector states, old and new bytes, and that it fired."""
    fake = _sample().kill("t2.ibd", 0, b"\1\0", b"o" * 1024, b"n" * 1024)
    trace = fake.trace()
    kill = trace.kill()
    assert trace.fired
    assert kill is not None
    damage = trace.damage(kill)
    assert damage is not None
    assert (damage.sector, damage.sectors, damage.after) == (512, b"\1\0", False)
    assert (damage.old, damage.new) == (b"o" * 1024, b"n" * 1024)
    assert _sample().trace().kill() is None


def test_paths_follow_renames() -> None:
    """A file id has the path of the moment; a file that was replaced has none."""
    fake = FakeTrace().open("a").open("b").rename("a", "b")
    paths = FilePaths()
    trace = fake.trace()
    seen = []
    for event in trace.events():
        paths.see(trace, event)
        seen.append((paths[1], paths[2]))
    assert seen == [("a", ""), ("a", "b"), ("b", "")]


def test_an_exchange_leaves_no_file_without_a_name() -> None:
    """Each has the other's path."""
    fake = FakeTrace().open("a").open("b")
    trace = fake.record(Op.RENAME, flags=RENAME_EXCHANGE, file=1, payload=b"a\0b").trace()
    paths = FilePaths()
    for event in trace.events():
        paths.see(trace, event)
    assert (paths[1], paths[2]) == ("b", "a")


def test_a_file_is_called_by_its_newest_name() -> None:
    """A further link leads to the same file; one that failed leads nowhere."""
    fake = FakeTrace().open("tmp", created=True)
    fake.record(Op.LINK, file=1, payload=b"tmp\0final").unlink("tmp")
    fake.record(Op.LINK, file=1, result=-17, payload=b"final\0other")
    trace = fake.trace()
    paths = FilePaths()
    for event in trace.events():
        paths.see(trace, event)
    assert paths[1] == "final"


@pytest.mark.parametrize("data", [b"", b"x" * 63, b"TPTRACE1" + bytes(56)])
def test_other_files_are_refused(data: bytes) -> None:
    """What does not start with the header is not read as a trace."""
    with pytest.raises(TraceError):
        Trace(data)


def test_overflow_is_an_error() -> None:
    """A trace that lost events must not be judged."""
    fake = _sample()
    fake.flags = 1
    with pytest.raises(TraceError, match="overflow"):
        fake.trace()


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.integers(), max_size=6))
def test_marker_round_trip(facts: dict[str, int]) -> None:
    """verb key=value ... comes back as verb and mapping."""
    text = " ".join(["verb", *(f"{key}={value}" for key, value in facts.items())])
    mark = parse_mark(text.encode())
    assert mark.verb == "verb"
    assert dict(mark.facts) == {key: str(value) for key, value in facts.items()}


def test_a_full_disk_is_told_from_an_injected_error() -> None:
    """An error stands directly behind the FAULT that made it; one that does not is the machine's."""
    injected = _sample().record(Op.FAULT, flags=Op.WRITE, file=1).write("t2.ibd", 0, b"x", -28)
    assert _sample().trace().starved() == ""
    assert injected.trace().starved() == ""
    assert injected.write("t2.ibd", 0, b"x", -28).trace().starved() == "ENOSPC"
    assert _sample().record(Op.FSYNC, file=1, result=-5).trace().starved() == ""
