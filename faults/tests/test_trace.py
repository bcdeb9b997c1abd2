"""The recorded stream: every interposed call, its order, its fields, equality from run to run."""

from __future__ import annotations

import ctypes
import errno
import os
import unittest

from support import (
    CLOSE,
    FALLOCATE,
    FDATASYNC,
    FSYNC,
    MARK,
    MKDIR,
    OPEN,
    OVERFLOW,
    READ,
    RENAME,
    SYNC_DIR,
    SYNC_RANGE,
    TRUNCATE,
    UNLINK,
    UNSEEN,
    WRITE,
    PreloadCase,
    Record,
)


def xxh3(data: bytes) -> int:
    """The reference hash, from the shared library of xxHash."""
    function = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    function.restype = ctypes.c_uint64
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return int(function(data, len(data)))


def shape(record: Record) -> tuple[int, int, int, int, int]:
    """Kind, file, offset, length, result."""
    return (record.kind, record.file, record.offset, record.length, record.result)


class DataCalls(PreloadCase):
    """Reads and writes."""

    def test_every_write_function_is_recorded(self) -> None:
        """Offset, length, result and hash are right for all ways to write."""
        run = self.run_ops(
            "open 0 f wc",
            "write 0 100 a",
            "writev 0 5000 b",
            "pwrite 0 10000 4096 c",
            "pwrite64 0 20000 17 d",
            "pwritev 0 30000 600 e",
            "pwritev64 0 40000 601 f",
            "pwritev2 0 50000 602 g",
            "pwritev2 0 -1 7 h",
            "write 0 1 i",
        )
        want = [
            (0, 100, b"a"),
            (100, 5000, b"b"),
            (10000, 4096, b"c"),
            (20000, 17, b"d"),
            (30000, 600, b"e"),
            (40000, 601, b"f"),
            (50000, 602, b"g"),
            (5100, 7, b"h"),
            (5107, 1, b"i"),
        ]
        writes = run.trace.of(WRITE)
        self.assertEqual([shape(w) for w in writes], [(WRITE, 1, o, n, n) for o, n, _ in want])
        self.assertEqual([w.hash for w in writes], [xxh3(c * n) for _, n, c in want])
        self.assertEqual([w.payload for w in writes], [b""] * len(want))
        self.assertEqual([r[1] for r in run.results[1:]], [n for _, n, _ in want])
        content = (self.root / "f").read_bytes()
        for offset, length, char in want:
            self.assertEqual(content[offset : offset + length], char * length)

    def test_full_payload_is_the_data(self) -> None:
        """With TORNPAGE_PAYLOAD=full a record holds what was written, vectors joined."""
        run = self.run_ops(
            "open 0 f wc", "pwrite 0 0 13 a", "writev 0 1001 b", TORNPAGE_PAYLOAD="full"
        )
        first, second = run.trace.of(WRITE)
        self.assertEqual(first.payload, b"a" * 13 + bytes(3))
        self.assertEqual(second.payload, b"b" * 1001 + bytes(7))
        self.assertEqual([first.flags, second.flags], [1, 1])

    def test_append_offset_is_the_end_of_the_file(self) -> None:
        """O_APPEND, given at open or later, overrides every offset, as the kernel does it."""
        self.put("f", b"x" * 10)
        run = self.run_ops(
            "open 0 f wa", "write 0 5 a", "pwrite 0 0 5 b", "open 1 g wc", "write 1 4 c",
            "pwrite 1 100 4 d", "setappend 1", "pwrite 1 0 3 e", "open 2 h wc", "pwrite 2 0 7 f",
            "pwritev2 2 0 3 g 16",
        )  # fmt: skip
        writes = run.trace.of(WRITE)
        self.assertEqual([w.offset for w in writes], [10, 15, 0, 100, 104, 0, 7])
        self.assertEqual([w.flags for w in writes], [2, 2, 0, 0, 2, 0, 2])
        self.assertEqual((self.root / "f").read_bytes(), b"x" * 10 + b"aaaaabbbbb")

    def test_every_read_function_is_recorded(self) -> None:
        """Reads have offset, length and the count that came back, short at the end of the file."""
        self.put("f", b"x" * 1000)
        run = self.run_ops(
            "open 0 f r", "read 0 400", "readv 0 400", "pread 0 100 950", "pread64 0 10 3",
            "preadv 0 20 4", "read 0 400", "read 0 400",
        )  # fmt: skip
        self.assertEqual(
            [shape(r)[2:] for r in run.trace.of(READ)],
            [(0, 400, 400), (400, 400, 400), (950, 100, 50), (3, 10, 10), (4, 20, 20),
             (800, 400, 200), (1000, 400, 0)],
        )  # fmt: skip

    def test_failed_calls_carry_their_errno(self) -> None:
        """What failed is recorded with -errno and no hash, and the program sees its errno."""
        self.put("f", b"x")
        run = self.run_ops("open 0 f r", "pwrite 0 0 8 a", "open 1 missing r", "open 2 f wcx")
        write = run.trace.of(WRITE)[0]
        self.assertEqual((write.result, write.hash), (-errno.EBADF, 0))
        self.assertEqual([o.result for o in run.trace.of(OPEN)], [0, -errno.ENOENT, -errno.EEXIST])
        self.assertEqual([r[2] for r in run.results], [0, errno.EBADF, errno.ENOENT, errno.EEXIST])


class FileCalls(PreloadCase):
    """Descriptors, sizes, syncs and names."""

    def test_open_variants_and_ids(self) -> None:
        """Every way to open is seen; a file keeps its id; a new file has a new one."""
        run = self.run_ops(
            "mkdir d", "open 0 d rd", "openat 1 0 a wc", "openat64 2 0 a w", "open64 3 d/a r",
            "creat 4 d/b", "creat64 5 ./d/../d/b", "unlink d/a", "open 6 d/a wc",
        )  # fmt: skip
        opens = run.trace.of(OPEN)
        self.assertEqual(
            [(o.text, o.file) for o in opens],
            [("d", 1), ("d/a", 2), ("d/a", 2), ("d/a", 2), ("d/b", 3), ("d/b", 3), ("d/a", 4)],
        )
        self.assertEqual([o.flags for o in opens], [2, 1, 0, 0, 1, 0, 1])
        self.assertEqual(opens[1].offset & os.O_CREAT, os.O_CREAT)
        self.assertEqual(opens[4].offset & os.O_TRUNC, os.O_TRUNC)

    def test_links_to_the_root_are_followed(self) -> None:
        """A path through a symbolic link is recorded as the kernel resolves it."""
        (self.base / "link").symlink_to(self.root)
        run = self.run_ops(
            f"open 0 {self.base}/link/f wc", "write 0 3 a", f"unlink {self.base}/link/f"
        )
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, WRITE, UNLINK])
        self.assertEqual(run.trace.records[0].text, "f")

    def test_close_and_dup(self) -> None:
        """A duplicate is the same file; close counts the descriptors that are left."""
        run = self.run_ops(
            "open 0 f wc", "dup 0 1", "dupfd 0 2", "open 3 g wc", "close 0", "write 1 2 a",
            "write 2 2 b", "dup2 1 3", "write 3 2 c", "close_range 1 1", "close 2", "close 3",
            "pwrite 1 0 1 z",
        )  # fmt: skip
        self.assertEqual(
            [(w.file, w.offset) for w in run.trace.of(WRITE)], [(1, 0), (1, 2), (1, 4)]
        )
        closes = [(c.file, c.length) for c in run.trace.of(CLOSE)]
        self.assertEqual(closes, [(1, 2), (2, 0), (1, 2), (1, 1), (1, 0)])
        self.assertEqual(run.results[-1], ("pwrite", -1, errno.EBADF))

    def test_syncs_and_sizes(self) -> None:
        """Each sync and size change has its kind and numbers; a directory sync has its path."""
        run = self.run_ops(
            "mkdir d", "open 0 f wc", "open 1 d rd", "open 2 . rd", "fsync 0", "fdatasync 0",
            "sync_file_range 0 512 1024", "fsync 1", "fdatasync 2", "ftruncate 0 5000",
            "ftruncate64 0 6000", "truncate f 7000", "fallocate 0 8192 4096",
            "posix_fallocate 0 16384 4096", "posix_fallocate 0 0 0",
        )  # fmt: skip
        records = run.trace.records[4:]
        self.assertEqual(
            [shape(r) for r in records],
            [
                (FSYNC, 1, 0, 0, 0),
                (FDATASYNC, 1, 0, 0, 0),
                (SYNC_RANGE, 1, 512, 1024, 0),
                (SYNC_DIR, 2, 0, 0, 0),
                (SYNC_DIR, 3, 0, 0, 0),
                (TRUNCATE, 1, 5000, 0, 0),
                (TRUNCATE, 1, 6000, 0, 0),
                (TRUNCATE, 1, 7000, 0, 0),
                (FALLOCATE, 1, 8192, 4096, 0),
                (FALLOCATE, 1, 16384, 4096, 0),
                (FALLOCATE, 1, 0, 0, -errno.EINVAL),
            ],
        )
        self.assertEqual([records[3].text, records[4].text], ["d", "."])
        self.assertEqual(run.results[-1], ("posix_fallocate", errno.EINVAL, 0))

    def test_names(self) -> None:
        """Rename, unlink, mkdir and their variants; a renamed file keeps its id, also in a moved
        directory, and the replaced file's id is over."""
        run = self.run_ops(
            "mkdir d", "open 0 . rd", "mkdirat 0 e", "open 1 d/a wc", "open 2 d/b wc",
            "rename d/a d/b", "rename d g", "open 3 g/b w", "open 4 x wc", "renameat x y",
            "renameat2 y g/b", "open 5 y r", "open 6 g/b r", "unlinkat 0 y", "remove g/b",
            "rmdir e", "remove g", "rename nothing anything",
        )  # fmt: skip
        self.assertEqual([m.text for m in run.trace.of(MKDIR)], ["d", "e"])
        renames = [(r.payload.rstrip(b"\0"), r.file, r.result) for r in run.trace.of(RENAME)]
        self.assertEqual(
            renames,
            [(b"d/a\0d/b", 2, 0), (b"d\0g", 0, 0), (b"x\0y", 4, 0), (b"y\0g/b", 4, 0),
             (b"nothing\0anything", 0, -errno.ENOENT)],
        )  # fmt: skip
        ids = {slot: o.file for slot, o in enumerate(run.trace.of(OPEN))}
        self.assertEqual(ids, {0: 1, 1: 2, 2: 3, 3: 2, 4: 4, 5: 2, 6: 4})
        unlinks = [(u.text, u.file, u.flags) for u in run.trace.of(UNLINK)]
        self.assertEqual(unlinks, [("y", 2, 0), ("g/b", 4, 0), ("e", 0, 1), ("g", 0, 1)])

    def test_moves_across_the_root(self) -> None:
        """A name outside of the root is recorded as empty."""
        outside = self.base / "outside"
        run = self.run_ops(
            "open 0 f wc", f"rename f {outside}", f"rename {outside} g", f"unlink {outside}"
        )
        payloads = [r.payload.rstrip(b"\0") for r in run.trace.of(RENAME)]
        self.assertEqual(payloads, [b"f", b"\0g"])
        self.assertEqual(len(run.trace.of(UNLINK)), 0)

    def test_temporary_file(self) -> None:
        """O_TMPFILE gives a new id each time."""
        run = self.run_ops("open 0 . wT", "open 1 . wT", "write 1 5 a")
        self.assertEqual([o.file for o in run.trace.of(OPEN)], [1, 2])
        self.assertEqual(run.trace.of(OPEN)[0].text, "./#tmpfile")

    def test_files_outside_are_not_seen(self) -> None:
        """A sibling whose name starts like the root is not below it."""
        (self.base / "root2").mkdir()
        run = self.run_ops(
            f"open 0 {self.base}/root2/f wc",
            "write 0 5 a",
            f"rename {self.base}/root2/f {self.base}/q",
        )
        self.assertEqual(run.trace.records, [])
        self.assertEqual(run.trace.pid, 0)

    def test_unseen_changes_leave_a_mark(self) -> None:
        """A shared writable mapping is announced."""
        run = self.run_ops("open 0 f wc", "ftruncate 0 4096", "mmap 0", "mark own text")
        self.assertEqual(
            [m.text for m in run.trace.of(MARK)],
            ["unseen mmap path=f", "own text"],
        )
        self.assertEqual(run.trace.flags, UNSEEN)
        self.assertEqual(self.run_ops("mark unseen", "open 0 no r").trace.flags, 0)

    def test_ways_around_the_library(self) -> None:
        """Bare system calls are followed; POSIX aio on a file below the root leaves a mark; on others, and a
        call that fails, none."""
        run = self.run_ops(
            "open 0 f wc", "bare_pwrite 0", "bare_fsync 0", "aio 0", "bare_uring", "mmapfails 0",
            "open 1 /dev/null w", "bare_pwrite 1", "aio 1",
        )  # fmt: skip
        self.assertTrue(all(result >= 0 for _, result, _ in run.results), run.results)
        self.assertEqual([m.text for m in run.trace.of(MARK)], ["unseen aio_write path=f"])
        self.assertEqual([shape(w) for w in run.trace.of(WRITE, FSYNC)],
                         [(WRITE, 1, 0, 4, 4), (FSYNC, 1, 0, 0, 0)])  # fmt: skip


class Stream(PreloadCase):
    """Properties of the whole trace."""

    OPS = (
        "mkdir d", "open 0 d/f wc", "mark issue n=1", "write 0 5000 a", "fsync 0", "pwrite 0 7 9 b",
        "rename d/f d/g", "open 1 . rd", "fsync 1", "mark ack n=1", "close 0", "unlink d/g",
    )  # fmt: skip

    def test_two_runs_are_byte_equal(self) -> None:
        """But for the pid in the header, in both payload modes."""
        for mode in ("hash", "full"):
            bodies = []
            for _ in range(2):
                bodies.append(self.run_ops(*self.OPS, TORNPAGE_PAYLOAD=mode).trace.body)
                (self.root / "d").rmdir()
            self.assertEqual(bodies[0], bodies[1])
            self.assertGreater(len(bodies[0]), 500)

    def test_an_old_trace_is_replaced(self) -> None:
        """A second run starts over, it does not append."""
        self.run_ops(*self.OPS)
        (self.root / "d").rmdir()
        self.assertEqual(len(self.run_ops("open 0 f wc").trace.records), 1)

    def test_overflow_stops_recording_only(self) -> None:
        """A full trace says so, is readable, and the program does not notice."""
        ops = ["open 0 f wc"] + [f"pwrite 0 {i} 1 a" for i in range(200)]
        run = self.run_ops(*ops, TORNPAGE_TRACE_MAX="4096")
        self.assertEqual(run.status, 0)
        self.assertEqual(run.trace.flags, OVERFLOW)
        self.assertEqual(len(run.trace.records), (4096 - 64 - 8) // 64)
        self.assertEqual((self.root / "f").stat().st_size, 200)

    def test_threads_are_numbered_and_in_order(self) -> None:
        """All writes of all threads are there, each thread's in its order, under its number."""
        run = self.run_ops("open 0 f wc", "threads 500 a b c")
        paths = {o.file: (o.text, o.thread) for o in run.trace.of(OPEN)}
        self.assertEqual(sorted(t for _, t in paths.values()), [0, 1, 2, 3])
        for file, (name, thread) in paths.items():
            offsets = [(w.offset, w.thread) for w in run.trace.of(WRITE) if w.file == file]
            want = 0 if name == "f" else 500
            self.assertEqual(offsets, [(8 * i, thread) for i in range(want)])

    def test_without_a_trace_nothing_changes(self) -> None:
        """A library without orders is inert."""
        run = self.run_ops("open 0 f wc", "write 0 5 a", TORNPAGE_TRACE="")
        self.assertEqual((run.status, run.results), (0, [("open", 0, 0), ("write", 5, 0)]))


if __name__ == "__main__":
    unittest.main()
