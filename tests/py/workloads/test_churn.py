"""The workload churn: what the oracle's model says of its scripts."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.workloads.script import Script, Verb
from tornpage.workloads.workload import generate


@pytest.mark.parametrize("seed", range(5))
def test_every_statement_succeeds(seed: int) -> None:
    """There are no errors on purpose but amid a defragmentation in steps, and the same seed gives the same
    text."""
    script = generate("churn", {}, seed)
    packing = False
    for statement, step in zip(script.statements, Oracle(script).steps, strict=True):
        packing |= statement.verb is Verb.START_DEFRAGMENT
        packing &= statement.verb not in (Verb.FINISH_INDEX, Verb.ABORT_INDEX, Verb.RESTART)
        assert packing or step.error == ""
    assert generate("churn", {}, seed).text == script.text
    assert generate("churn", {}, seed + 1).text != script.text


def test_it_does_what_it_is_for() -> None:
    """Keys come back in and after the transaction that deleted them; names are used again; the table shrinks
    to a few rows, and every round grows it again."""
    script = generate("churn", {"rounds": 3}, 2)
    verbs = Counter(statement.verb for statement in script.statements)
    assert verbs[Verb.ROLLBACK] >= 6 and verbs[Verb.RENAME_TABLE] >= 3
    names = [s.table for s in script.statements if s.verb is Verb.CREATE_TABLE]
    assert max(Counter(names).values()) > 1
    sizes = [state["w"][0] for state in Oracle(script).states if "w" in state]
    assert sum(a >= 100 > b for a, b in itertools.pairwise(sizes)) >= 3
    assert min(sizes[200:]) < 10
    assert _came_back(script, same_trx=True) > 10 and _came_back(script, same_trx=False) > 10


def test_leaves_are_packed() -> None:
    """Some scripts defragment the table when it has many rows and has lost some of them."""
    seeds = [generate("churn", {}, seed) for seed in range(6)]
    verbs = (Verb.DEFRAGMENT_TABLE, Verb.START_DEFRAGMENT)
    found = [
        Oracle(script).states[step.prefix]["w"][0]
        for script in seeds
        for statement, step in zip(script.statements, Oracle(script).steps, strict=True)
        if statement.verb in verbs and statement.table == "w"
    ]
    assert len(found) >= 3 and max(found) > 40


def _came_back(script: Script, *, same_trx: bool) -> int:
    """Inserts of a key whose last delete was in the same transaction, or in an earlier one."""
    deleted: dict[bytes, str] = {}
    count = 0
    for statement in script.statements:
        if statement.table != "w":
            continue
        if statement.verb is Verb.DELETE and statement.key is not None:
            deleted[_text(statement.key["k"])] = statement.trx
        elif statement.verb is Verb.INSERT and statement.values:
            trx = deleted.pop(_text(statement.values["k"]), None)
            count += trx is not None and (trx == statement.trx != "-") is same_trx
    return count


def _text(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value
