"""The script language: docs/SCRIPT.md has every statement, and its examples are what it says they are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tornpage.oracle.oracle import Oracle
from tornpage.vocabulary.errors import WorkloadError
from tornpage.vocabulary.paths import ROOT
from tornpage.workloads.parse import parse_script
from tornpage.workloads.script import IndexDef, Script, Statement, Verb

ROW = re.compile(r"^\| ([a-z_]+(?: [a-z_]+)?)[^|]*(?:\\\|[^|]*)?\| `(.+?)` \|", re.MULTILINE)


def examples() -> list[tuple[str, str]]:
    """First words and example of every row of the table of statements."""
    text = (ROOT / "docs" / "SCRIPT.md").read_text(encoding="utf-8")
    return ROW.findall(text)


def test_every_statement_has_an_example() -> None:
    """All verbs, each with an example of itself, that prints again as it stands there."""
    script = parse_script("".join(f"{example}\n" for _, example in examples()))
    for (words, example), statement in zip(examples(), script.statements, strict=True):
        assert words.replace(" unique", " index").startswith(statement.verb.value)
        assert statement.text() == example
    assert {statement.verb for statement in script.statements} == {*Verb} - {Verb.LINE}


def test_the_examples_are_a_script_without_failures() -> None:
    """Read top to bottom, they succeed one and all."""
    oracle = Oracle(parse_script("".join(f"{example}\n" for _, example in examples())))
    assert [step.error for step in oracle.steps] == [""] * len(oracle.steps)


@given(st.text(alphabet=' \t#"\\x0az=:(),-', max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """No input makes the parser fail in another way."""
    try:
        statements = parse_script(text).statements
    except WorkloadError:
        return
    assert parse_script(Script.of(statements).text).statements == tuple(
        Script.of(statements).statements
    )


def test_counts_of_a_step_have_defaults() -> None:
    """One step of a thousand rows."""
    script = parse_script("step index t\nstep index t 5\nstep index t 5 7\n")
    assert [(s.number, s.rows) for s in script.statements] == [(1, 1000), (5, 1000), (5, 7)]


def test_a_build_prints_as_it_is_read() -> None:
    """Every statement of a build."""
    indexes = (IndexDef("ib", (("b", 4), ("c", 0))), IndexDef("ic", (("c", 0),)))
    script = Script.of(
        [
            Statement(0, Verb.START_INDEX, table="t", indexes=indexes),
            Statement(0, Verb.STEP_INDEX, table="t", number=2, rows=9),
            Statement(0, Verb.FINISH_INDEX, table="t"),
            Statement(0, Verb.ABORT_INDEX, table="t"),
        ]
    )
    assert parse_script(script.text).statements == script.statements
