"""Numbers of descriptors that are given away while other threads, or children in the same memory, use
them."""

from __future__ import annotations

import os
import sys
import unittest

from support import CLOSE, FSYNC, OPEN, PRELOAD, WRITE, PreloadCase

RACES = os.environ["TORNPAGE_TEST_RACES"]
SLOW_CLOSE = os.environ["TORNPAGE_TEST_SLOW_CLOSE"]
ROUNDS = 500
ONCE = ("close", "close_range", "fclose", "dup2", "dup3")
COPIES = ("dup", "dupfd")


class Threads(PreloadCase):
    """What another thread does with a number that a file had is not the file's."""

    def test_the_next_owner_of_a_number(self) -> None:
        """It uses the number before the call that gave it away has returned: that is no write to the file."""
        for way in ONCE:
            with self.subTest(way):
                run = self.run_command(
                    [RACES, way, "0"],
                    TORNPAGE_PAYLOAD="full",
                    LD_PRELOAD=f"{PRELOAD} {SLOW_CLOSE}",
                )
                self.assertEqual((run.status, run.errors, run.trace.flags), (0, "", 0))
                self.assertEqual([w.payload for w in run.trace.of(WRITE)], [b"f" * 8])
                self.assertEqual([c.length for c in run.trace.of(CLOSE)], [0])

    def test_a_pipe_is_never_taken_for_the_file(self) -> None:
        """Whatever call gives the number away: the file's writes are recorded, all of them, and nothing
        else."""
        for way in (*ONCE, *COPIES, "closefrom"):
            with self.subTest(way):
                run = self.run_command([RACES, way, str(ROUNDS)], TORNPAGE_PAYLOAD="full")
                self.assertEqual((run.status, run.errors, run.trace.flags), (0, "", 0))
                writes = [w.payload for w in run.trace.of(WRITE)]
                self.assertEqual(writes, [b"f" * 8] * ROUNDS * (2 if way in COPIES else 1))
                self.assertEqual(len(run.trace.of(OPEN)), ROUNDS)
                self.assertEqual([c.length for c in run.trace.of(CLOSE)][-1:], [0])


STORE = """
import os, subprocess, sys
fd = os.open("f", os.O_RDWR | os.O_CREAT)
for i in range(3):
    os.pwrite(fd, b"%d" % i, i)
    subprocess.run(["/bin/true"], check=True, close_fds=True, stdout=subprocess.DEVNULL)
    os.fsync(fd)
os.close(fd)
"""


SPAWN = """
import ctypes, os
fd = os.open("f", os.O_RDWR | os.O_CREAT)
actions = [(os.POSIX_SPAWN_DUP2, 2, fd), (os.POSIX_SPAWN_CLOSE, fd)]
os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=actions), 0)
os.pwrite(fd, b"parent", 0)
child = ctypes.CDLL(None).syscall(57)  # fork, past the C library
if child == 0:
    copy = os.dup(fd)
    os.close(fd)
    os.pwrite(copy, b"child", 10)
    os._exit(0)
os.waitpid(child, 0)
os.pwrite(fd, b"again", 20)
"""


class Guests(PreloadCase):
    """A child of vfork lives in its parent's memory, and has descriptors of its own."""

    def test_what_a_child_closes_stays_open_in_its_parent(self) -> None:
        """Python's subprocess closes all descriptors in the child: the parent's file is followed on."""
        run = self.run_command([sys.executable, "-c", STORE], TORNPAGE_PAYLOAD="full")
        self.assertEqual((run.status, run.errors), (0, ""))
        self.assertEqual([w.payload[:1] for w in run.trace.of(WRITE)], [b"0", b"1", b"2"])
        self.assertEqual(len(run.trace.of(FSYNC)), 3)
        self.assertEqual([(c.file, c.length) for c in run.trace.of(CLOSE)], [(1, 0)])

    @unittest.skipUnless(os.uname().machine == "x86_64", "it has the numbers of that machine")
    def test_other_ways_to_have_a_child(self) -> None:
        """posix_spawn's child changes descriptors of its own; a fork by its number has memory of its own,
        too."""
        run = self.run_command([sys.executable, "-c", SPAWN], TORNPAGE_PAYLOAD="full")
        self.assertEqual((run.status, run.errors), (0, ""))
        writes = [(w.offset, w.payload.rstrip(b"\0")) for w in run.trace.of(WRITE)]
        self.assertEqual(writes, [(0, b"parent"), (10, b"child"), (20, b"again")])
        self.assertEqual({w.file for w in run.trace.of(WRITE)}, {1})


if __name__ == "__main__":
    unittest.main()
