"""The workload backup: what is woven in changes nothing of the rest."""

from __future__ import annotations

from collections import Counter

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.workloads.parse import parse_script
from tornpage.workloads.script import Lock, Script, Statement, Verb
from tornpage.workloads.workload import generate

BACKUP = {Verb.START_BACKUP, Verb.STEP_BACKUP, Verb.FINISH_BACKUP, Verb.ABORT_BACKUP}


def _backups(script: Script) -> list[Statement]:
    return [statement for statement in script.statements if statement.verb in BACKUP]


@pytest.mark.parametrize("seed", range(6))
def test_backups_succeed_and_change_nothing(seed: int) -> None:
    """Every statement about a backup succeeds; without them the states are the same ones."""
    script = generate("backup", {"phases": 6, "rows": 60}, seed)
    oracle = Oracle(script)
    errors = {step.line: step.error for step in oracle.steps}
    assert {errors[statement.line] for statement in _backups(script)} == {""}
    bare = Oracle(Script.of(s for s in script.statements if s.verb not in BACKUP))
    kept = [state for p, state in enumerate(oracle.states) if p not in oracle.backups]
    assert kept == bare.states
    for prefix in oracle.backups:
        assert oracle.states[prefix] == oracle.states[prefix - 1]
    assert parse_script(script.text).statements == script.statements


def test_all_kinds_of_backups_come() -> None:
    """Steps, finished and given up ones, with a lock and without, and ones that never end."""
    seen: Counter[str] = Counter()
    for seed in range(30):
        statements = _backups(generate("backup", {"phases": 4, "rows": 40}, seed))
        seen.update(statement.verb for statement in statements)
        seen["no lock"] += sum(statement.lock is Lock.NONE for statement in statements)
    ended = seen[Verb.FINISH_BACKUP] + seen[Verb.ABORT_BACKUP]
    assert ended < seen[Verb.START_BACKUP] < ended + 30
    assert seen[Verb.ABORT_BACKUP] > 2 and seen[Verb.STEP_BACKUP] > 50 and seen["no lock"] > 2
