"""Places in which two things share a checkpoint interval: modes of a load, lives of a page, owners of a name;
and the blocks of a row log.
"""

from __future__ import annotations

import pytest

from tornpage.workloads.again import AGAIN_KINDS
from tornpage.workloads.places import BEHIND, places_of
from tornpage.workloads.preambles import PREAMBLE_KINDS, PreambleKind
from tornpage.workloads.row_log_blocks import ROW_LOG_KINDS, SORT_BUFFER
from tornpage.workloads.rowlog import Changes
from tornpage.workloads.script import Script, Statement, Verb
from tornpage.workloads.two_modes import TWO_MODES_KINDS
from tornpage.workloads.workload import generate

EVERY = places_of()


def script_of(kind: PreambleKind) -> Script:
    """Of its first place."""
    number = next(n for n, one in enumerate(EVERY) if one.kind is kind)
    return generate("places", {"sequence": number}, number)


def interval_of(script: Script) -> list[Statement]:
    """Statements behind the last thing that takes a checkpoint, which a crash of the engine does not."""
    ends = [
        number
        for number, one in enumerate(script.statements, start=1)
        if one.verb is Verb.CHECKPOINT or (one.verb is Verb.RESTART and one.full)
    ]
    return list(script.statements[ends[-1] :])


def test_new_places_are_a_small_part() -> None:
    """Of all places, whose time is that of their number."""
    new = set(BEHIND) - set(PREAMBLE_KINDS)
    assert new > {*TWO_MODES_KINDS, *ROW_LOG_KINDS, *AGAIN_KINDS}
    assert sum(one.kind in new for one in EVERY) < len(EVERY) * 0.15


@pytest.mark.parametrize("kind", TWO_MODES_KINDS, ids=lambda kind: kind.name)
def test_two_loads_of_one_interval_have_two_modes(kind: PreambleKind) -> None:
    """The switch comes before the last one, and nothing is drained."""
    script = script_of(kind)
    first = next(one for one in script.statements if one.verb is Verb.RESTART)
    assert first.full and (first.options or {})["optimize_ddl_drain"] == "off"
    verbs = [one.verb for one in interval_of(script)]
    loads = [n for n, verb in enumerate(verbs) if verb in (Verb.ADD_INDEX, Verb.START_INDEX)]
    switches = [n for n, verb in enumerate(verbs) if verb in (Verb.SET_OPTIMIZE, Verb.RESTART)]
    assert len(loads) >= 2 and len(switches) == 1 and loads[-2] < switches[0] < loads[-1]
    given_up = [n for n, verb in enumerate(verbs) if verb is Verb.ABORT_INDEX]
    assert len(given_up) == ("given up" in kind.name) and all(n < switches[0] for n in given_up)
    (switch,) = (
        one for one in interval_of(script) if one.verb in (Verb.SET_OPTIMIZE, Verb.RESTART)
    )
    on = (
        switch.full
        if switch.verb is Verb.SET_OPTIMIZE
        else (switch.options or {})["log_optimize_ddl"] == "on"
    )
    assert on is ((first.options or {})["log_optimize_ddl"] == "off")


@pytest.mark.parametrize("kind", ROW_LOG_KINDS[::2], ids=lambda kind: kind.name)
def test_a_row_log_has_just_gone_over_a_block(kind: PreambleKind) -> None:
    """The smallest log of the build has more than one block, and less than two."""
    script = script_of(kind)
    (start,) = (
        one for one in script.statements if one.verb in (Verb.START_INDEX, Verb.START_REBUILD)
    )
    (table,) = (
        one
        for one in script.statements
        if one.verb is Verb.CREATE_TABLE and one.table == start.table
    )
    changes = Changes(1 << 20, table.columns, "k", start.indexes)
    for one in script.statements[start.line : script.prepared]:
        if one.verb in (Verb.INSERT, Verb.UPDATE):
            changes.add(one.verb is Verb.UPDATE, True)
    block = SORT_BUFFER // len(changes.least)
    assert all(block < size for size in changes.least)
    assert all(size < 2 * block for size in changes.most)


@pytest.mark.parametrize("kind", AGAIN_KINDS[::3], ids=lambda kind: kind.name)
def test_a_place_is_taken_again_in_one_interval(kind: PreambleKind) -> None:
    """An index of one name is added twice, a table rebuilt twice, or two tables have one name."""
    statements = interval_of(script_of(kind))
    taken = [
        (one.verb, one.indexes or one.name or one.table)
        for one in statements
        if one.verb in (Verb.ADD_INDEX, Verb.REBUILD_TABLE, Verb.RENAME_TABLE)
    ]
    given = [one.table for one in statements if one.verb is Verb.CREATE_TABLE]
    assert len(set(taken)) < len(taken) or set(given) & {name for _, name in taken}
