"""How one image is made into another with plain tools: commands of a POSIX shell, and the bytes that they
need beside them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path

from tornpage.faults.image import files_below

__all__ = ["retouch"]

UNIT = 512
"""Bytes: a difference is told in whole ones, which is what a disk writes."""
BLOCK_MAX = 4096
"""Bytes that dd takes at a time."""


def retouch(old: Path, new: Path, parts: Path, name: str) -> Iterator[str]:
    """The commands; "$dir" is the folder to change. parts: a folder for the bytes, made here if there are
    any, which the commands call `name`."""
    before, after = files_below(old), files_below(new)
    for path in sorted({*before} - {*after}):
        yield f'rm "$dir"/{shlex.quote(path)}'
    yield from _folders(new, old, gone=True)
    yield from _folders(old, new)
    numbers = count(1)
    for path, file in after.items():
        place = f'"$dir"/{shlex.quote(path)}'
        is_ = file.read_bytes()
        if path not in before:
            yield f"cp {name}/{_put(is_, parts, next(numbers))} {place}"
            continue
        was = before[path].read_bytes()
        if len(was) != len(is_):
            yield f"truncate -s {len(is_)} {place}"
        for at, end in _changes(was, is_):
            part = _put(is_[at:end], parts, next(numbers))
            block = _block(at)
            seek = f"bs={block} seek={at // block} conv=notrunc status=none"
            yield f"dd if={name}/{part} of={place} {seek}"


def _put(data: bytes, parts: Path, number: int) -> str:
    parts.mkdir(exist_ok=True)
    (parts / str(number)).write_bytes(data)
    return str(number)


def _folders(old: Path, new: Path, *, gone: bool = False) -> Iterator[str]:
    """Of `new` that `old` has not: made, or, the inner ones first, removed."""
    there, wanted = (
        {p.relative_to(one) for p in one.rglob("*") if p.is_dir()} for one in (old, new)
    )
    missing = sorted(wanted - there, reverse=gone)
    command = "rmdir" if gone else "mkdir"
    return (f'{command} "$dir"/{shlex.quote(str(path))}' for path in missing)


def _changes(was: bytes, is_: bytes) -> Iterator[tuple[int, int]]:
    """Where bytes differ, from and to, in units. What a file grew by is zero."""
    start: int | None = None
    was = was[: len(is_)].ljust(len(is_), b"\0")
    for at in chain(range(0, len(is_), UNIT), [len(is_)]):
        differs = was[at : at + UNIT] != is_[at : at + UNIT]
        if differs and start is None:
            start = at
        elif not differs and start is not None:
            yield start, min(at, len(is_))
            start = None


def _block(at: int) -> int:
    block = BLOCK_MAX
    while at % block:
        block //= 2
    return block
