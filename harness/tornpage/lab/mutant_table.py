"""The table of planted bugs, tests/mutants/mutants.toml.

May import: errors.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tornpage.vocabulary.errors import ConfigError

__all__ = ["Mutant", "choose_mutants", "load_mutants"]


class Mutant(BaseModel):
    """One row; tests/mutants/README.md explains the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    bug: str
    mechanism: str
    module: str
    invariants: list[int] = Field(min_length=1)
    models: list[str] = Field(min_length=1)
    options: dict[str, str] = {}


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    mutant: list[Mutant] = Field(min_length=1)


def load_mutants(path: Path) -> list[Mutant]:
    """All rows, in the order of the file. Raises ConfigError naming file and key."""
    try:
        return _Table.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).mutant
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {where}: {first['msg']}") from error


def choose_mutants(rows: list[Mutant], names: Sequence[str]) -> list[Mutant]:
    """The rows of these names, all if there are none. Raises ConfigError for an unknown one."""
    known = {row.name for row in rows}
    for name in names:
        if name not in known:
            raise ConfigError(f"no mutant {name!r}; there are: {', '.join(sorted(known))}")
    return [row for row in rows if not names or row.name in names]
