"""Which functions of C sources a change touches, by the form that clang-format gives them: the head of a
function begins in the first column, and so does its closing brace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

__all__ = ["changed_functions"]

_NAME = re.compile(r"\b([A-Za-z_]\w*)\(")
_HEAD = re.compile(r"[A-Za-z_]")
_LABEL = re.compile(r"\w+:$")


def changed_functions(old: str, new: str) -> list[str]:
    """Those in which lines differ, which are new, or which are gone, by name. Declarations are none."""
    before, after = old.splitlines(), new.splitlines()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    found: set[str] = set()
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            found |= {*_at(before, i1, i2), *_at(after, j1, j2)}
    return sorted(found)


def _at(lines: list[str], first: int, last: int) -> Iterator[str]:
    """The functions of the lines [first, last)."""
    for head, name, end in _functions(lines):
        if first <= end and head < last:
            yield name


def _functions(lines: list[str]) -> Iterator[tuple[int, str, int]]:
    """First line, name and last line of each."""
    head: int | None = None
    for number, line in enumerate(lines):
        if line == "{":
            name = _NAME.search(" ".join(lines[head:number])) if head is not None else None
            end = next((n for n in range(number, len(lines)) if lines[n] == "}"), number)
            if head is not None and name is not None:
                yield head, name[1], end
            head = None
        elif not line or line[0] in "#}/" or line.endswith(";"):
            head = None
        elif head is None and _HEAD.match(line) and not _LABEL.fullmatch(line):
            head = number
