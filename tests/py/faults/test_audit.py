"""The audit: what its list says of a run, and what of it a recording must have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_trace import FakeTrace

from tornpage.faults.audit import AUDITOR, Audit, AuditedCall, mapped_files, unrecorded_call
from tornpage.faults.trace import Call, Op, Trace
from tornpage.vocabulary.errors import TraceError
from tornpage.vocabulary.paths import find_paths

LAST = 1 << 62


def called(
    name: str, kind: str, path: str, offset: int = 0, length: int = 0, **facts: object
) -> AuditedCall:
    """A call of the process `store`."""
    usual: dict[str, object] = {"began": 0, "ended": LAST, "killed": False, "loaded": True}
    usual |= {"pid": 7, "process": "store", "other": ""}
    place = {"path": path, "offset": offset, "length": length}
    return AuditedCall(name=name, kind=kind, **{**usual, **place, **facts})  # type: ignore[arg-type]


def write(path: str, offset: int, length: int, **facts: object) -> AuditedCall:
    """A pwrite."""
    return called("pwrite64", "write", path, offset, length, **facts)


def missing(trace: Trace, *calls: AuditedCall, ignored: tuple[str, ...] = ()) -> str:
    """What is refused, in words."""
    call = unrecorded_call(trace, Audit(calls, ""), ignored)
    return "" if call is None else call.describe()


def test_call_and_record_are_one_to_one() -> None:
    """A record answers for one call: of three equal writes and two records one is refused."""
    trace = FakeTrace().open("a", True).write("a", 0, 10).write("a", 0, 10).trace()
    assert missing(trace, write("a", 0, 10), write("a", 0, 10)) == ""
    assert missing(trace, *[write("a", 0, 10)] * 3) == "pwrite of a by store"


def test_files_that_are_mapped_are_known() -> None:
    """Once each, whatever else was done to them; not those of which nothing is wanted."""
    calls = [called("mmap", "map", path) for path in ("b", "a", "b", "lock")]
    assert mapped_files(Audit((write("c", 0, 9), *calls), ""), ("lock",)) == ("a", "b")


@pytest.mark.parametrize("wrong", [("a", 1, 10), ("a", 0, 11)])
def test_a_write_has_its_place(wrong: tuple[str, int, int]) -> None:
    """Another offset or length is another write."""
    trace = FakeTrace().open("a", True).write("a", 0, 10).trace()
    assert missing(trace, write(*wrong)) == "pwrite of a by store"


def test_the_call_between_which_nothing_was_recorded_is_named() -> None:
    """Of two processes that write the same, the one that was not recorded."""
    trace = FakeTrace().open("a", True).write("a", 0, 10).trace()
    first = write("a", 0, 10, began=0, ended=1, process="unseen")
    second = write("a", 0, 10, began=1, ended=2)
    assert missing(trace, first, second) == "pwrite of a by unseen"
    assert missing(trace, second, first) == "pwrite of a by unseen"


def test_what_was_recorded_before_a_call_is_not_its_record() -> None:
    """A record behind its begin only."""
    trace = FakeTrace().open("a", True).write("a", 0, 10).trace()
    assert missing(trace, write("a", 0, 10, began=2)) == "pwrite of a by store"


def test_an_open_that_changes_nothing_answers_for_none_that_does() -> None:
    """One that empties a file, past the recorder, before one that reads it."""
    trace = FakeTrace().open("a", True)
    emptied = called("open", "open", "a", ended=1)
    reads = trace.record(Op.OPEN, file=1, payload=b"a", offset=os.O_RDONLY).trace()
    assert missing(reads, emptied) == "open of a by store"
    made = FakeTrace().record(Op.OPEN, file=1, payload=b"a", offset=os.O_RDWR | os.O_TRUNC).trace()
    assert missing(made, emptied) == ""


def test_names_are_compared() -> None:
    """Of what changes names; both of a rename."""
    trace = (
        FakeTrace()
        .record(Op.RENAME, payload=b"a\0b")
        .record(Op.UNLINK, payload=b"b")
        .record(Op.MKDIR, payload=b"d")
        .record(Op.LINK, payload=b"x\0y")
        .trace()
    )
    calls = [
        called("rename", "rename", "a", other="b"),
        called("unlink", "unlink", "b"),
        called("mkdir", "mkdir", "d"),
        called("linkat", "link", "y"),
    ]
    assert missing(trace, *calls) == ""
    assert missing(trace, called("rename", "rename", "a", other="c")) == "rename of a by store"
    assert missing(trace, called("unlink", "unlink", "a")) == "unlink of a by store"
    assert missing(trace, called("link", "link", "x")) == "link of x by store"


def test_a_file_may_have_another_name_in_the_recording() -> None:
    """Its content is the same: a hard link, or a file that was replaced."""
    trace = FakeTrace().open("new", True).write("new", 0, 10).trace()
    assert missing(trace, write("old", 0, 10)) == ""


def test_a_mark_tells_of_its_own_file_and_call() -> None:
    """What the recorder cannot follow is refused by its mark, which says nothing of another file or time."""
    trace = FakeTrace().mark("unseen mmap path=a%20b").trace()
    assert missing(trace, called("mmap", "map", "a b")) == ""
    assert missing(trace, called("mmap", "map", "a")) == "mmap of a by store"
    assert missing(trace, called("mmap", "map", "a b", began=1)) == "mmap of a b by store"


def test_a_write_under_way_is_excused() -> None:
    """Of a thread that was killed, and only the one that the recording knows of."""
    data = FakeTrace().open("a", True).trace().data
    trace = Trace(data, [Call(1, 100, 10)])
    assert missing(trace, write("a", 100, 10, killed=True)) == ""
    assert missing(trace, write("a", 100, 10)) == "pwrite of a by store"
    assert missing(trace, write("a", 200, 10, killed=True)) == "pwrite of a by store"


def test_a_sync_that_nobody_has_learned_of_is_excused() -> None:
    """Its thread was killed before it came to another call; one that went on has told somebody."""
    trace = FakeTrace().open("a", True).trace()
    assert missing(trace, called("fdatasync", "sync", "a", killed=True)) == ""
    assert missing(trace, called("sync", "sync_all", ".", killed=True)) == ""
    assert missing(trace, called("fdatasync", "sync", "a")) == "fdatasync of a by store"
    assert missing(trace, called("unlink", "unlink", "a", killed=True)) == "unlink of a by store"


def test_ignored_files_need_no_record() -> None:
    """All names of a call must be ignored; what nobody can tell is not."""
    trace = FakeTrace().trace()
    ignored = ("*.log",)
    assert missing(trace, write("a.log", 0, 1), ignored=ignored) == ""
    moved = called("rename", "rename", "a.log", other="data")
    assert missing(trace, moved, ignored=ignored) == "rename of a.log by store"
    unknown = called("io_uring_setup", "other", "?", loaded=False)
    assert missing(trace, unknown, ignored=("*",)).startswith("io_uring_setup by store, into which")


def test_a_list_that_is_not_whole_says_nothing(tmp_path: Path) -> None:
    """One that lacks its end, or whose lines are none, is an error; one of no audit says why."""
    log = tmp_path / "log"
    log.write_text("pwrite64\twrite\t1\n", "utf-8")
    with pytest.raises(TraceError, match="not come to its end"):
        Audit.load(log)
    log.write_text("pwrite64\twrite\t1\nend\n", "utf-8")
    with pytest.raises(TraceError, match="3 fields"):
        Audit.load(log)
    log.write_text("not audited\tOperation%20not%20permitted\nend\n", "utf-8")
    assert Audit.load(log).missing == "Operation not permitted"


def audited(folder: Path, code: str) -> list[tuple[str, str, str, str, int, int]]:
    """What the auditor lists of a Python program in this folder, which nothing records."""
    log = folder.parent / "log"
    auditor = find_paths().build / AUDITOR
    command = [auditor, folder, folder.parent / "trace", log, sys.executable, "-c", code]
    done = subprocess.run([*map(str, command)], cwd=folder, timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr
    audit = Audit.load(log)
    assert audit.missing == "" and not any(call.loaded for call in audit.calls)
    return [
        (call.name, call.kind, call.path, call.other, call.offset, call.length)
        for call in audit.calls
    ]


CALLS = """
import os
a = os.open("a b", os.O_RDWR | os.O_CREAT)
os.write(a, b"x" * 10)
os.write(a, b"y" * 5)
os.pwrite(a, b"z" * 7, 100)
os.writev(a, [b"1", b"22"])
os.pwritev(a, [b"333"], 50)
os.ftruncate(a, 300)
os.posix_fallocate(a, 0, 512)
os.fsync(a)
os.fdatasync(a)
end = os.open("a b", os.O_WRONLY | os.O_APPEND)
os.write(end, b"tail")
os.pwritev(end, [b"end"], 0)
b = os.open("b", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.sendfile(b, a, 0, 20)
os.copy_file_range(a, b, 30, 0, 200)
r, w = os.pipe()
os.write(w, b"piped")
os.splice(r, b, 5, offset_dst=400)
os.truncate("b", 9)
os.mkdir("d")
os.rename("b", "d/c")
os.link("d/c", "../outside")
out = os.open("../outside", os.O_WRONLY)
os.pwrite(out, b"link", 1)
os.unlink("d/c")
os.symlink("a b", "s")
os.mkfifo("f")
os.unlink("f")
os.fsync(os.open(".", os.O_RDONLY))
open("../elsewhere", "w").write("no business of ours")
"""


def test_every_call_that_changes_something_is_listed(tmp_path: Path) -> None:
    """With its place; nothing elsewhere, nothing of a FIFO; a hard link by its name in the folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    assert audited(folder, CALLS) == [
        ("openat", "open", "a b", "", 0, 0),
        ("write", "write", "a b", "", 0, 10),
        ("write", "write", "a b", "", 10, 5),
        ("pwrite64", "write", "a b", "", 100, 7),
        ("writev", "write", "a b", "", 15, 3),
        ("pwritev2", "write", "a b", "", 50, 3),
        ("ftruncate", "truncate", "a b", "", 300, 0),
        ("fallocate", "allocate", "a b", "", 0, 512),
        ("fsync", "sync", "a b", "", 0, 0),
        ("fdatasync", "sync", "a b", "", 0, 0),
        ("write", "write", "a b", "", 512, 4),
        ("pwritev2", "write", "a b", "", 516, 3),
        ("openat", "open", "b", "", 0, 0),
        ("sendfile", "write", "b", "", 0, 20),
        ("copy_file_range", "write", "b", "", 200, 30),
        ("splice", "write", "b", "", 400, 5),
        ("truncate", "truncate", "b", "", 9, 0),
        ("mkdir", "mkdir", "d", "", 0, 0),
        ("rename", "rename", "b", "d/c", 0, 0),
        ("pwrite64", "write", "d/c", "", 1, 4),
        ("unlink", "unlink", "d/c", "", 0, 0),
        ("symlink", "symlink", "s", "", 0, 0),
        ("fsync", "sync", ".", "", 0, 0),
    ]


MAPPED = """
import ctypes, mmap, os
a = os.open("a", os.O_RDWR | os.O_CREAT)
os.ftruncate(a, 4096)
ctypes.CDLL(None).mmap.restype = ctypes.c_void_p
at = ctypes.CDLL(None).mmap(None, 4096, 1, mmap.MAP_SHARED, a, 0)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, a, 0)
libc.mprotect(ctypes.c_void_p(at), 4096, mmap.PROT_READ | mmap.PROT_WRITE)
mmap.mmap(a, 4096)
"""


def test_memory_that_is_a_file_is_listed_when_it_may_be_written(tmp_path: Path) -> None:
    """A mapping that only reads is none; one that is made writable is."""
    folder = tmp_path / "data"
    folder.mkdir()
    assert [call[:3] for call in audited(folder, MAPPED)] == [
        ("openat", "open", "a"),
        ("ftruncate", "truncate", "a"),
        ("mprotect", "map", "a"),
        ("mmap", "map", "a"),
    ]


FAMILY = """
import os, subprocess, sys, threading
line = [sys.executable, "-c", "open('NAME', 'w')"]
subprocess.run([word.replace("NAME", "spawned") for word in line], env={})
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("forked", "w")
    else:
        os.wait()
    os._exit(0)
os.wait()
threading.Thread(target=open, args=("thread", "w")).run()
os.execv(line[0], [word.replace("NAME", "executed") for word in line])
"""


def test_all_processes_are_followed(tmp_path: Path) -> None:
    """Started with an empty environment, forked in a session of their own, executed."""
    folder = tmp_path / "data"
    folder.mkdir()
    assert [call[2] for call in audited(folder, FAMILY)] == [
        "spawned",
        "forked",
        "thread",
        "executed",
    ]


def missing_below(trace: Trace, *calls: AuditedCall) -> str:
    """What is refused of a run that a file system has recorded, in words."""
    call = unrecorded_call(trace, Audit(calls, ""), (), below=True)
    return "" if call is None else call.describe()


def test_what_a_file_system_is_not_told() -> None:
    """That an open might have made a file which is there; mappings, rings and FIFOs, whose writes it
    records; and whether a preload is in the process."""
    trace = FakeTrace().open("a", True).open("a", False).write("a", 0, 10).trace()
    opens = [called("openat", "open", "a")] * 2
    without = [called("mmap", "map", "a"), called("io_submit", "other", "a")]
    assert missing_below(trace, *opens, *without, called("mknod", "mknod", "p")) == ""
    assert missing(trace, *opens) == "openat of a by store"
    assert missing(trace, without[0]) == "mmap of a by store"
    assert missing_below(trace, write("a", 5, 5, loaded=False)) == "pwrite of a by store"


def test_a_sync_of_everything() -> None:
    """No file system is told of it. A preload is, but for one before the first record."""
    trace = FakeTrace().open("a", True).trace()
    early, later = called("sync", "sync_all", "?"), called("sync", "sync_all", "?", began=1)
    assert (missing(trace, early), missing_below(trace, early)) == ("", "sync by store")
    assert missing(trace, later) == "sync by store"
    seen = FakeTrace().open("a", True).record(Op.SYNC_ALL).trace()
    assert missing(seen, later) == ""


def test_a_large_write_comes_in_parts() -> None:
    """All of them, one behind the other; one that lacks is a write that nobody has recorded."""
    part = 1 << 20
    whole = FakeTrace().open("a", True)
    whole.write("a", 7, part).write("a", 7 + part, part).write("a", 7 + 2 * part, 5)
    large = write("a", 7, 2 * part + 5)
    assert missing_below(whole.trace(), large) == ""
    assert missing_below(whole.trace(), large, write("a", 7, part)) == "pwrite of a by store"
    assert missing(whole.trace(), large) == "pwrite of a by store"
    for lacks in (0, 1, 2):
        some = FakeTrace().open("a", True)
        for at, length in ((0, part), (part, part), (2 * part, 5)):
            if at != lacks * part:
                some.write("a", 7 + at, length)
        assert missing_below(some.trace(), large) == "pwrite of a by store"
