"""Scripts with instant columns: to tables of every kind, and nothing fails but what is to fail."""

from __future__ import annotations

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.workloads.script import Algorithm, Verb
from tornpage.workloads.workload import generate

SEEDS = range(1, 7)


@pytest.mark.parametrize("workload", ["mix", "storm"])
def test_instant_columns_come_and_are_refused(workload: str) -> None:
    """By one statement each; columns come by other algorithms, too."""
    ways = {Algorithm.INSTANT: 0, Algorithm.NOCOPY: 0, Algorithm.DEFAULT: 0}
    for seed in SEEDS:
        script = generate(workload, {}, seed)
        for statement, step in zip(script.statements, Oracle(script).steps, strict=True):
            added = statement.verb in (Verb.ADD_COLUMN, Verb.START_ADD_COLUMN)
            if added and statement.algorithm in ways and not step.error:
                ways[statement.algorithm] += 1
            if step.error and statement.algorithm is Algorithm.INSTANT and added:
                assert step.error == "DB_UNSUPPORTED"
    assert ways[Algorithm.INSTANT] > 0 and ways[Algorithm.DEFAULT] > 0
    assert ways[Algorithm.NOCOPY] == 0
