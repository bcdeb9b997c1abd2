"""A PostgreSQL server of a test's own, from Debian's packages: on a socket only, gone with its folder."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tornpage.targets.bundled.server import as_user, give_away

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/lib/postgresql"))
DEADLINE_S = 60


class PrivateServer:
    """One cluster; up between start() and stop()."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._call("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-N")

    def start(self) -> None:
        """Back when it takes connections. Little is cached: what is tested is small."""
        words = f"-c listen_addresses= -c unix_socket_directories={self.folder}"
        words += " -c shared_buffers=8MB -c fsync=off -c max_connections=30"
        log = str(self.folder / "log")
        self._call("pg_ctl", "-D", str(self.data), "-l", log, "-w", "-o", words, "start")

    def stop(self, mode: str = "fast") -> None:
        """fast: sessions are ended; immediate: as if the machine lost its power."""
        self._call("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def database(self, name: str) -> str:
        """URL of a new, empty database."""
        self._call("createdb", "-h", str(self.folder), "-U", "postgres", name)
        return f"postgresql://postgres@/{name}?host={self.folder}"

    def _call(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*as_user(), PROGRAMS / program, *arguments],
            check=True,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=DEADLINE_S,
        )


@contextmanager
def private_server() -> Iterator[PrivateServer]:
    """Made, started, and gone at the end. Its path is short, as that of a socket must be."""
    folder = Path(tempfile.mkdtemp(prefix="tornpage-pg-", dir="/tmp"))
    try:
        give_away(folder)
        server = PrivateServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
