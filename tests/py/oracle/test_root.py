"""Findings of one cause have one root, those of different symptoms have different ones."""

from __future__ import annotations

import pytest

from tornpage.oracle.root import roots_of
from tornpage.vocabulary.model import Site, Source, Violation


def root_of(*violations: Violation) -> str:
    """The one root of the findings of one crash."""
    (root,) = {root.fingerprint for root in roots_of(violations)}
    return root


TORN = Violation(5, "recovery refused: torn page 5 of ibdata1: no doublewrite copy (bad checksum)")


def test_a_torn_page_is_one_root_whatever_is_torn_and_whoever_tells() -> None:
    """Page, file, site, how it crashed and the judge are no part of it."""
    same = [
        Violation(5, "recovery refused: torn page 0 of t1.ibd: no doublewrite copy", Site.PAGE0),
        Violation(5, "recovery refused: page 43 of t1.ibd: bad checksum"),
        Violation(
            5,
            "refused: DB_UNRECOVERABLE: torn page 7 of t2.ibd: no doublewrite copy (bad checksum)"
            " (model one-torn)",
        ),
        Violation(5, "page 7: bad checksum", path="t2.ibd"),
    ]
    assert {root_of(item) for item in same} == {root_of(TORN)} == {"state page torn"}


@pytest.mark.parametrize(
    "other",
    [
        Violation(5, "recovery refused: torn page 5 of ibdata1: no doublewrite copy (zero)"),
        Violation(4, "page 3: LSN 99 is beyond the end of the log, 80"),
        Violation(
            30, "recovery refused: page 2 of t1.ibd cannot take the MLOG_COMP_REC_INSERT at 17"
        ),
        Violation(30, "recovery refused: the log is damaged: it ends at 17"),
        Violation(30, "recovery 1 hung"),
        Violation(11, "page 1: list FREE: wrong link back"),
        Violation(30, "refused: DB_CORRUPTION: undo page 9: does not belong into the history list"),
        Violation(7, "page 4: record 3: keys do not ascend"),
        Violation(10, "rows are right, indexes are not: t1.ia is missing"),
        Violation(1, "acknowledged commits are missing: prefix 3 found, at least 4 acknowledged"),
        Violation(5, "wal: page 3 went home", source=Source.RULE),
    ],
)
def test_other_symptoms_have_other_roots(other: Violation) -> None:
    """None of them is taken for a torn page, and no name or number is in the root."""
    assert root_of(other) != root_of(TORN)
    assert not any(letter.isdigit() for letter in root_of(other))


def test_the_place_of_a_finding_is_no_part_of_it() -> None:
    """Who found it at which page, and the words of a refusal, are; the title names the damage."""
    found = [
        Violation(8, "page 3: index PRIMARY of table 4: previous page is 5, but links to 6"),
        Violation(8, "t1.ibd page 3: index ib of table 9: previous page is 7, but links to 2"),
        Violation(
            30, "refused: DB_CORRUPTION: index 4, space 1 page 9: an only child has a sibling"
        ),
    ]
    roots = [roots_of([violation])[0] for violation in found]
    assert {root.fingerprint for root in roots} == {"state tree"}
    assert roots[0].title == "tree: index PRIMARY of table #: previous page is #, but links to #"
    undo = Violation(30, "refused: DB_CORRUPTION: undo page 9: not the log of a transaction")
    assert root_of(undo) == "state undo and history"
    reserved = Violation(6, "t1.ibd page 1: reserved bytes of a descriptor page are not zero")
    assert root_of(reserved) == "state space management"


def test_one_broken_state_has_one_root_the_deepest_damage() -> None:
    """What follows from it is of the same bug, in whatever order it is told."""
    lost = Violation(1, "acknowledged commits are missing: prefix 3 found, at least 4 acknowledged")
    space = Violation(11, "page 1: list FREE: wrong link back")
    assert root_of(lost, space) == root_of(space, lost) == root_of(space)
    assert root_of(lost) != root_of(space)


def test_each_rule_is_a_root_of_its_own() -> None:
    """Beside the state's, and whatever the rule says more closely."""
    rule = [
        Violation(13, f"dblwr_skip: page 0:{n} goes home without a copy: {why}", source=Source.RULE)
        for n, why in enumerate(["the log does not initialise it", "it lies behind"])
    ]
    other = Violation(13, "skip_drain: INDEX_LOAD of index 4 at 17", source=Source.RULE)
    roots = [root.fingerprint for root in roots_of([*rule, other, TORN])]
    assert roots == ["rule dblwr_skip", "rule dblwr_skip", "rule skip_drain", "state page torn"]
