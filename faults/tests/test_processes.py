"""Forked and executed children: the first process that touches the root owns the trace."""

from __future__ import annotations

import unittest

from support import FIRED, FOREIGN, MARK, OPEN, PROGRAM, SIGKILL, WRITE, PreloadCase


class Children(PreloadCase):
    """Their I/O works, is not recorded and not harmed, and is admitted in the header."""

    def test_fork(self) -> None:
        """A forked child neither writes into the trace nor counts for the plan."""
        plan = "fault kind=write file=f nth=2 action=kill\n"
        run = self.run_ops(
            "open 0 f wc", "pwrite 0 0 3 a", "fork", "open 1 g wc", "pwrite 0 8 3 b", plan=plan
        )
        self.assertEqual(run.status, SIGKILL)
        self.assertIn(("fork", 0, 0), run.results)
        self.assertEqual([o.text for o in run.trace.of(OPEN)], ["f", "g"])
        self.assertEqual(len(run.trace.of(WRITE)), 1)
        self.assertEqual(run.trace.flags, FIRED | FOREIGN)
        self.assertEqual((self.root / "f").read_bytes(), b"child")

    def test_exec(self) -> None:
        """A child that executes the program again leaves the trace alone."""
        run = self.run_ops("open 0 f wc", "forkexec", "pwrite 0 8 3 b")
        self.assertEqual(run.status, 0)
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, WRITE])
        self.assertEqual(run.trace.flags, FOREIGN)
        self.assertEqual((self.root / "exec").read_bytes(), b"eeee")

    def test_a_child_may_own_the_trace(self) -> None:
        """A shell or a launcher that does not touch the root leaves the trace to its child,
        whether that is executed or only forked."""
        command = f'"{PROGRAM}" "open 0 f wc" "write 0 5 a" "mark x"; true'
        run = self.run_command(["sh", "-c", command])
        self.assertEqual((run.status, run.errors, run.trace.flags), (0, "", 0))
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, WRITE, MARK])
        run = self.run_command(["bash", "-c", f'sync; exec "{PROGRAM}" "open 0 f w" "write 0 5 a"'])
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, WRITE])
        run = self.run_ops("close_range -1 -1", "exec")
        self.assertEqual([o.text for o in run.trace.of(OPEN)], ["exec"])
        run = self.run_ops("fork", plan="fault kind=write file=* nth=9 action=kill")
        self.assertEqual([r.kind for r in run.trace.records], [OPEN, 5])
        self.assertEqual(run.trace.flags, 0)

    def test_another_trace_is_another_run(self) -> None:
        """A child that is given a trace of its own records into it."""
        other = self.base / "other"
        command = f'exec env TORNPAGE_TRACE="{other}" "{PROGRAM}" "open 0 f wc"'
        run = self.run_command(["sh", "-c", command])
        self.assertEqual(run.trace.records, [])
        self.trace_path = other
        self.assertTrue(other.read_bytes()[64:72].startswith(b"\x40\0\0\0\1\0"))


if __name__ == "__main__":
    unittest.main()
