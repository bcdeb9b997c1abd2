"""Places whose harm comes late: behind parts that no fsync covers, in slots that two loads share, in files
that are carried elsewhere.
"""

from __future__ import annotations

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.workloads.grown import GROWN_KINDS, HALF_HOME_KINDS, OF, OLD
from tornpage.workloads.places import places_of
from tornpage.workloads.preambles import PreambleKind
from tornpage.workloads.script import Script, Verb
from tornpage.workloads.scrubbed import SCRUBBED_KINDS
from tornpage.workloads.side_by_side import ROWS_PER_PAGE, SIDE_BY_SIDE_KINDS
from tornpage.workloads.workload import generate

EVERY = places_of()


def script_of(kind: PreambleKind) -> Script:
    """Of its first place; no statement of it is refused."""
    number = next(n for n, one in enumerate(EVERY) if one.kind is kind)
    script = generate("places", {"sequence": number}, number)
    assert {step.error for step in Oracle(script).steps} == {""}
    return script


@pytest.mark.parametrize("kind", GROWN_KINDS, ids=lambda kind: kind.name)
def test_new_pages_go_home_in_parts(kind: PreambleKind) -> None:
    """In the mode that logs loads, with nothing drained; rows that go are those that came. A log that has all
    that is durable when crashes begin."""
    script = script_of(kind)
    before = script.statements[: script.prepared]
    verbs = [one.verb for one in before]
    start = next(one for one in before if one.verb is Verb.RESTART)
    by_set = Verb.SET_OPTIMIZE in verbs
    assert (start.options or {}) == {
        "optimize_ddl_drain": "off",
        "log_optimize_ddl": "on" if by_set else "off",
    }
    assert by_set is ("set" in kind.name)
    grown = before[verbs.index(Verb.AT) :]
    parts = [one.number for one in grown if one.verb is Verb.CLEAN]
    assert parts[0] == OLD and set(parts[1:]) == {OF}
    came = [one.values["k"] for one in grown if one.verb is Verb.INSERT and one.values]
    gone = [one.key["k"] for one in grown if one.verb is Verb.DELETE and one.key]
    assert gone == (came if "free" in kind.name else [])
    assert verbs[-1] is Verb.FLUSH_LOG


@pytest.mark.parametrize("kind", HALF_HOME_KINDS, ids=lambda kind: kind.name)
def test_a_load_is_given_up_while_one_page_more_is_home(kind: PreambleKind) -> None:
    """Behind a checkpoint that is not full, with another mode and nothing drained."""
    script = script_of(kind)
    before = script.statements[: script.prepared]
    ends = [n for n, one in enumerate(before) if one.verb is Verb.CHECKPOINT]
    assert [before[n].full for n in ends[-2:]] == [True, False]
    cleaned = [one.number for one in before[ends[-2] :] if one.verb is Verb.CLEAN]
    assert len(cleaned) == 2 and f"behind {cleaned[0]} pages" in kind.name and cleaned[1] == 1
    verbs = [one.verb for one in before[ends[-1] :]]
    assert Verb.SET_OPTIMIZE in verbs and verbs[-1] is Verb.ABORT_INDEX


@pytest.mark.parametrize("kind", SIDE_BY_SIDE_KINDS, ids=lambda kind: kind.name)
def test_two_loads_take_turns(kind: PreambleKind) -> None:
    """With as many pages of either as the name says. Both have sorted and loaded all when crashes begin."""
    script = script_of(kind)
    rest = script.statements[script.prepared :]
    steps = [one for one in rest if one.verb is Verb.STEP_INDEX]
    assert [one.table for one in steps] == ["m", "n"] * (len(steps) // 2)
    first, second = (1 + one.rows // ROWS_PER_PAGE for one in steps[:2])
    assert kind.name.startswith(f"two loads side by side, {first} and {second} pages")
    assert [one.verb for one in rest[-2:]] == [Verb.FINISH_INDEX] * 2
    assert script.over == rest[-1].line


@pytest.mark.parametrize("kind", SCRUBBED_KINDS, ids=lambda kind: kind.name)
def test_a_file_is_carried_elsewhere_behind_freed_pages(kind: PreambleKind) -> None:
    """Under a log that tells of each; then only another table changes."""
    script = script_of(kind)
    before, rest = script.statements[: script.prepared], script.statements[script.prepared :]
    start = next(one for one in before if one.verb is Verb.RESTART)
    assert start.options == {"log_format": "10.5", "scrub": "on"}
    last = Verb.FLUSH_EXPORT if "export" in kind.name else Verb.FINISH_BACKUP
    assert before[-1].verb is last
    assert {one.verb for one in rest} == {Verb.INSERT, Verb.CLEAN}
    assert {one.table for one in rest if one.verb is Verb.INSERT} == {"o"}
