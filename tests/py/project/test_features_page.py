"""docs/FEATURES.md: each mechanism lives where it says, is claimed by campaigns that would say if it did not
run, and bugs planted there were found by a broken state."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tornpage.lab.harness_mutants import HEADING
from tornpage.plans.campaign import load_campaign
from tornpage.vocabulary.paths import ROOT, data_folder

PAGE = (ROOT / "docs" / "FEATURES.md").read_text("utf-8")
BUGS = (ROOT / "docs" / "BUGS.md").read_text("utf-8").partition(HEADING)[0]
ASSERTED = "asserted in"
"""What is a figure and no event is claimed by a test."""


@dataclass(frozen=True)
class Mechanism:
    """A row of the page. places: files and folders; claims: counters by campaign; tests: that assert it."""

    name: str
    places: tuple[str, ...]
    claims: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


def quoted(text: str) -> tuple[str, ...]:
    """What stands in backticks."""
    return tuple(re.findall(r"`([^`]+)`", text))


def read_row(line: str) -> Mechanism:
    """A line of the table."""
    name, where, claimed, _rest = (cell.strip() for cell in line.strip("|\n").split("|"))
    claims = [
        (campaign.strip(), claim)
        for part in claimed.split(";")
        if ASSERTED not in part
        for campaign in part.partition(":")[0].split(",")
        for claim in quoted(part.partition(":")[2])
    ]
    tests = [name for part in claimed.split(";") if ASSERTED in part for name in quoted(part)]
    return Mechanism(name, quoted(where), tuple(claims), tuple(tests))


ROWS = [
    read_row(line)
    for line in PAGE.partition("| asked for by |\n")[2].partition("\n\n")[0].splitlines()[1:]
]


SOURCES = [
    (read_row(line), quoted(line.rpartition("|")[0].rpartition("|")[2]))
    for line in PAGE.partition("| a bug that is found |\n")[2].partition("\n\n")[0].splitlines()[1:]
]
"""What the sources describe, and the planted bugs that stand beside it."""


def test_the_tables_are_read() -> None:
    """Each row of both: tests that are made of them run."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert ROWS and len(SOURCES) == 23
    assert len(rows) == len(ROWS) + len(SOURCES) + len(("head", "head"))


@pytest.mark.parametrize(
    "row", [*ROWS, *(row for row, _ in SOURCES)], ids=lambda row: row.name[:40]
)
def test_a_mechanism_is_there_and_claimed(row: Mechanism) -> None:
    """Files and tests exist; the claims are those of the campaigns."""
    assert row.places and (row.claims or row.tests)
    for path in (*row.places, *row.tests):
        assert (ROOT / path).exists(), path
    for name, claim in row.claims:
        campaign = load_campaign(name, data_folder("workloads"))
        assert claim in {*campaign.claims, *campaign.run_claims}, f"{name}: {claim}"


def found_by_state() -> set[str]:
    """Planted bugs whose column of states is not empty."""
    cells = [line.split("|") for line in BUGS.splitlines() if line.startswith("| `")]
    return {row[1].strip(" `") for row in cells if row[5].strip()}


def touched(name: str) -> set[str]:
    """The files that a planted bug changes."""
    patch = (ROOT / "tests" / "mutants" / f"{name}.patch").read_text("utf-8")
    return set(re.findall(r"^\+\+\+ b/(\S+)", patch, re.MULTILINE))


def lies_in(name: str, row: Mechanism) -> bool:
    """Whether a planted bug changes a file of the row."""
    return any(path.startswith(place) for place in row.places for path in touched(name))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name[:40])
def test_bugs_planted_in_a_mechanism_were_found(row: Mechanism) -> None:
    """At least one, by a broken state; what is only a cost has none."""
    if not row.claims:
        pytest.skip("a figure: nothing of it can be broken")
    assert any(lies_in(name, row) for name in found_by_state())


@pytest.mark.parametrize(
    ("row", "bugs"), SOURCES, ids=lambda value: getattr(value, "name", "")[:40]
)
def test_each_source_has_a_bug_that_is_found(row: Mechanism, bugs: tuple[str, ...]) -> None:
    """By a broken state, and planted in a file of the row; what is only measured has none. Of a workload,
    which is no part of the engine, a test says that it finds the bug."""
    assert len(bugs) == (1 if row.claims else 0)
    assert set(bugs) <= found_by_state()
    in_engine = any(place.startswith("engine/") for place in row.places)
    assert all(lies_in(name, row) if in_engine else row.tests for name in bugs)
