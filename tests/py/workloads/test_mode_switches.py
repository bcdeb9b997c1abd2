"""The workload "switches": what changes the mode, and what a recovery must roll back then."""

from __future__ import annotations

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.workloads.mode_switches import EACH, HEAD, MODE_SWITCH_KINDS, PAGES
from tornpage.workloads.places import places_of
from tornpage.workloads.preambles import PreambleKind
from tornpage.workloads.script import Script, Verb
from tornpage.workloads.workload import generate

EVERY = places_of("switches")


def script_of(kind: PreambleKind, page_size: int = 4096) -> Script:
    """Of its first place."""
    number = next(n for n, one in enumerate(EVERY) if one.kind is kind)
    return generate("switches", {"sequence": number, "page_size": page_size}, number)


@pytest.mark.parametrize("kind", MODE_SWITCH_KINDS, ids=lambda kind: f"{kind.name}, {kind.act}")
def test_the_mode_changes_and_a_load_follows(kind: PreambleKind) -> None:
    """No statement is refused; the load is the next one behind the switch, to the mode that it has not had;
    nothing is logged between a full checkpoint and the switch, but for what the name says."""
    script = script_of(kind)
    assert {step.error for step in Oracle(script).steps} == {""}
    verbs = [one.verb for one in script.statements]
    at = verbs.index(Verb.SET_OPTIMIZE)
    assert verbs[at + 1] is (Verb.REBUILD_TABLE if "rebuild" in kind.name else Verb.ADD_INDEX)
    last = max(n for n, one in enumerate(script.statements[:at]) if one.verb is Verb.CHECKPOINT)
    between = set(verbs[last + 1 : at]) - {Verb.AT}
    assert between == (
        {Verb.START_BACKUP}
        if "backup" in kind.name
        else {Verb.BEGIN, Verb.INSERT, Verb.COMMIT}
        if "new pages" in kind.name
        else set()
    )
    start = next(one for one in script.statements if one.verb is Verb.RESTART)
    before = (start.options or {})["log_optimize_ddl"] == "on"
    assert script.statements[at].full is not before


@pytest.mark.parametrize("page_size", [4096, 16384, 65536])
def test_a_rollback_has_no_room_for_what_it_brings_back(page_size: int) -> None:
    """As many rows as a page holds, each of a fifth of it: one less, and one more, with all of its size."""
    script = script_of(MODE_SWITCH_KINDS[0], page_size)
    assert {step.error for step in Oracle(script).steps} == {""}
    sizes = {
        str(one.verb): {
            len(value) for value in (one.values or {}).values() if isinstance(value, bytes)
        }
        for one in script.statements
        if one.table == "m" and one.verb in (Verb.INSERT, Verb.UPDATE)
    }
    assert sizes == {"insert": {page_size // EACH - HEAD}, "update": {5}}
    assert EACH * (page_size // EACH - HEAD) < page_size < (EACH + 1) * (page_size // EACH - HEAD)
    left = {one.trx for one in script.statements if one.verb is Verb.BEGIN} - {
        one.trx for one in script.statements if one.verb in (Verb.COMMIT, Verb.ROLLBACK)
    }
    shortened = [one for one in script.statements if one.trx in left]
    assert sum(one.verb is Verb.UPDATE for one in shortened) == PAGES
