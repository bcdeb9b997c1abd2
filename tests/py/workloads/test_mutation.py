"""New scripts are made of what old ones have."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tornpage.vocabulary.seeds import make_rng
from tornpage.workloads.mutation import PAUSES, mutated
from tornpage.workloads.parse import parse_script
from tornpage.workloads.script import Algorithm, Lock, Statement, Verb

PARENT = parse_script(
    "create table t a:bigint primary a\n"
    + "".join(f"insert - t a={n}\n" for n in range(20))
    + "rebuild table t\n"
).statements
DONOR = parse_script(
    "create table u b:bigint primary b\n" + "".join(f"insert - u b={n}\n" for n in range(20))
).statements


def child(seed: int) -> list[Statement]:
    """Of the two."""
    return mutated(PARENT, DONOR, make_rng(seed, "child"))


def plain(one: Statement) -> Statement:
    """Without what a mutation may change in place."""
    return replace(one, line=0, algorithm=Algorithm.DEFAULT, lock=Lock.DEFAULT)


def test_the_seed_makes_the_child() -> None:
    """The same one again, and hardly ever the one of another seed."""
    assert child(1) == child(1)
    assert len({tuple(one.text() for one in child(seed)) for seed in range(50)}) > 40


def test_a_child_has_what_its_parents_have() -> None:
    """And what can stand anywhere."""
    known = {plain(one).text() for one in (*PARENT, *DONOR, *PAUSES)}
    for seed in range(200):
        assert {plain(one).text() for one in child(seed)} <= known


def test_each_way_to_change_a_script_comes() -> None:
    """Statements go, come again, move, come from the other one and from nowhere, and ask for another lock."""
    seen = Counter[str]()
    own = Counter(one.text() for one in PARENT)
    theirs = {one.text() for one in DONOR}
    for seed in range(200):
        texts = [one.text() for one in child(seed)]
        count = Counter(texts)
        seen["gone"] += bool(own - count)
        seen["again"] += any(count[text] > own[text] for text in own)
        seen["moved"] += count == own and texts != [one.text() for one in PARENT]
        seen["theirs"] += bool(theirs.intersection(texts))
        seen["pause"] += any(one.verb in (Verb.CHECKPOINT, Verb.PURGE) for one in child(seed))
        seen["otherwise"] += any(one.lock is not Lock.DEFAULT for one in child(seed))
    assert (
        min(seen[name] for name in ("gone", "again", "moved", "theirs", "pause", "otherwise")) > 9
    )


def test_an_empty_script_can_get_some() -> None:
    """Nothing is asked of what is not there."""
    assert any(mutated((), DONOR, make_rng(seed, "x")) for seed in range(20))
    assert [mutated((), (), make_rng(seed, "x")) for seed in range(20)].count([]) > 5


def test_lines_of_another_language_stay_among_themselves() -> None:
    """Nothing of the engine's gets between them."""
    lines = [Statement(0, Verb.LINE, name=f"put {n}") for n in range(9)]
    others = [Statement(0, Verb.LINE, name=f"get {n}") for n in range(9)]
    children = [mutated(lines, others, make_rng(seed, "child")) for seed in range(200)]
    assert {one.verb for child in children for one in child} == {Verb.LINE}
    assert any("get" in one.name for child in children for one in child)
