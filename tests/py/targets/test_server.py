"""A server of a bundled target lives no longer than the program that has started it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tornpage.targets.bundled.server import Server, Watched

CLIENT = """
import os, sys
from pathlib import Path
from tornpage.targets.bundled.server import Server, Watched
server = Watched(["sleep", "600"], Path(sys.argv[1]), dict(os.environ))
print(server.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_ends_with_its_client(end: signal.Signals, tmp_path: Path) -> None:
    """Also where that has no time to end it."""
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(tmp_path / "said")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as client:  # fmt: skip
        assert client.stdout is not None
        server = psutil.Process(int(client.stdout.readline()))
        client.send_signal(end)
        server.wait(30)


def test_a_server_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    """Neither itself nor what watches it."""
    before = {child.pid for child in psutil.Process().children()}
    said = tmp_path / "said"
    process = Watched(["sleep", "600"], said, {"PATH": "/usr/bin:/bin"})
    with Server(process, said):
        assert len(psutil.Process().children()) == len(before) + 2
    assert process.poll() == -signal.SIGKILL
    assert {child.pid for child in psutil.Process().children()} == before
