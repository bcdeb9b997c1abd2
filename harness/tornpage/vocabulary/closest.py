"""What to say of a name that there is not: what was meant, where one is alike, else all that there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

__all__ = ["FORMER", "meant", "some_of", "unknown"]

FORMER = {"--set": "--option", "explore.seeds": "scripts"}
"""What has another name now: options of commands, keys of files."""

SHOWN = 20
"""Names that are listed."""
GUESSES = 3


def unknown(what: str, name: str, known: Iterable[str], also: str = "") -> str:
    """A message, as: no campaign 'smokee'; did you mean 'smoke'? what: it would be; also: what else there may
    be."""
    names = list(known)
    there = f"; there are: {some_of(names, ', ') or 'none'}{also}"
    return f"no {what} {name!r}{meant(name, names) or there}"


def some_of(names: Sequence[str], between: str) -> str:
    """The first ones, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return between.join(names[:SHOWN]) + more


def meant(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """The end of such a message: "; did you mean 'smoke'?", or "" if none is alike. likeness: that one must
    have, of 1 (difflib)."""
    now = FORMER.get(name)
    alike = [now] if now else difflib.get_close_matches(name, list(known), GUESSES, likeness)
    return f"; did you mean {' or '.join(map(repr, alike))}?" if alike else ""
