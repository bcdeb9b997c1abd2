"""Tickets at begin and end of a call: what overlaps, what does not, and which writes are durable by
themselves."""

from __future__ import annotations

import errno
import os
import signal
import unittest

from support import DURABLE, FSYNC, OPEN, PRELOAD, SIGKILL, WRITE, PreloadCase

SLOW = os.environ["TORNPAGE_TEST_SLOW"]
SIGNALS = os.environ["TORNPAGE_TEST_SIGNALS"]


class Tickets(PreloadCase):
    """A call's begin is the number of the last event that had ended by then."""

    def test_one_thread_overlaps_nothing(self) -> None:
        """Each call begins after the one before it has ended."""
        run = self.run_ops("open 0 f wc", "pwrite 0 0 9 a", "fsync 0", "mark x", "close 0")
        self.assertEqual([r.began for r in run.trace.records], [0, 1, 2, 3, 4])

    def test_a_write_during_an_fsync_overlaps_it(self) -> None:
        """The fsync began before the write had ended, and ends after it: it does not make the write wait."""
        preload = f"{PRELOAD} {SLOW}"
        run = self.run_ops("open 0 f wc", "pwrite 0 0 9 a", "overlap 0 5 b", LD_PRELOAD=preload)
        self.assertEqual(run.results[-1], ("overlap", 0, 0))
        before, during = run.trace.of(WRITE)
        (sync,) = run.trace.of(FSYNC)
        self.assertLess(during.seq, sync.seq)
        self.assertEqual((before.seq, sync.began, during.began), (2, 2, 2))

    def test_with_several_threads_a_sync_lasts_as_on_a_disk(self) -> None:
        """In memory it would be over before another thread writes. One thread has nobody to wait for."""
        for name, op, slept in (("many", "overlap 0 5 b", "1000000\n"), ("one", "fsync 0", "")):
            sleeps = self.root.with_name(f"sleeps-{name}")
            self.run_ops(
                "open 0 f wc",
                "pwrite 0 0 9 a",
                op,
                LD_PRELOAD=f"{PRELOAD} {SLOW}",
                TORNPAGE_TEST_SLEEPS=str(sleeps),
            )
            self.assertEqual(sleeps.read_text() if sleeps.exists() else "", slept)
            (self.root / "f").unlink()

    def test_a_kill_inside_a_write_waits_for_no_fsync(self) -> None:
        """A plan hits the write while another thread's fsync is under way; that has no record."""
        plan = "fault kind=write file=f nth=2 action=kill"
        run = self.run_ops(
            "open 0 f wc",
            "pwrite 0 0 9 a",
            "overlap 0 5 b",
            LD_PRELOAD=f"{PRELOAD} {SLOW}",
            plan=plan,
        )
        self.assertEqual((run.status, run.trace.of(FSYNC)), (SIGKILL, []))

    def test_places_of_sequential_and_appending_writes(self) -> None:
        """Threads that append to one file take turns: no place is recorded twice, and it is one file, whoever
        created it."""
        for _ in range(20):
            run = self.run_ops("appends 200 f f f f")
            self.assertEqual({o.file for o in run.trace.of(OPEN)}, {1})
            self.assertEqual(sum(o.flags for o in run.trace.of(OPEN)), 1)
            places = sorted(w.offset for w in run.trace.of(WRITE))
            self.assertEqual(places, [8 * i for i in range(800)])
            (self.root / "f").unlink()


class UnderWay(PreloadCase):
    """What has begun and has no record is known, whatever ended the process."""

    def test_a_kill_in_the_middle_of_a_write(self) -> None:
        """Its file and place are told; nothing of the write before it."""
        run = self.run_ops(
            "open 0 f wc",
            "pwrite 0 0 9 a",
            "pwrite 0 5000 7 b",
            LD_PRELOAD=f"{PRELOAD} {SIGNALS}",
            TORNPAGE_TEST_SIGNAL=str(int(signal.SIGKILL)),
        )
        (write,) = run.trace.of(WRITE)
        self.assertEqual((run.status, write.length), (SIGKILL, 9))
        self.assertEqual(run.trace.under_way, [(write.file, 5000, 7)])

    def test_nothing_is_under_way_at_an_end(self) -> None:
        """Of no thread."""
        run = self.run_ops("open 0 f wc", "pwrite 0 0 9 a", "appends 20 f f")
        self.assertEqual((run.status, run.trace.under_way), (0, []))


class Direct(PreloadCase):
    """With O_DIRECT the device reads the program's memory while the call lasts."""

    def test_what_is_written_is_recorded(self) -> None:
        """Whatever the program does to its memory before the call has returned; also O_DIRECT that came
        later."""
        for ops in (["open 0 f wcD"], ["open 0 f wc", "setdirect 0"]):
            run = self.run_ops(
                *ops,
                "pwrite 0 4096 4096 a",
                LD_PRELOAD=f"{PRELOAD} {SIGNALS}",
                TORNPAGE_TEST_SIGNAL=str(int(signal.SIGUSR1)),
                TORNPAGE_PAYLOAD="full",
            )
            if run.results[-2][1:] == (-1, errno.EINVAL):
                self.skipTest("no O_DIRECT on this file system")
            (write,) = run.trace.of(WRITE)
            self.assertEqual(run.results[-1], ("pwrite", 4096, 0))
            self.assertEqual(write.payload, b"a" * 4096)
            self.assertEqual((self.root / "f").read_bytes()[4096:], b"a" * 4096)


class Durable(PreloadCase):
    """A write that is synced by itself says so: by its descriptor, or by its call."""

    def flags(self, *ops: str) -> list[int]:
        run = self.run_ops(*ops)
        self.assertTrue(all(result >= 0 for _, result, _ in run.results), run.results)
        return [w.flags & DURABLE for w in run.trace.of(WRITE)]

    def test_by_descriptor(self) -> None:
        """Of two descriptors of a file only the one with O_DSYNC; its copies too, and none of the other's."""
        found = self.flags(
            "open 0 f wcs", "open 1 f w", "dup 0 2", "dupfd 0 3", "dup 1 4", "dupfd 1 5",
            "pwrite 0 0 9 a", "pwrite 1 0 9 b", "pwrite 2 0 9 c", "pwrite 3 0 9 d",
            "pwrite 4 0 9 f", "pwrite 5 0 9 g", "close 0", "open 0 f w", "pwrite 0 0 9 e",
        )  # fmt: skip
        self.assertEqual(found, [4, 0, 4, 4, 0, 0, 0])

    def test_by_call(self) -> None:
        """RWF_DSYNC and RWF_SYNC; RWF_HIPRI and RWF_APPEND say nothing of that."""
        calls = [f"pwritev2 0 0 9 a {flags}" for flags in (0, 2, 4, 1, 16)]
        self.assertEqual(self.flags("open 0 f wc", *calls), [0, 4, 4, 0, 0])


if __name__ == "__main__":
    unittest.main()
