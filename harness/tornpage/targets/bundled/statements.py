"""A file of statements: a commit per line.

May import: nothing of the package.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["parts_of", "statements_of"]

COMMENT = "--"


def statements_of(lines: Path) -> dict[int, str]:
    """By number of the line, without empty ones and comments."""
    text = enumerate(lines.read_text("utf-8").splitlines(), 1)
    return {number: line for number, line in text if line.strip() and not line.startswith(COMMENT)}


def parts_of(line: str) -> list[str]:
    """A line may hold several statements, as those of a transaction."""
    return [part.strip() for part in line.split(";") if part.strip()]
