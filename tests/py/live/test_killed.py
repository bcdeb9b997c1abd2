"""What a killed run of a target that observes its own states may leave."""

from __future__ import annotations

import pytest
from fake_trace import FakeTrace

from tornpage.live.killed import judge_by_own_run
from tornpage.oracle.observed import ObservedOracle
from tornpage.oracle.state import State
from tornpage.vocabulary.errors import GoldenRunError


def state(number: int) -> State:
    """Any, by number."""
    return {"rows": (1, number, ())}


def part(client: str, number: int) -> State:
    """What is a client's own."""
    return {client: (1, number, ())}


FAULT_FREE = ObservedOracle({n: state(n) for n in range(5)}, [1, 2, 3, 4])


def trace(*marks: str) -> FakeTrace:
    """Of a run that was ready."""
    return FakeTrace().marks("ready", *marks)


def test_a_run_that_does_the_same() -> None:
    """What it did not get to tell, as output that a kill has lost, is known from the fault-free one."""
    fake = trace("issue n=1", "ack n=1", "issue n=2", "ack n=2", "issue n=3")
    found = judge_by_own_run(fake.trace(), {0: state(0), 1: state(1)}, FAULT_FREE)
    assert (found.oracle.states, found.unknown) == ([state(n) for n in range(4)], "")
    assert (found.oracle.after(2), found.oracle.after(3)) == (2, 3)


def test_a_run_that_does_something_else() -> None:
    """Its own states are those that count; that of the statement under way is not known."""
    fake = trace("issue n=1", "ack n=1", "issue n=2")
    told = {0: state(0), 1: state(77)}
    found = judge_by_own_run(fake.trace(), told, FAULT_FREE)
    assert found.oracle.states == [state(0), state(77)]
    assert "statement 2 was under way" in found.unknown
    found = judge_by_own_run(fake.trace(), {**told, 2: state(78)}, FAULT_FREE)
    assert (found.oracle.states, found.unknown) == ([state(0), state(77), state(78)], "")


def test_a_state_that_no_other_run_comes_to_is_not_known() -> None:
    """A store may draw what it commits: that of the fault-free run is not that of the killed one, though both
    were in one state before. What two fault-free runs have told is known."""
    told = {0: state(0), 1: state(1)}
    drawn = ObservedOracle({n: state(n) for n in range(5)}, [1, 2, 3, 4])
    drawn.agree({0: state(0), 1: state(1), 2: state(77), 3: state(3)})
    assert drawn.agreed == {0, 1, 3}
    fake = trace("issue n=1", "ack n=1", "issue n=2")
    found = judge_by_own_run(fake.trace(), told, drawn)
    assert found.oracle.states == [state(0), state(1)]
    assert "statement 2 was under way" in found.unknown
    other = trace("issue n=1")
    assert judge_by_own_run(other.trace(), {0: state(0)}, drawn).unknown == ""


def test_nothing_was_under_way() -> None:
    """Between two statements all states are known; before the first there is one."""
    fake = trace("issue n=1", "ack n=1")
    assert judge_by_own_run(fake.trace(), {0: state(0), 1: state(9)}, FAULT_FREE).unknown == ""
    assert judge_by_own_run(trace().trace(), {0: state(9)}, FAULT_FREE).oracle.states == [state(9)]


def test_several_clients_are_under_way() -> None:
    """Each with its last statement, whose state it may have told before."""
    fake = trace(
        "issue n=1 client=a", "issue n=2 client=b", "ack n=2 client=b", "issue n=4 client=b"
    )
    told = {0: {**part("a", 0), **part("b", 0)}, 1: part("a", 1), 2: part("b", 2)}
    found = judge_by_own_run(fake.trace(), told, FAULT_FREE)
    assert "statement 4 was under way" in found.unknown
    found = judge_by_own_run(fake.trace(), {**told, 4: part("b", 4)}, FAULT_FREE)
    assert found.unknown == ""
    assert [client for client, _part in found.oracle.parts] == ["", "a", "b", "b", "a", "b"]
    assert found.oracle.after(1) == 3


@pytest.mark.parametrize(
    "fake", [FakeTrace().marks("other"), trace("issue n=1", "ack n=1")], ids=["early", "untold"]
)
def test_what_cannot_be_judged(fake: FakeTrace) -> None:
    """It was not ready, or a state that was acknowledged is not known."""
    with pytest.raises(GoldenRunError):
        judge_by_own_run(fake.trace(), {0: state(9)}, FAULT_FREE)
