"""Runs the test program under the preload and reads the trace. Imports the standard library only.

The reader is written from faults/README.md, not from the C header, so that a difference shows."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

PRELOAD = os.environ["TORNPAGE_TEST_PRELOAD"]
PROGRAM = os.environ["TORNPAGE_TEST_PROGRAM"]

OPEN, CLOSE, READ, WRITE, FSYNC, FDATASYNC, SYNC_RANGE, TRUNCATE, FALLOCATE, RENAME = range(1, 11)
UNLINK, SYNC_DIR, MARK, KILL, MKDIR, FAULT, LINK, SYNC_ALL = range(11, 19)
OVERFLOW, FIRED, STARVED, UNSEEN, REFUSED = 1, 2, 8, 16, 32
APPEND, DURABLE = 2, 4
"""Flags of a write."""
SIGKILL = -9


@dataclass(frozen=True, slots=True)
class Record:
    """One event; `payload` is still padded to 8 bytes."""

    kind: int
    flags: int
    seq: int
    file: int
    thread: int
    offset: int
    length: int
    result: int
    hash: int
    began: int
    payload: bytes

    @property
    def text(self) -> str:
        """The payload as text, without its padding."""
        return self.payload.rstrip(b"\0").decode()


@dataclass(frozen=True, slots=True)
class Damage:
    """Payload of KILL, and of FAULT after its first 8 bytes."""

    sector: int
    states: bytes
    old: bytes
    new: bytes


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole trace file. under_way: file, offset and length of writes without a record."""

    flags: int
    pid: int
    records: list[Record]
    body: bytes
    under_way: list[tuple[int, int, int]]

    def of(self, *kinds: int) -> list[Record]:
        """The records of these kinds."""
        return [record for record in self.records if record.kind in kinds]


def damage(record: Record) -> Damage:
    """Decodes what happened to a write."""
    payload = record.payload[8 if record.kind == FAULT else 0 :]
    sector, count = struct.unpack_from("<II", payload)
    if count == 0:
        return Damage(sector, b"", b"", b"")
    old = 8 + (count + 7) // 8 * 8
    new = old + record.length
    return Damage(
        sector, payload[8 : 8 + count], payload[old:new], payload[new : new + record.length]
    )


def read_trace(path: Path) -> Trace:
    """Decodes a trace file; every rule of the format is asserted."""
    with path.open("rb") as file:
        header = file.read(64)
        magic, committed, flags, pid, events = struct.unpack_from("<8sQIIQ", header)
        (calls_at,) = struct.unpack_from("<Q", header, 32)
        assert magic == b"TPTRACE2" and header[40:] == bytes(24)
        body = file.read(committed - 64)
        file.seek(calls_at)
        calls = [struct.unpack("<IIQQ40s", file.read(64)) for _ in range(256)]
    assert all(call[1] == 0 and call[4] == bytes(40) for call in calls)
    records = []
    at = 0
    while at < len(body):
        total, kind, flags16, seq, file_id, thread, offset, length, result, digest, began = (
            struct.unpack_from("<IHHQIIQQqQQ", body, at)
        )
        assert total % 8 == 0 and total >= 64
        payload = body[at + 64 : at + total]
        records.append(
            Record(
                kind, flags16, seq, file_id, thread, offset, length, result, digest, began, payload
            )
        )
        at += total
        assert records[-1].seq == len(records) and began < seq
    assert at == len(body) and events == len(records)
    under_way = [(file_id, *place) for file_id, _, *place, _ in calls if file_id]
    return Trace(flags, pid, records, body, under_way)


@dataclass(frozen=True, slots=True)
class Run:
    """How the program ended, what its operations returned, what was recorded."""

    status: int
    results: list[tuple[str, int, int]]
    errors: str
    trace: Trace


class PreloadCase(unittest.TestCase):
    """A fresh root directory per test, on a memory file system where there is one."""

    def setUp(self) -> None:
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.base = Path(tempfile.mkdtemp(prefix="test_faults_", dir=base))
        self.addCleanup(shutil.rmtree, self.base)
        self.root = self.base / "root"
        self.root.mkdir()
        self.trace_path = self.base / "trace"

    def environment(self, plan: str | None = None, **extra: str) -> dict[str, str]:
        """What the program is started with; an empty value removes a variable."""
        env = dict(os.environ)
        env.update(
            LD_PRELOAD=PRELOAD,
            TORNPAGE_ROOT=str(self.root),
            TORNPAGE_TRACE=str(self.trace_path),
            TORNPAGE_TRACE_MAX=str(16 << 20),
        )
        if plan is not None:
            path = self.base / "plan"
            path.write_text(plan)
            env["TORNPAGE_PLAN"] = str(path)
        env.update(extra)
        return {name: value for name, value in env.items() if value}

    def start(self, command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Runs to the end in the root directory."""
        return subprocess.run(
            command, env=env, cwd=self.root, capture_output=True, text=True, timeout=60, check=False
        )

    def run_ops(self, *ops: str, plan: str | None = None, **extra: str) -> Run:
        """Runs the operations under the preload."""
        return self.run_command([PROGRAM, *ops], plan, **extra)

    def run_command(self, command: list[str], plan: str | None = None, **extra: str) -> Run:
        """Runs a command under the preload."""
        done = self.start(command, self.environment(plan, **extra))
        results = []
        for line in done.stdout.splitlines():
            name, result, error = line.split()
            results.append((name, int(result), int(error)))
        trace = (
            read_trace(self.trace_path) if self.trace_path.exists() else Trace(0, 0, [], b"", [])
        )
        return Run(done.returncode, results, done.stderr, trace)

    def put(self, name: str, content: bytes) -> Path:
        """A file as it was before the program ran."""
        path = self.root / name
        path.write_bytes(content)
        return path


def replay(trace: Trace) -> dict[str, bytes]:
    """The files that a stream with contents gives, by path."""
    files: dict[int, bytearray] = {}
    names: dict[str, int] = {}
    for record in trace.records:
        if record.result < 0:
            continue
        number = record.file or (names.get(record.text, 0) if record.kind == TRUNCATE else 0)
        content = files.setdefault(number, bytearray())
        if record.kind == OPEN and not record.flags & 2:
            if record.offset & os.O_TMPFILE != os.O_TMPFILE and (
                record.flags & 1 or record.text not in names
            ):
                names[record.text] = record.file
            if record.flags & 1 or record.offset & os.O_TRUNC:
                content.clear()
        elif record.kind == WRITE:
            put(content, record.offset, record.payload[: record.result])
        elif record.kind == TRUNCATE:
            del content[record.offset :]
            content.extend(bytes(record.offset - len(content)))
        elif record.kind == FALLOCATE:
            if not record.flags & 1:
                content.extend(bytes(max(0, record.offset + record.length - len(content))))
            if record.flags & 18:  # a hole, or zeros
                end = min(record.offset + record.length, len(content))
                put(content, record.offset, bytes(max(0, end - record.offset)))
        elif record.kind == LINK:
            names[paths(record)[1]] = record.file or names[paths(record)[0]]
        elif record.kind == RENAME:
            names = renamed(names, *paths(record), exchange=bool(record.flags & 2))
        elif record.kind == UNLINK:
            names.pop(record.text, None)
    return {name: bytes(files[number]) for name, number in names.items()}


def put(content: bytearray, offset: int, data: bytes) -> None:
    """Writes, beyond the end too."""
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def paths(record: Record) -> tuple[str, str]:
    """Of a rename or link."""
    old, new = (name.decode() for name in record.payload.rstrip(b"\0").split(b"\0"))
    return old, new


def renamed(names: dict[str, int], old: str, new: str, *, exchange: bool) -> dict[str, int]:
    """Also of a folder."""

    def moved(name: str) -> str | None:
        for one, other in ((old, new), (new, old if exchange else None)):
            if name == one or name.startswith(f"{one}/"):
                return None if other is None else other + name[len(one) :]
        return name

    return {to: number for name, number in names.items() if (to := moved(name)) is not None}
