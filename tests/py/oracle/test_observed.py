"""What a run has told, as the states that a crash may leave."""

from __future__ import annotations

import pytest

from tornpage.oracle.observed import ObservedOracle, observed_state
from tornpage.vocabulary.errors import GoldenRunError

ONE = observed_state({"t": "a\n", "u": "b\n"})
TWO = observed_state({"u": "b\n"})
THREE = observed_state({"u": "c\n"})


def test_a_name_that_is_no_more_told_is_gone() -> None:
    """Of one client the state is all that it tells; of several each tells its own part."""
    assert ObservedOracle({0: ONE, 1: TWO}, [1]).states == [ONE, TWO]
    clients = ObservedOracle({0: ONE, 1: TWO, 2: THREE}, [1, 2], clients={1: "x", 2: "x"})
    assert clients.states[-1] == {**ONE, **THREE}
    assert clients.parts[-1] == ("x", THREE)


def test_what_nobody_has_acknowledged_is_no_run() -> None:
    """Unless it was killed before."""
    with pytest.raises(GoldenRunError, match="acknowledged nothing"):
        ObservedOracle({0: ONE}, [])
    assert ObservedOracle({0: ONE}, [], killed=True).states == [ONE]


def test_there_is_a_state_before_the_first_commit() -> None:
    """Without it nothing could be said of a crash in that commit."""
    with pytest.raises(GoldenRunError, match="no state at `ready`"):
        ObservedOracle({1: ONE}, [1])


def test_an_acknowledgement_without_a_client_is_refused_among_others_that_have_one() -> None:
    """It would belong to nobody."""
    with pytest.raises(GoldenRunError, match="names no client"):
        ObservedOracle({0: ONE, 1: TWO, 2: THREE}, [1, 2], clients={1: "x"})
