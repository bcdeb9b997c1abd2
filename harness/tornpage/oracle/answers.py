"""Which statements a target gave up because of failed I/O: it answered with an error that says so, and lives.

Such a statement has changed nothing, and what it was a part of has ended. That is so for what needs a file
that nothing else depends on: a build with its temporary files, a backup. Each failed operation explains one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tornpage.oracle.catalogue import BUILDS, DDL
from tornpage.workloads.script import Statement, Verb

__all__ = ["ANY_ERROR", "BACKUP", "given_up_by"]

ANY_ERROR = "an error"
"""Of a statement that is refused behind one that was given up, whatever the reason is called."""

BACKUP = frozenset({Verb.START_BACKUP, Verb.STEP_BACKUP, Verb.FINISH_BACKUP, Verb.ABORT_BACKUP})

_GIVEN_UP: Mapping[str, frozenset[Verb]] = {
    "DB_TEMP_FILE_FAILED": frozenset((*DDL, *BUILDS)),
    "DB_BACKUP_ABORTED": BACKUP,
}
"""Which statements may end so. No change of a row may: the log of changes fails its build."""


def given_up_by(
    statements: Iterable[Statement], errors: Mapping[int, str], failures: int
) -> dict[int, str]:
    """The first of these statements that have ended so, by line, with their errors. errors: what the target
    has answered, by line; failures: so many operations have failed."""
    lines = [
        statement.line
        for statement in statements
        if statement.verb in _GIVEN_UP.get(errors.get(statement.line, ""), ())
    ]
    return {line: errors[line] for line in lines[:failures]}
