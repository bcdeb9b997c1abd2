"""What the replay of a stream refuses to follow."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_trace import FakeTrace

from tornpage.faults import stream
from tornpage.faults.stream import (
    WHAT_TO_DO,
    WHOLE_FILE,
    RecordedFiles,
    stream_difference,
    unseen_changes,
)
from tornpage.faults.trace import RENAME_EXCHANGE, Call, FilePaths, GrowingTrace, Op, Trace


@pytest.mark.parametrize(
    ("old", "new", "flags", "told"),
    [
        ("", "f", 0, "a rename of a file from outside into f in the folder is not followed"),
        ("f", "", 0, "a rename of f out of the folder is not followed"),
        (
            "f",
            "g",
            RENAME_EXCHANGE,
            "an exchange of f and g, which are not both files, is not followed",
        ),
    ],
)
def test_renames_that_are_not_followed(
    tmp_path: Path, old: str, new: str, flags: int, told: str
) -> None:
    """Whatever the files hold in the end; but a rename among files of which nothing is wanted is nothing."""
    names = old.encode() + b"\0" + new.encode()
    trace = FakeTrace().record(Op.RENAME, flags=flags, payload=names).trace()
    assert stream_difference(trace, tmp_path, ()) == f"{told}: {WHAT_TO_DO}"
    assert stream_difference(trace, tmp_path, ("f", "g")) == ""


def test_a_rename_of_one_name_of_a_file_to_its_other_changes_nothing(tmp_path: Path) -> None:
    """Both stay, as the system has it, also where it is asked to exchange them."""
    (tmp_path / "f").write_bytes(b"recorded")
    (tmp_path / "g").write_bytes(b"recorded")
    fake = put(FakeTrace().open("f", created=True), 0, b"recorded")
    fake.record(Op.LINK, file=1, payload=b"f\0g")
    for flags in (0, RENAME_EXCHANGE):
        fake.record(Op.RENAME, flags=flags, file=1, payload=b"f\0g")
    assert stream_difference(fake.trace(), tmp_path, ()) == ""
    paths = FilePaths()
    for event in fake.trace().events():
        paths.see(fake.trace(), event)
    assert paths[1] == "g"


def put(fake: FakeTrace, offset: int, data: bytes) -> FakeTrace:
    """A write to the first file, with its contents."""
    length = len(data)
    return fake.record(
        Op.WRITE, flags=1, file=1, offset=offset, length=length, result=length, payload=data
    )


def recorded() -> Trace:
    """A file f with one write."""
    return put(FakeTrace().open("f", created=True), 0, b"recorded").trace()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call(1, 0, 4), "f differs in bytes 6-6"),
        (Call(1, 4, 4), ""),
        (Call(1, 0, WHOLE_FILE), ""),
        (Call(2, 0, WHOLE_FILE), "f differs in bytes 6-6"),
    ],
)
def test_what_is_under_way_may_be_there_or_not(tmp_path: Path, call: Call, told: str) -> None:
    """Bytes of a write, or all of a file whose size is at stake; of no other file."""
    trace = recorded()
    (tmp_path / "f").write_bytes(b"recordEd")
    trace.under_way = (call,)
    assert stream_difference(trace, tmp_path, ()) == told


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"f": b"recorded"}, ""),
        ({}, "f is not there"),
        ({"f": b"recorded", "g": b""}, "g was not seen to be created"),
        ({"f": b"recordeds"}, "f has 9 bytes, and its stream gives 8"),
        ({"f": b"Recorded"}, "f differs in bytes 0-0"),
        ({"f": b"recordeD"}, "f differs in bytes 7-7"),
    ],
)
def test_how_files_differ(files: dict[str, bytes], told: str, tmp_path: Path) -> None:
    """From the first byte to the last, and in their names."""
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert stream_difference(recorded(), tmp_path, ()) == told


@pytest.mark.parametrize(
    ("mode", "offset", "length", "content"),
    [
        (3, 2, 2, b"re\0\0rded"),
        (3, 6, 9, b"record\0\0"),
        (16, 6, 4, b"record\0\0\0\0"),
        (17, 6, 4, b"record\0\0"),
        (0, 0, 10, b"recorded\0\0"),
        (1, 0, 10, b"recorded"),
    ],
    ids=["hole", "hole-to-the-end", "zeros", "zeros-inside", "longer", "reserved"],
)
def test_what_fallocate_leaves(
    mode: int, offset: int, length: int, content: bytes, tmp_path: Path
) -> None:
    """A hole and zeros, to their last byte; a new size."""
    fake = put(FakeTrace().open("f", created=True), 0, b"recorded")
    fake.record(Op.FALLOCATE, flags=mode, file=1, offset=offset, length=length)
    (tmp_path / "f").write_bytes(content)
    assert stream_difference(fake.trace(), tmp_path, ()) == ""


def test_a_mark_of_an_unseen_change() -> None:
    """The first of a file that is wanted; a name may have blanks in it."""
    trace = FakeTrace().marks("unseen mmap path=my%20lock", "unseen mmap path=my%20data").trace()
    assert unseen_changes(trace, ("my lock",)) == "mmap of my data"
    assert unseen_changes(trace, ("my *",)) == unseen_changes(recorded(), ()) == ""


def test_a_call_that_begins_while_a_file_is_read_counts(tmp_path: Path) -> None:
    """Who is asked before the file is read does not know it yet."""
    trace = recorded()
    files = RecordedFiles(())
    assert files.follow(trace) == ""
    (tmp_path / "f").write_bytes(b"recorded")
    calls: list[Call] = []

    def under_way() -> list[Call]:
        assert files.read_bytes > 0
        return calls

    assert files.difference(under_way, tmp_path) == ""
    (tmp_path / "f").write_bytes(b"recordEd")
    calls.append(Call(1, 6, 1))
    assert files.difference(under_way, tmp_path) == ""
    calls.clear()
    assert files.difference(under_way, tmp_path, all_=False) == "f differs in bytes 6-6"


def test_a_large_file_is_read_when_it_may_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its times, its size, its inode or the recording; and where it had changed so shortly before the last
    look that the clock may stand where it stood."""
    trace = recorded()
    (tmp_path / "f").write_bytes(b"recorded")
    look = {"now": (1, 8, 100, True)}
    monkeypatch.setattr(stream, "SMALL_BYTES", 0)
    monkeypatch.setattr(stream, "_look", lambda _path: stream._Looked(*look["now"]))
    files = RecordedFiles(())
    assert files.follow(trace) == ""

    def read(*now: int, recent: bool = False) -> bool:
        before = files.read_bytes
        look["now"] = (*now, recent)  # type: ignore[assignment]
        assert files.difference(list, tmp_path, all_=False) == ""
        return files.read_bytes > before

    assert read(1, 8, 100, recent=True)
    assert read(1, 8, 100)  # behind one that was recent
    assert not read(1, 8, 100)
    assert read(2, 8, 100) and not read(2, 8, 100)
    assert read(2, 8, 101) and not read(2, 8, 101)
    more = put(FakeTrace(), 0, b"recorded").trace()
    assert files.follow(more) == "" and read(2, 8, 101)


def test_a_recording_that_grows_is_read_in_parts(tmp_path: Path) -> None:
    """Each record once, in order, as far as it is committed."""
    fake = put(FakeTrace().open("f", created=True), 0, b"one")
    path = tmp_path / "trace"
    path.write_bytes(fake.data())
    with GrowingTrace(path) as growing:
        assert [event.kind for event in growing.more().events()] == [Op.OPEN, Op.WRITE]
        assert list(growing.more().events()) == []
        path.write_bytes(put(fake, 3, b"two").data())
        (event,) = growing.more().events()
        assert (event.kind, event.offset) == (Op.WRITE, 3)
        assert growing.under_way() == []
