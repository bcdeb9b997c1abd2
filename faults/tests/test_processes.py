"""Forked and executed processes: all of them are in one stream, and count for one plan."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import unittest

from support import (
    FIRED,
    MARK,
    OPEN,
    PROGRAM,
    SIGKILL,
    WRITE,
    PreloadCase,
    read_trace,
)


class Children(PreloadCase):
    """What a child does below the root is recorded, as a thread of its own."""

    def events(self) -> int:
        """How many have been recorded so far."""
        if not self.trace_path.exists():
            return 0
        with self.trace_path.open("rb") as file:
            return int.from_bytes(file.read(32)[24:], "little")

    def test_fork(self) -> None:
        """A forked child writes into the trace, also through what it inherited, and counts for the plan."""
        plan = "fault kind=write file=f nth=3 action=kill\n"
        run = self.run_ops(
            "open 0 f wc", "pwrite 0 0 3 a", "fork", "open 1 g wc", "pwrite 0 8 3 b", plan=plan
        )
        self.assertEqual(run.status, SIGKILL)
        self.assertIn(("fork", 0, 0), run.results)
        self.assertEqual([o.text for o in run.trace.of(OPEN)], ["f", "forked", "g"])
        self.assertEqual([w.file for w in run.trace.of(WRITE)], [1, 1])
        self.assertEqual([w.thread for w in run.trace.of(WRITE)], [0, 1])
        self.assertEqual([r.file for r in run.trace.of(OPEN)], [1, 2, 3])
        self.assertEqual(run.trace.flags, FIRED)
        self.assertEqual((self.root / "f").read_bytes(), b"child")

    def test_exec(self) -> None:
        """A child that executes the program again is in the stream."""
        run = self.run_ops("open 0 f wc", "forkexec", "pwrite 0 8 3 b")
        self.assertEqual(run.status, 0)
        opened = ["f", "forked", "f", "forked", "exec"]  # two are inherited
        self.assertEqual([o.text for o in run.trace.of(OPEN)], opened)
        self.assertEqual([w.file for w in run.trace.of(WRITE)], [1, 3, 1])
        self.assertEqual(run.trace.flags, 0)
        self.assertEqual((self.root / "exec").read_bytes(), b"eeee")

    def test_a_file_has_one_id_in_all_processes(self) -> None:
        """Also when one process opens it, another renames it, a third opens it at its new name."""
        command = (
            f'"{PROGRAM}" "open 0 f wc" "write 0 5 a"; "{PROGRAM}" "rename f g"; '
            f'"{PROGRAM}" "open 0 g w" "write 0 6 b" "unlink g" "open 1 g wc" "write 1 7 c"'
        )
        run = self.run_command(["sh", "-c", command])
        self.assertEqual([w.file for w in run.trace.of(WRITE)], [1, 1, 2])
        self.assertEqual([w.thread for w in run.trace.of(WRITE)], [0, 2, 2])

    def test_a_kill_ends_all_processes(self) -> None:
        """One is hit; the one that comes to a file after it ends too, and records nothing."""
        command = (
            f'"{PROGRAM}" "open 0 f wc" "write 0 5 a"; exec "{PROGRAM}" "open 1 h wc" "write 1 5 a"'
        )
        run = self.run_command(
            ["sh", "-c", command], plan="fault kind=write file=f nth=1 action=kill"
        )
        self.assertEqual(run.status, SIGKILL)
        self.assertEqual([o.text for o in run.trace.of(OPEN)], ["f"])
        self.assertFalse((self.root / "h").exists())

    def test_a_process_that_is_killed_holds_up_nobody(self) -> None:
        """Another one ends it at any moment: the stream goes on without a gap."""
        for _ in range(5):
            victim = [PROGRAM, "threads 1000000 a b c"]
            env = self.environment()
            with subprocess.Popen(victim, env=env, cwd=self.root) as process:
                while self.events() == 0:
                    pass
                attach = {**env, "TORNPAGE_ATTACH": str(self.trace_path)}
                process.kill()
            done = self.start([PROGRAM, "open 0 last wc", "write 0 5 a"], attach)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            trace = read_trace(self.trace_path)
            self.assertEqual([r.kind for r in trace.records[-2:]], [OPEN, WRITE])

    def test_what_a_killed_process_had_begun_is_in_no_record(self) -> None:
        """It may have written any bytes where the next record goes, whose name is shorter."""
        victim = self.run_ops("open 0 f wc", plan="fault kind=write file=f nth=1 action=kill")
        with self.trace_path.open("r+b") as file:
            file.seek(64 + len(victim.trace.body))
            file.write(b"\xff" * 256)
        env = {**self.environment(), "TORNPAGE_ATTACH": str(self.trace_path)}
        for number in range(1, 10):
            done = self.start([PROGRAM, f"open 0 {'n' * number} wc"], env)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        names = [record.text for record in read_trace(self.trace_path).of(OPEN)]
        self.assertEqual(names, ["f", *("n" * number for number in range(1, 10))])

    def test_a_long_recording_is_whole(self) -> None:
        """Of several huge pages, or of as many small ones: one process is killed anywhere in it, two others
        go on side by side, and every write has its data."""
        victim = [PROGRAM, "threads 1000000 a b c"]
        env = self.environment(TORNPAGE_PAYLOAD="full")
        attach = {**env, "TORNPAGE_ATTACH": str(self.trace_path)}
        for events in (5000, 25000, 40000):
            with subprocess.Popen(victim, env=env, cwd=self.root) as process:
                while self.events() < events:
                    pass
                process.kill()
            others = [[PROGRAM, f"threads 15000 {names}"] for names in ("d e", "f g")]
            running = [subprocess.Popen(words, env=attach, cwd=self.root) for words in others]
            self.assertEqual([process.wait() for process in running], [0, 0])
            trace = read_trace(self.trace_path)
            self.assertGreater(len(trace.body), 4 << 20)
            self.assertEqual(trace.flags, 0)
            writes = trace.of(WRITE)
            self.assertTrue(
                all(int.from_bytes(w.payload, "little") == w.offset // 8 for w in writes)
            )
            names = {o.file: o.text for o in trace.of(OPEN)}
            ends = {names[w.file]: w.offset + w.result for w in writes}
            self.assertEqual([ends[name] for name in "defg"], [8 * 15000] * 4)

    def test_shells_and_launchers(self) -> None:
        """One that does not touch the root is no thread of the stream; its child is the first."""
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


class Control(PreloadCase):
    """Marks of processes that are not recorded."""

    def mark(self, name: str, text: str) -> bytes:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect("\0" + name)
            server.sendall(text.encode() + b"\n")
            return server.recv(16)

    def test_the_socket_outlives_a_wrapper(self) -> None:
        """The first process answers; when it ends, the next one that has had an event takes over."""
        name = f"tornpage-test-{os.getpid()}"
        env = self.environment(TORNPAGE_CONTROL=name)
        command = (
            f'"{PROGRAM}" "open 0 f wc" "wait" <&3 & "{PROGRAM}" "open 0 g wc" "wait" <&4 & wait'
        )
        pipes = [os.pipe() for _ in range(2)]
        shell = f"exec 3<&{pipes[0][0]} 4<&{pipes[1][0]}; {command}"
        with subprocess.Popen(
            ["bash", "-c", shell],
            env=env,
            cwd=self.root,
            pass_fds=[pipes[0][0], pipes[1][0]],
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            opened = 0
            while opened < 2:
                select.select([process.stdout], [], [])
                opened += os.read(process.stdout.fileno(), 4096).count(b"open 0 0")
            self.assertEqual(self.mark(name, "both"), b"ok\n")
            os.write(pipes[0][1], b"x")
            self.assertIn(b"wait", os.read(process.stdout.fileno(), 4096))
            answer = b""
            while answer != b"ok\n":
                try:
                    answer = self.mark(name, "one")
                except ConnectionError:
                    answer = b""
            os.write(pipes[1][1], b"x")
        marks = [record.text for record in read_trace(self.trace_path).of(MARK)]
        self.assertEqual((marks[0], marks[-1]), ("both", "one"))

    def test_a_program_may_overwrite_its_environment(self) -> None:
        """As one that shows its state in its title: its first operation, which opens the socket, comes
        later."""
        name = f"tornpage-title-{os.getpid()}"
        with subprocess.Popen(
            [PROGRAM, "title", "open 0 f wc", "wait"],
            env=self.environment(TORNPAGE_CONTROL=name),
            cwd=self.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            told = b""
            while b"open" not in told:
                got = os.read(process.stdout.fileno(), 4096)
                self.assertNotEqual(got, b"", "the program has ended")
                told += got
            self.assertEqual(self.mark(name, "from a client"), b"ok\n")
            _, errors = process.communicate(b"x", timeout=60)
        self.assertEqual((process.returncode, errors), (0, b""))
        self.assertEqual([m.text for m in read_trace(self.trace_path).of(MARK)], ["from a client"])

    def test_a_name_that_cannot_be_one_is_refused(self) -> None:
        """At the start, in words."""
        run = self.run_ops("open 0 f wc", TORNPAGE_CONTROL="x" * 108)
        self.assertEqual(run.status, 97)
        self.assertIn("File name too long", run.errors)


class Pauses(PreloadCase):
    """Acknowledgements at which somebody looks."""

    def test_an_acknowledgement_waits_until_it_was_looked_at(self) -> None:
        """It is in the stream then, and nothing behind it; other marks wait for nobody."""
        name = f"tornpage-pause-{os.getpid()}"
        words = [
            "open 0 f wc",
            "mark issue n=1",
            "write 0 5 a",
            "mark ack n=1",
            "write 0 5 b",
            "mark ack n=2",
        ]
        seen = []
        with socket.socket(socket.AF_UNIX) as looker:
            looker.bind("\0" + name)
            looker.listen()
            with subprocess.Popen(
                [PROGRAM, *words],
                env=self.environment(TORNPAGE_PAUSE=name),
                cwd=self.root,
                stdout=subprocess.DEVNULL,
            ) as process:
                for _ in range(2):
                    connection, _address = looker.accept()
                    with connection:
                        self.assertIsNone(process.poll())
                        seen.append([record.kind for record in read_trace(self.trace_path).records])
        self.assertEqual(process.returncode, 0)
        self.assertEqual(seen, [[OPEN, MARK, WRITE, MARK], [OPEN, MARK, WRITE, MARK, WRITE, MARK]])

    def test_nobody_that_looks_is_no_pause(self) -> None:
        """And a name that cannot be one is refused."""
        run = self.run_ops("mark ack n=1", TORNPAGE_PAUSE=f"tornpage-nobody-{os.getpid()}")
        self.assertEqual((run.status, run.trace.of(MARK)[0].text), (0, "ack n=1"))
        run = self.run_ops("mark ack n=1", TORNPAGE_PAUSE="x" * 108)
        self.assertEqual(run.status, 97)
        self.assertIn("TORNPAGE_PAUSE", run.errors)


class Recordings(PreloadCase):
    """What belongs together."""

    def test_another_trace_is_another_run(self) -> None:
        """A child that is given a trace of its own records into it."""
        other = self.base / "other"
        command = f'exec env TORNPAGE_TRACE="{other}" "{PROGRAM}" "open 0 f wc"'
        run = self.run_command(["sh", "-c", command])
        self.assertEqual(run.trace.records, [])
        self.trace_path = other
        self.assertTrue(other.read_bytes()[64:72].startswith(b"\x48\0\0\0\1\0"))


if __name__ == "__main__":
    unittest.main()
