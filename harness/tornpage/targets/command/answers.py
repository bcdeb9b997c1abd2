"""What the commands of a target file answer: the states that a run tells, and what a recovery found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tornpage.faults.process import ChildResult
from tornpage.oracle.observed import observed_state
from tornpage.oracle.state import State, read_tables
from tornpage.targets.target import (
    RecoveryAnswer,
    RunAnswer,
    last_object,
    read_findings,
    read_run,
)
from tornpage.vocabulary.model import Violation

__all__ = ["recovery_answer", "run_answer"]

FINDING_INVARIANT = 6
"""Of what a recovery reports about its own structures, if it names no other."""
INVARIANTS = range(1, 31)
LINE_SHOWN = 60


def run_answer(child: ChildResult, *, observed: bool) -> RunAnswer:
    """The states that it has told, by number of the statement; if it was killed, as far as it got. Of
    scripts (observed: it is none), what our own drivers say."""
    if not observed:
        return read_run(child)
    message = "" if child.exit_code == 0 else child.describe()
    told: dict[int, State] = {}
    for number, line in enumerate(child.stdout.decode("utf-8", "replace").splitlines(), 1):
        try:
            statement, state = _told(line)
        except ValueError as error:
            what = f"line {number} of its output is {line[:LINE_SHOWN]!r}: {error}"
            return RunAnswer(False, message or what, {}, {}, told)
        told[statement] = state
    return RunAnswer(not message, message, {}, {}, told)


def recovery_answer(
    child: ChildResult, counters: Iterable[str], *, observed: bool
) -> RecoveryAnswer:
    """The answer, or how recover ended without one. counters: that it must have. A program that answers for
    the model (observed: it does not) is ours, and one that ends badly after its answer has not recovered; a
    stranger's answer stands however its process ends, as it does in the explorer."""
    data = last_object(child.stdout)
    if child.timed_out or data is None:
        last = child.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2]
        told = f", but {last[:LINE_SHOWN]!r}" if last else ""
        return _failed(f"recover gave no answer{told}: {child.describe()}")
    first, end, rest = child.stdout.decode("utf-8", "replace").partition("\n")
    if not end:
        return _failed("recover's answer is a line without an end")
    if rest:  # which might be taken for the answer to the next question
        more = f"{first[:LINE_SHOWN]!r}, {rest.partition(chr(10))[0][:LINE_SHOWN]!r}"
        return _failed(f"recover says more than one line for a folder: {more}")
    if not observed and (child.signal or child.exit_code != 0):
        return _failed(child.describe())
    if data.get("ok") is False and isinstance(data.get("message"), str):
        machine = data.get("machine") is True
        return RecoveryAnswer(False, refused=True, machine=machine, message=data["message"])
    try:
        state, findings = _read_check(data, observed=observed)
        counted = {name: int(data["counters"][name]) for name in sorted(counters)}
    except (ValueError, TypeError, KeyError) as error:
        return _failed(f"recover gave no answer of the right form: {error}")
    if data.get("ok") is not True:
        return _failed("recover's answer has no `ok`")
    return RecoveryAnswer(
        ok=True,
        state=state,
        findings=findings,
        counters=counted,
        recovered=any(counted.values()) or not counted,
    )


def _failed(message: str) -> RecoveryAnswer:
    return RecoveryAnswer(False, message=message)


def _read_check(data: Mapping[str, Any], *, observed: bool) -> tuple[State, tuple[Violation, ...]]:
    """ValueError, TypeError, KeyError."""
    if not observed:
        return read_tables(data["check"]["tables"]), read_findings(data["check"])
    found = data.get("findings", [])
    if not isinstance(found, list):
        raise ValueError("findings are no list")
    return observed_state(data.get("state")), tuple(_finding(item) for item in found)


def _told(line: str) -> tuple[int, State]:
    try:
        data = json.loads(line)
    except ValueError:
        raise ValueError("no JSON") from None
    number = data.get("n") if isinstance(data, dict) else None
    if not isinstance(number, int) or number < 0:
        raise ValueError('no object {"n": N, "state": {...}}')
    return number, observed_state(data.get("state"))


def _finding(item: Any) -> Violation:
    """As the explorer reads it: a text, or an object with one and the number of an invariant."""
    told = item if isinstance(item, dict) else {"what": item}
    number, what = told.get("invariant", FINDING_INVARIANT), told.get("what")
    if type(number) is not int or number not in INVARIANTS or not isinstance(what, str):
        raise ValueError(f"{json.dumps(item)[:LINE_SHOWN]} is no finding")
    return Violation(number, what)
