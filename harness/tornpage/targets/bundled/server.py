"""A server that lives as long as it is needed, its socket and temporary files beside its data directory."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

__all__ = [
    "Process",
    "Server",
    "ServerEnded",
    "Watched",
    "as_user",
    "give_away",
    "private_folder",
    "private_of",
]

POLL_S = 0.005
USER = "nobody"
ERROR = re.compile(r"\[ERROR\]|FATAL:|PANIC:")

T = TypeVar("T")


class ServerEnded(Exception):
    """The server ended before it could be used; its text is what it said last."""


def as_user() -> list[str]:
    """Words before the command of a server that refuses to be root's, where this process is: another user
    with one of root's rights, to come to every file: scratch may lie in a folder that is closed to others."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam(USER)
    words = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return [*words, "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]


def give_away(folder: Path) -> None:
    """Makes a folder that user's. Another program does it: what this process touches would count as the
    store's own work."""
    if os.geteuid() == 0:
        environment = {"PATH": os.environ.get("PATH", os.defpath)}
        subprocess.run(["chown", "-R", USER, folder], check=True, env=environment)


def private_of(data: Path) -> Path:
    """The folder beside a data directory for what is no part of it."""
    return data.with_name(f"{data.name}.server")


@contextmanager
def private_folder(data: Path) -> Iterator[Path]:
    """A folder beside a data directory for what is no part of it: the socket, temporary files, messages."""
    folder = private_of(data)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


WATCH = 'read -r never; kill -9 "$0"'
"""What a watcher does: its input ends with the process that started it, however that comes about. A signal at
the parent's death (prctl) would not do: a server that becomes another user loses it."""


class Process(Protocol):
    """What a server runs in."""

    def poll(self) -> int | None:
        """Not None: it has ended."""

    def wait(self) -> object:
        """Until it has ended."""

    def end(self) -> None:
        """Kills it, and waits."""


class Watched:
    """A process that ends with this one at the latest; its words go to a file."""

    def __init__(
        self, argv: Sequence[str], said: Path, environment: dict[str, str], fds: Sequence[int] = ()
    ) -> None:
        """argv: program and arguments; said: where its output goes; fds: descriptors that it gets."""
        with said.open("wb") as output:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                pass_fds=fds,
            )
        try:
            self._watcher = subprocess.Popen(
                ["/bin/sh", "-c", WATCH, str(self._process.pid)],
                stdin=subprocess.PIPE,
                env={"PATH": os.environ.get("PATH", os.defpath)},
            )
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def poll(self) -> int | None:
        """As of Process."""
        return self._process.poll()

    def wait(self) -> int:
        """As of Process."""
        return self._process.wait()

    def end(self) -> None:
        """As of Process."""
        self._watcher.kill()
        self._watcher.communicate()
        self._process.kill()
        self._process.wait()


class Server:
    """A server in its process, from its start until it is ended."""

    def __init__(self, process: Process, said: Path) -> None:
        """said: what it says."""
        self.process = process
        self.said = said

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Killed, never asked: a clean end would change what is looked at."""
        self.process.end()

    def wait_until(self, attempt: Callable[[], T | None]) -> T:
        """What the attempt gives as soon as it gives something. Raises ServerEnded."""
        while True:
            found = attempt()
            if found is not None:
                return found
            if self.process.poll() is not None:
                raise ServerEnded(self.last_words())
            time.sleep(POLL_S)

    def last_words(self) -> str:
        """The first line that is an error, without its date: others follow from it; else the last line."""
        lines = self.said.read_text("utf-8", "replace").splitlines()
        errors = [line[found.start() :] for line in lines if (found := ERROR.search(line))]
        return errors[0] if errors else (lines or ["it said nothing"])[-1]
