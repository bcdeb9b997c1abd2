"""The verdict on a trial: pure functions on values, the same for every target and every promise.

Not verified here: the bytes that a run or a recovery wrote (the rules, asked where it is played), and what a
killed recovery printed: it came to no end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tornpage.live.crash import RunVerdict
from tornpage.live.recovered import Recovered, Recovery
from tornpage.targets.target import RecoveryAnswer
from tornpage.vocabulary.model import PAGE_SITES, Outcome, Site, Violation

__all__ = ["Judged", "judge_trial", "once_each"]

UNHIT = "the recovery has no write of this site that fits the mask"
WHOLE = "the mask leaves the whole write"
DRIFT = "the recovery after a disturbed one ends in another state than a fault-free one"


@dataclass(frozen=True, slots=True)
class Judged:
    """What a trial came to. violations: each once, in the order in which they came to light; unheard: why it
    says nothing otherwise, as not exercised; vacuous: why it says nothing of recovery."""

    violations: tuple[Violation, ...] = ()
    unheard: str = ""
    vacuous: str = ""

    @property
    def outcome(self) -> Outcome:
        """A violation counts, whatever else was not seen."""
        if self.violations:
            return Outcome.VIOLATION
        if self.unheard:
            return Outcome.NOT_EXERCISED
        return Outcome.VACUOUS if self.vacuous else Outcome.CLEAN

    @property
    def reason(self) -> str:
        """In a line; "" of a clean one."""
        return self.violations[0].what if self.violations else self.unheard or self.vacuous


def judge_trial(
    run: RunVerdict, found: Recovered, site: Site | None, *, ruled: bool, whole: bool
) -> Judged:
    """Judges a run that crashed and the recoveries after it, as far as they got. site: of the write that was
    hit; ruled: the rules were asked; whole: the kill was to tear a write, and left all of it."""
    broken = list(run.violations)
    for number, one in enumerate(found.disturbed, 1):
        broken += one.rules
        broken += _judge_disturbed(f"recovery {number}", one, ruled=ruled)
    last = found.last
    if last is None:
        return Judged(once_each(broken), UNHIT)
    broken += last.rules
    vacuous = undecided = ""
    if found.missed:
        number = len(found.disturbed) + 1
        vacuous = f"recovery {number} ended before its fault: {last.child.describe()}"
    if last.answer.ok and last.answer.state is not None:
        verdict = run.allowed.judge(last.answer.state, last.answer.backups)
        undecided = verdict.undecided
        broken += [*last.answer.findings, *verdict.violations]
        broken += _judge_shown(found, last, consistent=run.allowed.promise.consistent)
        broken += found.exported[1] if found.exported is not None else ()
        recovered = last.log_found if last.answer.recovered is None else last.answer.recovered
        vacuous = vacuous or ("" if recovered else "no recovery ran after the crash")
    else:
        broken += _judge_refusal(found, last.answer, run.before_first, site)
    whole = whole or any(one.whole for one in found.disturbed)
    return Judged(once_each(broken), WHOLE if whole and not vacuous else undecided, vacuous)


def once_each(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """In their order."""
    return tuple(dict.fromkeys(violations))


def _judge_disturbed(name: str, one: Recovery, *, ruled: bool) -> Iterator[Violation]:
    """A recovery whose write, fsync or change of a name failed must say so and stop; a backup beside it may
    fail alone."""
    if one.child.timed_out:
        yield Violation(30, f"{name} hung")
    elif one.killed or not one.with_errors:
        return
    elif one.answer.ok:
        told = any(violation.invariant == 23 for violation in one.rules)
        if ruled and not told and not one.may_go_on and not _failed(one.answer):
            yield Violation(23, f"{name} succeeds after a failed operation")
    elif not (one.answer.stopped or one.answer.refused):
        yield Violation(30, f"{name} failed without a clear message: {one.answer.message}")


def _failed(answer: RecoveryAnswer) -> set[str]:
    """Backups that could not be prepared."""
    return {name for name, found in answer.backups.items() if found.state is None}


def _judge_shown(found: Recovered, last: Recovery, *, consistent: bool) -> Iterator[Violation]:
    """I17: what one recovery has shown all later ones must show, whatever else the crash had allowed. Where
    any state may be found after a crash, a crash in a recovery may lead to another."""
    before = [one for one in (found.fault_free, *found.disturbed) if one is not None]
    shown = [one for one in before if one.answer.state is not None]
    if consistent and any(_drifts(one, last) for one in shown):
        yield Violation(17, DRIFT)
    again = found.again
    if again is None:
        return
    if not again.answer.ok:
        yield Violation(17, f"the second recovery failed: {again.answer.message}")
    elif _shown(again.answer) != _shown(last.answer):
        yield Violation(17, "the second recovery changed the logical state")
    for finding in again.answer.findings:
        if finding not in last.answer.findings:
            yield Violation(17, f"the second recovery leaves damage: {finding.what}")


def _drifts(one: Recovery, last: Recovery) -> bool:
    """Nobody has seen a backup whose operation was made to fail."""
    unseen = _failed(one.answer) if one.with_errors else set()
    return _shown(one.answer, unseen) != _shown(last.answer, unseen)


def _shown(answer: RecoveryAnswer, unseen: Collection[str] = ()) -> tuple[object, ...]:
    """What somebody has seen of the database, but for these backups."""
    seen = {name: found for name, found in answer.backups.items() if name not in unseen}
    return answer.state, seen


def _judge_refusal(
    found: Recovered, answer: RecoveryAnswer, before_first: bool, site: Site | None
) -> Iterator[Violation]:
    if answer.no_database and before_first:
        return
    if found.blamed and found.stale is not None:
        what = f"a stale block behind the end of the log makes recovery fail: {answer.message}"
        yield Violation(21, what, path=found.stale.file)
    elif not answer.refused:
        yield Violation(30, f"recovery failed: {answer.message}", site)
    else:
        number = answer.breaks or (5 if site in PAGE_SITES else 30)
        yield Violation(number, f"recovery refused: {answer.message}", site)
