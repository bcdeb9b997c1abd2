"""The table of mutants as the harness reads it, and what the score says of the rows of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tornpage.lab.hunt import CRASH_MODELS, ROUNDS, MutantRow
from tornpage.lab.mutant_table import choose_mutants, load_mutants
from tornpage.lab.mutants import TABLE, Score, bugs_page
from tornpage.vocabulary.errors import ConfigError

CAUGHT = MutantRow("a", caught=True, invariant=13, model="census", tries=1)
MISSED = MutantRow("b", baseline=7)
ROW = """
[[mutant]]
name = "a"
bug = "x"
mechanism = "It errs."
module = "buf"
invariants = [13]
models = ["kill"]
"""


def test_the_table_is_read_and_rows_are_chosen_in_its_order(tmp_path: Path) -> None:
    """An unknown name, an unknown key and a missing file are refused by name."""
    rows = load_mutants(TABLE)
    last, first = rows[-1].name, rows[0].name
    assert [row.name for row in choose_mutants(rows, [last, first])] == [first, last]
    assert choose_mutants(rows, []) == rows
    with pytest.raises(ConfigError, match="no mutant 'c'"):
        choose_mutants(rows, ["c"])
    path = tmp_path / "table.toml"
    with pytest.raises(ConfigError, match=r"table\.toml"):
        load_mutants(path)
    path.write_text(ROW + "colour = 1\n", "utf-8")
    with pytest.raises(ConfigError, match=r"mutant\.0\.colour"):
        load_mutants(path)


def test_every_crash_model_of_the_table_is_built() -> None:
    """A row that asks for another one is a failure of the harness, not an uncaught mutant."""
    assert {model for row in load_mutants(TABLE) for model in row.models} <= set(CRASH_MODELS)


def test_a_hunt_stays_within_its_states() -> None:
    """The rounds' shares add up to all states, and each round does something."""
    assert sum(effort.share for effort in ROUNDS) == pytest.approx(1)
    assert all(effort.share > 0 and effort.scale > 0 for effort in ROUNDS)


def test_the_score_and_its_exit_code() -> None:
    """0 only if all were caught; a row that the harness failed at is 2, whatever the others are."""
    assert Score((CAUGHT,)).exit_code() == 0
    both = Score((CAUGHT, MISSED))
    assert both.exit_code() == 1
    data = both.to_json()
    assert (data["mutants"], data["caught"], data["score"]) == (2, 1, 50)
    assert data["baseline_caught"] == 1
    assert [row["name"] for row in data["rows"]] == ["a", "b"]
    assert Score((CAUGHT, replace(MISSED, error="broken"))).exit_code() == 2


def test_the_page_of_bugs_tells_what_was_not_caught(tmp_path: Path) -> None:
    """One line per row of the table: wanted invariants, catch, base line."""
    path = tmp_path / "table.toml"
    path.write_text(ROW + ROW.replace('"a"', '"b"'), "utf-8")
    lines = bugs_page(load_mutants(path), Score((CAUGHT, MISSED))).splitlines()
    assert "| `a` | x | It errs. | I13 | I13, census, 1 | no |" in lines
    assert "| `b` | x | It errs. | I13 | **no** | after 7 |" in lines
