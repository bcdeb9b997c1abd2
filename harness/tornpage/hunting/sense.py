"""Which statements of a mutated script still make sense: the oracle's model says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tornpage.oracle.oracle import Oracle
from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.script import Script, Statement

__all__ = ["sensible"]


def sensible(statements: Sequence[Statement], options: Mapping[str, str]) -> Script | None:
    """Without those that the model refuses, which change nothing. None: it names what is not there, or
    nothing is left."""
    script = Script.of(statements)
    try:
        refused = {step.line for step in Oracle(script, options).steps if step.error}
        kept = Script.of(one for one in script.statements if one.line not in refused)
        again = Oracle(kept, options)
    except (WorkloadError, KeyError):
        return None
    return kept if kept.statements and not any(step.error for step in again.steps) else None
