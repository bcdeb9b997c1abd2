"""The observed oracle: the states that a fault-free run itself has shown are what a crash may leave.

A target tells its state when it is ready and after each acknowledgement, as texts by name; recovery
must come to one of them. So it needs no model, and it finds what recovery does wrong, never what the
target always does wrong.

Of several clients at work at once each tells what is its own. A crash leaves of each a state that it had by
itself, so there is a sequence of states for each: its parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import xxhash

from tornpage.oracle.state import State
from tornpage.vocabulary.errors import GoldenRunError

__all__ = [
    "NAME_MAX_BYTES",
    "KeptStates",
    "ObservedOracle",
    "Texts",
    "observed_state",
    "rows_of",
    "told_texts",
]

Texts = Mapping[str, str]
"""A state as a target tells it: texts by name."""

NAME_MAX_BYTES = 63
"""Of a text of a state: the explorer's limit for the name of a table."""


def observed_state(texts: Any) -> State:
    """A state from what a target says, an object of texts: of each the number of lines as rows, and the XXH64
    of its bytes. explorer/judge/state_json.c computes the same. Raises ValueError saying what is wrong."""
    if not isinstance(texts, dict):
        raise ValueError("no object of texts by name")
    state = {}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{name!r} is no text: make one of it, as by a JSON function")
        data = _encoded(text, f"the text of {name!r}")
        if len(_encoded(name, f"the name {name!r}")) > NAME_MAX_BYTES:
            raise ValueError(f"{name[:20]!r}...: a name has at most {NAME_MAX_BYTES} bytes")
        if "\0" in name:
            raise ValueError(f"{name!r}: a name has no zero byte")
        rows = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
        state[name] = (rows, xxhash.xxh64_intdigest(data), ())
    return state


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} has half a character: tell bytes that are no text as a hash"
        ) from error


def told_texts(output: bytes) -> dict[int, Texts]:
    """The states in what a run has printed, by the number of the statement, as far as they can be read: what
    a person is shown of them."""
    found: dict[int, Texts] = {}
    for line in output.splitlines():
        try:
            told = json.loads(line)
            found[int(told["n"])] = {str(name): str(text) for name, text in told["state"].items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # it was cut by the kill
    return found


def rows_of(text: str) -> list[tuple[str, str]]:
    """The rows of a text, each with the key that it goes by: of a JSON object its members, of an array its
    items, else lines, by their first word."""
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    if isinstance(told, dict):
        return [(str(key), f"{key}={_plain(value)}") for key, value in told.items()]
    lines = [_plain(item) for item in told] if isinstance(told, list) else text.splitlines()
    return [((line.split() or [line])[0], line) for line in lines]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class ObservedOracle:
    """What Oracle is for a script: states[p] is the state after p commits, states[0] that of `ready`;
    commit_lines[p] the number of the statement that was acknowledged then. One that changes nothing is
    no commit.

    Of several clients the number of a statement is its place among the acknowledgements, and parts[p] says
    whose commit p is, and what is this client's own behind it. The first parts have all that is
    there at `ready`: of nobody, and of each client.

    agreed: numbers of those states that another run without a fault has told too; all, where none was asked.
    """

    steps: Sequence[Any] = ()
    """No statement has a result that it should have."""
    backups: Mapping[int, Any] = MappingProxyType({})
    """None that the model knows of."""
    exports: Mapping[int, str] = MappingProxyType({})
    """As well."""
    end: int | None = None
    """None that it knows of."""

    def __init__(
        self,
        told: Mapping[int, State],
        acknowledged: Sequence[int],
        *,
        killed: bool = False,
        clients: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """told: by number of a statement, the state after it, 0 for `ready`; acknowledged: the numbers of the
        marks, in their order, none only if the run was killed; clients: who has issued a statement, nothing
        where there is but one. GoldenRunError if they do not go together."""
        self.told = told
        self.agreed = frozenset(told)
        if 0 not in told:
            raise GoldenRunError("run printed no state at `ready`: print the line with n = 0")
        if not acknowledged and not killed:
            raise GoldenRunError(
                "run acknowledged nothing: mark `issue n=1` before a commit, `ack n=1` after it"
            )
        _check_numbers(told, acknowledged, clients)
        self.commit_lines = [0]
        self.states = [told[0]]
        self.parts: list[tuple[str, State]] = []
        if clients:
            self._begin_parts(clients)
        for place, number in enumerate(acknowledged, 1):
            state = {**self.states[-1], **told[number]} if clients else told[number]
            if state == self.states[-1]:
                continue
            self.commit_lines.append(place if clients else number)
            self.states.append(state)
            if clients:
                self.parts.append((clients[number], self._own(state, self._names[clients[number]])))

    def agree(self, other: Mapping[int, State]) -> None:
        """What another run without a fault has told."""
        self.agreed = frozenset(n for n, state in self.told.items() if other.get(n) == state)

    def _begin_parts(self, clients: Mapping[int, str]) -> None:
        self._names: dict[str, set[str]] = {
            client: set() for client in sorted(set(clients.values()))
        }
        for number, client in clients.items():
            self._names[client] |= set(self.told.get(number, {}))
        ready = self.told[0]
        shared = set(ready).difference(*self._names.values())
        self.parts = [("", self._own(ready, shared))]
        for client, names in self._names.items():
            self.parts.append((client, self._own(ready, names)))
            self.states.append(ready)
            self.commit_lines.append(0)

    @staticmethod
    def _own(state: State, names: set[str]) -> State:
        return {name: state[name] for name in sorted(names) if name in state}

    def after(self, line: int) -> int:
        """The prefix after the statement of this number (0 before the first)."""
        return sum(number <= line for number in self.commit_lines) - 1

    def newest(self, finished: int, issued: int) -> int:
        """The newest prefix that may be there when the lines up to `finished` have been acknowledged."""
        return self.after(max(finished, issued))


class KeptStates:
    """Those that a run told, without that run: what is asked of an oracle once a crash has come. parts: as of
    ObservedOracle; states[p] is of no use where there are several clients."""

    exports: Mapping[int, str] = MappingProxyType({})
    backups: Mapping[int, Any] = MappingProxyType({})

    def __init__(self, states: list[State], clients: Sequence[str | None]) -> None:
        """clients: by prefix, whose it is; None of each where there is but one, or of what is there at
        `ready`."""
        self.states = states
        several = any(clients)
        self.parts = (
            [(client or "", state) for client, state in zip(clients, states, strict=True)]
            if several
            else []
        )


def _check_numbers(
    told: Mapping[int, State], acknowledged: Sequence[int], clients: Mapping[int, str]
) -> None:
    """GoldenRunError if numbers do not grow, or a state is missing."""
    last: dict[str, int] = {}
    for number in acknowledged:
        client = clients.get(number, "")
        if clients and not client:
            raise GoldenRunError(f"`ack n={number}` names no client, other marks do")
        if number <= last.get(client, 0):
            raise GoldenRunError(
                f"`ack n={number}` comes after {last.get(client, 0)}: numbers must grow from 1"
            )
        last[client] = number
        if number not in told:
            raise GoldenRunError(
                f"run printed no state after `ack n={number}`: print a line with n = {number}"
            )
