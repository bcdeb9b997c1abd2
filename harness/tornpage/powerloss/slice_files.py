"""Slices that have come back, in a folder: a run that goes on hands out only those that are missing.

A file is the hash of what follows, in hexadecimal, a line with the golden run of the recorded run as JSON,
and what the slice told. It has its name only when it is durable. One that is damaged is not there: it is
removed, and its slice is handed out again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import xxhash

from tornpage.faults.image import remove_image
from tornpage.store.rows import GoldenRunRow
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError

__all__ = ["SliceFiles", "Sliced"]


@dataclass(frozen=True, slots=True)
class Sliced:
    """What a slice came to. told: for merge_slices(), compressed; None: the target fails the run, which is no
    slice and is not kept."""

    golden_run: GoldenRunRow
    told: bytes | None


class SliceFiles:
    """Keeps the slices 1 ... of of one exploration."""

    def __init__(self, folder: Path, of: int) -> None:
        self._folder, self._of = folder, of

    def missing(self) -> list[int]:
        """Numbers of those that are not kept, or cannot be read."""
        return [number for number in range(1, self._of + 1) if self.get(number) is None]

    def get(self, number: int) -> Sliced | None:
        """None: it is not kept."""
        file = self._file(number)
        if not file.is_file():
            return None
        try:
            return _unpacked(file.read_bytes())
        except (OSError, ConfigError, ValueError):
            file.unlink(missing_ok=True)
            return None

    def put(self, number: int, golden_run: GoldenRunRow, told: bytes) -> None:
        """Durable on return, whole or not at all."""
        text = _packed(golden_run, told)
        assert _unpacked(text) == Sliced(golden_run, told), "it would be handed out again for ever"
        _make(self._folder)
        early = self._folder / "new"
        with early.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        early.replace(self._file(number))
        _sync(self._folder)

    def clear(self) -> None:
        """All go."""
        remove_image(self._folder)

    def _file(self, number: int) -> Path:
        return self._folder / f"{number}-of-{self._of}"


def _packed(golden_run: GoldenRunRow, told: bytes) -> bytes:
    body = to_json(golden_run).encode() + b"\n" + told
    return _hash(body) + b"\n" + body


def _unpacked(text: bytes) -> Sliced:
    """ValueError or ConfigError: it is damaged."""
    found, body = text.split(b"\n", 1)
    if found != _hash(body):
        raise ValueError("another hash")
    golden_run, told = body.split(b"\n", 1)
    return Sliced(from_json(GoldenRunRow, golden_run), told)


def _hash(body: bytes) -> bytes:
    return xxhash.xxh3_128_hexdigest(body).encode()


def _make(folder: Path) -> None:
    """With those above, each durable in the one that it lies in."""
    if folder.is_dir():
        return
    _make(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
