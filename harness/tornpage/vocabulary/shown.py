"""Text of others as people may see it. What a target says, what its files are called and what is in a
campaign may hold escapes that a terminal obeys, marks that turn a line around, and ends of lines. The store
and `--json` keep it as it is; whatever is printed for a person goes through here.
"""

from __future__ import annotations

import json

__all__ = ["one_line", "visible"]

_KEPT = "\n\t"


def visible(text: str) -> str:
    """The text with each character that is not printed, but for ends of lines and tabs, as JSON writes it
    ("\\u001b"), so that JSON stays the same JSON."""
    plain = text.replace("\n", "").replace("\t", "")
    if plain.isprintable():
        return text
    return "".join(c if c in _KEPT or c.isprintable() else json.dumps(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    """The same in one line: its ends of lines and tabs are visible too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")
