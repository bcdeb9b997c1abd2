"""The table of slips that are planted in the harness itself: the headers of tests/mutants/harness."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tornpage.lab.mutant_table import read_patch
from tornpage.vocabulary.codec import first_error
from tornpage.vocabulary.errors import ConfigError

__all__ = ["HarnessMutant", "Killer", "load_harness_mutants"]

Runner = Literal["ctest", "pytest", "campaign"]
"""What runs the tests of a line."""


class Killer(BaseModel):
    """Tests that fail with the slip. arguments: of ctest one regular expression, of pytest its paths, of
    `campaign` a planted bug of the engine, which is hunted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    runner: Runner
    arguments: tuple[str, ...] = Field(min_length=1)

    @property
    def text(self) -> str:
        """As the header has it."""
        return shlex.join([self.runner, *self.arguments])


class HarnessMutant(BaseModel):
    """One row; tests/mutants/harness/README.md explains the fields. diff: what is behind the header."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mutant: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    slip: str
    verdict: str
    killers: tuple[Killer, ...] = Field(min_length=1)
    diff: str = Field(min_length=1)

    @property
    def name(self) -> str:
        """The name, which is also that of its patch."""
        return self.mutant


def load_harness_mutants(folder: Path) -> list[HarnessMutant]:
    """All rows, by name. Raises ConfigError naming the patch and what is wrong with it."""
    rows = [_load(path) for path in sorted(folder.glob("*.patch"))]
    if not rows:
        raise ConfigError(f"{folder}: no patches")
    return rows


def _load(path: Path) -> HarnessMutant:
    header, diff = read_patch(path)
    fields: dict[str, object] = {"diff": diff}
    killers = []
    for key, text in header:
        if key == "killed by":
            killers.append(_killer(path, text))
        elif key in fields:
            raise ConfigError(f"{path}: {key}: expected each key once")
        else:
            fields[key] = text
    try:
        row = HarnessMutant.model_validate({**fields, "killers": killers})
    except ValidationError as error:
        raise ConfigError(f"{path}: {first_error(error)}") from error
    if row.name != path.stem:
        raise ConfigError(f"{path}: mutant: {row.name!r} is not the name of the file")
    return row


def _killer(path: Path, text: str) -> Killer:
    try:
        runner, *arguments = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{path}: killed by: {error}") from error
    if runner not in get_args(Runner) or not arguments or (runner != "pytest" and arguments[1:]):
        raise ConfigError(
            f"{path}: killed by: {text!r}: expected 'ctest REGEX', 'pytest PATH...' or 'campaign MUTANT'"
        )
    return Killer.model_validate({"runner": runner, "arguments": arguments})
