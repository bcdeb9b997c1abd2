"""Fork servers: a program that was started once under the preload, and becomes each child by a fork.

Most of a short life goes to exec, the loader and the set-up of the C library. The server stands
before the program's own constructors and its main (faults/serve.c): a child has done nothing that an executed
one has not, and its recorded stream is the same, byte for byte.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tornpage.faults.preload import can_preload
from tornpage.faults.process import ENDING, Launch, end_child, launch_argv
from tornpage.vocabulary.errors import ChildError, MachineError
from tornpage.vocabulary.process_cache import ProcessCache

__all__ = ["ForkServer", "fork_server"]

LIFE_S = 7 * 24 * 3600.0
"""No worker needs its server any longer."""
REQUEST = struct.Struct("<IIII")
ANSWER = struct.Struct("<q")
START, REAP = 1, 2
REQUEST_BYTES_MAX = 128 << 10
WORDS_MAX = 4096
ANSWER_DEADLINE_S = 60.0
SERVERS_MAX = 4
"""Of one process. One that tries build after build leaves no more behind."""


def fork_server(program: Path, preload: Path) -> ForkServer | None:
    """This process's server of a program; None where the loader cannot be told of the preload."""
    if not can_preload(preload):
        return None
    key = (_identity(program), _identity(preload))
    make = partial(ForkServer, program, preload)
    server = _SERVERS.get(key, make)
    if server.ended:
        _SERVERS.take(key)
        server = _SERVERS.get(key, make)
    return server


def _identity(program: Path) -> tuple[str, int, int]:
    """Of the file that an exec would find now."""
    try:
        st = program.stat()
    except OSError as error:
        raise ChildError(f"{program}: {error.strerror}") from error
    return str(program), st.st_ino, st.st_mtime_ns


class ForkServer:
    """The process and the socket to it; a Starter. It ends with this process, and its children with it."""

    def __init__(self, program: Path, preload: Path) -> None:
        """program, preload: absolute paths. ChildError."""
        self._program = program
        self.ended = False
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(ANSWER_DEADLINE_S)
        self._socket = ours
        args = launch_argv([program], LIFE_S)
        # Bound at once: what a child binds by itself, the next one would bind again.
        env = {"LD_PRELOAD": str(preload), "LD_BIND_NOW": "1", "TORNPAGE_SERVE": "1"}
        actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)]
        try:
            self._pid = os.posix_spawn(args[0], args, env, file_actions=actions, setsigdef=ENDING)
        except OSError as error:
            ours.close()
            raise ChildError(f"{program}: {error.strerror}") from error
        finally:
            theirs.close()

    def start(self, launch: Launch) -> int:
        """See Starter; argv[0] is the server's program."""
        program = launch.argv[0]
        words = [os.fsencode(word) for word in launch.argv]
        words += [os.fsencode(f"{name}={value}") for name, value in launch.env.items()]
        request = REQUEST.pack(START, launch.alarm_s, len(launch.argv), len(launch.env))
        request += b"".join(word + b"\0" for word in words)
        if len(request) > REQUEST_BYTES_MAX or len(words) > WORDS_MAX:
            raise ChildError(f"{program}: arguments and environment are too long for a fork server")
        return self._ask(request, launch.outputs)

    def end(self, pid: int) -> None:
        """See Starter: a child leads a process group, and starts no session."""
        for kill in (os.killpg, os.kill):  # before it leads its group there is only the pid
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)

    def reap(self, pid: int) -> int:
        """See Starter."""
        return self._ask(REQUEST.pack(REAP, pid, 0, 0), ())

    def _ask(self, request: bytes, descriptors: Sequence[int]) -> int:
        try:
            socket.send_fds(self._socket, [request], descriptors)
            answer = self._socket.recv(ANSWER.size)
        except BaseException as error:  # the answer may be on its way
            self.stop()
            if isinstance(error, OSError):
                raise MachineError(f"the fork server of {self._program}: {error}") from error
            raise
        if len(answer) < ANSWER.size:
            self.stop()
            raise MachineError(f"the fork server of {self._program} has ended")
        (number,) = ANSWER.unpack(answer)
        if number < 0:
            raise MachineError(f"the fork server of {self._program}: {os.strerror(-number)}")
        return int(number)

    def stop(self) -> None:
        """Ends it and its children; once."""
        if self.ended:
            return
        self.ended = True
        self._socket.close()
        end_child(self._pid)  # it may wait for a child that does not end
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


_SERVERS: ProcessCache[tuple[tuple[str, int, int], ...], ForkServer] = ProcessCache(
    SERVERS_MAX, ForkServer.stop
)
"""By program and preload."""
