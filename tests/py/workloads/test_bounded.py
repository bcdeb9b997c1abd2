"""The workload bounded: all sequences, each once, every statement of each as it should be."""

from __future__ import annotations

import itertools

import pytest

from tornpage.oracle.oracle import Oracle
from tornpage.plans.campaign import load_campaign
from tornpage.vocabulary.errors import WorkloadError
from tornpage.vocabulary.paths import data_folder
from tornpage.workloads.bounded import Sequence, sequences_of
from tornpage.workloads.kinds import KINDS
from tornpage.workloads.parse import parse_script
from tornpage.workloads.workload import enumerated, generate

EVERY = sequences_of(2)


def of_names(*names: str) -> list[Sequence]:
    """The sequences of statements of these names."""
    return [one for one in EVERY if tuple(kind.name for kind in one.kinds) == names]


def test_the_campaign_has_each_sequence_once() -> None:
    """All of one statement before those of two, in an order of the seed; with every configuration."""
    campaign = load_campaign("bounded", data_folder("workloads"))
    scripts = campaign.scripted()
    numbers = [script.params["sequence"] for script in scripts]
    assert sorted(numbers) == list(range(len(EVERY)))
    singles = len(sequences_of(1))
    assert max(numbers[:singles]) < singles and numbers[:singles] != sorted(numbers[:singles])
    assert len({script.label for script in scripts}) == len(EVERY)
    assert {script.seed for script in scripts} == {campaign.seed}
    crossed = campaign.changed({"cross": {"scrub": ["on", "off"]}, "scripts": 3}).scripted()
    assert [(c.options["scrub"], c.params["sequence"]) for c in crossed] == [
        (scrub, number) for number in numbers[:3] for scrub in ("on", "off")
    ]
    named = campaign.with_options({"params.sequence": "7"}).changed({"scripts": 1})
    assert [script.params for script in named.scripted()] == [{}]


def test_no_pair_is_left_out_that_can_be_issued() -> None:
    """Every kind behind every other, but for what needs a table or an index that is gone."""
    pairs = {(a.name, b.name) for one in EVERY if len(one.kinds) == 2 for a, b in [one.kinds]}
    missing = set(itertools.product([k.name for k in KINDS], repeat=2)) - pairs
    about = {kind.name for kind in KINDS if kind.about}
    gone = {("drop table", name) for name in about} | {
        ("drop index", kind.name) for kind in KINDS if kind.named
    }
    alone = {pair for pair in missing if any(k.alone for k in KINDS if k.name in pair)}
    assert missing == gone | alone
    assert {pair[0] for pair in pairs & {(k.name, "purge") for k in KINDS if k.alone}} == {
        k.name for k in KINDS if k.alone
    }


@pytest.mark.parametrize("number", range(0, len(EVERY), 61))
def test_every_statement_succeeds(number: int) -> None:
    """And is read as it is written."""
    script = generate("bounded", {"sequence": number}, number)
    assert {step.error for step in Oracle(script).steps} == {""}
    assert parse_script(script.text).statements == script.statements


def lines(one: Sequence) -> list[str]:
    """Its script, with the values of one seed."""
    return generate("bounded", {"sequence": EVERY.index(one)}, 3).text.splitlines()


@pytest.mark.parametrize("number", range(len(sequences_of(1)), len(EVERY), 97))
def test_what_comes_before_the_crashes_is_a_sequence_of_its_own(number: int) -> None:
    """All of it, the full checkpoint too, byte for byte; but for the switch of log_optimize_ddl where nothing
    is loaded."""
    one = EVERY[number]
    script = generate("bounded", {"sequence": number}, 3)
    checkpoint = tuple(kind for kind in KINDS if kind.name == "full checkpoint")
    before = one.kinds[:-1] + (checkpoint if one.checkpoint else ())
    logged = one.logged and any(kind.loads for kind in before)
    (shorter,) = (
        other
        for other in EVERY
        if (other.kinds, other.rows, other.logged, other.system, other.long, other.through)
        == (before, one.rows, logged, one.system, one.long, one.through)
        and not other.checkpoint
    )
    switch = ["set log_optimize_ddl off"] if one.logged and not logged else []
    prepared = [line for line in lines(one)[: script.prepared] if line not in switch]
    assert lines(shorter) == prepared


def test_what_a_sequence_varies() -> None:
    """Index loads, logged or not, where there are any; a checkpoint before the last one, or none."""
    pairs = of_names("update", "add index")
    assert {(one.logged, one.checkpoint) for one in pairs} == set(
        itertools.product((False, True), repeat=2)
    )
    assert {one.logged for one in of_names("update", "delete")} == {False}
    assert {one.rows for one in of_names("add index")} == {0, 10, 100}
    for single in (of_names("delete many"), of_names("delete many", "purge")):
        assert {(one.long, one.through) for one in single} == set(
            itertools.product((False, True), repeat=2)
        )
    assert not any(one.long or one.through for one in pairs)
    for one in pairs:
        text = generate("bounded", {"sequence": EVERY.index(one)}, 1).text
        assert ("set log_optimize_ddl off" in text) is one.logged
        assert text.count("checkpoint full") == 1 + one.checkpoint
        assert text.splitlines()[-1].startswith("add index t ")


def test_long_texts_have_pages_of_their_own() -> None:
    """Of every row, and each with a beginning of its own, which its index has."""
    (one,) = (s for s in of_names("insert") if s.long and s.through)
    script = generate("bounded", {"sequence": EVERY.index(one)}, 3)
    rows = [s.values for s in script.statements[: script.prepared] if s.values and s.table == "t"]
    texts = [row["x"] for row in rows]
    assert len(texts) == one.rows == len({text[:12] for text in texts})
    assert all(4096 <= len(text) <= 6000 for text in texts)
    assert "restart clean log_write_through=on" in script.text


def test_longer_ones_come_behind() -> None:
    """And a number beyond them is refused."""
    order = enumerated("bounded", {"length": 2}, 5)
    assert order[: len(sequences_of(1))] == enumerated("bounded", {"length": 1}, 5)
    assert order != enumerated("bounded", {"length": 2}, 6)
    assert enumerated("mix", {}, 5) == []
    with pytest.raises(WorkloadError, match=rf"there are {len(EVERY)}, from 0"):
        generate("bounded", {"sequence": len(EVERY)}, 1)
