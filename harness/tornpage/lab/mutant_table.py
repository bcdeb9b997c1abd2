"""The table of planted bugs: the headers of the patches in tests/mutants."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tornpage.vocabulary.codec import first_error
from tornpage.vocabulary.errors import ConfigError

__all__ = ["Mutant", "choose_mutants", "load_mutants", "read_patch"]

_LINE = re.compile(r"# ([a-z]+(?: [a-z]+)*): (\S.*)")


CrashModel = Literal["kill", "io_error", "powerloss", "nested"]
"""What hunts for a bug, in the order of a round (hunt.py)."""


class Mutant(BaseModel):
    """One row; tests/mutants/README.md explains the fields. diff: what is behind the header."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mutant: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    bug: str
    mechanism: str
    invariants: tuple[int, ...] = Field(min_length=1)
    models: tuple[CrashModel, ...] = Field(min_length=1)
    options: dict[str, str] = {}
    diff: str = Field(min_length=1)

    @property
    def name(self) -> str:
        """The name, which is also that of its patch."""
        return self.mutant


class Named(Protocol):
    """A row of a table of patches."""

    @property
    def name(self) -> str:
        """Its name."""


Row = TypeVar("Row", bound=Named)


def load_mutants(folder: Path) -> list[Mutant]:
    """All rows, by name. Raises ConfigError naming the patch and what is wrong with it."""
    rows = [_load(path) for path in sorted(folder.glob("*.patch"))]
    if not rows:
        raise ConfigError(f"{folder}: no patches")
    return rows


def read_patch(path: Path) -> tuple[list[tuple[str, str]], str]:
    """Keys and values of the lines in front of the diff, in order, and the diff. Raises ConfigError naming
    the line that is neither."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    header = list(itertools.takewhile(lambda line: not line.startswith(("--- a/", "diff ")), lines))
    fields = []
    for line in header:
        match = _LINE.fullmatch(line.rstrip("\n"))
        if match is None:
            raise ConfigError(f"{path}: {line.rstrip()!r}: expected '# key: value'")
        fields.append((match[1], match[2]))
    return fields, "".join(lines[len(header) :])


def _load(path: Path) -> Mutant:
    header, diff = read_patch(path)
    fields: dict[str, object] = {"diff": diff}
    for key, text in header:
        if key in fields:
            raise ConfigError(f"{path}: {key}: expected each key once")
        fields[key] = _value(key, text)
    try:
        row = Mutant.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_error(error)}") from error
    if row.name != path.stem:
        raise ConfigError(f"{path}: mutant: {row.name!r} is not the name of the file")
    return row


def _value(key: str, text: str) -> object:
    words = text.split()
    match key:
        case "invariants":
            return [word.removeprefix("I") for word in words]
        case "models":
            return words
        case "options":
            return dict(word.partition("=")[::2] for word in words)
    return text


def choose_mutants(rows: list[Row], names: Sequence[str]) -> list[Row]:
    """The rows of these names, all if there are none. Raises ConfigError for an unknown one."""
    known = {row.name for row in rows}
    for name in names:
        if name not in known:
            raise ConfigError(f"no mutant {name!r}; there are: {', '.join(sorted(known))}")
    return [row for row in rows if not names or row.name in names]
