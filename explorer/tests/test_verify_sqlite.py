"""The program verify_sqlite from outside: what it says of folders that it cannot recover."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

VERIFY_SQLITE = os.environ["TORNPAGE_TEST_VERIFY_SQLITE"]


class VerifySqlite(unittest.TestCase):
    """One line for each folder."""

    def test_what_the_machine_failed_is_told_apart(self) -> None:
        """A path that is too long says nothing of a database; bytes that are none are a refusal."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "main.db").write_bytes(b"garbage" * 1000)
            done = subprocess.run(
                [VERIFY_SQLITE],
                input=f"{folder}\n/{'long' * 2000}\n",
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
        refused, failed = (json.loads(line) for line in done.stdout.splitlines())
        self.assertEqual((refused["ok"], refused["machine"]), (False, False))
        self.assertEqual((failed["ok"], failed["machine"]), (False, True))
        self.assertIn("too long", failed["message"])


if __name__ == "__main__":
    unittest.main()
