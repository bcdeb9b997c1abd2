"""Call stacks: which functions of a program made an operation. The reader is from faults/README.md."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import unittest
from dataclasses import dataclass
from pathlib import Path

from support import MARK, OPEN, PROGRAM, SIGKILL, WRITE, PreloadCase, read_trace

TABLES = os.environ["TORNPAGE_TEST_STACKS"]
POINTERS = os.environ["TORNPAGE_TEST_STACK_POINTERS"]
LIBRARY = os.environ["TORNPAGE_TEST_STACK_LIBRARY"]
MODULE, FRAMES, OF, NOTE = 1, 2, 3, 4

WAYS = [
    ["stack_inner", "stack_outer", "main"],
    ["stack_inner", "stack_outer", "stack_thread"],
    ["stack_inner", "stack_outer", "stack_handler"],
    ["stack_inner", "stack_outer", "stack_forked"],
]
"""How each write of stack_program.c came about, from the innermost function on."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Of one operation: (module, offset) from the innermost frame on, and the text of an interpreter."""

    frames: list[tuple[str, int]]
    text: str


def read_stacks(path: Path) -> tuple[dict[int, Stack], bytes]:
    """By event number; and the records without their times. Every rule of the format is asserted."""
    found, _, records = read_log(path)
    return found, records


def read_log(path: Path) -> tuple[dict[int, Stack], list[tuple[int, str, Stack]], bytes]:
    """Also the notes: event before it, text, stack."""
    data = bytearray(path.read_bytes())
    magic, committed, flags, _pid, events = struct.unpack_from("<8sQIIQ", data)
    assert (magic, flags) == (b"TPSTACK1", 0)
    modules = {0: ""}
    stacks: dict[int, Stack] = {}
    found: dict[int, Stack] = {}
    notes = []
    at, number, last = 64, 0, 0
    while at < committed:
        total, kind, _, seq, _, _, offset, length, began, ended, _ = struct.unpack_from(
            "<IHHQIIQQqQQ", data, at
        )
        number += 1
        assert seq == number and total % 8 == 0
        payload = bytes(data[at + 64 : at + total])
        if kind == MODULE:
            assert length == 20, "a build id"
            modules[seq] = payload[length:].rstrip(b"\0").decode()
        elif kind == FRAMES:
            frames = list(struct.iter_unpack("<QQ", payload[: 16 * length]))
            text = payload[16 * length : 16 * length + offset].decode()
            stacks[seq] = Stack([(modules[module], place) for module, place in frames], text)
        elif kind == NOTE:
            notes.append((offset, payload.rstrip(b"\0").decode(), stacks[length]))
        else:
            assert kind == OF and offset not in found
            found[offset] = stacks[length]
            assert last < ended and 0 < began < ended, "monotonic, in the order of their ends"
            last = ended
            struct.pack_into("<qQ", data, at + 40, 0, 0)
        at += total
    assert events == number and at == committed
    return found, notes, bytes(data[64:committed])


def functions(module: str) -> list[tuple[int, str]]:
    """Functions of a program or library by address, as nm tells them."""
    told = subprocess.run(["nm", "-n", module], capture_output=True, text=True, check=True)
    words = [line.split() for line in told.stdout.splitlines()]
    return [(int(word[0], 16), word[2]) for word in words if len(word) == 3 and word[1] in "tT"]


class Stacks(PreloadCase):
    """Each operation has the stack of the call that made it."""

    def setUp(self) -> None:
        super().setUp()
        self.stacks_path = self.base / "stacks"

    def of_writes(self, *command: str, of: int = WRITE) -> list[Stack]:
        """Those of the writes that a command makes, in order."""
        run = self.run_command(list(command), TORNPAGE_STACKS=str(self.stacks_path))
        self.assertEqual((run.status, run.errors), (0, ""))
        stacks, _ = read_stacks(self.stacks_path)
        self.assertEqual(set(stacks), {one.seq for one in run.trace.records if one.kind != MARK})
        return [stacks[one.seq] for one in run.trace.of(of)]

    def names(self, stack: Stack, *modules: str) -> list[str]:
        """The functions of a stack that lie in one of these modules."""
        found = []
        for module, offset in stack.frames:
            if module in modules:
                before = [name for start, name in functions(module) if start <= offset]
                found.append(before[-1])
        return found

    def test_tables_without_frame_pointers(self) -> None:
        """Of a program as distributions build them: from main, in a thread, a handler and a forked child."""
        stacks = self.of_writes(TABLES)
        self.assertEqual([self.names(stack, TABLES)[:3] for stack in stacks], WAYS)

    def test_frame_pointers_without_tables(self) -> None:
        """Of code without unwind tables, as that of Go: the chain of its frame pointers."""
        stacks = self.of_writes(POINTERS)
        self.assertEqual([self.names(stack, POINTERS)[:3] for stack in stacks], WAYS)

    def test_a_library_that_is_loaded_late(self) -> None:
        """Its frame stands between those of the program, and is told by its own path, every time."""
        stacks = self.of_writes(TABLES, LIBRARY, LIBRARY)[-2:]
        for stack in stacks:
            self.assertEqual(
                self.names(stack, TABLES, LIBRARY)[:4],
                ["stack_inner", "stack_library", "stack_by_library", "main"],
            )
        self.assertEqual(stacks[0].frames[1][0], LIBRARY)

    def test_the_same_run_gives_the_same_stacks(self) -> None:
        """Byte for byte, wherever the loader has put the modules; and the trace is what it is without."""
        logs = set()
        for _ in range(3):
            self.of_writes(TABLES, LIBRARY)
            logs.add((read_stacks(self.stacks_path)[1], read_trace(self.trace_path).body))
            (self.root / "f").unlink()
        self.assertEqual(len(logs), 1)
        self.run_command([TABLES, LIBRARY])
        self.assertEqual(read_trace(self.trace_path).body, logs.pop()[1])

    def test_a_stack_is_stored_once(self) -> None:
        """A thousand writes of one line of code take no more frames than two."""
        self.of_writes(PROGRAM, "open 0 f wc", *(["pwrite 0 0 9 a"] * 2))
        few = read_stacks(self.stacks_path)[1]
        self.of_writes(PROGRAM, "open 0 f wc", *(["pwrite 0 0 9 a"] * 1000))
        many = read_stacks(self.stacks_path)[1]
        self.assertEqual(len(many) - len(few), 998 * 64)

    def test_a_note_has_the_stack_of_who_made_it(self) -> None:
        """And its place among the events; the operation behind it has its own."""
        stacks = self.of_writes(TABLES)
        ((event, text, stack),) = read_log(self.stacks_path)[1]
        writes = read_trace(self.trace_path).of(WRITE)
        self.assertEqual((event, text), (writes[2].seq, "step n=1"))
        self.assertEqual(self.names(stack, TABLES)[:2], ["stack_note", "main"])
        self.assertEqual(self.names(stacks[3], TABLES)[:3], WAYS[3])

    def test_an_executed_program_has_its_own_modules(self) -> None:
        """What comes behind exec goes on in the same log."""
        stacks = self.of_writes(PROGRAM, "open 0 f wc", "forkexec", "pwrite 0 8 3 b", of=OPEN)
        self.assertEqual(self.names(stacks[0], PROGRAM)[0], "call_open")
        self.assertEqual(self.names(stacks[-1], PROGRAM), self.names(stacks[0], PROGRAM))
        self.assertEqual(self.names(stacks[1], PROGRAM)[0], "call_fork")

    def test_the_operation_that_a_plan_hits(self) -> None:
        """The record of the kill has the stack of the write that it hit."""
        plan = "fault kind=write file=f nth=2 action=kill\n"
        run = self.run_command([TABLES], plan, TORNPAGE_STACKS=str(self.stacks_path))
        self.assertEqual(run.status, SIGKILL)
        last = read_stacks(self.stacks_path)[0][run.trace.records[-1].seq]
        self.assertEqual(self.names(last, TABLES), WAYS[1])

    def test_python_tells_its_own_frames(self) -> None:
        """Function, file and line of the code, beside the frames of the interpreter."""
        code = "import os\ndef save(file):\n os.write(file, b'x')\nsave(os.open('f', 66))\n"
        script = self.base / "save.py"
        script.write_text(code)
        (stack,) = self.of_writes(sys.executable, str(script))
        self.assertIn(f'File "{script}", line 3 in save\n', stack.text)
        self.assertIn(f'File "{script}", line 4 in <module>\n', stack.text)
        self.assertGreater(len(stack.frames), 3)

    def test_where_it_may_lie(self) -> None:
        """A relative path is refused before main."""
        run = self.run_command([TABLES], TORNPAGE_STACKS="stacks")
        self.assertEqual(run.status, 97)
        self.assertIn("TORNPAGE_STACKS=stacks: not an absolute path", run.errors)


if __name__ == "__main__":
    unittest.main()
