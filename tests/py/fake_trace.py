"""Writes trace files as the preload would, for tests that need no program: see faults/trace.h."""

from __future__ import annotations

import struct

import xxhash

from tornpage.faults.trace import STARVED, Op, Trace

RECORD = struct.Struct("<IHHQIIQQqQQ")


class FakeTrace:
    """A trace under construction. Files get ids in the order of their first use."""

    def __init__(self) -> None:
        self._records: list[bytes] = []
        self._files: dict[str, int] = {}
        self.flags = 0

    def record(
        self,
        kind: Op,
        *,
        flags: int = 0,
        file: int = 0,
        offset: int = 0,
        length: int = 0,
        result: int = 0,
        hash: int = 0,
        payload: bytes = b"",
        thread: int = 0,
        began: int | None = None,
    ) -> FakeTrace:
        """Appends one record; its event number is its position. began: None: behind the one before."""
        if -result in STARVED:
            self.flags |= 8
        padded = payload.ljust((len(payload) + 7) // 8 * 8, b"\0")
        seq = len(self._records) + 1
        head = RECORD.pack(
            64 + len(padded),
            kind,
            flags,
            seq,
            file,
            thread,
            offset,
            length,
            result,
            hash,
            seq - 1 if began is None else began,
        )
        self._records.append(head + padded)
        return self

    def open(self, path: str, created: bool = False) -> FakeTrace:
        """Opens a file, which gives it its id."""
        file = self._files.setdefault(path, len(self._files) + 1)
        return self.record(Op.OPEN, flags=int(created), file=file, payload=path.encode())

    def _id(self, path: str) -> int:
        if path not in self._files:
            self.open(path)
        return self._files[path]

    def mark(self, text: str) -> FakeTrace:
        """A marker."""
        if text.startswith("unseen "):
            self.flags |= 16
        return self.record(Op.MARK, length=len(text), payload=text.encode())

    def marks(self, *texts: str) -> FakeTrace:
        """Several markers."""
        for text in texts:
            self.mark(text)
        return self

    def write(
        self, path: str, offset: int, data: bytes | int, result: int = 0, *, full: bool = False
    ) -> FakeTrace:
        """A write of these bytes, or of that many. full: recorded with its contents."""
        content = bytes(data) if isinstance(data, int) else data
        return self.record(
            Op.WRITE,
            flags=int(full),
            payload=content if full else b"",
            file=self._id(path),
            offset=offset,
            length=len(content),
            result=result or len(content),
            hash=xxhash.xxh3_64_intdigest(content),
        )

    def read(self, path: str, offset: int, length: int) -> FakeTrace:
        """A read."""
        return self.record(
            Op.READ, file=self._id(path), offset=offset, length=length, result=length
        )

    def fsync(self, path: str, result: int = 0) -> FakeTrace:
        """An fsync."""
        return self.record(Op.FSYNC, file=self._id(path), result=result)

    def close(self, path: str) -> FakeTrace:
        """A close."""
        return self.record(Op.CLOSE, file=self._id(path))

    def rename(self, old: str, new: str) -> FakeTrace:
        """A rename; the file keeps its id."""
        file = self._id(old)
        self._files[new] = self._files.pop(old)
        return self.record(Op.RENAME, file=file, payload=old.encode() + b"\0" + new.encode())

    def unlink(self, path: str) -> FakeTrace:
        """An unlink."""
        return self.record(Op.UNLINK, file=self._id(path), payload=path.encode())

    def sync_dir(self, folder: str = ".") -> FakeTrace:
        """An fsync of the data directory, or of a folder in it."""
        return self.record(Op.SYNC_DIR, payload=folder.encode())

    def kill(self, path: str, offset: int, kept: bytes, old: bytes, new: bytes) -> FakeTrace:
        """A kill inside a write with sectors of 512 bytes."""
        damage = struct.pack("<II", 512, len(kept)) + kept.ljust((len(kept) + 7) // 8 * 8, b"\0")
        self.flags |= 2
        return self.record(
            Op.KILL,
            flags=int(Op.WRITE),
            file=self._id(path),
            offset=offset,
            length=len(new),
            payload=damage + old + new,
        )

    def data(self, pid: int = 17) -> bytes:
        """The whole file."""
        body = b"".join(self._records)
        head = struct.pack(
            "<8sQIIQ", b"TPTRACE2", 64 + len(body), self.flags, pid, len(self._records)
        )
        return head.ljust(64, b"\0") + body

    def trace(self) -> Trace:
        """What the reader makes of it."""
        return Trace(self.data())
