"""Faults that the process survives: what reaches the file, what the program and the trace say."""

from __future__ import annotations

import errno
import struct
import unittest

from support import (
    FAULT,
    FDATASYNC,
    FIRED,
    FSYNC,
    MARK,
    OPEN,
    PROGRAM,
    REFUSED,
    STARVED,
    WRITE,
    Damage,
    PreloadCase,
    Record,
    Run,
    damage,
)

DROP, TEAR, CORRUPT, MISDIRECT, ERROR, SHORT = range(2, 8)
OLD = b"o" * 8192


class WriteActions(PreloadCase):
    """Each action on one write of 2048 bytes at offset 1024, by pwrite and by sequential calls."""

    def faulty(self, action: str) -> tuple[bytes, Run]:
        """Content and run of the same write by pwrite."""
        path = self.put("f", OLD)
        plan = f"fault kind=write file=f nth=1 action={action}\n"
        run = self.run_ops("open 0 f w", "pwrite 0 1024 2048 n", "pwrite 0 8191 1 z", plan=plan)
        starved = STARVED if "ENOSPC" in action else 0
        self.assertEqual((run.status, run.trace.flags), (0, FIRED | starved), run.errors)
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, FAULT, WRITE, WRITE])
        content = path.read_bytes()
        self.assertEqual(content[-1:], b"z")
        return content[:-1] + b"o", run

    def parts(self, run: Run) -> tuple[int, int, Damage, Record]:
        """Action code, errno, damage, and the record of the write as the program saw it."""
        fault, write = run.trace.records[1:3]
        action, error = struct.unpack_from("<II", fault.payload)
        self.assertEqual(fault.flags, WRITE)
        self.assertEqual((write.offset, write.length), (1024, 2048))
        self.assertEqual(
            write.result, run.results[1][1] if run.results[1][1] >= 0 else -run.results[1][2]
        )
        return action, error, damage(fault), write

    def test_drop(self) -> None:
        """Success is reported, nothing is written."""
        content, run = self.faulty("drop")
        action, _, found, write = self.parts(run)
        self.assertEqual((content, action, write.result), (OLD, DROP, 2048))
        self.assertEqual((found.states, found.new), (bytes(4), b"n" * 2048))

    def test_tear(self) -> None:
        """Success is reported, some sectors are written."""
        content, run = self.faulty("tear sectors=0110")
        action, _, found, write = self.parts(run)
        self.assertEqual(content, b"o" * 1536 + b"n" * 1024 + b"o" * 5632)
        self.assertEqual((action, write.result, found.states), (TEAR, 2048, b"\0\1\1\0"))
        content, run = self.faulty("tear bytes=1")
        self.assertEqual(content, b"o" * 1024 + b"n" + b"o" * 7167)

    def test_corrupt(self) -> None:
        """Everything is written, but one bit in each given sector is wrong."""
        content, run = self.faulty("corrupt sectors=1001")
        action, _, found, write = self.parts(run)
        want = bytearray(OLD)
        want[1024:3072] = b"n" * 2048
        want[1024 + 256] ^= 1
        want[2560 + 256] ^= 1
        self.assertEqual(content, bytes(want))
        self.assertEqual((action, write.result, found.states), (CORRUPT, 2048, b"\1\0\0\1"))
        self.assertEqual(found.new, bytes(want[1024:3072]))
        self.assertEqual(run.trace.records[1].result, 2048)

    def test_misdirect(self) -> None:
        """The data goes to another place, in both directions."""
        content, run = self.faulty("misdirect shift=512")
        action, _, _, write = self.parts(run)
        self.assertEqual(content, b"o" * 1536 + b"n" * 2048 + b"o" * 4608)
        self.assertEqual((action, write.result), (MISDIRECT, 2048))
        self.assertEqual(run.trace.records[1].offset, 1536)
        content, _ = self.faulty("misdirect shift=-1024")
        self.assertEqual(content, b"n" * 2048 + b"o" * 6144)

    def test_misdirect_before_the_file(self) -> None:
        """A place that does not exist is refused when it is met."""
        self.put("f", OLD)
        plan = "fault kind=write file=f nth=1 action=misdirect shift=-1025"
        run = self.run_ops("open 0 f w", "pwrite 0 1024 8 n", plan=plan)
        self.assertEqual(run.status, 97)
        self.assertIn("outside of any file", run.errors)
        (self.root / "f").write_bytes(OLD)
        silent = self.run_command(
            ["sh", "-c", f'exec "{PROGRAM}" "open 0 f w" "pwrite 0 1024 8 n" 2>/dev/null'],
            plan=plan,
        )
        self.assertEqual(
            (silent.status, silent.errors, silent.trace.flags & REFUSED), (97, "", REFUSED)
        )
        (mark,) = silent.trace.of(MARK)
        self.assertEqual(mark.text, run.errors.strip().replace("tornpage_preload:", "refused"))

    def test_error(self) -> None:
        """The errno of the plan, EIO by default, and no change."""
        for action, number in (("error", errno.EIO), ("error errno=ENOSPC", errno.ENOSPC)):
            content, run = self.faulty(action)
            code, error, found, write = self.parts(run)
            self.assertEqual((content, code, error), (OLD, ERROR, number))
            self.assertEqual((write.result, write.hash, found.states), (-number, 0, bytes(4)))
            self.assertEqual(run.results[1], ("pwrite", -1, number))

    def test_short(self) -> None:
        """Fewer bytes are written, and the program is told how many; never all of them."""
        content, run = self.faulty("short bytes=700")
        action, _, found, write = self.parts(run)
        self.assertEqual(content, b"o" * 1024 + b"n" * 700 + b"o" * 6468)
        self.assertEqual((action, write.result, run.results[1][1]), (SHORT, 700, 700))
        self.assertEqual(found.states, b"\1\2\0\0")
        content, run = self.faulty("short bytes=5000")
        self.assertEqual(run.results[1][1], 2047)

    def test_sequential_writes_keep_the_position_true(self) -> None:
        """After a fault the position of the file is where the program believes it to be."""
        for action, count in (("drop", 600), ("tear sectors=1", 600), ("corrupt sectors=1", 600),
                              ("misdirect shift=4096", 600), ("short bytes=100", 100)):  # fmt: skip
            for call in ("write", "writev"):
                self.put("f", OLD)
                plan = f"fault kind=write file=f nth=2 action={action}\n"
                run = self.run_ops("open 0 f w", "write 0 50 a", f"{call} 0 600 n", "position 0",
                                   "write 0 1 z", plan=plan)  # fmt: skip
                with self.subTest(action=action, call=call):
                    self.assertEqual([r[1] for r in run.results[2:]], [count, 50 + count, 1])
                    self.assertEqual((self.root / "f").read_bytes()[50 + count : 51 + count], b"z")

    def test_append_survives_a_fault(self) -> None:
        """O_APPEND is still on after a torn append."""
        path = self.put("f", b"o" * 512)
        run = self.run_ops("open 0 f wa", "write 0 1024 n", "write 0 3 z",
                           plan="fault kind=write file=f nth=1 action=tear sectors=01")  # fmt: skip
        self.assertEqual(run.status, 0)
        self.assertEqual(path.read_bytes(), b"o" * 512 + bytes(512) + b"n" * 512 + b"zzz")


class OtherErrors(PreloadCase):
    """Whatever else changes the folder, or reads, can fail: then it has not been done."""

    def test_it_fails_once(self) -> None:
        """The program is told, the recording has the fault before what failed, and the next one succeeds."""
        operations = {
            "read": "pread 0 4 0",
            "truncate": "ftruncate 0 8",
            "rename": "rename f g",
            "sync_dir": "fsync 1",
            "unlink": "unlink g",
        }
        plan = "".join(
            f"fault kind={kind} file=* nth=1 action=error errno=ENOSPC\n" for kind in operations
        )
        twice = [one for one in operations.values() for _ in range(2)]
        run = self.run_ops("open 0 f wc", "open 1 . d", "write 0 4 x", *twice, plan=plan)
        self.assertEqual([one[1:] for one in run.results[3::2]], [(-1, errno.ENOSPC)] * 5)
        self.assertTrue(all(one[2] == 0 for one in run.results[4::2]), run.results)
        faults = [at for at, one in enumerate(run.trace.records) if one.kind == FAULT]
        failed = [run.trace.records[at + 1].result for at in faults]
        self.assertEqual(failed, [-errno.ENOSPC] * 5)
        self.assertEqual(list(self.root.iterdir()), [])


class SyncActions(PreloadCase):
    """A sync that fails once and lies afterwards."""

    def test_error_then_lies(self) -> None:
        """fsync and fdatasync count together; each fault stands before the sync it changed."""
        plan = (
            "fault kind=fsync file=f nth=2 action=error\n"
            "fault kind=fsync file=f nth=3 times=forever action=drop\n"
        )
        run = self.run_ops(
            "open 0 f wc", "fsync 0", "fdatasync 0", "fsync 0", "fdatasync 0", plan=plan
        )
        self.assertEqual(
            [r[1:] for r in run.results[1:]], [(0, 0), (-1, errno.EIO), (0, 0), (0, 0)]
        )
        self.assertEqual(
            [(r.kind, r.result) for r in run.trace.records[1:]],
            [
                (FSYNC, 0),
                (FAULT, 0),
                (FDATASYNC, -errno.EIO),
                (FAULT, 0),
                (FSYNC, 0),
                (FAULT, 0),
                (FDATASYNC, 0),
            ],
        )
        faults = [
            (f.flags & 0xFF, struct.unpack_from("<II", f.payload)) for f in run.trace.of(FAULT)
        ]
        self.assertEqual(
            faults, [(FDATASYNC, (ERROR, 5)), (FSYNC, (DROP, 0)), (FDATASYNC, (DROP, 0))]
        )


if __name__ == "__main__":
    unittest.main()
