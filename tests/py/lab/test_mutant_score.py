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
ROW = """# mutant: a
# bug: x
# mechanism: It errs.
# invariants: I13 I1
# models: kill
# options: doublewrite=off
--- a/engine/buf/buf.c
+++ b/engine/buf/buf.c
"""


def patches(folder: Path, *names: str) -> Path:
    """A folder of patches with these names."""
    for name in names:
        (folder / f"{name}.patch").write_text(ROW.replace("mutant: a", f"mutant: {name}"), "utf-8")
    return folder


def test_rows_are_read_and_chosen_in_the_order_of_their_names(tmp_path: Path) -> None:
    """All fields of a header; an unknown name is refused."""
    rows = load_mutants(patches(tmp_path, "b", "a"))
    assert [row.name for row in rows] == ["a", "b"]
    assert (rows[0].bug, rows[0].mechanism) == ("x", "It errs.")
    assert (rows[0].invariants, rows[0].models) == ((13, 1), ("kill",))
    assert rows[0].options == {"doublewrite": "off"}
    assert rows[0].diff == "--- a/engine/buf/buf.c\n+++ b/engine/buf/buf.c\n"
    assert choose_mutants(rows, ["b", "a"]) == choose_mutants(rows, []) == rows
    assert choose_mutants(rows, ["b"]) == rows[1:]
    with pytest.raises(ConfigError, match="no mutant 'c'"):
        choose_mutants(rows, ["c"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# bug: x\n", "# bug: x\n# colour: 1\n", "colour"),
        ("# bug: x\n", "", "bug: Field required"),
        ("# bug: x\n", "# bug: x\n# bug: y\n", "each key once"),
        ("# bug: x\n", "a bug\n", "expected '# key: value'"),
        ("I13", "thirteen", r"invariants\.0"),
        ("mutant: a", "mutant: b", "is not the name of the file"),
        ("--- a/", "--- ", r"'--- engine"),
    ],
)
def test_a_wrong_header_is_refused_by_name(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """An unknown, missing or repeated key, a wrong value, another file's name, no diff."""
    assert old in ROW
    (tmp_path / "a.patch").write_text(ROW.replace(old, new), "utf-8")
    with pytest.raises(ConfigError, match=rf"a\.patch.*{message}"):
        load_mutants(tmp_path)


def test_a_folder_without_patches_is_refused(tmp_path: Path) -> None:
    """A score of nothing would be perfect."""
    with pytest.raises(ConfigError, match="no patches"):
        load_mutants(tmp_path)


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
    rows = load_mutants(patches(tmp_path, "a", "b"))
    lines = bugs_page(rows, Score((CAUGHT, MISSED))).splitlines()
    assert "| `a` | x | It errs. | I13, I1 | I13, census, 1 | no |" in lines
    assert "| `b` | x | It errs. | I13, I1 | **no** | after 7 |" in lines
