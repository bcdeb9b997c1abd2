"""The observed oracle: the states that an undisturbed run itself has shown are what a crash may leave.

A target tells its state when it is ready and after each acknowledgement, as texts by name; recovery
must come to one of them. So it needs no model, and it finds what recovery does wrong, never what the
target always does wrong.

May import: errors, state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import xxhash

from tornpage.oracle.state import State
from tornpage.vocabulary.errors import CensusError

__all__ = ["NAME_MAX_BYTES", "ObservedOracle", "observed_state"]

NAME_MAX_BYTES = 63
"""Of a text of a state: the explorer's limit for the name of a table."""


def observed_state(texts: Any) -> State:
    """A state from what a target says, an object of texts: of each the number of lines as rows, and the XXH64
    of its bytes. explorer/judge/told.c computes the same. Raises ValueError saying what is wrong."""
    if not isinstance(texts, dict):
        raise ValueError("no object of texts by name")
    state = {}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{name!r} is no text: make one of it, as by a JSON function")
        if len(name.encode()) > NAME_MAX_BYTES:
            raise ValueError(f"{name[:20]!r}...: a name has at most {NAME_MAX_BYTES} bytes")
        data = text.encode("utf-8", "surrogatepass")
        rows = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
        state[name] = (rows, xxhash.xxh64_intdigest(data), ())
    return state


class ObservedOracle:
    """What Oracle is for a script: states[p] is the state after p commits, states[0] that of `ready`;
    commit_lines[p] the number of the statement that was acknowledged then. One that changes nothing is
    no commit."""

    steps: Sequence[Any] = ()
    """No statement has a result that it should have."""
    backups: Mapping[int, Any] = MappingProxyType({})
    """None that the model knows of."""
    exports: Mapping[int, str] = MappingProxyType({})
    """As well."""

    def __init__(
        self, told: Mapping[int, State], acknowledged: Sequence[int], *, killed: bool = False
    ) -> None:
        """told: by number of a statement, the state after it, 0 for `ready`; acknowledged: the numbers of the
        marks, in their order, none only if the run was killed. CensusError if they do not go together."""
        self.told = told
        if 0 not in told:
            raise CensusError("run told no state at `ready`: print the line with n = 0")
        if not acknowledged and not killed:
            raise CensusError(
                "run acknowledged nothing: mark `issue n=1` before a commit, `ack n=1` after it"
            )
        for before, after in zip([0, *acknowledged], acknowledged, strict=False):
            if after <= before:
                raise CensusError(f"`ack n={after}` comes after {before}: numbers must grow from 1")
        for number in acknowledged:
            if number not in told:
                raise CensusError(
                    f"run told no state after `ack n={number}`: print a line with n = {number}"
                )
        self.commit_lines = [0]
        self.states = [told[0]]
        for number in acknowledged:
            if told[number] != self.states[-1]:
                self.commit_lines.append(number)
                self.states.append(told[number])

    def after(self, line: int) -> int:
        """The prefix after the statement of this number (0 before the first)."""
        return sum(number <= line for number in self.commit_lines) - 1
