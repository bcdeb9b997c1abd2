"""The recorder that is a file system: every way to change a file is in its stream, also those of a program that
was linked statically."""

from __future__ import annotations

import os
import sys

from fs_support import FS, PAGE, PATTERN, SLOW, WAYS, FsCase, main, places
from support import (
    APPEND,
    CLOSE,
    DURABLE,
    FALLOCATE,
    FDATASYNC,
    FSYNC,
    LINK,
    MARK,
    MKDIR,
    OPEN,
    RENAME,
    SYNC_DIR,
    TRUNCATE,
    UNLINK,
    UNSEEN,
    WRITE,
    PreloadCase,
    read_trace,
)


class Ways(FsCase):
    """What each way of writing has in the stream. The program is static: no preload sees any of it."""

    def test_the_preload_sees_none_of_it(self) -> None:
        """The program is as static as the other tests say."""
        done = self.start(
            [WAYS, "bare"], super().environment(LD_PRELOAD=os.environ["TORNPAGE_TEST_PRELOAD"])
        )
        self.assertEqual((done.returncode, self.trace_path.exists()), (0, False))

    def test_bare_system_calls(self) -> None:
        """Open, pwrite, fsync by their numbers."""
        run = self.way("bare")
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, WRITE, FSYNC, CLOSE])
        self.assertEqual(places(run, WRITE), [(WRITE, 5, 100)])

    def test_a_ring(self) -> None:
        """io_uring: a write and an fdatasync behind it."""
        run = self.way("ring")
        changes = [(WRITE, 7, 100), (FDATASYNC, 0, 0)]
        self.assertEqual(places(run, WRITE, FDATASYNC), changes)

    def test_libaio(self) -> None:
        """io_submit of a write around the page cache: of the kernel's, not of the disk's, so it is not durable."""
        run = self.way("aio")
        self.assertEqual(places(run, WRITE), [(WRITE, PAGE, PAGE)])
        self.assertEqual(run.trace.of(WRITE)[0].flags & DURABLE, 0)

    def test_copies_of_the_kernel(self) -> None:
        """sendfile, copy_file_range and splice are writes of what they copy."""
        for name, offset, length in (
            ("sendfile", 0, 5000),
            ("copy_range", 3, 5000),
            ("splice", 9, 500),
        ):
            run = self.way(name)
            copied = run.trace.of(WRITE)[-1]
            self.assertEqual((copied.offset, copied.length), (offset, length), name)
            begin = 0 if name == "splice" else 10
            self.assertEqual(copied.payload[:length], PATTERN[begin : begin + length], name)
            for path in self.root.iterdir():
                path.unlink()

    def test_a_mapping(self) -> None:
        """msync hands over what was stored, and is an fdatasync behind it; munmap hands over the rest, of which
        nothing is durable."""
        run = self.way("map")
        changes = [(WRITE, 0, 4 * PAGE), (WRITE, 0, 2 * PAGE), (FDATASYNC, 0, 0)]
        changes += [(WRITE, 2 * PAGE, PAGE)]
        self.assertEqual(places(run, WRITE, FDATASYNC, FSYNC), changes)
        write, sync = run.trace.of(WRITE)[1], run.trace.of(FDATASYNC)[0]
        self.assertGreaterEqual(sync.began, write.seq)
        self.assertFalse(any(w.flags & DURABLE for w in run.trace.of(WRITE)))

    def test_a_mapping_that_is_left(self) -> None:
        """The end of the process hands it over, before the recording ends."""
        self.assertEqual(places(self.way("map_left"), WRITE)[-1], (WRITE, 3 * PAGE, PAGE))

    def test_a_mapping_beside_writes(self) -> None:
        """A write sees what was stored before it, and a mapping what was written."""
        run = self.way("map_and_write")
        self.assertEqual(self.found()["f"][:4], b"amwn")
        changes = [
            (WRITE, 0, 4 * PAGE),
            (WRITE, 0, PAGE),
            (WRITE, 2, 1),
            (WRITE, 0, PAGE),
            (FSYNC, 0, 0),
        ]
        self.assertEqual(places(run, WRITE, FSYNC), changes)

    def test_durable_writes(self) -> None:
        """By the descriptor or by the call; each is durable by itself, and no sync is recorded that the program did
        not make: one would cover other writes too."""
        run = self.way("durable")
        writes = [(w.offset, w.flags & (APPEND | DURABLE)) for w in run.trace.of(WRITE)]
        durable = [(0, DURABLE), (600, DURABLE), (1200, DURABLE), (1800, DURABLE)]
        self.assertEqual(writes, [*durable, (2400, 0), (3000, 0), (3600, APPEND)])
        self.assertEqual(run.trace.of(FSYNC, FDATASYNC), [])

    def test_a_large_write(self) -> None:
        """Comes in parts of at most a MiB, which are all there, in order."""
        parts = self.way("large").trace.of(WRITE)
        self.assertGreater(len(parts), 1)
        self.assertEqual(sum(part.result for part in parts), 5 << 19)
        ends = [13, *(part.offset + part.result for part in parts)]
        self.assertEqual([part.offset for part in parts], ends[:-1])

    def test_reserved_space(self) -> None:
        """Modes of fallocate: those that tmpfs has, and a failure of each other one."""
        run = self.way("allocate")
        done = [(r.flags, r.offset, r.length) for r in run.trace.of(FALLOCATE) if r.result == 0]
        reserved = [(0, 0, 5 * PAGE), (1, 5 * PAGE, PAGE), (3, PAGE + 5, 100)]
        self.assertEqual(done[:3], reserved)

    def test_a_file_without_a_name(self) -> None:
        """O_TMPFILE, and the name that linkat gives it: one file."""
        run = self.way("temporary")
        opened, link = run.trace.of(OPEN)[0], run.trace.of(LINK)[0]
        self.assertEqual(opened.offset & os.O_TMPFILE, os.O_TMPFILE)
        self.assertEqual((opened.text, opened.flags), ("./#tmpfile", 1))
        self.assertEqual((link.file, link.payload.rstrip(b"\0")), (opened.file, b"./#tmpfile\0f"))
        self.assertEqual({w.file for w in run.trace.of(WRITE, FSYNC)}, {opened.file})
        self.assertEqual(self.found().keys(), {"f"})

    def test_renames(self) -> None:
        """Of renameat2: one that replaces nothing, and one that would fail; a whiteout is refused."""
        run = self.way("rename")
        renames = [(r.flags, r.payload.rstrip(b"\0")) for r in run.trace.of(RENAME) if not r.result]
        self.assertEqual(renames, [(1, b"f\0h"), (0, b"h\0g")])
        self.assertEqual(self.found(), {"g": b"f"})

    def test_an_exchange(self) -> None:
        """Two names change places, with the ids of their files."""
        run = self.way("exchange")
        (exchange,) = run.trace.of(RENAME)
        self.assertEqual((exchange.flags, exchange.payload.rstrip(b"\0")), (2, b"f\0g"))
        self.assertEqual(self.found(), {"f": b"ggG", "g": b"f" + bytes(9)})

    def test_names(self) -> None:
        """Folders, links, a file that is written when its name is gone, one that is made by mknod; a FIFO is
        nothing that a stream has."""
        run = self.way("names")
        self.assertEqual(run.trace.of(SYNC_DIR)[0].text, "j")
        folders = [(r.kind, r.text) for r in run.trace.of(MKDIR)]
        self.assertEqual(folders, [(MKDIR, "k"), (MKDIR, "gone")])
        unlinks = [(r.text, r.flags) for r in run.trace.of(UNLINK)]
        self.assertEqual(unlinks, [("k/f", 0), ("j/g", 0), ("gone", 1)])
        self.assertEqual(run.trace.of(TRUNCATE)[0].text, "j/g")
        self.assertEqual(self.found(), {"l": b"22", "j/g": bytes(3), "j/n": b""})

    def test_a_child_without_environment(self) -> None:
        """In a session of its own."""
        self.assertEqual(places(self.way("child"), WRITE), [(WRITE, 5, 100)])

    def test_what_is_left_behind(self) -> None:
        """A daemon is ended with the program, and what it wrote is recorded."""
        self.assertEqual(places(self.way("left"), WRITE), [(WRITE, 0, 6)])


class Stream(FsCase):
    """The same stream as the preload's."""

    def test_equal_to_the_preloads(self) -> None:
        """Of one program, record by record; only the flags of opens tell what the kernel adds."""
        body = """
fd = os.open("f", os.O_RDWR | os.O_CREAT)
os.write(fd, b"x" * 1000)
os.pwritev(fd, [b"abc", b"def"], 10)
os.lseek(fd, 0, 0)
os.read(fd, 50)
os.fdatasync(fd)
os.ftruncate(fd, 500)
os.close(fd)
os.mkdir("k")
os.rename("f", "k/f")
os.link("k/f", "g")
fd = os.open("k", os.O_RDONLY)
os.fsync(fd)
os.close(fd)
os.truncate("g", 7)
os.unlink("k/f")
os.rmdir("k")
fd = os.open("g", os.O_WRONLY | os.O_APPEND | os.O_TRUNC)
os.write(fd, b"end")
os.close(fd)
"""
        ours = self.python(body)
        self.assertEqual((ours.status, ours.errors), (0, ""))
        for path in self.root.iterdir():
            path.unlink()
        theirs = self.start(
            [sys.executable, "-I", "-S", "-c", "import os\n" + body],
            PreloadCase.environment(self, TORNPAGE_PAYLOAD="full"),
        )
        self.assertEqual((theirs.returncode, theirs.stderr), (0, ""))
        preload = read_trace(self.trace_path)

        def facts(run_records: list) -> list:
            return [
                (r.kind, r.flags, r.seq, r.file, r.thread, r.kind != OPEN and r.offset, r.length)
                + (r.result, r.hash, r.began, r.payload)
                for r in run_records
            ]

        self.assertEqual(facts(ours.trace.records), facts(preload.records))

    def test_twice_the_same(self) -> None:
        """Two runs give equal bytes behind the header."""
        bodies = []
        for _ in range(2):
            bodies.append(self.way("names").trace.body)
            for path in (*self.root.rglob("*"), self.trace_path):
                path.unlink() if not path.is_dir() else None
            (self.root / "j").rmdir()
        self.assertEqual(bodies[0], bodies[1])

    def test_threads_have_numbers_of_their_own(self) -> None:
        """In order of their first call; each of a child process too."""
        run = self.python(
            """
import threading
fd = os.open("f", os.O_RDWR | os.O_CREAT)
for i in (1, 2):
    one = threading.Thread(target=os.pwrite, args=(fd, b"t", i))
    one.start()
    one.join()
if os.fork() == 0:
    os.pwrite(fd, b"c", 3)
    os._exit(0)
os.wait()
os.pwrite(fd, b"m", 4)
"""
        )
        self.assertEqual([w.thread for w in run.trace.of(WRITE)], [1, 2, 3, 0])

    def test_threads_do_not_wait_for_each_other(self) -> None:
        """One has an fsync under way, which takes until another one has written: the write lies within it."""
        pipes = [self.trace_path.with_name(name) for name in ("under-way", "go-on")]
        for pipe in pipes:
            os.mkfifo(pipe)
        body = """
import os, threading
f, g = (os.open(name, os.O_RDWR | os.O_CREAT) for name in "fg")
one = threading.Thread(target=os.fsync, args=(f,))
one.start()
os.read(200, 1)
os.pwrite(g, b"x", 0)
os.write(201, b"x")
one.join()
"""
        opened = 'exec 200<>"$1" 201<>"$2"; shift 2; exec timeout 20 "$@"'
        program = ["env", "-u", "LD_PRELOAD", sys.executable, "-I", "-S", "-c", body]
        words = ["/bin/bash", "-c", opened, "bash", *map(str, pipes), FS, *program]
        env = self.environment(LD_PRELOAD=SLOW, PATH=os.environ["PATH"])
        done = self.start(words, env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (write,), (sync,) = (read_trace(self.trace_path).of(kind) for kind in (WRITE, FSYNC))
        self.assertTrue(sync.began <= write.began < write.seq < sync.seq)

    def test_marks_by_the_socket(self) -> None:
        """In order with the calls, and with the number of the process that sends them, from the first one
        on."""
        name = f"test-fs-{os.getpid()}"
        run = self.python(
            f"""
import socket
def mark(text):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("\\0{name}")
        one.sendall(text + b"\\n")
        assert one.recv(3) == b"ok\\n"
mark(b"ready")
fd = os.open("f", os.O_RDWR | os.O_CREAT)
mark(b"issue n=1")
os.write(fd, b"x")
mark(b"ack n=1")
""",
            TORNPAGE_CONTROL=name,
        )
        self.assertEqual((run.status, run.errors), (0, ""))
        kinds = [r.kind for r in run.trace.records]
        self.assertEqual(kinds, [MARK, OPEN, MARK, WRITE, MARK, CLOSE])
        self.assertEqual({r.thread for r in run.trace.records}, {0})

    def test_a_mark_overtakes_no_close(self) -> None:
        """For which nobody waits: what went before a mark stands before it, each time."""
        name = f"test-fs-{os.getpid()}"
        run = self.python(
            f"""
import socket
for i in range(300):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("\\0{name}")
        os.close(os.open("f", os.O_RDWR | os.O_CREAT))
        one.sendall(b"ack\\n")
        assert one.recv(3) == b"ok\\n"
""",
            TORNPAGE_CONTROL=name,
        )
        self.assertEqual((run.status, run.errors), (0, ""))
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, CLOSE, MARK] * 300)

    def test_a_symbolic_link_is_marked(self) -> None:
        """No image has one."""
        run = self.python('os.symlink("f", "s"); assert os.readlink("s") == "f"')
        self.assertEqual((run.status, run.trace.flags), (0, UNSEEN))
        self.assertEqual([m.text for m in run.trace.of(MARK)], ["unseen symlink path=s"])

    def test_what_was_there_before(self) -> None:
        """Is read, and changed under the ids of its files."""
        self.put("f", b"before")
        (self.root / "k").mkdir()
        self.put("k/g", b"deep")
        run = self.python(
            """
assert sorted(os.listdir(".")) == ["f", "k"] and os.listdir("k") == ["g"]
fd = os.open("k/g", os.O_RDWR)
assert os.read(fd, 10) == b"deep" and os.fstat(fd).st_size == 4
os.pwrite(fd, b"D", 0)
assert open("f").read() == "before"
"""
        )
        self.assertEqual((run.status, run.errors), (0, ""))
        self.assertEqual(self.found(), {"f": b"before", "k/g": b"Deep"})

    def test_many_files_and_entries(self) -> None:
        """A folder longer than one answer, whose entries go while it is read."""
        run = self.python(
            """
for i in range(2000):
    os.close(os.open(f"a-rather-long-name-{i:05}", os.O_WRONLY | os.O_CREAT))
assert len(os.listdir(".")) == 2000
for entry in os.scandir("."):
    os.unlink(entry.path)
assert os.listdir(".") == []
"""
        )
        self.assertEqual((run.status, run.errors), (0, ""))
        self.assertEqual(len(run.trace.of(UNLINK)), 2000)

    def test_modes_and_owners(self) -> None:
        """As on any file system; the program has its own umask, and none of it is recorded."""
        run = self.python(
            """
os.umask(0o027)
os.close(os.open("f", os.O_WRONLY | os.O_CREAT, 0o666))
os.mkdir("k")
assert os.stat("f").st_mode & 0o777 == 0o640 and os.stat("k").st_mode & 0o777 == 0o750
os.chmod("f", 0o600)
os.utime("f", (1, 2))
assert (os.stat("f").st_mode & 0o777, os.stat("f").st_mtime) == (0o600, 2)
"""
        )
        self.assertEqual((run.status, run.errors), (0, ""))
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, CLOSE, MKDIR])

    def test_locks(self) -> None:
        """Of files, between processes."""
        run = self.python(
            """
import fcntl
fd = os.open("f", os.O_RDWR | os.O_CREAT)
fcntl.lockf(fd, fcntl.LOCK_EX)
if os.fork() == 0:
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
"""
        )
        self.assertEqual((run.status, run.errors), (0, ""))

    def test_the_end_of_the_program_is_told(self) -> None:
        """Its exit code, or its signal; a program that is not there."""
        self.assertEqual(self.python("os._exit(5)").status, 5)
        self.assertEqual(self.python("os.kill(os.getpid(), 15)").status, -15)
        self.assertEqual(self.run_under("/no/such/program").status, 126)


if __name__ == "__main__":
    main()
