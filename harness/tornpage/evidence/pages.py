"""The pages that a crash hurt, in three states: before, as they were written, and after the crash. The
target decodes them; what it cannot decode is shown as bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornpage.evidence.redo import redo_of
from tornpage.faults.process import run_child
from tornpage.targets.target import Target, last_object
from tornpage.vocabulary.evidence import Field, PageView

__all__ = ["States", "hurt_pages", "page_view"]

FIELDS_MAX = 14
TEXT_MAX = 96
"""Differences that are listed of one page, and characters of one value."""
BYTES_ROW = 16
DECODE_S = 10.0
_NO_FIELDS = ("ok", "page", "space", "header_only")
"""What a target says of a page beside its contents; header_only: it decodes no more than the header."""
_REPEATED = re.compile(r"((?:[0-9a-f]{2}){1,8}?)\1{7,}")


@dataclass(frozen=True, slots=True)
class States:
    """Three folders with the files of a database, alike but for what the crash hurt."""

    before: Path
    written: Path
    after: Path

    def folders(self) -> tuple[Path, Path, Path]:
        """In order of time."""
        return self.before, self.written, self.after

    def read(self, path: str, offset: int, size: int) -> tuple[bytes, bytes, bytes]:
        """The same bytes of all three; a file that is not there has none."""
        before, written, after = (_read(folder / path, offset, size) for folder in self.folders())
        return before, written, after


def _read(path: Path, offset: int, size: int) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(size)


def hurt_pages(states: States, page_size: int) -> list[tuple[str, int]]:
    """File and number of every page that is not as it was written."""
    found = []
    names = {
        str(path.relative_to(folder))
        for folder in (states.written, states.after)
        for path in folder.rglob("*")
        if path.is_file()
    }
    for name in sorted(names):
        written, after = ((folder / name) for folder in (states.written, states.after))
        sides = [side.read_bytes() if side.is_file() else b"" for side in (written, after)]
        end = max(len(side) for side in sides)
        found += [
            (name, at // page_size)
            for at in range(0, end, page_size)
            if sides[0][at : at + page_size] != sides[1][at : at + page_size]
        ]
    return found


def page_view(
    states: States,
    path: str,
    page: int,
    page_size: int,
    sector: int,
    target: Target,
    image: Path | None = None,
) -> PageView:
    """One page, decoded where the target can. image: with the log of the crash."""
    contents = states.read(path, page * page_size, page_size)
    told = [_decode(target, folder / path, page, page_size) for folder in states.folders()]
    decoded = [_flat({k: v for k, v in one.items() if k not in _NO_FIELDS}) for one in told]
    fields = _fields(decoded) if any(decoded) else []
    if not fields or any(one.get("header_only") for one in told):
        fields += _bytes(contents)
    redo: list[str] = []
    note = ""
    places = [(str(one["space"]), str(one["page"])) for one in (told[1], told[0]) if "space" in one]
    if image is not None and places:
        redo, note = redo_of(target, image, *places[0])
    return PageView(
        path=path,
        page=page,
        size=page_size,
        sector=sector,
        sectors=_sectors(contents, page_size, sector),
        decoded=any(decoded),
        fields=tuple(fields[:FIELDS_MAX]),
        more=max(0, len(fields) - FIELDS_MAX),
        redo=tuple(redo),
        redo_note=note,
    )


def _sectors(contents: tuple[bytes, bytes, bytes], page_size: int, sector: int) -> str:
    letters = ""
    for at in range(0, page_size, sector):
        before, written, after = (side[at : at + sector] for side in contents)
        if before == written == after:
            letters += "s"
        elif after == written:
            letters += "n"
        else:
            letters += "o" if after == before else "x"
    return letters


def _decode(target: Target, file: Path, page: int, page_size: int) -> dict[str, Any]:
    """Fact -> value; nothing where the file ends before the page or the target knows no such page."""
    command = target.page_command(file, page, page_size)
    if command is None or not file.is_file() or file.stat().st_size < (page + 1) * page_size:
        return {}
    child = run_child(command.argv, command.env, DECODE_S)
    return last_object(child.stdout) or {}


def _flat(told: Mapping[str, Any]) -> dict[str, str]:
    """Lists of objects are named by the first of their facts that says which one it is."""
    facts: dict[str, str] = {}
    for name, value in told.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for item in value:
                own = dict(item)
                key = "key" if "key" in own else next(iter(own))
                row = _free(facts, f"{name} {_short(own.pop(key))}")
                facts[row] = _short(", ".join(f"{k} {_short(v)}" for k, v in own.items()))
        else:
            facts[name] = _short(value)
    return facts


def _free(facts: Mapping[str, str], name: str) -> str:
    """A damaged page may have a key twice."""
    number = 2
    free = name
    while free in facts:
        free = f"{name} ({number})"
        number += 1
    return free


def _short(value: object) -> str:
    """Bytes that repeat are counted: "20×1790"."""
    if value is None:
        return "none"
    text = " ".join(_REPEATED.sub(_counted, str(value)).split())
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"


def _counted(match: re.Match[str]) -> str:
    return f" {match[1]}×{len(match[0]) // len(match[1])} "


def _fields(decoded: list[dict[str, str]]) -> list[Field]:
    """What the page says of itself, then all that is not the same in the three states."""
    names = dict.fromkeys(name for side in (decoded[1], decoded[2], decoded[0]) for name in side)
    rows = [Field(name, *(side.get(name, "") for side in decoded)) for name in names]
    head = ("verdict", "type", "lsn")
    others = (row for row in rows if row.name not in head)
    return [row for row in rows if row.name in head] + _different(others)


def _bytes(contents: tuple[bytes, bytes, bytes]) -> list[Field]:
    ends = range(0, max(len(side) for side in contents), BYTES_ROW)
    rows = ((at, (_dump(side[at : at + BYTES_ROW]) for side in contents)) for at in ends)
    return _different(Field(f"byte {at}", *sides) for at, sides in rows)


def _dump(data: bytes) -> str:
    """In hexadecimal and as ASCII, "." for what is not printed; "" if there is none."""
    text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)
    return f"{data.hex(' ', 4)}  {text}" if data else ""


def _different(rows: Iterable[Field]) -> list[Field]:
    """What differs; what the crash hurt before the rest."""
    found = [row for row in rows if not row.before == row.written == row.after]
    return sorted(found, key=lambda row: row.after == row.written)
