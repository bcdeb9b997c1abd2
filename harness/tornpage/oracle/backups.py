"""Hot backups of a script: which one runs, and which prefix a finished one must equal (I28).

A backup changes nothing of the database, so nothing of it is in the states. What it holds when it is
prepared is the state when it was finished.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tornpage.oracle.table import Failure
from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.script import Lock, Statement, Verb

__all__ = ["Backup", "Backups"]


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that a statement has finished. sure: it cannot have been given up instead, because the
    statement had the lock under which files can be copied again."""

    name: str
    sure: bool


@dataclass(slots=True)
class Backups:
    """finished: by prefix."""

    finished: dict[int, Backup] = field(default_factory=dict)
    _running: Backup | None = None
    _left: set[str] = field(default_factory=set)

    def execute(self, statement: Statement, prefix: int) -> None:
        """Raises Failure. prefix: the one that this statement makes if it finishes a backup."""
        if statement.verb is Verb.START_BACKUP:
            self._start(statement)
            return
        if self._running is None or self._running.name != statement.name:
            raise Failure("DB_NOT_FOUND")
        if statement.verb is Verb.FINISH_BACKUP:
            self.finished[prefix] = self._running
        if statement.verb is not Verb.STEP_BACKUP:
            self._running = None

    def give_up(self) -> None:
        """What runs is removed."""
        self._running = None

    def end_start(self, clean: bool) -> None:
        """The target starts again: what runs is given up; a crash leaves its files, which nobody
        continues."""
        if self._running is not None and not clean:
            self._left.add(self._running.name)
        self._running = None

    def _start(self, statement: Statement) -> None:
        before = [backup for backup in self.finished.values() if backup.name == statement.name]
        if self._running is not None or any(backup.sure for backup in before):
            raise Failure("DB_ALREADY_EXISTS")
        if before or statement.name in self._left:
            raise WorkloadError(
                f"line {statement.line}: backup {statement.name} may be there, or have been given up"
            )
        self._running = Backup(statement.name, statement.lock is not Lock.NONE)
