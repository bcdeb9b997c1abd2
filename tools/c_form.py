"""Holds the C sources against what clang-format does not see: columns, and the one form of error propagation.

No line has more than 100 columns, comments included. A failure is passed on by TRY and AND_THEN (ADR 11), not
by an `if` of three lines that says the same. TRY is around the call itself, unless something stands between,
and around none that always fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 100
BY_HAND = [
    (re.compile(r"\bif \((\w+) != DB_SUCCESS\) \{\s*return \1;\s*\}"), "say TRY(...)"),
    (
        re.compile(r"(?<!else )\bif \((\w+) == DB_SUCCESS\) \{\s*\1 = [^;{}]*;\s*\}(?!\s*else)"),
        "say AND_THEN(...), or TRY(...)",
    ),
    (re.compile(r"\breturn (\w+) == DB_SUCCESS \? [^;]* : \1;"), "say TRY(...)"),
    (
        re.compile(r"\bTRY\((err_set|err_refuse|parse_error|\w*corrupt)\("),
        "it always fails: say return",
    ),
    (re.compile(r"\b(\w+) = [^;{}]*;\s*TRY\(\1\);"), "say TRY(call)"),
]


def complaints(text: str) -> Iterator[tuple[int, str]]:
    """Line and what is wrong, of one source."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > COLUMNS:
            yield number, f"{len(line)} columns, of {COLUMNS}"
    for form, better in BY_HAND:
        for found in form.finditer(text):
            yield text.count("\n", 0, found.start()) + 1, better


def main() -> int:
    """0: all sources are as they should be; else a line for each place."""
    listed = subprocess.run(
        ["git", "ls-files", "*.c", "*.h"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [
        f"{name}:{line}: {what}"
        for name in listed.stdout.split()
        for line, what in complaints((ROOT / name).read_text("utf-8"))
    ]
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
