"""The recorder that is a file system: what it is asked to disturb, and what it refuses."""

from __future__ import annotations

import os

from fs_support import FS, PAGE, PATTERN, WAYS, FsCase, main
from support import (
    FAULT,
    FIRED,
    FSYNC,
    KILL,
    MARK,
    OPEN,
    REFUSED,
    RENAME,
    SIGKILL,
    WRITE,
    damage,
    read_trace,
)


class Faults(FsCase):
    """What a plan does to it."""

    WRITES = """
fd = os.open("f", os.O_RDWR | os.O_CREAT)
for i in range(5):
    assert os.pwrite(fd, bytes([65 + i]) * 4096, 0) > 0
os.fsync(fd)
os.rename("f", "g")
"""

    def test_a_kill_inside_of_a_write(self) -> None:
        """After some of its sectors: the caller never returns, and nothing comes behind it."""
        plan = "fault kind=write file=f nth=3 action=kill sectors=01000001\n"
        run = self.python(self.WRITES, plan)
        self.assertEqual((run.status, run.trace.flags), (SIGKILL, FIRED))
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, WRITE, WRITE, KILL])
        kept = b"".join((b"C" if i in (1, 7) else b"B") * 512 for i in range(8))
        self.assertEqual(self.found(), {"f": kept})
        done = damage(run.trace.records[-1])
        self.assertEqual((done.old, done.new), (b"B" * 4096, b"C" * 4096))

    def test_a_kill_at_a_byte(self) -> None:
        """Of the n-th write."""
        plan = "fault kind=write file=f nth=2 action=kill bytes=700\n"
        self.assertEqual(self.python(self.WRITES, plan).status, SIGKILL)
        self.assertEqual(self.found(), {"f": b"B" * 700 + b"A" * 3396})

    def test_a_kill_after_a_sync_or_rename(self) -> None:
        """Its record stands before."""
        for kind, number in (("fsync", FSYNC), ("rename", RENAME)):
            plan = f"fault kind={kind} file=f nth=1 action=kill when=after\n"
            run = self.python(self.WRITES, plan)
            self.assertEqual(run.status, SIGKILL)
            self.assertEqual([r.kind for r in run.trace.records][-2:], [number, KILL])

    def test_a_kill_at_a_mark(self) -> None:
        """That came by the socket."""
        name = f"test-fs-{os.getpid()}"
        run = self.python(
            f"""
import socket
one = socket.socket(socket.AF_UNIX)
one.connect("\\0{name}")
one.sendall(b"point name=here\\n")
one.recv(3)
os.mkdir("not")
""",
            "fault kind=mark text=point%20name=here nth=1 action=kill\n",
            TORNPAGE_CONTROL=name,
        )
        self.assertEqual(run.status, SIGKILL)
        self.assertEqual([r.kind for r in run.trace.records], [MARK, KILL])
        self.assertEqual([*self.root.iterdir()], [])

    def test_errors(self) -> None:
        """A write without room, a failed fsync, a short write: the program sees them, and goes on."""
        run = self.python(
            """
fd = os.open("f", os.O_RDWR | os.O_CREAT)
try:
    os.write(fd, b"x" * 100)
except OSError as error:
    assert error.errno == 28
else:
    raise AssertionError
assert os.write(fd, b"y" * 100) == 30
try:
    os.fsync(fd)
except OSError as error:
    assert error.errno == 5
else:
    raise AssertionError
""",
            "fault kind=write file=f nth=1 action=error errno=ENOSPC\n"
            "fault kind=write file=f nth=2 action=short bytes=30\n"
            "fault kind=fsync file=f nth=1 action=error\n",
        )
        self.assertEqual((run.status, run.errors), (0, ""))
        results = [r.result for r in run.trace.of(WRITE, FSYNC)]
        self.assertEqual((results, len(run.trace.of(FAULT))), ([-28, 30, -5], 3))
        self.assertEqual(self.found(), {"f": b"y" * 30})

    def test_a_lie_and_a_tear(self) -> None:
        """Success is told."""
        plan = "fault kind=write file=f nth=4 action=tear sectors=prefix:2\n"
        plan += "fault kind=write file=f nth=5 action=drop\n"
        run = self.python(self.WRITES, plan)
        self.assertEqual((run.status, run.errors), (0, ""))
        self.assertEqual(self.found(), {"g": b"D" * 1024 + b"C" * 3072})

    def test_a_kill_ends_them_all(self) -> None:
        """Other threads and processes get nothing recorded behind it, and end."""
        run = self.python(
            """
import threading
fd = os.open("f", os.O_RDWR | os.O_CREAT)
def work(at):
    while True:
        os.pwrite(fd, b"w", at)
if os.fork() == 0:
    work(0)
for i in range(3):
    threading.Thread(target=work, args=(i + 1,)).start()
""",
            "fault kind=write file=f nth=200 action=kill\n",
        )
        self.assertEqual(run.status, SIGKILL)
        self.assertEqual(len(run.trace.of(WRITE)), 199)
        self.assertEqual(run.trace.records[-1].kind, KILL)

    def test_a_kill_leaves_the_pages_of_a_mapping(self) -> None:
        """At the write that hands them over, whatever of it the plan would keep: they are in the page cache."""
        run = self.run_under(
            WAYS, "map", plan="fault kind=write file=f nth=2 action=kill bytes=0\n"
        )
        self.assertEqual((run.status, run.trace.records[-1].kind), (SIGKILL, KILL))
        done = damage(run.trace.records[-1])
        self.assertEqual(done.states, b"\1" * 16)
        stored = bytearray(PATTERN)
        stored[1], stored[PAGE + 1] = ord("m"), ord("n")
        self.assertEqual(self.found(), {"f": bytes(stored)})

    def test_the_page_cache_outlives_a_kill(self) -> None:
        """What was stored through a mapping is in the file."""
        run = self.python(
            """
import mmap
fd = os.open("f", os.O_RDWR | os.O_CREAT)
os.write(fd, bytes(4096))
room = mmap.mmap(fd, 4096)
room[5:8] = b"map"
os.write(os.open("g", os.O_WRONLY | os.O_CREAT), b"x")
""",
            "fault kind=write file=g nth=1 action=kill\n",
        )
        self.assertEqual(run.status, SIGKILL)
        self.assertEqual(self.found(), {"f": bytes(5) + b"map" + bytes(4088), "g": b""})
        self.assertEqual(run.trace.records[-1].kind, KILL)


class Refusals(FsCase):
    """What cannot be done is said in one line, with status 97."""

    def refused(self, **extra: str) -> str:
        done = self.start([FS, "/bin/true"], self.environment(**extra))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (97, 1))
        return done.stderr.strip()

    def test_what_it_needs(self) -> None:
        """A root and a trace."""
        needs = "tornpage-fs: TORNPAGE_ROOT and TORNPAGE_TRACE must be set"
        self.assertEqual(self.refused(TORNPAGE_ROOT=""), needs)
        self.assertEqual(self.refused(TORNPAGE_TRACE=""), needs)

    def test_a_folder_that_is_not_there(self) -> None:
        """Nothing is mounted then."""
        self.assertIn("No such file", self.refused(TORNPAGE_ROOT="/no/such/folder"))

    def test_stacks(self) -> None:
        """Nobody below a program sees them."""
        said = self.refused(TORNPAGE_STACKS=str(self.base / "stacks"))
        self.assertIn("sees no call stacks", said)

    def test_a_plan_that_is_none(self) -> None:
        """As under the preload; the recording says it too."""
        (self.base / "plan").write_text("fault kind=nothing\n")
        said = self.refused(TORNPAGE_PLAN=str(self.base / "plan"))
        self.assertTrue(said.startswith("tornpage-fs: plan "))
        trace = read_trace(self.trace_path)
        self.assertEqual(trace.flags, REFUSED)
        self.assertTrue(trace.of(MARK)[0].text.startswith("refused plan "))


if __name__ == "__main__":
    main()
