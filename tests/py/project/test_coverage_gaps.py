"""What `make coverage` makes of gcovr's counters: ranges, reasons that must fit, the aim."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from coverage_gaps import (
    Explanations,
    Gap,
    SourceFile,
    Total,
    below_aim,
    contradicted,
    explain,
    gaps_of,
    load_table,
    read_counts,
    total_of,
)

from tornpage.vocabulary.errors import ConfigError
from tornpage.vocabulary.paths import ROOT, data_folder

FILE = "engine/buf/a.c"
SOURCE = """\
int first(int x)
{
    if (x == 1) {
        return err_set(DB_OUT_OF_MEMORY,
                       "no memory");
    }
    int err = second(x);
    if (err != 0) {
        return err;
    }
    return 0;
}

int third(int x)
{
    return x;
}
""".splitlines()
REACHED = {1: 4, 3: 4, 7: 4, 8: 4, 11: 4}
MISSED = (4, 9, 14, 16)
MEMORY = {"why": "w", "reachable": False, "text": "DB_OUT_OF_MEMORY"}


def counts(missed: tuple[int, ...] = MISSED) -> list[SourceFile]:
    """SOURCE as gcovr tells of it; line 2 is no code, line 3 has one branch of two taken."""
    hits = {**dict.fromkeys(MISSED, 1), **REACHED, **dict.fromkeys(missed, 0)}
    lines = [
        {"line_number": n, "count": hits[n], "branches": [], "gcovr/noncode": False} for n in hits
    ]
    lines[len(MISSED) + 1]["branches"] = [{"count": 4}, {"count": 0}]
    lines.append({"line_number": 2, "count": 0, "branches": [], "gcovr/noncode": True})
    functions = [{"name": "first", "lineno": 1}, {"name": "third", "lineno": 14}]
    text = json.dumps({"files": [{"file": FILE, "lines": lines, "functions": functions}]})
    return read_counts(text)


def gaps(missed: tuple[int, ...] = MISSED) -> list[Gap]:
    return list(gaps_of(counts(missed)[0], SOURCE))


def table(**reasons: dict[str, object]) -> Explanations:
    run = {"args": ["smoke"], "why": "w"}
    return Explanations.model_validate({"aim": 95, "run": [run], "reason": reasons})


def reason(
    reachable: bool = True, tested: bool | None = None, **lines: list[str]
) -> dict[str, object]:
    named = {f"a.c:{function}": texts for function, texts in lines.items()}
    return {"why": "w", "reachable": reachable, "tested": tested, "lines": named}


def test_a_range_ends_with_its_function_and_has_its_statement() -> None:
    """Line 2 is no code, so it neither is a range nor parts one."""
    found = gaps((4, 9, 11, 14, 16))
    assert [(gap.function, gap.numbers) for gap in found] == [
        ("first", (4,)),
        ("first", (9, 11)),
        ("third", (14, 16)),
    ]
    assert found[0].text == 'return err_set(DB_OUT_OF_MEMORY, "no memory");'
    assert "second(x)" in found[1].context and "second(x)" not in found[1].text
    assert found[1].where == f"{FILE}:9-11"
    assert gaps(()) == []


def test_every_range_gets_the_one_reason_that_fits() -> None:
    """By text in the range or just above it, by the whole function, or by a text of the reason's own."""
    reasons = table(memory=MEMORY, io=reason(first=["second("]), never=reason(third=["*"]))
    explained, problems = explain(gaps(), reasons)
    assert problems == []
    assert [name for _, name in explained] == ["memory", "io", "never"]


def test_what_does_not_fit_is_told() -> None:
    """A range without a reason or with two, a text that nothing fits any more, a function that is gone."""
    reasons = table(
        memory=MEMORY,
        io=reason(first=["second(", "fourth("]),
        twice=reason(first=["return err;"], gone=["*"]),
    )
    explained, problems = explain(gaps(), reasons)
    assert [name for _, name in explained] == ["memory", "", ""]
    assert len(problems) == 4
    assert problems[0].startswith(f"{FILE}:9 (first) has several reasons: io, twice")
    assert problems[1].startswith(f"{FILE}:14-16 (third) has no reason")
    assert problems[2] == "reason io: a.c:first: no uncovered line fits 'fourth('"
    assert problems[3] == "reason twice: a.c:gone: no uncovered line fits '*'"


def test_a_reason_goes_stale_when_its_line_is_reached() -> None:
    reasons = table(memory=MEMORY, io=reason(first=["second("]), never=reason(third=["*"]))
    _, problems = explain(gaps((4, 14, 16)), reasons)
    assert problems == ["reason io: a.c:first: no uncovered line fits 'second('"]


@pytest.mark.parametrize(
    ("claim", "missed_by_tests", "problem"),
    [
        (True, (4,), ""),
        (True, (4, 9), "no test of tests/c runs it"),
        (False, (4, 9), ""),
        (False, (4,), "a test of tests/c runs it"),
        (None, (4,), ""),
    ],
)
def test_a_reason_that_leans_on_the_c_tests_must_be_true(
    claim: bool | None, missed_by_tests: tuple[int, ...], problem: str
) -> None:
    reasons = table(memory=MEMORY, bytes=reason(False, claim, first=["second("]))
    explained, _ = explain(gaps((4, 9)), reasons)
    found = contradicted(explained, reasons, counts(missed_by_tests))
    assert found == ([f"{FILE}:9 (first): bytes, but {problem}"] if problem else [])


def test_only_lines_that_cannot_be_reached_are_excused() -> None:
    """The aim is asked of the rest; a folder without lines misses it."""
    reasons = table(memory=MEMORY, io=reason(True, None, first=["second("]))
    explained, _ = explain(gaps((4, 9)), reasons)
    total = total_of(counts((4, 9))[0], explained, reasons)
    assert total == Total(lines=9, covered=7, excused=1, branches=2, taken=1)
    assert total + Total() == total
    assert total.percent_of_reachable == 87.5
    assert below_aim({"engine/buf": total}, 87.5) == []
    assert below_aim({"engine/buf": total}, 88) == [
        "engine/buf: 87.50 % of the reachable lines, the aim is 88 %"
    ]
    assert len(below_aim({"engine/recv": Total()}, 95)) == 1


def test_an_unexplained_line_counts_against_the_aim() -> None:
    explained, _ = explain(gaps((4, 9)), table())
    assert total_of(counts((4, 9))[0], explained, table()).excused == 0


def test_the_table_is_read_and_errors_name_the_file(tmp_path: Path) -> None:
    """Campaigns that it names exist."""
    found = load_table(ROOT / "tools" / "coverage.toml")
    assert all((data_folder("workloads") / f"{run.args[0]}.toml").is_file() for run in found.run)
    path = tmp_path / "coverage.toml"
    with pytest.raises(ConfigError, match=r"coverage\.toml"):
        load_table(path)
    path.write_text("aim = 95\n[[run]]\nargs = []\nwhy = 'x'\n[reason]\n", "utf-8")
    with pytest.raises(ConfigError, match=r"run\.0\.args"):
        load_table(path)
