"""Who has a turn, and what is mutated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tornpage.hunting.corpus import AGAIN_STATES, MUTATION, SHARE_MIN, Corpus, Look, Seen
from tornpage.live.fault_free import script_of
from tornpage.oracle.oracle import Oracle
from tornpage.plans.limits import Limits
from tornpage.vocabulary.model import FaultPlan, TrialSpec

LIMITS = Limits(states=60, depth=1)


def spec(name: str, number: int, rows: int = 4) -> TrialSpec:
    """Of a script of some inserts."""
    text = "create table t a:bigint primary a\n" + "".join(
        f"insert - t a={n}\n" for n in range(rows)
    )
    plan = FaultPlan(name="fault_free")
    return TrialSpec(
        name, "engine", f"on seed={number}", {}, "inline", {"script": text}, 1, 1, 0, plan
    )


def seeds(name: str, count: int) -> Iterator[tuple[TrialSpec, Limits]]:
    """So many scripts."""
    return iter([(spec(name, number), LIMITS) for number in range(count)])


def looks_of(
    corpus: Corpus, count: int, shows: Callable[[Look], Seen], ahead: int = 0
) -> list[Look]:
    """So many looks. shows: what each comes to; ahead: so many are under way."""
    looks: list[Look] = []
    for number in range(count):
        look = corpus.next(number)
        assert look is not None
        looks.append(look)
        if number >= ahead:
            corpus.learn(looks[number - ahead], shows(looks[number - ahead]))
    return looks


def new_marks(each: dict[str, int], work: dict[str, int]) -> Callable[[Look], Seen]:
    """Each look shows as many marks that no other does as its source says."""

    def shows(look: Look) -> Seen:
        marks = frozenset(look.number * 1000 + n for n in range(each.get(look.source, 0)))
        return Seen(marks, work.get(look.source, 100), 60)

    return shows


@pytest.mark.parametrize("ahead", [0, 8])
def test_turns_are_shared_by_work(ahead: int) -> None:
    """What is as good and takes a tenth of the time comes about ten times as often."""
    corpus = Corpus.of(1, {"cheap": seeds("cheap", 500), "dear": seeds("dear", 500)})
    shows = new_marks({"cheap": 1, "dear": 10}, {"cheap": 100, "dear": 1000})
    turns = Counter(look.source for look in looks_of(corpus, 300, shows, ahead))
    assert 6 < turns["cheap"] / turns["dear"] < 14


def test_who_shows_nothing_new_has_a_share_all_the_same() -> None:
    """An eighth of that of the best."""
    corpus = Corpus.of(1, {"good": seeds("good", 900), "bad": seeds("bad", 900)})
    turns = Counter(look.source for look in looks_of(corpus, 900, new_marks({"good": 5}, {})))
    assert 0.8 * SHARE_MIN < turns["bad"] / turns["good"] < 1.3 * SHARE_MIN


def test_each_script_of_a_campaign_comes_once_and_then_mutations() -> None:
    """In its order; there is always a next look."""
    corpus = Corpus.of(1, {"one": seeds("one", 5)})
    looks = looks_of(corpus, 40, new_marks({"one": 3, MUTATION: 1}, {}))
    own = [look.spec.config for look in looks if look.source == "one"]
    assert own == [f"on seed={number}" for number in range(5)]
    assert [look.number for look in looks] == list(range(40))
    assert all(look.parent is not None for look in looks if look.source == MUTATION)


def test_nothing_is_mutated_before_anything_was_shown() -> None:
    """The first turns are those of campaigns."""
    corpus = Corpus.of(1, {"one": seeds("one", 30)})
    assert {look.source for look in looks_of(corpus, 20, new_marks({}, {}))} == {"one"}


def test_without_scripts_and_marks_there_is_no_next_look() -> None:
    """Until one that is under way has shown something."""
    corpus = Corpus.of(1, {"one": seeds("one", 2)})
    first, second = corpus.next(0), corpus.next(1)
    assert first is not None and second is not None
    assert corpus.next(2) is None
    corpus.learn(first, Seen(frozenset(), 100, 0))
    assert corpus.next(2) is None
    corpus.learn(second, Seen(frozenset({1}), 100, 60))
    following = corpus.next(2)
    assert following is not None and following.source == MUTATION


def test_the_rare_is_mutated_most() -> None:
    """Of nine scripts that show the same and one that shows what no other does, this one; of those that show
    the same, the one that took least."""
    corpus = Corpus.of(1, {"one": seeds("one", 10)})

    def shows(look: Look) -> Seen:
        marks = {1} if look.source == MUTATION else {1, 2} if look.number == 7 else {1}
        return Seen(frozenset(marks), 50 if look.number == 3 else 100, 60)

    looks = looks_of(corpus, 300, shows)
    parents = Counter(look.parent for look in looks if look.source == MUTATION)
    assert parents.most_common(1)[0][0] == 7
    assert parents[3] > 0 and set(parents) <= {0, 3, 7}


def test_a_mutation_makes_sense_and_is_told_in_full() -> None:
    """Its script is in its spec, the model refuses nothing of it, and other states are drawn; some are the
    same script with more states."""
    corpus = Corpus.of(1, {"one": seeds("one", 10)})
    looks = looks_of(corpus, 200, new_marks({"one": 2, MUTATION: 1}, {}))
    mutations = [look for look in looks if look.source == MUTATION]
    assert len({look.spec.seed for look in mutations}) == len(mutations) > 100
    assert len({look.spec.config for look in mutations}) == len(mutations)
    for look in mutations:
        assert look.spec.workload == "inline"
        assert not any(step.error for step in Oracle(script_of(look.spec)).steps)
    again = [look for look in mutations if (look.limits.states or 0) > 60]
    assert 0.1 < len(again) / len(mutations) < 0.4
    assert (again[0].limits.states or 0) % (60 * AGAIN_STATES) == 0


def test_all_hangs_on_the_seed_and_on_what_was_shown() -> None:
    """The same looks again; others with another seed."""

    def hunt(seed: int) -> list[TrialSpec]:
        corpus = Corpus.of(seed, {"one": seeds("one", 10), "two": seeds("two", 10)})
        shows = new_marks({"one": 3, "two": 1, MUTATION: 2}, {"two": 30})
        return [look.spec for look in looks_of(corpus, 80, shows, ahead=8)]

    assert hunt(1) == hunt(1)
    assert hunt(1) != hunt(2)
