"""libfiu: operations are points that fiu-run and fiu-ctrl can fail."""

from __future__ import annotations

import errno
import shutil
import subprocess
import unittest

from support import FAULT, OPEN, PRELOAD, PROGRAM, WRITE, PreloadCase, read_trace

OPS = ("open 0 f wc", "pwrite 0 0 8 a", "fsync 0", "rename f g")


class Points(PreloadCase):
    """The names, the errno, and the records of a failed point."""

    def test_enable_from_the_environment(self) -> None:
        """Each point fails its own operation with EIO and leaves FAULT and the failed operation."""
        for name, at in (("open", 0), ("write", 1), ("fsync", 2), ("rename", 3)):
            with self.subTest(name=name):
                for path in self.root.iterdir():
                    path.unlink()
                run = self.run_ops(*OPS, FIU_ENABLE=f"enable name=tornpage/io/{name}")
                self.assertEqual(run.results[at][1:], (-1, errno.EIO))
                fault = run.trace.of(FAULT)[0]
                self.assertEqual(fault.flags >> 10, 63)
                self.assertEqual(run.trace.records[fault.seq].result, -errno.EIO)
                self.assertEqual(run.trace.records[fault.seq].kind, fault.flags & 0xFF)

    def test_failinfo_is_the_errno(self) -> None:
        """failinfo chooses another errno."""
        run = self.run_ops(*OPS, FIU_ENABLE="enable name=tornpage/io/*,failinfo=28")
        self.assertEqual(
            [r[2] for r in run.results], [errno.ENOSPC, errno.EBADF, errno.EBADF, errno.ENOSPC]
        )

    def test_nothing_enabled(self) -> None:
        """libfiu's presence alone changes nothing."""
        plain = self.run_ops(*OPS)
        (self.root / "g").unlink()
        armed = self.run_ops(*OPS, FIU_ENABLE="enable name=other/point")
        self.assertEqual(plain.trace.body, armed.trace.body)

    def test_a_bad_command_is_refused(self) -> None:
        """An order that libfiu does not understand is not ignored."""
        run = self.run_ops(*OPS, FIU_ENABLE="enbale name=tornpage/io/write")
        self.assertEqual(run.status, 97)
        self.assertIn("libfiu", run.errors)

    @unittest.skipUnless(shutil.which("fiu-run"), "fiu-run is not installed")
    def test_fiu_run(self) -> None:
        """fiu-run sets LD_PRELOAD for itself; ours is added behind it. (Its own library leaks.)"""
        order = "enable name=tornpage/io/write"
        shell = ["sh", "-c", 'LD_PRELOAD="$LD_PRELOAD $0" exec "$@"', PRELOAD, PROGRAM, *OPS]
        command = ["fiu-run", "-f", str(self.base / "ctrl"), "-c", order, *shell]
        run = self.run_command(command, LD_PRELOAD="", ASAN_OPTIONS="detect_leaks=0")
        self.assertEqual(run.errors, "")
        self.assertEqual([r[2] for r in run.results], [0, errno.EIO, 0, 0])
        self.assertEqual([r.kind for r in run.trace.records[:3]], [OPEN, FAULT, WRITE])

    @unittest.skipUnless(shutil.which("fiu-ctrl"), "fiu-ctrl is not installed")
    def test_fiu_ctrl(self) -> None:
        """A running program's writes can be made to fail, and to work again."""
        fifo = str(self.base / "ctrl")
        env = self.environment(FIU_CTRL_FIFO=fifo)
        ops = ("open 0 f wc", "pwrite 0 0 8 a", "wait", "pwrite 0 0 8 a", "wait", "pwrite 0 0 8 a")
        with subprocess.Popen([PROGRAM, *ops], env=env, cwd=self.root, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:  # fmt: skip
            assert process.stdin is not None and process.stdout is not None
            lines = [process.stdout.readline() for _ in range(2)]
            for order in ("enable name=tornpage/io/write", "disable name=tornpage/io/write"):
                control = ["fiu-ctrl", "-f", fifo, "-c", order, str(process.pid)]
                done = subprocess.run(
                    control, timeout=20, capture_output=True, text=True, check=False
                )
                self.assertEqual((done.returncode, done.stdout), (0, ""))
                process.stdin.write(b"\n")
                process.stdin.flush()
                lines += [process.stdout.readline() for _ in range(2)]
            self.assertEqual(process.wait(20), 0)
        results = [line.decode().split()[1:] for line in lines if line.startswith(b"pwrite")]
        self.assertEqual(results, [["8", "0"], ["-1", "5"], ["8", "0"]])
        self.assertEqual(len(read_trace(self.trace_path).of(FAULT)), 1)


if __name__ == "__main__":
    unittest.main()
