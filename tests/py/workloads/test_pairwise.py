"""Scripts with what no script before them had come first."""

from __future__ import annotations

from itertools import combinations

import pytest

from tornpage.vocabulary.seeds import make_rng
from tornpage.workloads.pairwise import Pairwise, covering_order, kinds_of
from tornpage.workloads.parse import parse_script


def script(kinds: str, **settings: str) -> Pairwise:
    """Of a script with these kinds, a letter each."""
    return Pairwise.of(kinds, settings)


def test_what_a_script_has() -> None:
    """Each kind, each two of them whatever their order, each with each setting."""
    one = script("ba", x="1", y="2")
    assert one.kinds == {"a", "b"}
    assert one.pairs == {("a", "b")}
    assert one.settings == {(kind, pair) for kind in "ab" for pair in (("x", "1"), ("y", "2"))}
    assert len(one) == 2 + 1 + 4


@pytest.mark.parametrize(
    ("scripts", "order"),
    [
        (
            [script("a"), script("ab"), script("abc")],
            [2, 0, 1],
        ),  # kinds, and of two that add nothing the first
        ([script("ab"), script("cd"), script("ac"), script("d")], [0, 1, 2, 3]),  # then pairs
        (
            [script("ab", x="1"), script("ab", x="1"), script("ab", x="2")],
            [0, 2, 1],
        ),  # then settings
        (
            [script("abc", x="1"), script("a", x="2"), script("bc", x="2")],
            [0, 2, 1],
        ),  # most of them
        ([], []),
    ],
)
def test_the_next_script_adds_most(scripts: list[Pairwise], order: list[int]) -> None:
    """Kinds count before pairs, and pairs before settings."""
    assert covering_order(scripts) == order


def test_the_next_one_is_the_best_of_all_that_are_left() -> None:
    """As somebody finds who counts all of them anew each time."""
    rng = make_rng(7, "covering")
    scripts = [
        script("".join(rng.sample("abcdefgh", rng.randint(1, 5))), x=rng.choice("123"))
        for _ in range(40)
    ]
    left, expected, seen = list(range(40)), [], script("")
    while left:
        best = max(left, key=lambda place: (scripts[place].beyond(seen), -place))
        left.remove(best)
        expected.append(best)
        seen = seen.union(scripts[best])
    assert covering_order(scripts) == expected


def test_kinds_are_told_with_algorithm_and_lock() -> None:
    """An ALTER that copies is another kind than one that does not."""
    parsed = parse_script(
        "create table t k:bigint v:bigint primary k\n"
        "insert - t k=1 v=2\n"
        "insert - t k=2 v=2\n"
        "rebuild table t\n"
        "rebuild table t algorithm=copy\n"
        "rebuild table t algorithm=inplace lock=none\n"
    )
    kinds = (
        "create table",
        "insert",
        "rebuild table",
        "rebuild table copy",
        "rebuild table inplace none",
    )
    assert kinds_of(parsed) == kinds
    assert len(Pairwise.of(kinds, {}).pairs) == len(list(combinations(kinds, 2)))
