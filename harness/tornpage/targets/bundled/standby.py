"""A server that stands by before its data folder, so that each recovery begins there (faults/standby.c)."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import struct
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from tornpage.targets.bundled.server import Watched
from tornpage.vocabulary.paths import STANDBY, find_paths

__all__ = ["Standby", "StandbyChild"]

ANSWER = struct.Struct("q")
OUTPUT = (1, 2)


class StandbyChild:
    """A child that has entered a data folder: a Process of server.py."""

    def __init__(self, control: socket.socket, pid: int) -> None:
        """control: the standing server's; its next answer is how the child has ended."""
        self._control = control
        self._status: int | None = None
        try:
            self._pid = os.pidfd_open(pid)
        except ProcessLookupError:
            self.wait()

    def poll(self) -> int | None:
        """The status of wait(), None: it lives."""
        if self._status is None and select.select([self._control], [], [], 0)[0]:
            self.wait()
        return self._status

    def wait(self) -> None:
        """Until it has ended."""
        if self._status is None:
            self._status = _answer(self._control)

    def end(self) -> None:
        """Kills it, and waits."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pid, signal.SIGKILL)
            self.wait()


class Standby:
    """A server that lives as long as this process, and has done all that comes before its data folder."""

    def __init__(
        self, argv: Callable[[Path, Path], list[str]], environment: dict[str, str]
    ) -> None:
        """argv: the command of a server with this data directory and this folder for all else. Raises
        OSError where it does not start; `stands` is False where it ends before, or has threads then."""
        library = find_paths().build / STANDBY
        if not library.is_file():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(library))
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Of a folder that is gone: a server that goes on into it, and does not wait, cannot live there.
        with tempfile.TemporaryDirectory() as folder:
            self._places = [os.open(folder, os.O_PATH) for _place in ("data", "private")]
        data, private = (Path(f"/proc/self/fd/{place}") for place in self._places)
        with theirs:
            self._process = Watched(
                argv(data, private),
                Path(os.devnull),
                {
                    **environment,
                    "LD_PRELOAD": str(library),
                    "TORNPAGE_STANDBY": f"{theirs.fileno()} {self._places[0]}",
                },
                (theirs.fileno(), *self._places),
            )
        self.stands = self._stands()

    def _stands(self) -> bool:
        try:
            return _answer(self._control) == 0
        except EOFError:
            self.end()
            return False

    def end(self) -> None:
        """Kills the server, and with it a child that lives."""
        self._process.end()
        self._control.close()
        for place in self._places:
            os.close(place)

    def enter(self, data: Path, private: Path, said: Path) -> StandbyChild:
        """A server on this data directory, with its private folder; said: where its output goes. One at a
        time: the last one must have ended."""
        with ExitStack() as opened:
            fds = []
            for path, flags in (
                (data, os.O_PATH),
                (private, os.O_PATH),
                (said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            ):
                fds.append(os.open(path, flags, 0o600))
                opened.callback(os.close, fds[-1])
            places = [*self._places, *OUTPUT]
            request = struct.pack(f"{len(places)}i", *places)
            socket.send_fds(self._control, [request], [*fds, fds[-1]])
            pid = _answer(self._control)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return StandbyChild(self._control, pid)


def _answer(control: socket.socket) -> int:
    """Raises EOFError where the server has ended."""
    try:
        data = control.recv(ANSWER.size)
    except ConnectionResetError:
        data = b""
    if len(data) != ANSWER.size:
        raise EOFError("the server that stands by has ended")
    return int(ANSWER.unpack(data)[0])
