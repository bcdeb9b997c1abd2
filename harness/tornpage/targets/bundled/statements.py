"""A file of statements, a commit per line; a line may say how often:

    BEGIN; UPDATE t SET a = 1; COMMIT
    300 TIMES BEGIN; UPDATE t SET a = 2; ROLLBACK

Lines that begin with "--" are comments.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["parts_of", "statements_of"]

COMMENT = "--"
TIMES = re.compile(r"(\d+) TIMES ")


def statements_of(lines: Path) -> dict[int, str]:
    """By number of the line, without empty ones and comments."""
    text = enumerate(lines.read_text("utf-8").splitlines(), 1)
    return {number: line for number, line in text if line.strip() and not line.startswith(COMMENT)}


def parts_of(line: str) -> list[str]:
    """A line may hold several statements, as those of a transaction, and all of them many times."""
    times = TIMES.match(line)
    statements = line[times.end() :] if times else line
    parts = [part.strip() for part in statements.split(";") if part.strip()]
    return parts * (int(times[1]) if times else 1)
