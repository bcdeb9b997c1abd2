"""Which functions a change touches, and whether an explanation names one of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tornpage.lab.changed import changed_functions
from tornpage.lab.explained import (
    ExplainedRow,
    ExplainedScore,
    contrast_at,
    draw_mutants,
    explained_page,
    named_at,
)
from tornpage.lab.mutant_table import Mutant, load_patches
from tornpage.lab.mutants import TABLE
from tornpage.vocabulary.cause import (
    Cause,
    Change,
    Contrast,
    Explained,
    Kind,
    Operation,
    Parted,
    Parting,
)
from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.evidence import Frame

SOURCE = """#include "a.h"

int shared;

static int first(int a,
                 int b)
{
    if (a) {
        goto out;
    }
out:
    return b;
}

void declared(int);

struct pair {
    int a;
};

dberr_t second(void)
{
    return first(1, 2);
}
"""


@pytest.mark.parametrize(
    ("old", "new", "functions"),
    [
        ("    return b;", "    return a;", ["first"]),
        ("                 int b)", "                 int c)", ["first"]),
        ("    if (a) {\n        goto out;\n    }\n", "", ["first"]),
        ("int shared;", "int other;", []),
        ("    int a;\n", "    int a, b;\n", []),
        ("void declared(int);", "void declared(long);", []),
        ("first(1, 2)", "first(2, 1)", ["second"]),
        ("int shared;", "int shared;\n\nint third(void)\n{\n    return 3;\n}", ["third"]),
    ],
)
def test_a_change_is_in_its_function(old: str, new: str, functions: list[str]) -> None:
    """Head and body; a new one too. What is in no function has no name."""
    assert old in SOURCE
    assert changed_functions(SOURCE, SOURCE.replace(old, new)) == functions
    assert changed_functions(SOURCE.replace(old, new), SOURCE) == functions
    assert changed_functions(SOURCE, SOURCE) == []


def operation(seq: int, *functions: str) -> Operation:
    frames = tuple(Frame(function, "a.c", 1) for function in functions)
    return Operation(seq, "write", "f", "write of f", "", 1, frames)


def cause(relied: Operation | None, *lost: Operation) -> Cause:
    return Cause(Kind.ORDER, "broken", lost, (), relied, 0, None, (), ())


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ("one", "A, frame 1"),
        ("then", "B, frame 1"),
        ("both", "A, frame 2"),
        ("third", "B, frame 3"),
        ("fourth", ""),
        ("", ""),
    ],
)
def test_a_function_is_named_by_the_first_frames(changed: str, named: str) -> None:
    """Of the operations that were lost and of the one that relies on them; the fourth is too far out."""
    lost = operation(2, "other"), operation(4, "one", "both", "x", "fourth")
    told = cause(operation(6, "then", "both", "third", "fourth"), *lost)
    assert named_at(told, [changed]) == named
    assert named_at(cause(None), [changed]) == ""


def test_what_came_too_late_is_a_where_nothing_was_lost() -> None:
    """The operation with which the state is right again."""
    told = replace(cause(operation(6, "then")), until=operation(8, "late", "both"))
    assert named_at(told, ["both"]) == "A, frame 2"
    assert named_at(replace(told, lost=(operation(2, "one"),)), ["both"]) == ""


def test_who_made_what_is_written_names_it_too() -> None:
    """Behind who wrote it at the same depth; the page has both."""
    changed = Change("the records", 1, 9, operation(2, "then", "put", "insert").frames)
    told = cause(replace(operation(6, "flush", "then"), change=changed), operation(2, "one"))
    assert named_at(told, ["put"]) == "change of B, frame 2"
    assert named_at(told, ["then"]) == "change of B, frame 1"
    assert named_at(told, ["flush", "then"]) == "B, frame 1"
    row = ExplainedRow("x", ("put",), "smoke: x", Explained("", told, "kept", 9))
    cell = "| `flush ← then`, of `then ← put ← insert` |  | change of B, frame 2 |"
    assert cell in explained_page(ExplainedScore((row,)), 1)


def test_recovery_names_it_where_the_run_is_not_to_blame() -> None:
    """Where it fails, else where it goes another way: of these one."""
    goes, never, fails = operation(3, "read"), operation(3, "skip"), operation(5, "refuse", "load")
    parting = Parting("with it durable", goes, never, fails, blames=True)
    told = replace(cause(operation(6, "then"), operation(2, "one")), parting=parting)
    assert named_at(told, ["load"]) == "R, frame 2"
    assert named_at(told, ["read", "skip"]) == ""
    assert named_at(replace(told, parting=replace(parting, fails=None)), ["read"]) == "R, frame 1"
    alone = replace(parting, fails=None, goes=None)
    assert named_at(replace(told, parting=alone), ["skip"]) == "R, frame 1"
    assert named_at(replace(told, parting=replace(parting, blames=False)), ["load"]) == ""
    row = ExplainedRow("x", ("load",), "smoke: x", Explained("", told, "kept", 9))
    cells = "| `one` | `then` | `refuse ← load` | R, frame 2 |"
    assert cells in explained_page(ExplainedScore((row,)), 1)


@pytest.mark.parametrize(
    ("changed", "at"),
    [
        ("is_due", "run, frame 1"),
        ("step", "run, frame 2"),
        ("main", ""),
        ("apply", "recovery, frame 1"),
        ("open", "recovery, frame 3"),
    ],
)
def test_the_contrast_names_it_by_its_first_functions(changed: str, at: str) -> None:
    """The one that both have left comes before those under way; where the recoveries part counts too."""
    run = Parted(("step", "work", "main"), "is_due", "leaves step", "calls save", 8)
    recovery = Parted(("apply", "read", "open", "main"), "", "ends", "calls read")
    found = Contrast("x", "The run ...", run, recovery)
    assert contrast_at(found, [changed]) == at
    assert contrast_at(None, [changed]) == contrast_at(replace(found, run=None), ["step"]) == ""
    told = Explained("", cause(None), "kept", 9, contrast=found)
    score = ExplainedScore((ExplainedRow("x", (changed,), "smoke: x", told),))
    assert (score.named, score.contrasted, score.either) == (0, bool(at), bool(at))
    parts = "run: behind `is_due`, `step ← work ← main`; recovery: `apply ← read ← open`"
    assert f"| {parts} | {at or 'no'} |" in explained_page(score, 1)


def test_a_seed_draws_the_same_mutants() -> None:
    """By name, each once; another seed others; not more than there are."""
    mutants = load_patches(Mutant, TABLE)
    names = [one.name for one in draw_mutants(mutants, 1, 20)]
    assert len(set(names)) == 20 and names == sorted(names)
    assert names == [one.name for one in draw_mutants(mutants, 1, 20)]
    assert names != [one.name for one in draw_mutants(mutants, 2, 20)]
    fewer = [one for one in mutants if one.name != names[0]]
    assert {one.name for one in draw_mutants(fewer, 1, 20)} > {*names[1:]}
    with pytest.raises(ConfigError, match="--count 1000: there are"):
        draw_mutants(mutants, 1, 1000)


def test_the_page_counts_what_is_named() -> None:
    """By the first frames, or as the function in which both meet; what is not explained says why."""
    lost, relied = operation(2, "a", "b", "c", "save"), operation(4, "d", "e", "f", "save")
    told = Explained("", cause(relied, lost), "kept", 9)
    score = ExplainedScore(
        (
            ExplainedRow("first", ("a",), "smoke: x", told),
            ExplainedRow("met", ("save",), "smoke: x", told),
            ExplainedRow("other", ("z",), "smoke: x", told),
            ExplainedRow("refused", ("z",), "smoke: x", None, "trial 1.0 crashes a recovery"),
        )
    )
    page = explained_page(score, 1)
    assert "**1 of 4: a function" in page
    assert "; 2 with the function in which A and B meet. 0 of 4: " in page
    row = "| `first` | `a` | order | `a ← b ← c` | `d ← e ← f` |  | A, frame 1 | `save` |  | no |"
    assert row in page.splitlines()
    assert (
        "| `refused` | `z` | trial 1.0 crashes a recovery |  |  |  | no |  |  | no |"
        in page.splitlines()
    )
    assert (score.exit_code(), ExplainedScore(score.rows[:1]).exit_code()) == (1, 0)
    assert ExplainedScore((ExplainedRow("x", error="no build"),)).exit_code() == 2
