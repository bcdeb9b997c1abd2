"""How commands print.

Text is never wrapped here: a terminal does that itself, and a line that is piped somewhere stays one line.
What others have written is told in one line and without what a terminal obeys (vocabulary/shown.py): commands
print by say(), by the functions of console.py, or on a console that make_console() made.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from tornpage.vocabulary.shown import one_line, visible

__all__ = ["PIPE_COLUMNS", "SCHEMA", "make_console", "plain_printer", "print_object", "say", "told"]

SCHEMA = 1
"""Of what --json prints (docs/json.schema.json): grows when a key changes its meaning."""
PIPE_COLUMNS = 10_000
"""As wide as a table may become that is piped: a line of a log is a line."""


def make_console(stderr: bool = False, quiet: bool = False) -> Console:
    """Standard output or error. The columns of a terminal fold a table; a pipe has none, whatever
    COLUMNS says."""
    stream = sys.stderr if stderr else sys.stdout
    return _Console(file=stream, quiet=quiet, width=None if stream.isatty() else PIPE_COLUMNS)


class _Console(Console):
    """Prints the styles that it is told in markup, and no other escapes."""

    def render_str(self, text: str, **how: Any) -> Text:
        """As that of rich."""
        return super().render_str(visible(text), **how)


def told(text: str) -> str:
    """Text of others, for a line with markup."""
    return escape(one_line(text))


def print_object(data: Mapping[str, Any], exit_code: int = 0) -> int:
    """The object of --json, with the version of its schema and the exit code, which is returned."""
    print(json.dumps({"schema": SCHEMA, **data, "exit_code": exit_code}))
    return exit_code


def say(text: str, file: TextIO | None = None) -> None:
    """Prints one line that may hold text of others. file: standard output."""
    print(one_line(text), file=file, flush=file is not None)


def plain_printer(console: Console) -> Callable[[str], None]:
    """What prints one line without markup."""
    write = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    return lambda text: write(one_line(text))
