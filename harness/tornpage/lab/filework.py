"""Work on a few files for the qualification of a file system: what is done, and what a crash may leave of it.

Every sector of 512 bytes that is written holds the number of its operation, so that what is found says where
it comes from.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tornpage.lab.realdisk import Step
from tornpage.vocabulary.seeds import make_rng

__all__ = [
    "SECTOR",
    "Do",
    "Operation",
    "contents",
    "draw_work",
    "name_spaces",
    "steps_of",
    "why_illegal",
]

SECTOR = 512
BLOCK = 4096
NAMES = ("a", "b", "c", "d")
OPERATIONS = 40


class Do(StrEnum):
    """What one operation does."""

    CREATE = "create"
    WRITE = "write"
    PUSH = "push"
    """Asks for the file's pages to be written back, and waits for nothing."""
    FSYNC = "fsync"
    RENAME = "rename"
    UNLINK = "unlink"
    SYNC_DIR = "sync_dir"


@dataclass(frozen=True, slots=True)
class Operation:
    """number: from 1; file: of which it is, a number that stays with the file; name: its path, or the old
    one of a rename, whose new one is `to`; offset, length: of a write, in bytes."""

    number: int
    do: Do
    file: int
    name: str
    to: str = ""
    offset: int = 0
    length: int = 0


def contents(operation: Operation) -> bytes:
    """What a write writes."""
    return struct.pack("<Q", operation.number) * (operation.length // 8)


def draw_work(seed: int, *, renames: bool = True) -> list[Operation]:
    """Some operations, by the seed. renames: names change and go, too."""
    rng = make_rng(seed, "filework")
    names: dict[str, int] = {}
    work: list[Operation] = []
    files = 0
    for number in range(1, OPERATIONS + 1):
        do = rng.choice((Do.WRITE, Do.WRITE, Do.WRITE, *Do))
        if not renames and do in (Do.RENAME, Do.UNLINK):
            do = Do.FSYNC
        if not names or (do is Do.CREATE and len(names) < len(NAMES)):
            name = rng.choice([name for name in NAMES if name not in names])
            files += 1
            names[name] = files
            work.append(Operation(number, Do.CREATE, files, name))
            continue
        name = rng.choice(sorted(names))
        if do in (Do.WRITE, Do.CREATE):
            place, blocks = BLOCK * rng.randrange(6), BLOCK * rng.randrange(1, 4)
            work.append(Operation(number, Do.WRITE, names[name], name, "", place, blocks))
        elif do is Do.RENAME:
            to = rng.choice([other for other in NAMES if other != name])
            work.append(Operation(number, do, names[name], name, to))
            names[to] = names.pop(name)
        else:
            work.append(Operation(number, do, names[name], name))
            if do is Do.UNLINK:
                del names[name]
    return work


def steps_of(work: Sequence[Operation]) -> list[Step]:
    """What a program does."""
    return [Step(one.do, one.name, one.to, one.offset, contents(one)) for one in work]


def name_spaces(work: Sequence[Operation]) -> tuple[list[Mapping[str, int]], int]:
    """Which file a name leads to, after each change of names, the first before all of them; and how many
    changes are durable on a file system where an fsync takes along the names that are older than the newest
    change of the file's size or name, and that of the folder all."""
    spaces: list[Mapping[str, int]] = [{}]
    durable = 0
    newest: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for operation in work:
        names, file = dict(spaces[-1]), operation.file
        if operation.do is Do.CREATE:
            names[operation.name] = file
        elif operation.do is Do.RENAME:
            names[operation.to] = names.pop(operation.name)
        elif operation.do is Do.UNLINK:
            del names[operation.name]
        if names != spaces[-1]:
            spaces.append(names)
            newest[file] = len(spaces) - 1
        end = operation.offset + operation.length
        if operation.do is Do.WRITE and end > sizes.get(file, 0):
            sizes[file] = end
            newest[file] = len(spaces) - 1
        if operation.do is Do.FSYNC:
            durable = max(durable, newest.get(file, 0))
        if operation.do is Do.SYNC_DIR:
            durable = len(spaces) - 1
    return spaces, durable


def why_illegal(
    work: Sequence[Operation],
    ended: Sequence[Operation],
    least: Mapping[str, bytes],
    found: Mapping[str, bytes],
    *,
    in_order: bool = True,
) -> str:
    """Why what was found after a crash is none of the states that it may leave; "" if it is one. work, ended:
    what had been begun by then, and what of it had ended; least: the computed state of which nothing that was
    not fsynced is there. in_order: names are one journal; else the work has no renames, and any of its names
    may be there."""
    spaces, durable = name_spaces(work)[0], name_spaces(ended)[1]
    if not in_order:
        return _why_not_any_part(work, spaces[-1], least, found)
    if spaces[durable].keys() != least.keys():
        return f"computed names are {sorted(least)}, those of the work {sorted(spaces[durable])}"
    kept = {file: least[name] for name, file in spaces[durable].items()}
    reasons = []
    for names in spaces[durable:]:
        if names.keys() != found.keys():
            continue
        problems = [
            problem
            for name, file in sorted(names.items())
            if (problem := _why_not(work, file, kept.get(file, b""), found[name]))
        ]
        if not problems:
            return ""
        reasons.append(problems[0])
    return reasons[0] if reasons else f"no order of changes gives the names {sorted(found)}"


def _why_not_any_part(
    work: Sequence[Operation],
    names: Mapping[str, int],
    least: Mapping[str, bytes],
    found: Mapping[str, bytes],
) -> str:
    if not least.keys() <= found.keys() <= names.keys():
        return f"names are {sorted(found)}, {sorted(least)} were durable"
    problems = (
        _why_not(work, names[name], least.get(name, b""), found[name]) for name in sorted(found)
    )
    return next((problem for problem in problems if problem), "")


def _why_not(work: Sequence[Operation], file: int, least: bytes, found: bytes) -> str:
    if len(found) < len(least):
        return f"file {file} has {len(found)} bytes, {len(least)} were durable"
    writes = {op.number: op for op in work if op.do is Do.WRITE and op.file == file}
    for at in range(0, len(found), SECTOR):
        was, now = _number(least, at), _number(found, at)
        write = writes.get(now)
        there = write is not None and write.offset <= at < write.offset + write.length
        if now != was and not (there and now > was):
            return f"file {file} holds {now} at {at}, {was} was durable"
    return ""


def _number(data: bytes, at: int) -> int:
    """Of the write that a sector comes from; 0: none; -1: several."""
    sector = data[at : at + SECTOR].ljust(SECTOR, b"\0")
    numbers = set(struct.unpack(f"<{SECTOR // 8}Q", sector))
    return numbers.pop() if len(numbers) == 1 else -1
