"""What the marks of a run tell: which statements were issued and acknowledged, when, and by whom."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass

from tornpage.faults.trace import Trace
from tornpage.vocabulary.errors import GoldenRunError

__all__ = ["Journal", "acknowledged_in", "clients_in", "issued_last", "read_journal"]


@dataclass(frozen=True, slots=True)
class Journal:
    """Which statements were issued and finished, by event number; both lists ascend. errors: of those that
    failed, by line."""

    issued: list[tuple[int, int]]
    finished: list[tuple[int, int]]
    errors: Mapping[int, str]

    def at(self, seq: int) -> tuple[int, int]:
        """Last finished and last issued line before event `seq` (0 = none)."""
        return _last(self.finished, seq), _last(self.issued, seq)


def read_journal(trace: Trace) -> Journal:
    """The issue, ack and fail markers of a run. Statements of several clients are counted: their numbers
    come in no order."""
    errors: dict[int, str] = {}
    journal = Journal([], [], errors)
    for event, (verb, facts) in trace.marks("issue", "ack", "fail"):
        entries = journal.issued if verb == "issue" else journal.finished
        number = len(entries) + 1 if "client" in facts else int(facts["n"])
        entries.append((event.seq, number))
        if verb == "fail":
            errors[number] = facts.get("err", "")
    return journal


def _last(entries: list[tuple[int, int]], seq: int) -> int:
    at = bisect.bisect_left(entries, (seq, 0))
    return entries[at - 1][1] if at else 0


def acknowledged_in(trace: Trace) -> list[int]:
    """Numbers of the statements, in the order of their marks, that were acknowledged behind the mark `ready`.
    GoldenRunError if there is no such mark, or one is none."""
    found: list[int] = []
    ready = False
    for event, (verb, facts) in trace.marks("ready", "issue", "ack"):
        ready |= verb == "ready"
        if verb != "ready" and not (ready and facts.get("n", "").isdecimal()):
            raise GoldenRunError(
                f"mark `{trace.text(event)}`: `ready` comes first, then `{verb} n=NUMBER`"
            )
        if verb == "ack":
            found.append(int(facts["n"]))
    if not ready:
        raise GoldenRunError("run never marked `ready`, from which on it is crashed")
    return found


def clients_in(trace: Trace) -> dict[int, str]:
    """Who has issued a statement, by its number, as far as the marks name a client."""
    return {
        int(facts["n"]): facts["client"]
        for _event, (_verb, facts) in trace.marks("issue")
        if "client" in facts
    }


def issued_last(trace: Trace) -> list[int]:
    """Of each client, or of the only one, the last statement that it has issued."""
    issued = {
        facts.get("client", ""): int(facts["n"]) for _event, (_verb, facts) in trace.marks("issue")
    }
    return sorted(issued.values())
