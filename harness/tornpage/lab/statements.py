"""Statements on the bundled engine and on a server of MariaDB, timed one by one, for `tornpage bench`.

Neither is disturbed or recorded. Seconds are the clock's: these are measurements, no trials.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tornpage.faults.process import end_child, launch_argv
from tornpage.vocabulary.errors import TargetError

__all__ = [
    "Server",
    "Step",
    "find_server",
    "machine",
    "run_statements",
    "running_server",
    "sync_rate",
    "write_rate",
]

DEADLINE_S = 1800
"""Of all statements of one run together: far more than they take."""
START_S = 60.0
RATE_BYTES = 256 << 20
RATE_ROUNDS = 3
SYNC_ROUNDS = 20
SYNC_BLOCKS = 50
_SERVERS = ("mariadbd", "/usr/sbin/mariadbd")
_CLIENT = "mariadb"


@dataclass(frozen=True, slots=True)
class Step:
    """A statement. seconds: until it was acknowledged; status: the counters after it, since the start of the
    server or engine."""

    seconds: float
    status: Mapping[str, int]


def machine() -> str:
    """The machine in one line: figures mean nothing without it."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    names = [line.split(":")[1].strip() for line in info.splitlines() if "model name" in line]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}"


def write_rate(folder: Path) -> float:
    """Bytes per second of one large file in this folder, written from its begin to its end and synced: the
    best of a few."""
    block = os.urandom(RATE_BYTES // 64)
    best = 0.0
    for _ in range(RATE_ROUNDS):
        path = folder / "rate"
        clock = time.monotonic()
        with path.open("wb", buffering=0) as file:
            for _ in range(64):
                file.write(block)
            os.fsync(file.fileno())
        best = max(best, RATE_BYTES / (time.monotonic() - clock))
        path.unlink()
    return best


def sync_rate(folder: Path) -> float:
    """Blocks per second that are written one by one to a file in this folder which is there already, as a
    log is, and are durable before the next one: the best of a few."""
    best = 0.0
    path = folder / "rate"
    path.write_bytes(bytes(512 * SYNC_BLOCKS))
    with path.open("r+b", buffering=0) as file:
        os.fsync(file.fileno())
        for _ in range(SYNC_ROUNDS):
            file.seek(0)
            clock = time.monotonic()
            for _ in range(SYNC_BLOCKS):
                file.write(bytes(512))
                os.fdatasync(file.fileno())
            best = max(best, SYNC_BLOCKS / (time.monotonic() - clock))
    path.unlink()
    return best


def run_statements(
    engine: Path,
    data: Path,
    options: Mapping[str, str],
    statements: Sequence[str],
    may_fail: bool = False,
) -> list[Step]:
    """Runs the script on a new database, which is let go of without a clean close; a statement may be many,
    line by line. TargetError if the engine ends before the script does, or if a statement fails and may
    not."""
    command = [str(engine), "run", str(data), "-", "--json", "--acks", "--crash"]
    for name, value in options.items():
        command += ["--option", f"{name}={value}"]
    # Files, no pipes: neither side waits for the other to read.
    with tempfile.TemporaryFile("w+") as script, tempfile.TemporaryFile("w+") as messages:
        script.writelines(f"{statement}\nstatus\n" for statement in statements)
        script.seek(0)
        child = subprocess.Popen(
            launch_argv(command, DEADLINE_S),
            stdin=script,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
        )
        assert child.stdout is not None
        steps, failed = [], ""
        with child.stdout:
            try:
                for found in _answers(child.stdout):
                    if isinstance(found, Step):
                        steps.append(found)
                    else:
                        failed = found
            finally:
                end_child(child.pid)
                child.wait()
        messages.seek(0)
        message = " ".join(messages.read().split())
    if len(steps) != len(statements):
        raise TargetError(f"{engine}: {message or failed or 'it ended early'}")
    if failed and not may_fail:
        raise TargetError(f"{engine}: {failed}")
    return steps


def _answers(lines: Iterator[str]) -> Iterator[Step | str]:
    """A step per `status` of the script; at the end the first of its failures, if there are any."""
    clock = time.monotonic()
    for line in lines:
        if not line.startswith("{"):
            continue
        found = json.loads(line)
        if "ok" in found:
            for failure in found.get("failed", [])[:1]:
                yield f"line {failure['line']}: {failure['message']}"
        elif "status" in found:
            now = time.monotonic()
            yield Step(now - clock, found["status"])
            clock = now


@dataclass(frozen=True, slots=True)
class Server:
    """A private MariaDB server. data: its folder; version: as it says it."""

    socket: Path
    data: Path
    version: str

    def ask(self, sql: str) -> list[list[str]]:
        """The rows that statements give, one after the other. TargetError if one fails."""
        command = [_CLIENT, "--no-defaults", f"--socket={self.socket}", "-BN"]
        done = subprocess.run(command, input=sql, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TargetError(f"{_CLIENT}: {' '.join(done.stderr.split())}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def run(self, statements: Sequence[str]) -> list[Step]:
        """Runs them in turn in the database `test`."""
        steps = []
        for statement in statements:
            clock = time.monotonic()
            self.ask(f"use test; {statement}")
            seconds = time.monotonic() - clock
            rows = self.ask("show global status like 'innodb%'")
            status = {name.lower(): int(value) for name, value in rows if value.isdigit()}
            steps.append(Step(seconds, status))
        return steps


def find_server() -> Path | None:
    """The program of an installed MariaDB server, if its client is there too."""
    if shutil.which(_CLIENT) is None:
        return None
    found = next(filter(None, (shutil.which(name) for name in _SERVERS)), None)
    return Path(found) if found else None


@contextmanager
def running_server(program: Path, folder: Path, options: Mapping[str, str]) -> Iterator[Server]:
    """A server of its own on a new data directory below `folder`, which must not be on /dev/shm: there it
    maps its redo log. TargetError if it does not start."""
    data = folder / "data"
    data.mkdir()
    socket = folder / "socket"
    log = folder / "server.log"
    command = [str(program), "--no-defaults", f"--datadir={data}", f"--socket={socket}"]
    command += ["--skip-networking", "--skip-grant-tables", "--skip-log-bin", f"--log-error={log}"]
    command += ["--performance-schema=OFF", f"--pid-file={folder / 'pid'}"]
    command += [f"--{name}={value}" for name, value in options.items()]
    if os.geteuid() == 0:
        command.append("--user=nobody")
        for path in (folder, data):
            shutil.chown(path, "nobody")
    child = subprocess.Popen(
        launch_argv(command, DEADLINE_S), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        server = Server(socket, data, "")
        end = time.monotonic() + START_S
        while True:
            try:
                ((version,),) = server.ask("select version()")
                break
            except TargetError as error:
                if child.poll() is not None or time.monotonic() > end:
                    raise TargetError(f"{program} does not start: {_last_error(log)}") from error
                time.sleep(0.05)
        server.ask("create database test")
        yield Server(socket, data, version)
    finally:
        end_child(child.pid)
        child.wait()


def _last_error(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines() if log.is_file() else []
    errors = [line for line in lines if "[ERROR]" in line]
    return (errors or lines or ["no message"])[-1]
