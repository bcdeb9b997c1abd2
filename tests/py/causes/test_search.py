"""The search for a cause, on stores whose rules are known: what must be lost, what must be there, and since
when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from tornpage.causes.cause import operation_of, sentence
from tornpage.causes.experiment import Choice, Experiment
from tornpage.causes.search import Crash, find_cause
from tornpage.targets.target import Part
from tornpage.vocabulary.cause import Cause, Change, Kind, Parting
from tornpage.vocabulary.errors import ChildError, ConfigError
from tornpage.vocabulary.evidence import Fate, Step
from tornpage.vocabulary.model import Violation

BROKEN = Violation(2, "a row is missing")
OTHER = Violation(5, "a page is torn")
WHAT = (2, "a row is missing")
Rule = Callable[[int, dict[int, str]], bool]
"""Of a crash after an operation, and what of each one that waits is there: is the state broken?"""


def write(seq: int, path: str = "f") -> Step:
    return Step(seq, "write", path, Fate.KEPT, offset=512 * seq, length=2048, line=seq)


def mark(seq: int, op: str, line: int) -> Step:
    return Step(seq, op, "", Fate.MARK, line=line)


class Store:
    """Stands for the explorer: crash points are operations of even numbers, as marks have numbers too."""

    def __init__(self, waiting: list[int], rule: Rule) -> None:
        self.waiting, self.rule = waiting, rule
        self.otherwise: Callable[[dict[int, str]], bool] = lambda _: False
        self.steps: dict[int, list[str]] = {}
        """Of a write that brings several, the steps."""
        self.breaks: set[str] = set()
        """Steps that break the state until one that mends it is there."""
        self.mends: set[str] = set()
        self.guards: set[str] = set()
        """Steps with which nothing breaks it."""
        self.changers: dict[int, Part] = {}
        self.asked: list[tuple[Choice, Choice]] = []
        """Of which recoveries it was asked where they go another way."""

    def parts(self, seq: int) -> tuple[Part, ...]:
        names = self.steps.get(seq, [])
        return tuple(Part(f"step {name}", n, seq - 3, ord(name)) for n, name in enumerate(names))

    def changer(self, seq: int) -> Part | None:
        return self.changers.get(seq)

    def parting(self, broken: Choice, right: Choice, than: str) -> Parting:
        assert self.violations(broken) and not self.violations(right)
        self.asked.append((broken, right))
        return Parting(than, operation_of(write(98)), None)

    def whole_parts(self, seq: int, kept: str) -> int:
        """A step per sector."""
        return min(len(kept.rstrip("0")), len(self.steps[seq]))

    def _steps_there(self, choice: Choice) -> list[str]:
        """In their order."""
        cut, count = choice.cut or (0, 0)
        there: list[str] = []
        for seq, names in self.steps.items():
            if seq <= choice.seq:
                found = choice.of.get(seq, "1" * len(names))
                kept = self.whole_parts(seq, found.partition("0")[0])
                there += names[: count if seq == cut else kept]
        return there

    def violations(self, choice: Choice) -> tuple[Violation, ...]:
        if self.steps:
            steps = self._steps_there(choice)
            there = [one in self.breaks for one in steps if one in self.breaks | self.mends]
            return (BROKEN,) if there and there[-1] and not self.guards & set(steps) else ()
        if choice.seq % 2:
            raise ChildError("there is no such state")
        there = {
            seq: choice.of.get(seq, "0" if choice.keeps else "1111")
            for seq in self.waiting
            if seq <= choice.seq or seq > BEFORE
        }
        full = {
            seq: "1111" if kept == "1" else "0000" if kept == "0" else kept
            for seq, kept in there.items()
        }
        other = (OTHER,) if self.otherwise(full) else ()
        return (BROKEN,) if self.rule(choice.seq, full) else other

    def shows(self, choice: Choice, wanted: set[tuple[int, str]]) -> bool:
        return BROKEN in self.violations(choice) and WHAT in wanted


BEFORE = 90
"""Operations with a number behind this are of before the crashes."""


def lost(kept: str | None) -> bool:
    return kept is not None and "1" not in kept


def crash(waiting: dict[int, str], steps: list[Step], seq: int) -> Crash:
    return Crash(seq, waiting, {WHAT}, BROKEN.what, steps, {})


def search(store: Store, told: Crash) -> Cause:
    return find_cause(cast(Experiment, store), told, lambda _: None)


@pytest.fixture
def steps() -> list[Step]:
    return [write(seq) for seq in range(2, 22, 2)]


def test_the_pair_is_found_among_others(steps: list[Step]) -> None:
    """Broken if 6 is lost while 12 is there; eight other writes were lost or kept too."""
    waiting = {seq: "1" if seq in (2, 12, 16) else "0000" for seq in range(2, 22, 2)}
    store = Store(list(waiting), lambda _, there: lost(there.get(6)) and "1" in there.get(12, "0"))
    cause = search(store, crash(waiting, steps, 20))
    assert cause.kind is Kind.ORDER
    assert [one.seq for one in cause.lost] == [6]
    assert [one.seq for one in cause.beside] == [12]
    assert cause.relied is not None and cause.relied.seq == 12
    assert [one.right for one in cause.counterfactuals] == [True, True]
    said = sentence(cause)
    assert (
        "operation 6) was not durable when write of 2048 bytes at 6144 of f (operation 12)" in said
    )
    assert "No fsync of f came between them." in said and "With it durable: right." in said


def test_both_of_two_must_be_lost(steps: list[Step]) -> None:
    """A smaller set is not told than is needed, and none that is larger."""
    waiting = dict.fromkeys(range(2, 22, 2), "0000")
    store = Store(list(waiting), lambda _, there: lost(there.get(4)) and lost(there.get(14)))
    cause = search(store, crash(waiting, steps, 20))
    assert [one.seq for one in cause.lost] == [4, 14]
    assert cause.beside == ()


def test_what_must_be_there_is_tried_or_not_told(steps: list[Step]) -> None:
    """Where the crash cannot be made by what is kept, nobody knows what must be."""

    class LosesOnly(Store):
        def violations(self, choice: Choice) -> tuple[Violation, ...]:
            return () if choice.keeps else super().violations(choice)

    waiting = dict.fromkeys(range(2, 22, 2), "0000")
    store = LosesOnly(list(waiting), lambda _, there: lost(there.get(4)))
    cause = search(store, crash(waiting, steps, 20))
    assert [one.seq for one in cause.lost] == [4]
    assert cause.beside == ()


def test_acknowledged_too_early() -> None:
    """Broken from an acknowledgement on, and no operation is needed for it."""
    steps = [write(2), write(4), mark(5, "ack", 7), write(6), write(8)]
    waiting = {2: "1", 4: "0000", 6: "1", 8: "0000"}
    store = Store([2, 4, 6, 8], lambda _, there: lost(there.get(4)))
    cause = search(store, crash(waiting, steps, 8))
    assert (cause.kind, cause.acknowledged) == (Kind.ACKNOWLEDGED, 7)
    assert [one.seq for one in cause.lost] == [4] and cause.beside == ()
    assert "was not durable when statement 7 was acknowledged" in sentence(cause)


def test_an_acknowledgement_behind_the_operation_that_relies_is_not_blamed() -> None:
    """The statement is acknowledged right behind write 6; it is the write that relies on 4."""
    steps = [write(2), write(4), write(6), mark(7, "ack", 9), write(8)]
    waiting = {2: "1", 4: "0000", 6: "1", 8: "1"}
    store = Store([2, 4, 6, 8], lambda _, there: lost(there.get(4)) and "1" in there.get(6, "0"))
    cause = search(store, crash(waiting, steps, 8))
    assert (cause.kind, cause.acknowledged) == (Kind.ORDER, 0)
    assert cause.relied is not None and cause.relied.seq == 6


def test_what_relies_on_it_came_first() -> None:
    """A header names what is written behind it: the crash between them loses nothing, and shows it too."""
    steps = [write(2), write(8), write(12), mark(13, "ack", 3), write(14)]
    waiting = {2: "1", 8: "1", 12: "0000", 14: "1"}
    store = Store(
        list(waiting), lambda _, there: "1" in there.get(8, "0") and lost(there.get(12, "0"))
    )
    cause = search(store, crash(waiting, steps, 14))
    assert (cause.kind, cause.acknowledged) == (Kind.ORDER, 0)
    assert [one.seq for one in cause.lost] == [12]
    assert cause.relied is not None and cause.relied.seq == 8


def test_an_operation_that_is_no_step_is_named_by_its_number() -> None:
    """An open that cuts a file waits like others, and the recording tells no step of it."""
    store = Store([2, 4], lambda _, there: lost(there.get(2)))
    cause = search(store, crash({2: "0", 4: "1"}, [write(4)], 4))
    assert [one.seq for one in cause.lost] == [2]
    assert "operation (operation 2) was lost, which breaks the state at once." in sentence(cause)


def test_a_torn_write(steps: list[Step]) -> None:
    """Whole or gone it is right."""
    waiting = {seq: "0110" if seq == 8 else "0000" for seq in range(2, 22, 2)}
    store = Store(list(waiting), lambda _, there: there.get(8, "0000") not in ("0000", "1111"))
    cause = search(store, crash(waiting, steps, 20))
    assert cause.kind is Kind.TORN
    assert [one.seq for one in cause.lost] == [8]
    assert all(one.right for one in cause.counterfactuals)
    assert "must be there as a whole or not at all" in sentence(cause)


@pytest.mark.parametrize(("since", "until"), [(8, 14), (8, 99), (0, 12), (8, 10)])
def test_nothing_is_lost(steps: list[Step], since: int, until: int) -> None:
    """Broken between two operations, whatever is lost: since when, and until when."""
    waiting = dict.fromkeys(range(2, 22, 2), "0000")
    store = Store(list(waiting), lambda seq, _: since <= seq < until)
    cause = search(store, crash(waiting, steps, 8))
    assert cause.kind is Kind.NOTHING_LOST and cause.lost == ()
    assert (cause.relied.seq if cause.relied else 0) == since
    assert (cause.until.seq if cause.until else 99) == until


def test_the_step_of_a_write_that_breaks_it_and_the_one_that_mends_it(steps: list[Step]) -> None:
    """Writes that bring several steps each are taken to pieces."""
    store = Store([], lambda _seq, _there: False)
    store.steps = {6: ["a", "b", "c"], 12: ["d"], 14: ["e", "f"]}
    store.breaks, store.mends = {"b"}, {"f"}
    told = [*steps[:1], mark(3, "issue", 7), *steps[1:4], mark(9, "issue", 8), *steps[4:]]
    cause = search(store, crash({}, told, 8))
    assert cause.relied is not None and cause.until is not None
    assert (cause.relied.seq, cause.relied.part) == (6, "step b")
    assert cause.relied.change == Change("step b", 7, ord("b")), (
        "the statement in which it was made"
    )
    assert (cause.until.seq, cause.until.part) == (14, "step f")
    assert cause.until.change == Change("step f", 8, ord("f"))
    said = sentence(cause)
    assert "f (operation 6), step b on a crash breaks it, until" in said
    assert "(operation 14), step f: these must be one step" in said


def test_the_nearest_step_that_mends_it_is_told(steps: list[Step]) -> None:
    """In the same write already, although the next one breaks it again."""
    store = Store([], lambda _seq, _there: False)
    store.steps = {6: ["a", "b", "c", "d", "e"], 8: ["f"], 10: ["g"], 12: ["h"]}
    store.breaks, store.mends = {"b", "e", "g"}, {"d", "f", "h"}
    cause = search(store, crash({}, steps, 6))
    assert cause.relied is not None and cause.until is not None
    assert (cause.relied.part, cause.until.part) == ("step b", "step d")


def test_a_torn_write_whose_steps_are_whole(steps: list[Step]) -> None:
    """The tear only ends the log there: two of its steps must be one, and not the write."""
    store = Store([8], lambda _seq, _there: False)
    store.steps = {8: ["a", "b", "c", "d", "e"]}
    store.breaks, store.mends = {"b"}, {"e"}
    cause = search(store, crash({8: "1110000", 4: "1"}, steps, 8))
    assert cause.kind is Kind.NOTHING_LOST
    assert cause.relied is not None and cause.until is not None
    assert (cause.relied.part, cause.until.part) == ("step b", "step e")
    hole = search(store, crash({8: "1110011", 4: "1"}, steps, 8))
    assert hole.relied is not None and hole.until is not None, "what is behind a hole is not there"
    assert (hole.relied.part, hole.until.part) == ("step b", "step e")
    store.steps = {}
    store.rule = lambda _, there: there.get(8, "0000") not in ("0000", "1111")
    assert search(store, crash({8: "1100"}, steps, 8)).kind is Kind.TORN


def test_what_a_recovery_finds_lost_was_there_before_it(steps: list[Step]) -> None:
    """A write of the run has a number behind the operations of the recovery, and waits all the same."""
    told = [*steps[:4], write(98)]
    store = Store([4, 98], lambda seq, there: seq >= 6 and lost(there.get(98)))
    cause = search(store, crash({4: "1", 98: "0000"}, told, 8))
    assert [one.seq for one in cause.lost] == [98]
    assert cause.relied is not None and cause.relied.seq == 6


def test_the_step_of_a_lost_write_that_must_be_there(steps: list[Step]) -> None:
    """With it there, and the rest of the write lost, all is right."""
    store = Store([], lambda _seq, _there: False)
    store.steps = {6: ["a", "b", "c"], 12: ["d", "e"]}
    store.breaks, store.guards = {"e"}, {"b"}
    cause = search(store, crash({6: "0000", 12: "1"}, steps, 14))
    assert [(one.seq, one.part) for one in cause.lost] == [(6, "step b")]
    assert cause.relied is not None and (cause.relied.seq, cause.relied.part) == (12, "step e")


def test_the_recovery_is_held_against_that_of_the_nearest_right_crash(steps: list[Step]) -> None:
    """One operation more, or right before the one, or the step of one, that breaks it."""
    store = Store([4, 6], lambda _, there: lost(there.get(4)))
    cause = search(store, crash({4: "0000", 6: "0000"}, steps, 8))
    assert cause.parting is not None and cause.parting.than == "with it durable"
    assert store.asked == [(Choice(8, {4: "0000"}), Choice(8, {}))]
    store = Store([], lambda seq, _: seq >= 8)
    cause = search(store, crash({}, steps, 10))
    assert cause.parting is not None and cause.parting.than == "right before that"
    assert store.asked == [(Choice(8, {}), Choice(6, {}))]
    store = Store([], lambda _seq, _there: False)
    store.steps, store.breaks = {6: ["a", "b", "c"]}, {"b"}
    search(store, crash({}, steps, 8))
    assert store.asked == [(Choice(6, {}, cut=(6, 2)), Choice(6, {}, cut=(6, 1)))]
    store = Store([], lambda _seq, _there: True)
    assert search(store, crash({}, steps, 8)).parting is None


def test_a_page_is_told_with_who_changed_it(steps: list[Step]) -> None:
    """And the statement in which that was; a write that brings several steps with who made the one that
    matters."""
    store = Store([4, 8], lambda _, there: lost(there.get(4)) and "1" in there.get(8, "0"))
    store.changers = {4: Part("a change", 1, 3, 5), 8: Part("another", 1, 7, 6)}
    told = [*steps[:1], mark(3, "issue", 1), *steps[1:3], mark(7, "issue", 2), *steps[3:]]
    cause = search(store, crash({4: "0000", 8: "1"}, told, 8))
    assert cause.relied is not None and cause.lost[0].seq == 4
    assert cause.lost[0].change == Change("a change", 1, 5)
    assert cause.relied.change == Change("another", 2, 6)
    assert sorted(cause.stacks) == [5, 6]
    store.steps, store.breaks = {8: ["a"]}, {"a"}
    (relied,) = [search(store, crash({}, told, 8)).relied]
    assert relied is not None and relied.change is not None
    assert (relied.part, relied.change.what) == ("step a", "step a")


def test_a_write_of_which_no_step_matters_is_told_whole(steps: list[Step]) -> None:
    """It breaks the state with none of them, so who made these says nothing."""
    store = Store([], lambda seq, _: seq >= 8)
    store.parts = lambda _: (Part("step a", 1, 1, 1),)  # type: ignore[method-assign]
    cause = search(store, crash({}, steps, 8))
    assert cause.relied is not None and (cause.relied.seq, cause.relied.part) == (8, "")


def test_a_sync_that_began_too_early(steps: list[Step]) -> None:
    """An fsync that covers the file, but whose call began before the write had ended, is named."""
    fsync = Step(10, "fsync", "f", Fate.DURABLE)
    steps = [*(step for step in steps if step.seq != 10), fsync]
    waiting = {8: "0000", 12: "1"}
    store = Store([8, 12], lambda _, there: lost(there.get(8)) and "1" in there.get(12, "0"))
    told = crash(waiting, steps, 12)
    overlapped = search(store, replace(told, began={10: 6}))
    assert "operation 10 covers its file, but began before operation 8 ended" in sentence(
        overlapped
    )
    for began in (8, 9):
        lied = search(store, replace(told, began={10: began}))
        assert "did not make it durable" in sentence(lied)


def test_a_name_whose_folder_was_not_synced(steps: list[Step]) -> None:
    """It is the folder that must be synced, and a crash that breaks something else then is told from a right
    one."""
    steps = [Step(2, "create", "f", Fate.KEPT, line=1), *steps[1:]]
    waiting = {2: "0", 4: "1"}
    store = Store([2, 4], lambda _, there: lost(there.get(2)) and "1" in there.get(4, "0"))
    store.otherwise = lambda there: not lost(there.get(2))
    cause = search(store, crash(waiting, steps, 4))
    assert "No fsync of its folder came between them." in sentence(cause)
    assert "With it durable: another finding." in sentence(cause)
    assert [one.right for one in cause.counterfactuals] == [False, True]


def test_a_crash_that_cannot_be_made(steps: list[Step]) -> None:
    store = Store([2, 4], lambda _seq, _there: False)
    with pytest.raises(ConfigError, match="operation by operation"):
        search(store, crash({2: "0", 4: "1"}, steps, 4))


def test_a_finding_in_other_words_is_followed_one_of_another_invariant_is_not(
    steps: list[Step],
) -> None:
    """A live recovery says the same in other words."""
    store = Store([2, 4], lambda _, there: lost(there.get(2)))
    told = crash({2: "0000", 4: "1"}, steps, 4)
    found = search(store, replace(told, wanted={(BROKEN.invariant, "two rows are missing")}))
    assert [one.seq for one in found.lost] == [2]
    with pytest.raises(ConfigError, match="nothing is broken"):
        search(store, replace(told, wanted={(OTHER.invariant, BROKEN.what)}))


@pytest.mark.parametrize(
    ("choice", "line"),
    [
        (Choice(9, {4: "0", 2: "0110"}), "lose 2=0110 4"),
        (Choice(9, {4: "0000"}), "lose 4"),
        (Choice(9, {}), "lose"),
        (Choice(9, {4: "1", 2: "10"}, keeps=True), "keep 2=10 4"),
        (Choice(9, {4: "0"}, keeps=True), "keep 4=0"),
    ],
)
def test_the_line_of_a_choice(choice: Choice, line: str) -> None:
    """As disk/chosen.h reads it."""
    assert choice.line == line
