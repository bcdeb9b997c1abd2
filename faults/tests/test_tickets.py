"""Tickets at begin and end of a call: what overlaps, what does not, and which writes are durable by themselves."""

from __future__ import annotations

import os
import unittest

from support import FSYNC, PRELOAD, SIGKILL, WRITE, PreloadCase

DURABLE = 4
SLOW = os.environ["TORNPAGE_TEST_SLOW"]


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
        """Threads that append to one file take turns: no place is recorded twice."""
        run = self.run_ops("appends 200 f f f f")
        places = sorted(w.offset for w in run.trace.of(WRITE))
        self.assertEqual(places, [8 * i for i in range(800)])


class Durable(PreloadCase):
    """A write that is synced by itself says so: by its descriptor, or by its call."""

    def flags(self, *ops: str) -> list[int]:
        run = self.run_ops(*ops)
        self.assertTrue(all(result >= 0 for _, result, _ in run.results), run.results)
        return [w.flags & DURABLE for w in run.trace.of(WRITE)]

    def test_by_descriptor(self) -> None:
        """Of two descriptors of a file only the one with O_DSYNC; its copies too."""
        found = self.flags(
            "open 0 f wcs", "open 1 f w", "dup 0 2", "dupfd 0 3",
            "pwrite 0 0 9 a", "pwrite 1 0 9 b", "pwrite 2 0 9 c", "pwrite 3 0 9 d",
            "close 0", "open 0 f w", "pwrite 0 0 9 e",
        )  # fmt: skip
        self.assertEqual(found, [4, 0, 4, 4, 0])

    def test_by_call(self) -> None:
        """RWF_DSYNC and RWF_SYNC."""
        found = self.flags(
            "open 0 f wc", "pwritev2 0 0 9 a 0", "pwritev2 0 0 9 a 2", "pwritev2 0 0 9 a 4"
        )
        self.assertEqual(found, [0, 4, 4])


if __name__ == "__main__":
    unittest.main()
