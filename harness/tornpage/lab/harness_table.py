"""The table of slips that are planted in the harness itself: the headers of tests/mutants/harness."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from tornpage.lab.mutant_table import Patch

__all__ = ["HarnessMutant", "Killer"]

KILLED_BY = "killed by"
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


class HarnessMutant(Patch):
    """A slip; tests/mutants/harness/README.md explains the fields."""

    slip: str
    verdict: str
    killers: tuple[Killer, ...] = Field(min_length=1)

    @classmethod
    def fields_of(cls, header: Sequence[tuple[str, str]]) -> dict[str, object]:
        """As the base; lines of what kills it may be several."""
        others = [(key, text) for key, text in header if key != KILLED_BY]
        killers = [_killer(text) for key, text in header if key == KILLED_BY]
        return {**super().fields_of(others), "killers": killers}


def _killer(text: str) -> Killer:
    try:
        runner, *arguments = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"killed by: {error}") from error
    if runner not in get_args(Runner) or not arguments or (runner != "pytest" and arguments[1:]):
        raise ValueError(
            f"killed by: {text!r}: expected 'ctest REGEX', 'pytest PATH...' or 'campaign MUTANT'"
        )
    return Killer.model_validate({"runner": runner, "arguments": arguments})
