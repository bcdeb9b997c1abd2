"""Death inside a write, and before and after all other operations."""

from __future__ import annotations

import struct
import unittest

from support import (
    FSYNC,
    KILL,
    MARK,
    MKDIR,
    OPEN,
    RENAME,
    SIGKILL,
    SYNC_DIR,
    TRUNCATE,
    UNLINK,
    WRITE,
    PreloadCase,
    Record,
    damage,
)


class TornWrites(PreloadCase):
    """Every way to say what is kept: the file holds exactly the old and new sectors it should."""

    def torn(self, spec: str, op: str, old: bytes) -> tuple[bytes, Record]:
        """Content afterwards and the KILL record."""
        path = self.put("f", old)
        plan = f"fault kind=write file=f nth=1 action=kill {spec}\n"
        run = self.run_ops("open 0 f w", "pwrite 0 0 0 n", op, plan=plan.replace("nth=1", "nth=2"))
        self.assertEqual(run.status, SIGKILL, run.errors)
        self.assertEqual(run.results, [("open", 0, 0), ("pwrite", 0, 0)])
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, WRITE, KILL])
        return path.read_bytes(), run.trace.records[-1]

    def check(self, spec: str, states: str, offset: int = 4096, length: int = 4096) -> None:
        """A write in an old file of 16k: states per 512-byte sector, 0 old, 1 new."""
        old = bytes(i % 251 for i in range(16384))
        for call in ("pwrite", "pwritev"):
            content, kill = self.torn(spec, f"{call} 0 {offset} {length} n", old)
            want = bytearray(old)
            first = offset // 512
            for i, state in enumerate(states):
                start = max(offset, (first + i) * 512)
                end = min(offset + length, (first + i + 1) * 512)
                if state == "1":
                    want[start:end] = b"n" * (end - start)
            self.assertEqual(content, bytes(want), spec)
            found = damage(kill)
            self.assertEqual(found.states, bytes(int(s) for s in states), spec)
            self.assertEqual((found.sector, kill.offset, kill.length), (512, offset, length))
            self.assertEqual(found.old, old[offset : offset + length])
            self.assertEqual(found.new, b"n" * length)
            self.assertEqual(kill.flags, WRITE)

    def test_masks(self) -> None:
        """Any set of sectors; a short mask loses the rest, the surplus of a long one is ignored."""
        self.check("sectors=10110001", "10110001")
        self.check("sectors=01", "01000000")
        self.check("sectors=1111111100", "11111111")
        self.check("sectors=00000000", "00000000")

    def test_prefix_suffix_all_none(self) -> None:
        """The named sets."""
        self.check("sectors=prefix:3", "11100000")
        self.check("sectors=prefix:0", "00000000")
        self.check("sectors=prefix:99", "11111111")
        self.check("sectors=suffix:2", "00000011")
        self.check("sectors=suffix:99", "11111111")
        self.check("sectors=all", "11111111")
        self.check("sectors=none", "00000000")
        self.check("", "00000000")
        self.check("when=before", "00000000")
        self.check("when=after", "11111111")

    def test_sectors_follow_the_file_not_the_write(self) -> None:
        """An unaligned write touches sectors of the file, the outer ones in part."""
        self.check("sectors=101", "101", offset=1000, length=1000)
        self.check("sectors=01", "01", offset=511, length=2)
        self.check("sectors=1", "1", offset=600, length=10)

    def test_4096_byte_sectors(self) -> None:
        """The other sector size."""
        content, kill = self.torn("sector=4096 sectors=010", "pwrite 0 0 12288 n", b"o" * 16384)
        self.assertEqual(content, b"o" * 4096 + b"n" * 4096 + b"o" * 8192)
        self.assertEqual((damage(kill).sector, damage(kill).states), (4096, b"\0\1\0"))

    def test_bytes(self) -> None:
        """The first K bytes, not rounded to sectors; the cut sector is marked 2."""
        content, kill = self.torn("bytes=1300", "pwrite 0 0 4096 n", b"o" * 4096)
        self.assertEqual(content, b"n" * 1300 + b"o" * 2796)
        self.assertEqual(damage(kill).states, bytes([1, 1, 2, 0, 0, 0, 0, 0]))
        self.assertEqual(kill.result, 1300)

    def test_beyond_the_end_of_the_file(self) -> None:
        """A kept last sector extends the file over a hole; a lost one leaves it short."""
        content, kill = self.torn("sectors=0001", "pwrite 0 512 2048 n", b"o" * 700)
        self.assertEqual(content, b"o" * 700 + bytes(2048 - 700) + b"n" * 512)
        self.assertEqual(damage(kill).old, b"o" * 188 + bytes(2048 - 188))
        content, _ = self.torn("sectors=1000", "pwrite 0 512 2048 n", b"o" * 700)
        self.assertEqual(content, b"o" * 512 + b"n" * 512)

    def test_sequential_and_appending_writes(self) -> None:
        """write and writev are torn at the position of the file, O_APPEND at its end."""
        path = self.put("f", b"o" * 1024)
        plan = "fault kind=write file=f nth=1 action=kill sectors=01\n"
        for call in ("write", "writev"):
            path.write_bytes(b"o" * 1024)
            run = self.run_ops("open 0 f o", f"{call} 0 1024 n", plan=plan)
            self.assertEqual(run.status, SIGKILL)
            self.assertEqual(path.read_bytes(), b"o" * 512 + b"n" * 512)
            self.assertEqual(damage(run.trace.records[-1]).old, b"o" * 1024)
        path.write_bytes(b"o" * 1024)
        run = self.run_ops("open 0 f oa", "write 0 1024 n", plan=plan)
        self.assertEqual(run.trace.records[-1].offset, 1024)
        self.assertEqual(path.read_bytes(), b"o" * 1024 + bytes(512) + b"n" * 512)

    def test_without_a_trace(self) -> None:
        """A plan works alone."""
        path = self.put("f", b"o" * 1024)
        run = self.run_ops("open 0 f w", "pwrite 0 0 1024 n", TORNPAGE_TRACE="",
                           plan="fault kind=write file=f nth=1 action=kill sectors=10")  # fmt: skip
        self.assertEqual((run.status, path.read_bytes()), (SIGKILL, b"n" * 512 + b"o" * 512))

    def test_a_full_trace_still_kills(self) -> None:
        """Overflow stops recording, not the plan."""
        run = self.run_ops("open 0 f wc", *[f"pwrite 0 {i} 1 a" for i in range(100)],
                           TORNPAGE_TRACE_MAX="4096",
                           plan="fault kind=write file=f nth=99 action=kill")  # fmt: skip
        self.assertEqual((run.status, run.trace.flags), (SIGKILL, 3))
        self.assertEqual((self.root / "f").stat().st_size, 98)


class OtherOperations(PreloadCase):
    """Before the operation, or after it and after its record."""

    OPS = (
        "mkdir d", "open 0 d/f wc", "open 1 d rd", "pwrite 0 0 9 a", "fsync 0", "fsync 1",
        "fdatasync 0", "ftruncate 0 4", "rename d/f d/g", "pread 0 4 0", "fallocate 0 0 99",
        "sync_file_range 0 0 9", "unlink d/g",
    )  # fmt: skip

    def killed(self, rule: str, when: str) -> list[Record]:
        """The records of a run that ends at the rule."""
        d = self.root / "d"
        if d.exists():
            for path in d.iterdir():
                path.unlink()
            d.rmdir()
        run = self.run_ops(*self.OPS, plan=f"fault {rule} action=kill when={when}\n")
        self.assertEqual(run.status, SIGKILL, run.errors)
        return run.trace.records

    def test_each_kind_before_and_after(self) -> None:
        """`before` leaves no record and no effect of the operation, `after` has both."""
        cases = {
            "kind=mkdir file=d nth=1": (MKDIR, 0),
            "kind=fsync file=d/f nth=1": (FSYNC, 4),
            "kind=sync_dir file=d nth=1": (SYNC_DIR, 5),
            "kind=fsync file=d/f nth=2": (6, 6),
            "kind=truncate file=d/f nth=1 offset=0-4": (TRUNCATE, 7),
            "kind=rename file=d/g nth=1": (RENAME, 8),
            "kind=rename file=d/f nth=1": (RENAME, 8),
            "kind=read file=d/* nth=1": (3, 9),
            "kind=fallocate file=d/g nth=1": (9, 10),
            "kind=sync_range file=d/g nth=1": (7, 11),
            "kind=unlink file=*g nth=1": (UNLINK, 12),
            "kind=any file=d/* nth=1": (WRITE, 3),
            "kind=any file=* nth=8": (9, 10),
        }
        for rule, (kind, done) in cases.items():
            for when in ("before", "after"):
                with self.subTest(rule=rule, when=when):
                    records = self.killed(rule, when)
                    after = when == "after"
                    # A write that is kept whole is one KILL record, as every torn write.
                    own = 1 if after and kind != WRITE else 0
                    self.assertEqual(len(records), done + own + 1)
                    self.assertEqual(records[-1].kind, KILL)
                    self.assertEqual(records[-1].flags & 0xFF, kind)
                    self.assertEqual(bool(records[-1].flags & 0x100), own == 1)
                    if own:
                        self.assertEqual(records[-2].kind, kind)
        self.killed("kind=rename file=d/f nth=1", "before")
        self.assertTrue((self.root / "d" / "f").exists())
        self.killed("kind=rename file=d/f nth=1", "after")
        self.assertTrue((self.root / "d" / "g").exists())
        self.killed("kind=truncate file=d/f nth=1", "before")
        self.assertEqual((self.root / "d" / "f").stat().st_size, 9)

    def test_marks(self) -> None:
        """A mark is matched by its beginning, counted, and stands in the trace before the kill."""
        ops = ("open 0 f wc", "mark point name=log.synced", "mark point name=dblwr.area_synced",
               "write 0 1 a", "mark point name=dblwr.area_synced", "write 0 1 b")  # fmt: skip
        plan = "fault kind=mark text=point%20name=dblwr.area nth=2 action=kill\n"
        run = self.run_ops(*ops, plan=plan)
        self.assertEqual(run.status, SIGKILL)
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, MARK, MARK, WRITE, MARK, KILL])
        self.assertEqual(run.trace.records[-1].flags & 0xFF, MARK)
        self.assertEqual(run.trace.records[-2].length, len("point name=dblwr.area_synced"))
        self.assertEqual((self.root / "f").read_bytes(), b"a")


class Threads(PreloadCase):
    """No other thread gets on while one dies."""

    def test_no_progress_after_the_kill(self) -> None:
        """KILL is the last record, and each thread's file holds its recorded writes, and at most the one that
        was under way."""
        for nth in (1, 7, 20000):
            with self.subTest(nth=nth):
                for name in "abcd":
                    (self.root / name).unlink(missing_ok=True)
                plan = f"fault kind=write file=a nth={nth} action=kill sectors=none\n"
                # The trace has room for all writes of all threads, however slow "a" is.
                run = self.run_ops("threads 60000 a b c d", plan=plan)
                self.assertEqual(run.status, SIGKILL)
                self.assertEqual([r.seq for r in run.trace.of(KILL)], [len(run.trace.records)])
                counts = {o.text: 0 for o in run.trace.of(OPEN)}
                names = {o.file: o.text for o in run.trace.of(OPEN)}
                for write in run.trace.of(WRITE):
                    counts[names[write.file]] += 1
                self.assertEqual(counts["a"], nth - 1)
                if nth == 20000:
                    self.assertGreater(sum(counts.values()), counts["a"])
                for name, count in counts.items():
                    content = (self.root / name).read_bytes()
                    under_way = len(content) // 8 - count
                    self.assertIn(under_way, (0,) if name == "a" else (0, 1))
                    numbers = range(count + under_way)
                    self.assertEqual(content, struct.pack(f"<{len(numbers)}q", *numbers))


if __name__ == "__main__":
    unittest.main()
