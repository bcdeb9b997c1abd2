"""The marks of a store in Python that is the client of a server: an acknowledgement that was not recorded is
an error."""

from __future__ import annotations

import socket
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
