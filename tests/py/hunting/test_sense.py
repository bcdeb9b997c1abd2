"""What the model refuses goes."""

from __future__ import annotations

from tornpage.hunting.sense import sensible
from tornpage.oracle.oracle import Oracle
from tornpage.workloads.parse import parse_script

TABLE = "create table t a:bigint primary a\n"


def kept(text: str) -> list[str] | None:
    """Of a script of these lines."""
    script = sensible(parse_script(text).statements, {})
    return script.text.splitlines() if script else None


def test_refused_statements_go() -> None:
    """What would end with an error changes nothing; all others stay, in order."""
    text = TABLE + "insert - t a=1\ninsert - t a=1\ndrop table u\ndelete - t a=2\ninsert - t a=2\n"
    assert kept(text) == [TABLE.strip(), "insert - t a=1", "insert - t a=2"]


def test_what_is_left_ends_as_the_whole_would() -> None:
    """In the same tables."""
    text = TABLE + "begin x\ninsert x t a=1\nbegin x\ninsert - t a=1\ncommit x\ncommit x\n"
    script = parse_script(text)
    found = sensible(script.statements, {})
    assert found is not None
    assert Oracle(found).states[-1] == Oracle(script).states[-1]
    assert len(found.statements) == 4


def test_what_the_model_cannot_read_makes_no_script() -> None:
    """A column that is not there is no error of the store."""
    assert kept(TABLE + "insert - t b=1\n") is None
    assert kept("drop table t\n") is None
