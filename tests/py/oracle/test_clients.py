"""Several clients at work at once: which states may a crash leave?"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tornpage.oracle.clients import judge_clients
from tornpage.oracle.observed import ObservedOracle, observed_state
from tornpage.oracle.prefixes import prefixes_of
from tornpage.oracle.state import State
from tornpage.vocabulary.errors import GoldenRunError

A, B = "a", "b"


def state(**texts: int) -> State:
    """Of each name a text that says its number."""
    return observed_state({name: f"{number}\n" for name, number in texts.items()})


TOLD: Mapping[int, State] = {
    0: state(x=9, ta=0, tb=0),
    1: state(ta=1),
    2: state(tb=1),
    4: state(tb=2),
    3: state(ta=2),
}
CLIENTS = {1: A, 2: B, 3: A, 4: B}
ORACLE = ObservedOracle(TOLD, [2, 4, 1, 3], clients=CLIENTS)


def broken(acknowledged: int, issued: int, **texts: int) -> list[int]:
    """Invariants that a state breaks, so many statements being acknowledged."""
    found = judge_clients(
        ORACLE.parts, state(**texts), ORACLE.after(acknowledged), ORACLE.after(issued)
    )
    return [violation.invariant for violation in found]


@pytest.mark.parametrize(
    ("acknowledged", "a", "b", "wanted"),
    [
        (0, 0, 0, []),
        (0, 1, 1, []),  # both under way
        (0, 0, 2, [3]),
        (2, 0, 2, []),
        (2, 1, 2, []),
        (2, 0, 1, [1]),
        (2, 1, 1, [1]),
        (3, 0, 2, [1]),
        (3, 2, 2, []),
        (4, 7, 1, [1, 2]),
    ],
)
def test_each_client_is_judged_by_itself(
    acknowledged: int, a: int, b: int, wanted: list[int]
) -> None:
    """By its last acknowledged state and the next, whatever those of the others are."""
    assert broken(acknowledged, acknowledged, x=9, ta=a, tb=b) == wanted


def test_what_is_nobodys_stays_as_it_was() -> None:
    """And nothing else is there."""
    assert broken(0, 0, x=8, ta=0, tb=0) == [2]
    assert broken(0, 0, x=9, ta=0) == [2]
    assert broken(0, 0, x=9, ta=0, tb=0, more=0) == [3]


def test_an_older_state_may_be_found_where_it_is_asked_for() -> None:
    """Of a store that promises no durability: any prefix up to the last issued one."""
    found = judge_clients(ORACLE.parts, state(x=9, ta=0, tb=1), 0, ORACLE.after(4))
    assert found == []


def test_the_whole_state_is_that_of_all_clients() -> None:
    """In the order of the acknowledgements, by which the statements are counted."""
    assert ORACLE.states[-1] == state(x=9, ta=2, tb=2)
    assert ORACLE.commit_lines == [0, 0, 0, 1, 2, 3, 4]
    assert [ORACLE.after(line) for line in range(5)] == [2, 3, 4, 5, 6]


def test_the_explorer_is_told_whose_a_prefix_is() -> None:
    """With what is this client's own."""
    told = [json.loads(line) for line in prefixes_of(ORACLE).splitlines()]
    assert [line.get("client") for line in told] == [None, A, B, B, B, A, A]
    assert [[table["name"] for table in line["tables"]] for line in told] == [
        ["x"], ["ta"], ["tb"], ["tb"], ["tb"], ["ta"], ["ta"],
    ]  # fmt: skip


@pytest.mark.parametrize("acknowledged", [[3, 1], [2, 5], [9]])
def test_numbers_grow_for_each_client(acknowledged: list[int]) -> None:
    """And each is of a client, as all are or none."""
    with pytest.raises(GoldenRunError):
        ObservedOracle({**TOLD, 5: TOLD[1], 9: {}}, acknowledged, clients={**CLIENTS, 5: ""})
