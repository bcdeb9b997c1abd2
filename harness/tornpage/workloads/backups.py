"""The workload "backup": a script of the workload "mix" or "storm" with hot backups woven into it. A backup
changes nothing of what other statements come to, so that its own may stand anywhere among them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from pydantic import Field

from tornpage.workloads.mix import StormParams, generate_mix, generate_storm
from tornpage.workloads.script import Lock, Script, Statement, Verb

__all__ = ["BackupParams", "generate_backup"]

STEP_SHARES = (0.1, 0.3, 0.6)
"""Of the statements amid a backup, those behind which it is told to go on."""
STEP_PAGES = (4, 30, 200)
"""Most pages of a step."""
NO_LOCK_SHARE = 0.15
AMID_BUILD_SHARE = 0.5
"""Of the backups that could, those that begin amid a build in steps."""
ABORTED_SHARE = 0.1
ENDLESS_SHARE = 0.15
"""Scripts that end, or are killed, with a backup that nobody has finished."""


class BackupParams(StormParams):
    """A script of builds, rebuilds, renames, drops and changes of rows during which hot backups are made:
    some without a lock, some given up, some that never end."""

    backups: int = Field(default=4, ge=1, le=100)
    """Most backups of a script."""
    share: int = Field(default=100, ge=0, le=100)
    """Per cent of the scripts that have backups."""


def generate_backup(params: BackupParams, rng: random.Random) -> Script:
    """The script of these parameters."""
    make = rng.choice((generate_mix, generate_storm))
    statements = make(params, rng).statements
    woven = _weave(statements, rng, rng.randint(1, params.backups))
    return Script.of(woven if rng.randrange(100) < params.share else statements)


def _weave(statements: Sequence[Statement], rng: random.Random, backups: int) -> list[Statement]:
    """The statements with so many backups, one after the other."""
    cuts = sorted(rng.choices(range(1, len(statements) + 1), k=2 * backups))
    out = list(statements[: cuts[0]])
    for number in range(backups):
        cut, end = cuts[2 * number : 2 * number + 2]
        first = _begin(statements, cut, end, rng)
        out += statements[cut:first]
        after = cuts[2 * number + 2] if number + 1 < backups else len(statements)
        last = number + 1 == backups and rng.random() < ENDLESS_SHARE
        out += _backup(f"b{number + 1}", statements[first:end], rng, endless=last)
        out += statements[end:after]
    return out


def _begin(statements: Sequence[Statement], cut: int, end: int, rng: random.Random) -> int:
    """Where a backup between these places begins: at the first, or behind a step of a build, so that what was
    loaded before it and what is loaded after it are in one file."""
    amid = [at + 1 for at in range(cut, end) if statements[at].verb is Verb.STEP_INDEX]
    return rng.choice(amid) if amid and rng.random() < AMID_BUILD_SHARE else cut


def _backup(
    name: str, amid: Sequence[Statement], rng: random.Random, *, endless: bool
) -> list[Statement]:
    """A backup around these statements, or up to a restart among them, which gives it up."""
    lock = Lock.NONE if rng.random() < NO_LOCK_SHARE else Lock.DEFAULT
    share = rng.choice(STEP_SHARES)
    pages = rng.choice(STEP_PAGES)
    out = [Statement(0, Verb.START_BACKUP, name=name, lock=lock)]
    given_up = False
    for statement in amid:
        out.append(statement)
        given_up |= statement.verb is Verb.RESTART
        if rng.random() < share and not given_up:
            out.append(Statement(0, Verb.STEP_BACKUP, name=name, number=rng.randint(1, pages)))
    if not endless and not given_up:
        verb = Verb.ABORT_BACKUP if rng.random() < ABORTED_SHARE else Verb.FINISH_BACKUP
        out.append(Statement(0, verb, name=name))
    return out
