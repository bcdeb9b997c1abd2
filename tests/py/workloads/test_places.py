"""The workload places: each statement with each thing at its yield points, once."""

from __future__ import annotations

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.plans.campaign import load_campaign
from tornpage.vocabulary.errors import WorkloadError
from tornpage.vocabulary.paths import data_folder
from tornpage.workloads.full_log import LARGE_KINDS
from tornpage.workloads.kinds import KINDS
from tornpage.workloads.mid_backup import FILE, MID_BACKUP_KINDS, SYSTEM
from tornpage.workloads.parse import parse_script
from tornpage.workloads.places import ALIKE, BEHIND, EACH, FILLED, FIRST, LATER, YIELDS, places_of
from tornpage.workloads.preambles import PreambleKind
from tornpage.workloads.script import PLACED, Verb
from tornpage.workloads.workload import generate

EVERY = places_of()


def numbers(kind: str, act: str, logged: bool = False) -> list[int]:
    """Yield points of this kind at which this is done."""
    return [
        one.number for one in EVERY if (one.kind.name, one.act, one.logged) == (kind, act, logged)
    ]


def test_the_campaign_has_each_place_once() -> None:
    """In an order of the seed."""
    scripts = load_campaign("places", data_folder("workloads")).scripted()
    found = [script.params["sequence"] for script in scripts]
    assert sorted(found) == list(range(len(EVERY))) and found != sorted(found)


def test_every_kind_that_has_yield_points_has_places() -> None:
    """Each thing, at each of the first ones; full checkpoints at all. Loads with redo and without."""
    assert not set(YIELDS) & set(ALIKE)
    small = [one for one in EVERY if one.kind in KINDS]
    assert {one.kind.name for one in small} == {*YIELDS, *ALIKE}
    without = {kind.name for kind in KINDS if not kind.alone} - {*YIELDS, *ALIKE}
    assert without == {"flush table", "clean", "restart", "restart behind a crash"}
    assert numbers("drop table", "checkpoint") == list(range(1, YIELDS["drop table"] + 1))
    assert numbers("drop table", "evict") == [*range(1, EACH + 1), 24, 32, 40]
    assert numbers("add index, lock=none", "clean", logged=True) == [8, 16, 24, 32, 40]
    assert {one.kind.name for one in small if one.logged} == {k.name for k in KINDS if k.loads}


def test_large_statements_meet_a_full_log() -> None:
    """At their beginning, and at some of their many steps."""
    large = [one for one in EVERY if one.act == "fill" and one.kind not in KINDS]
    assert {one.kind for one in large} == set(LARGE_KINDS)
    assert numbers("large drop", "fill") == [*range(1, FIRST + 1), *LATER[:2]]


def test_steps_of_files_and_names_meet_a_full_log() -> None:
    """At each of their yield points."""
    small = {one.kind.name for one in EVERY if one.act == "fill" and one.kind in KINDS}
    assert small == FILLED and set(YIELDS) >= FILLED
    for name in FILLED:
        assert numbers(name, "fill") == list(range(1, YIELDS[name] + 1))


def test_statements_behind_a_preamble() -> None:
    """At the yield points that its kind names; what comes behind it, if anything, is crashed alone."""
    behind = {kind.name: kind for kind in BEHIND}
    load = behind["load of index 2 and checkpoint"]
    assert {one.kind for one in EVERY} >= set(BEHIND)
    for kind in (behind["import into changed rows"], load):
        assert numbers(kind.name, kind.act) == list(kind.numbers)
    number = next(n for n, one in enumerate(EVERY) if one.kind is load)
    script = generate("places", {"sequence": number}, number)
    preamble, rest = script.statements[: script.prepared], script.statements[script.prepared :]
    assert [one.verb for one in preamble[-3:]] == [Verb.AT, Verb.STEP_INDEX, Verb.CHECKPOINT]
    assert [one.verb for one in rest] == [Verb.STEP_INDEX] and script.over == rest[-1].line


def test_backups_stand_at_each_page() -> None:
    """While a load without redo fills the file; at one in four while what is logged changes it. They are
    crashed behind the backup."""
    amid = [one for one in EVERY if one.act == "backup"]
    assert {one.kind for one in amid} == set(MID_BACKUP_KINDS)
    assert numbers("rest of a rebuild", "backup") == list(range(1, FILE + 1))
    assert numbers("drop table", "backup") == list(range(1, FILE + 1, 4))
    script = generate("places", {"sequence": EVERY.index(amid[7])}, 7)
    verbs = [one.verb for one in script.statements[: script.prepared]]
    assert verbs[-1] is Verb.FINISH_BACKUP
    (step,) = [one for one in script.statements if one.verb is Verb.STEP_BACKUP]
    assert step.number == SYSTEM + amid[7].number


@pytest.mark.parametrize("number", range(0, len(EVERY), 101))
def test_every_statement_succeeds(number: int) -> None:
    """And is read as it is written. What is placed is the first thing behind what prepares."""
    script = generate("places", {"sequence": number}, number)
    assert {step.error for step in Oracle(script).steps} == {""}
    assert parse_script(script.text).statements == script.statements
    kind = EVERY[number].kind
    if EVERY[number].act == "backup":
        return
    if isinstance(kind, PreambleKind) and kind.then:
        return
    placed = script.statements[script.prepared]
    assert placed.verb is Verb.AT and placed.name in PLACED
    assert [one.verb for one in script.statements].count(Verb.AT) == 1


def test_a_number_beyond_them_is_refused() -> None:
    """With how many there are."""
    with pytest.raises(WorkloadError, match=rf"there are {len(EVERY)}, from 0"):
        generate("places", {"sequence": len(EVERY)}, 1)
