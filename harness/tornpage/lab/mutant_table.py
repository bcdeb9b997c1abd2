"""Tables of planted bugs: the headers of patches, as of those in tests/mutants."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tornpage.vocabulary.closest import unknown
from tornpage.vocabulary.codec import first_error
from tornpage.vocabulary.errors import ConfigError

__all__ = ["Mutant", "Patch", "choose_mutants", "load_patches"]

_LINE = re.compile(r"# ([a-z]+(?: [a-z]+)*): (\S.*)")


CrashModel = Literal["kill", "io_error", "powerloss", "nested"]
"""What hunts for a bug, in the order of a round (hunt.py)."""


class Patch(BaseModel):
    """A row of a table of patches: what its header says, by key. mutant: its name, also that of the file;
    diff: what is behind the header."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mutant: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    diff: str = Field(min_length=1)

    @property
    def name(self) -> str:
        """The name."""
        return self.mutant

    @classmethod
    def fields_of(cls, header: Sequence[tuple[str, str]]) -> dict[str, object]:
        """What the lines of a header, and the diff, say. ValueError."""
        keys = [key for key, _ in header]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"{key}: expected each key once")
        return dict(header)


class Mutant(Patch):
    """A planted bug; tests/mutants/README.md explains the fields."""

    bug: str
    mechanism: str
    invariants: tuple[int, ...] = Field(min_length=1)
    models: tuple[CrashModel, ...] = Field(min_length=1)
    options: dict[str, str] = {}

    @classmethod
    def fields_of(cls, header: Sequence[tuple[str, str]]) -> dict[str, object]:
        """As the base; lists are words."""
        return {key: _value(key, str(text)) for key, text in super().fields_of(header).items()}


Row = TypeVar("Row", bound=Patch)


def load_patches(kind: type[Row], folder: Path) -> list[Row]:
    """All rows, by name. Raises ConfigError naming the patch and what is wrong with it."""
    rows = [_load(kind, path) for path in sorted(folder.glob("*.patch"))]
    if not rows:
        raise ConfigError(f"{folder}: no patches")
    return rows


def _load(kind: type[Row], path: Path) -> Row:
    header, diff = _read_patch(path)
    try:
        row = kind.model_validate(kind.fields_of([*header, ("diff", diff)]))
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_error(error)}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
    if row.name != path.stem:
        raise ConfigError(f"{path}: mutant: {row.name!r} is not the name of the file")
    return row


def _read_patch(path: Path) -> tuple[list[tuple[str, str]], str]:
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
            raise ConfigError(unknown("mutant", name, sorted(known)))
    return [row for row in rows if not names or row.name in names]
