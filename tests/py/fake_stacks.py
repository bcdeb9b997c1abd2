"""Writes logs of call stacks as the preload would: see faults/trace.h."""

from __future__ import annotations

import struct
from pathlib import Path

from tornpage.faults.stacks import Call, StackLog, stacks_path

RECORD = struct.Struct("<IHHQIIQQqQQ")
MODULE, FRAMES, OF, NOTE = 1, 2, 3, 4


class FakeStacks:
    """A log under construction."""

    def __init__(self, flags: int = 0) -> None:
        self._flags = flags
        self._records: list[bytes] = []
        self._modules: dict[tuple[str, str], int] = {("", ""): 0}
        self._stacks: dict[int, int] = {}

    def _record(
        self,
        kind: int,
        offset: int,
        length: int,
        payload: bytes = b"",
        began: int = 0,
        ended: int = 0,
    ) -> int:
        padded = payload.ljust((len(payload) + 7) // 8 * 8, b"\0")
        number = len(self._records) + 1
        head = (64 + len(padded), kind, 0, number, 0, 0, offset, length, began, ended, number - 1)
        self._records.append(RECORD.pack(*head) + padded)
        return number

    def _module(self, call: Call) -> int:
        key = call.module, call.build_id
        if key not in self._modules:
            build_id = bytes.fromhex(call.build_id)
            payload = build_id + call.module.encode()
            self._modules[key] = self._record(MODULE, 0, len(build_id), payload)
        return self._modules[key]

    def stack(self, seq: int, *calls: Call, text: str = "") -> FakeStacks:
        """That of the event `seq`, the innermost call first."""
        frames = b"".join(struct.pack("<QQ", self._module(call), call.offset) for call in calls)
        number = self._record(FRAMES, len(text.encode()), len(calls), frames + text.encode())
        self._record(OF, seq, number)
        self._stacks[seq] = number
        return self

    def at(self, seq: int, began: int, ended: int, call: Call) -> FakeStacks:
        """The event `seq` took so long, and has a stack of this call alone."""
        frame = struct.pack("<QQ", self._module(call), call.offset)
        self._record(OF, seq, self._record(FRAMES, 0, 1, frame), b"", began, ended)
        return self

    def note(self, event: int, text: str, call: Call) -> FakeStacks:
        """Of a step that this call alone made, behind the event."""
        frame = struct.pack("<QQ", self._module(call), call.offset)
        self._record(NOTE, event, self._record(FRAMES, 0, 1, frame), text.encode())
        return self

    def again(self, seq: int, like: int) -> FakeStacks:
        """The event `seq` has the stack that the event `like` has."""
        self._record(OF, seq, self._stacks[like])
        return self

    def log(self) -> StackLog:
        """As it is read."""
        body = b"".join(self._records)
        sizes = 64 + len(body), self._flags, 0, len(self._records)
        header = struct.pack("<8sQIIQ", b"TPSTACK1", *sizes)
        return StackLog(header.ljust(64, b"\0") + body)

    def beside(self, trace: Path) -> Path:
        """Puts it beside a trace, and returns that."""
        stacks_path(trace).write_bytes(self.log().data)
        return trace
