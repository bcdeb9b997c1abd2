"""docs/FINDS.md has figures that commands print, and keeps those of engines that are not here."""

from __future__ import annotations

import re
from typing import Any

import finds_page

TALE = """## A find

It needs no command: {braces} stay.

| `tornpage target check some --set a=b` | {counters.early} | of {writes} |
| `tornpage run workloads/finds/some.toml --states 60` | {by_invariant} |
"""


def test_a_line_with_a_command_is_filled() -> None:
    """With what it printed each time; a counter that is not there is 0."""
    asked = []

    def ran(command: str) -> list[dict[str, Any]]:
        asked.append(command)
        if command.startswith("run"):
            return [{"by_invariant": {"I1": 3, "I10": 2}}]
        return [{"writes": 7, "counters": {"early": 2}}, {"writes": 8, "counters": {}}]

    lines = finds_page.told(TALE, [], ran).splitlines()
    assert lines[2] == "It needs no command: {braces} stay."
    assert lines[4:] == [
        "| `tornpage target check some --set a=b` | 2, 0 | of 7, 8 |",
        "| `tornpage run workloads/finds/some.toml --states 60` | I1: 3, I10: 2 |",
    ]
    assert asked == [
        "target check some --set a=b", "run workloads/finds/some.toml --states 60",
    ]  # fmt: skip


def test_what_is_not_here_keeps_what_the_page_says() -> None:
    """Line by line, and only where the rest of the line is the same."""
    filled = finds_page.told(TALE, [], lambda _command: [{"writes": 7, "by_invariant": {}}])
    assert finds_page.told(TALE, filled.splitlines(), lambda _command: None) == filled
    other = TALE.replace("a=b", "a=c")
    assert finds_page.told(other, filled.splitlines(), lambda _command: None).count("{") == 3


def test_the_page_has_every_figure_of_every_find() -> None:
    """Nothing waits to be filled, and no line of a tale is missing."""
    page = finds_page.PAGE.read_text("utf-8")
    for file in sorted(finds_page.PLANS.glob("*.md")):
        for line in file.read_text("utf-8").splitlines():
            shape = ".+".join(map(re.escape, finds_page.KEY.sub("\0", line).split("\0")))
            assert re.search(f"^{shape}$", page, re.MULTILINE), line
    named = set(re.findall(r"workloads/finds/([\w-]+\.toml)", page))
    assert named <= {file.name for file in finds_page.PLANS.glob("*.toml")}
