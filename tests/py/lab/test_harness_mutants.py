"""Slips in the harness: which tests count as a kill, what is no answer, and what is kept; on a project of one
C program and one Python module."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tiny_project import change, make_project

from tornpage.lab.harness_mutants import (
    HarnessRow,
    HarnessScore,
    HarnessSources,
    check_harness,
    harness_page,
    run_harness,
    write_bugs,
)
from tornpage.lab.harness_table import HarnessMutant, Killer
from tornpage.lab.mutant_table import load_patches
from tornpage.vocabulary.errors import ConfigError
from tornpage.workers.context import QuietProgress

pytestmark = pytest.mark.extended

MODULE = "harness/tornpage/judged.py"
TEST = "tests/test_judged.py"
CTEST = Killer(runner="ctest", arguments=("^main_returns_zero$",))
PYTEST = Killer(runner="pytest", arguments=(TEST,))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The project, and a package of our name whose module says 1."""
    root = make_project(tmp_path / "root")
    (root / "harness" / "tornpage").mkdir(parents=True)
    for name in (
        "__init__.py",
        "pytest_plugin.py",
    ):  # which an installed package has told pytest of
        (root / "harness" / "tornpage" / name).touch()
    (root / MODULE).write_text("# A module.\nANSWER = 1\n", "utf-8")
    (root / "tests").mkdir()
    (root / TEST).write_text(
        "from tornpage.judged import ANSWER\n\n\ndef test_answer():\n    assert ANSWER == 1\n",
        "utf-8",
    )
    return root


def slip(name: str, diff: str, *killers: Killer) -> HarnessMutant:
    """A mutant with these tests."""
    return HarnessMutant(mutant=name, slip="It errs.", verdict="All.", killers=killers, diff=diff)


def run(root: Path, *mutants: HarnessMutant) -> HarnessScore:
    """Of the project, with what earlier calls have kept."""
    sources = HarnessSources(root)
    kept, copies = root.parent / "out", root.parent / "copies"
    return run_harness(list(mutants), sources, 1, kept, QuietProgress(), copies)


def test_a_failing_assertion_kills_and_nothing_else_does(root: Path) -> None:
    """In C and in Python, by the first line of tests that fails; a slip that no test sees is told. The
    sources are never written."""
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    in_c = slip("in_c", change("return 0;", "return 3;"), CTEST)
    in_python = slip("in_python", change("ANSWER = 1", "ANSWER = 2", MODULE), CTEST, PYTEST)
    unseen = slip("unseen", change("return 0;", "return 0 * 2;"), CTEST, PYTEST)
    score = run(root, in_c, in_python, unseen)
    assert [(row.killer, row.test, row.error) for row in score.rows] == [
        (CTEST.text, "main_returns_zero", ""),
        (PYTEST.text, "test_judged::test_answer", ""),
        ("", "", ""),
    ]
    assert (score.killed, score.exit_code()) == (2, 1)
    assert [row["killed"] for row in score.to_json()["rows"]] == [True, True, False]
    assert before == {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("code", "killed", "exit_code"), [(0, 0, 1), (1, 1, 0), (2, 0, 2)])
def test_a_hunt_that_finds_no_more_kills(
    root: Path, code: int, killed: int, exit_code: int
) -> None:
    """The command line of the copy hunts for a planted bug: found, not found, could not hunt."""
    main = root / "harness" / "tornpage" / "__main__.py"
    main.write_text(
        "import sys\n\nfrom tornpage.judged import ANSWER\n\n"
        'assert sys.argv[1:4] == ["mutants", "--only", "dblwr_off"]\n'
        "sys.exit(ANSWER - 1)\n",
        "utf-8",
    )
    diff = change("ANSWER = 1", f"ANSWER = {code + 1}  # still", MODULE)
    score = run(root, slip("any", diff, Killer(runner="campaign", arguments=("dblwr_off",))))
    assert (score.killed, score.exit_code()) == (killed, exit_code)
    assert score.rows[0].test == ("dblwr_off is not caught" if killed else "")


def test_what_cannot_be_run_is_no_kill(root: Path) -> None:
    """A patch that does not fit, compile or parse, and tests that cannot be collected: exit code 2."""
    stale = slip("stale", change("return 7;", "return 3;"), CTEST)
    wrong_c = slip("wrong_c", change("return 0;", "return nowhere;"), CTEST)
    wrong_python = slip("wrong_python", change("ANSWER = 1", "ANSWER = (", MODULE), PYTEST)
    uncollected = slip("uncollected", change("ANSWER = 1", "OTHER = 1", MODULE), PYTEST)
    score = run(root, stale, wrong_c, wrong_python, uncollected)
    assert (score.killed, score.exit_code()) == (0, 2)
    wanted = ("does not apply", "does not compile: .*nowhere", "judged.py: ", "pytest tests/test_j")
    for row, text in zip(score.rows, wanted, strict=True):
        assert re.search(text, row.error)
    with pytest.raises(
        ConfigError, match=r"3 slips do not apply or compile(.|\n)*stale(.|\n)*wrong_p"
    ):
        check_harness(
            [stale, wrong_c, wrong_python, uncollected],
            HarnessSources(root),
            1,
            QuietProgress(),
            root.parent / "copies",
        )


@pytest.mark.parametrize("killer", [CTEST, PYTEST], ids=["ctest", "pytest"])
def test_tests_must_pass_without_a_slip(root: Path, killer: Killer) -> None:
    """Otherwise they would kill everything."""
    text = (root / TEST).read_text("utf-8")
    (root / TEST).write_text(text.replace("== 1", "== 5"), "utf-8")
    source = (root / "engine" / "main.c").read_text("utf-8")
    (root / "engine" / "main.c").write_text(source.replace("return 0", "return 1"), "utf-8")
    unseen = slip("unseen", change("return 1;", "return 1 * 1;"), killer)
    score = run(root, slip("any", change("ANSWER = 1", "ANSWER = 2", MODULE), killer), unseen)
    assert (score.killed, score.exit_code()) == (0, 2)
    assert all(row.error.startswith(f"without the slip too: {killer.text}") for row in score.rows)


@pytest.mark.parametrize(
    "killer",
    [
        Killer(runner="ctest", arguments=("nowhere",)),
        Killer(runner="pytest", arguments=("tests/x.py",)),
    ],
    ids=["ctest", "pytest"],
)
def test_tests_that_do_not_exist_are_told(root: Path, killer: Killer) -> None:
    """A name that fits nothing is a mistake of the header."""
    score = run(root, slip("any", change("ANSWER = 1", "ANSWER = 2", MODULE), killer))
    assert score.exit_code() == 2
    assert score.rows[0].error.startswith(f"without the slip too: {killer.text}")


def test_kills_are_kept_until_something_changes(root: Path) -> None:
    """What a test in C depends on is C; a survivor is tried again every time."""
    in_c = slip("in_c", change("return 0;", "return 3;"), CTEST)
    unseen = slip("unseen", change("return 0;", "return 0 * 2;"), CTEST)
    kept = root.parent / "out" / "harness" / "in_c.json"
    first = run(root, in_c, unseen)
    made = kept.stat().st_mtime_ns
    (root / MODULE).write_text("# A module.\nANSWER = 1  # still\n", "utf-8")
    assert run(root, in_c, unseen).rows[0] == first.rows[0]
    assert kept.stat().st_mtime_ns == made
    source = (root / "engine" / "main.c").read_text("utf-8")
    (root / "engine" / "main.c").write_text(source.replace("A program", "Program"), "utf-8")
    assert run(root, in_c).rows[0].killer == CTEST.text
    assert kept.stat().st_mtime_ns != made


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ctest ^x$", "make x", "expected 'ctest REGEX'"),
        ("ctest ^x$", "ctest ^x$ ^y$", "expected 'ctest REGEX'"),
        ("# killed by: ctest ^x$\n", "", "killers"),
        ("mutant: a", "mutant: b", "not the name of the file"),
        ("# slip: It errs.\n", "# slip: It errs.\n# slip: It errs.\n", "each key once"),
        ("# slip: It errs.\n", "It errs.\n", "expected '# key: value'"),
    ],
)
def test_a_header_is_refused_with_its_file(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """And read as it is otherwise, lines of `killed by` in their order."""
    text = "# mutant: a\n# slip: It errs.\n# verdict: All.\n# killed by: pytest b.py c.py::d\n"
    text += "# killed by: ctest ^x$\n" + change("return 0;", "return 1;")
    (tmp_path / "a.patch").write_text(text, "utf-8")
    (row,) = load_patches(HarnessMutant, tmp_path)
    assert [killer.text for killer in row.killers] == ["pytest b.py c.py::d", "ctest '^x$'"]
    assert row.diff.startswith("--- a/engine/main.c")
    wrong = text.replace(old, new)
    wrong = (
        wrong.replace("# killed by: pytest b.py c.py::d\n", "") if "killers" in message else wrong
    )
    (tmp_path / "a.patch").write_text(wrong, "utf-8")
    with pytest.raises(ConfigError, match=message) as error:
        load_patches(HarnessMutant, tmp_path)
    assert "a.patch" in str(error.value)


def test_the_page_keeps_the_table_that_is_not_written(tmp_path: Path) -> None:
    """Bugs of the engine stay when slips are written, and the other way round."""
    page = tmp_path / "BUGS.md"
    write_bugs(page, first="# Bugs\n\nold\n")
    assert page.read_text("utf-8") == "# Bugs\n\nold\n"
    mutants = [slip(name, change("return 0;", "return 1;"), CTEST) for name in ("a", "b")]
    rows = (HarnessRow("a", "ctest x|y", "test"), HarnessRow("b"))
    section = harness_page(mutants, HarnessScore(rows))
    assert "**1 of 2 are killed**" in section
    assert "| `a` | It errs. | All. | `test` (ctest x\\|y) |" in section
    assert "| `b` | It errs. | All. | *no* |" in section
    write_bugs(page, second=section)
    write_bugs(page, first="# Bugs\n\nnew\n")
    assert page.read_text("utf-8") == f"# Bugs\n\nnew\n\n{section}"
    write_bugs(page, second=section)
    assert page.read_text("utf-8") == f"# Bugs\n\nnew\n\n{section}"
