"""The invariants, read from the page that defines them: docs/INVARIANTS.md."""

from __future__ import annotations

import re
from pathlib import Path

from tornpage.vocabulary.errors import ConfigError

__all__ = ["load_invariants"]

_ROW = re.compile(r"^\| (I\d+) \| (.+?) \|", re.MULTILINE)


def load_invariants(page: Path) -> dict[str, str]:
    """By number, as "I7", what must hold. Raises ConfigError if the page has no such table."""
    try:
        found = dict(_ROW.findall(page.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"{page}: {error.strerror}") from error
    if not found:
        raise ConfigError(f"{page} has no table of invariants")
    return found
