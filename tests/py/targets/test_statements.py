"""Files of statements: which commit a line is, and what it is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.targets.bundled.statements import parts_of, statements_of


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("DELETE FROM t", ["DELETE FROM t"]),
        ("BEGIN; DELETE FROM t; COMMIT;", ["BEGIN", "DELETE FROM t", "COMMIT"]),
        ("3 TIMES BEGIN; ROLLBACK", ["BEGIN", "ROLLBACK"] * 3),
        ("SELECT 3 TIMES ", ["SELECT 3 TIMES"]),
    ],
)
def test_a_line_is_cut_into_statements(line: str, parts: list[str]) -> None:
    """All of them as often as it says at its beginning."""
    assert parts_of(line) == parts


def test_a_number_is_that_of_the_line(tmp_path: Path) -> None:
    """Comments and empty lines have none."""
    file = tmp_path / "work.sql"
    file.write_text("-- work\nONE\n\n2 TIMES TWO\n", "utf-8")
    assert statements_of(file) == {2: "ONE", 4: "2 TIMES TWO"}
