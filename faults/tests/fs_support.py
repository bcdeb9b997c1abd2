"""What tests of the recorder that is a file system share: a program on a mount of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import (
    MARK,
    PreloadCase,
    Run,
    read_trace,
    replay,
)

FS = os.environ.get("TORNPAGE_TEST_FS", "")
WAYS = os.environ.get("TORNPAGE_TEST_WAYS", "")
SLOW = os.environ.get("TORNPAGE_TEST_SLOW", "")
NOT_HERE = 77
"""Of a way that the kernel does not have; also what tells ctest that nothing was tested."""
PAGE = 4096
PATTERN = bytes(ord("a") + i % 23 for i in range(4 * PAGE))


def why_not() -> str:
    """Why there can be no mount here; "" if there can."""
    if not Path(FS).is_file():
        return "tornpage-fs is not built: it needs libfuse3-dev"
    with tempfile.TemporaryDirectory() as folder:
        root, trace = Path(folder, "root"), Path(folder, "trace")
        root.mkdir()
        env = {"TORNPAGE_ROOT": str(root), "TORNPAGE_TRACE": str(trace)}
        done = subprocess.run(
            [FS, "/bin/true"], env=env, capture_output=True, text=True, timeout=60, check=False
        )
    return "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"


class FsCase(PreloadCase):
    """A program on a file system of ours, with contents recorded."""

    def environment(self, plan: str | None = None, **extra: str) -> dict[str, str]:
        extra = {"LD_PRELOAD": "", "TORNPAGE_PAYLOAD": "full", **extra}
        return super().environment(plan, **extra)

    def run_under(self, *command: str, plan: str | None = None, **extra: str) -> Run:
        """Runs a command to its end; the folder is below no mount then."""
        done = self.start([FS, *command], self.environment(plan, **extra))
        trace = read_trace(self.trace_path)
        return Run(done.returncode, [], done.stdout + done.stderr, trace)

    def found(self) -> dict[str, bytes]:
        """The files as they are behind the mount."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }

    def way(self, name: str) -> Run:
        """A way of the static program: done, and its stream gives its files, without a mark."""
        run = self.run_under(WAYS, name)
        if run.status == NOT_HERE:
            self.skipTest(f"this kernel does not have it: {run.errors.strip()}")
        self.assertEqual((run.status, run.errors), (0, ""))
        self.assertEqual((run.trace.flags, run.trace.of(MARK)), (0, []))
        self.assertEqual(replay(run.trace), self.found())
        self.assertNotEqual(self.found(), {})
        return run

    def python(self, body: str, plan: str | None = None, **extra: str) -> Run:
        """A program in Python, isolated: nothing in its folder is looked at by itself."""
        return self.run_under(
            sys.executable, "-I", "-S", "-c", "import os\n" + body, plan=plan, **extra
        )


def places(run: Run, *kinds: int) -> list[tuple[int, int, int]]:
    """Of the records: kind, offset, length."""
    return [(r.kind, r.offset, r.length) for r in run.trace.of(*kinds)]


def main() -> None:
    """Runs the tests of a file, where there can be a mount."""
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(NOT_HERE)
    unittest.main()
