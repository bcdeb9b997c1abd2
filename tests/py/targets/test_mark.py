"""What the library of a store in Python says for it. Marks of the client of a server: an acknowledgement that
was not recorded is an error. Answers of a recovery: what the machine failed is told apart from what the store
did."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tornpage_mark


@contextmanager
def recorder(name: str, answer: bytes, heard: list[bytes]) -> Iterator[None]:
    """Answers one mark, and closes."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        listener.settimeout(20)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                heard.append(connection.recv(100))
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [b"ok\n", b"no\n", b"error: the recording is closed\n", b""],
    ids=["ok", "no", "words", "nothing"],
)
def test_a_mark_that_was_not_recorded_is_an_error(
    answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else the recorder answers, and if it answers nothing: the client must not go on as if it had
    been acknowledged."""
    name, heard = f"tornpage-test-mark-{tmp_path.parent.name}-{tmp_path.name}", list[bytes]()
    monkeypatch.setenv("TORNPAGE_CONTROL", name)
    with recorder(name, answer, heard):
        if answer == b"ok\n":
            tornpage_mark.ack(3)
        else:
            with pytest.raises(ConnectionError, match="gone"):
                tornpage_mark.ack(3)
    assert heard == [b"ack n=3\n"]


RECOVERY = """
import errno, os, resource, signal
from tornpage_mark import Refused, serve
def recover(folder):
    {body}
    return {{"rows": folder}}
{before}
serve(recover)
"""


def served(body: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """A recovery whose function does this, asked twice. before: what its program does first."""
    script = RECOVERY.format(body=body, before=before)
    env = {**os.environ, "PYTHONPATH": str(Path(tornpage_mark.__file__).parent)}
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command,
        input="one\ntwo\n",
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("raise MemoryError", "MemoryError"),
        ("bytes(1 << 62)", "MemoryError"),
        (
            "resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0)); open('/dev/null')",
            "Too many open files",
        ),
        ("raise OSError(errno.ENFILE, 'the table is full')", "the table is full"),
        ("raise OSError(errno.ENOSPC, 'no room')", "no room"),
    ],
)
def test_want_of_something_is_the_machines(body: str, told: str) -> None:
    """It is no refusal, and the next folder is answered too."""
    done = served(body)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(answer["ok"], answer["machine"]) for answer in answers] == [(False, True)] * 2
    assert told in answers[0]["message"]
    assert done.returncode == 0


@pytest.mark.parametrize("body", ["os.open(folder, os.O_RDONLY)", "raise ValueError('torn')"])
def test_another_error_is_the_stores(body: str) -> None:
    """A file that is missing, or what the store makes of its bytes: there is no answer."""
    done = served(body)
    assert (done.stdout, done.returncode) == ("", 1)


def test_a_refusal_is_the_stores() -> None:
    """In its words, and nothing else."""
    done = served("raise Refused('the log is torn')")
    answer = json.loads(done.stdout.splitlines()[0])
    assert answer == {"ok": False, "message": "the log is torn"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_recovery_that_a_signal_ends_is_told_by_that_signal(number: int) -> None:
    """Whoever sent it: of SIGKILL it may have been the kernel, for want of memory."""
    done = served(f"os.kill(os.getpid(), {number:d})")
    assert (done.stdout, done.returncode) == ("", -number)


def test_a_process_that_cannot_be_made_is_the_machines() -> None:
    """The recovery has not begun."""
    none = "def fork(): raise BlockingIOError(errno.EAGAIN, 'no more processes')\nos.fork = fork"
    answers = [json.loads(line) for line in served("pass", none).stdout.splitlines()]
    assert [(answer["ok"], answer["machine"]) for answer in answers] == [(False, True)] * 2
    assert "no more processes" in answers[0]["message"]
