"""The model that a recovered state is judged by: the script replayed on plain dictionaries.

It shares nothing with any target. It predicts every statement's error, and keeps one digest of all
tables per commit prefix: prefix p is the state after the first p commits in script order.

Three-valued: an acknowledged commit must be there, the one in flight may, one never issued must not.
So the state after a crash must equal a prefix between the last acknowledged and the last issued (I3).

Digests are those of engine/check/check.h, computed here anew: a table is its number of rows and the sum
modulo 2^64 of XXH64 of each row (BIGINT 8 bytes big-endian, sign bit inverted; CHAR padded with spaces;
VARCHAR its length in 2 bytes and its text; in front of what may be NULL a byte, 0 for NULL), plus that of
the names of its columns, that of a VARCHAR with its greatest length; an index the same over key columns, cut
to their prefix or padded with spaces, and primary key, plus 1 if it is unique.

Does not verify: which version of a row a read statement returns (scripts do not depend on it), the
message of an error, DDL steps between its begin and its commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tornpage.oracle.answers import ANY_ERROR, BACKUP, given_up_by
from tornpage.oracle.backups import Backup, Backups
from tornpage.oracle.catalogue import BUILDS, DDL, Catalogue
from tornpage.oracle.state import State
from tornpage.oracle.table import Failure, Row, Table
from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.script import (
    AUTOCOMMIT,
    Script,
    Statement,
    Verb,
)

__all__ = ["Oracle", "Step"]

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
NONE: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Step:
    """What statement `line` does: error name, ANY_ERROR, or "" for success; prefix after it; durable: it
    promises that everything committed so far survives a kill whatever flush_log_at_trx_commit says. other:
    the error that it may end with instead, or ""."""

    line: int
    error: str
    prefix: int
    durable: bool
    other: str = ""


class Oracle:
    """Replays a script once; then answers what may be found after a crash.

    states[p] is the state after p commits, steps the statements in order, exports[p] the table that is
    exported then, if one is: beginning and end of an export are prefixes too, end the one that a clean end
    makes behind the last statement. Raises WorkloadError for a script that names columns that do not exist:
    such a script is a harness error.
    """

    def __init__(
        self,
        script: Script,
        options: Mapping[str, str] = NO_OPTIONS,
        given_up: Mapping[int, str] = NONE,
    ) -> None:
        """Replays all of `script` for a target with these options. given_up: statements that failed I/O has
        ended, by line, with their errors; what is refused behind them may also not fit its table, and the
        model does not say which reason comes first."""
        self._script, self._options, self._given_up = script, options, given_up
        self.states: list[State] = [{}]
        self.commit_lines: list[int] = [0]
        self.steps: list[Step] = []
        self._open: dict[str, dict[tuple[str, bytes], None]] = {}
        self._catalogue = Catalogue(options, self._open)
        self._backups = Backups()
        self.exports: dict[int, str] = {}
        self.end: int | None = None
        behind = False
        for statement in script.statements:
            error, durable = "", False
            try:
                durable = self._execute(statement)
            except Failure as failure:
                any_name = behind and statement.line not in given_up
                error = ANY_ERROR if any_name else str(failure)
            except WorkloadError:
                if not behind:
                    raise
                error = ANY_ERROR
            behind = behind or statement.line in given_up
            if self._catalogue.exported != self.exports.get(len(self.states) - 1, ""):
                self._snapshot(statement.line)
            prefix = len(self.states) - 1
            other = self._other_error(statement, error, prefix)
            self.steps.append(Step(statement.line, error, prefix, durable, other))
        self._end_export()

    def behind(self, errors: Mapping[int, str], failures: int) -> Oracle:
        """The model of a run that went on behind failed I/O: see given_up_by()."""
        known = {step.line for step in self.steps if step.other == errors.get(step.line)}
        statements = (one for one in self._script.statements if one.line not in known)
        given_up = given_up_by(statements, errors, failures)
        return Oracle(self._script, self._options, given_up) if given_up else self

    def after(self, line: int) -> int:
        """The prefix after the statement of this line (0 before the first)."""
        found = 0
        for step in self.steps:
            if step.line > line:
                break
            found = step.prefix
        return found

    def newest(self, finished: int, issued: int) -> int:
        """The newest prefix that may be there when the lines up to `finished` have been acknowledged."""
        ended = self.end is not None and finished >= self.steps[-1].line
        return len(self.states) - 1 if ended else self.after(issued)

    @property
    def backups(self) -> Mapping[int, Backup]:
        """Finished backups, by the prefix that each must equal."""
        return self._backups.finished

    def _other_error(self, statement: Statement, error: str, prefix: int) -> str:
        unsure = statement.verb is Verb.FINISH_BACKUP and not error
        return "DB_BACKUP_ABORTED" if unsure and not self.backups[prefix].sure else ""

    # -- execution ------------------------------------------------------------------------------

    def _execute(self, statement: Statement) -> bool:
        verb = statement.verb
        if statement.line in self._given_up:
            self._give_up(statement)
        elif verb is Verb.BEGIN:
            if statement.trx in self._open:
                raise Failure("DB_ALREADY_EXISTS")
            self._open[statement.trx] = {}
        elif verb is Verb.COMMIT:
            self._commit(self._take(statement.trx), statement.line)
        elif verb is Verb.ROLLBACK:
            self._undo(self._take(statement.trx))
        elif verb in (Verb.INSERT, Verb.INSERT_SEQ, Verb.UPDATE, Verb.DELETE):
            self._change(statement)
        elif verb in DDL:
            self._catalogue.execute(statement)
            self._snapshot(statement.line)
            return True
        elif verb in BUILDS:
            self._catalogue.execute(statement)
            return verb not in (Verb.STEP_INDEX, Verb.START_DEFRAGMENT, Verb.FLUSH_EXPORT)
        elif verb in BACKUP:
            # a finished one is a prefix of its own, equal to the one before
            self._backups.execute(statement, len(self.states))
            if verb is Verb.FINISH_BACKUP:
                self._snapshot(statement.line)
                return True
        elif verb is Verb.SET_DEFRAGMENT:
            self._catalogue.defragment = statement.full
        elif verb is Verb.SET_OPTIMIZE and any(
            table.build is not None for table in self._catalogue.tables.values()
        ):
            raise Failure("DB_TABLE_LOCKED")
        elif verb is Verb.SELECT:
            table = self._catalogue.readable(statement.table)
            if table.current(self._key(table, statement)) is None:
                raise Failure("DB_RECORD_NOT_FOUND")
        elif verb in (Verb.SCAN, Verb.FLUSH_TABLE):
            table = self._catalogue.readable(statement.table)
            if verb is Verb.SCAN and statement.name and statement.name not in table.indexes:
                raise Failure("DB_NOT_FOUND")
        elif verb is Verb.RESTART:
            self._restart(statement)
        return verb in (Verb.FLUSH_LOG, Verb.CHECKPOINT, Verb.RESTART)

    def _give_up(self, statement: Statement) -> None:
        """What it was a part of ends."""
        table = self._catalogue.tables.get(statement.table)
        if statement.verb in BACKUP:
            self._backups.give_up()
        elif table is not None:
            self._catalogue.end_build(table)
        raise Failure(self._given_up[statement.line])

    def _restart(self, statement: Statement) -> None:
        """Open transactions are rolled back and builds given up, whichever way the target ends; what is
        committed stays."""
        for trx in list(self._open):
            self._undo(self._take(trx))
        for table in self._catalogue.tables.values():
            self._catalogue.end_build(table)
        self._catalogue.defragment = True
        self._backups.end_start(statement.full)
        self._catalogue.options = {**self._catalogue.options, **(statement.options or {})}

    def _take(self, trx: str) -> dict[tuple[str, bytes], None]:
        if trx not in self._open:
            raise Failure("DB_NOT_FOUND")
        return self._open.pop(trx)

    def _key(self, table: Table, statement: Statement) -> bytes:
        values = statement.key or {}
        if set(values) != set(table.primary):
            raise WorkloadError(f"line {statement.line}: the key is not the primary key")
        return b"".join(table.encode(name, values[name]) for name in table.primary)

    def _change(self, statement: Statement) -> None:
        trx = statement.trx
        if trx != AUTOCOMMIT and trx not in self._open:
            raise Failure("DB_NOT_FOUND")
        table = self._catalogue.table(statement.table)
        if table.is_read_only:
            raise Failure("DB_TABLE_LOCKED")
        planned: list[tuple[bytes, Row | None]] = []
        try:
            self._plan(table, statement, planned)
        except Failure:
            table.log_refused(planned)
            raise
        touched = self._open[trx] if trx != AUTOCOMMIT else {}
        for key, row in planned:
            table.change(key, row, trx)
            touched[(table.name, key)] = None
        if trx == AUTOCOMMIT:
            self._commit(touched, statement.line)

    def _plan(
        self, table: Table, statement: Statement, planned: list[tuple[bytes, Row | None]]
    ) -> None:
        """Plans all row changes of a statement. Its first error comes before anything has changed; planned
        has the changes until then, and the one that a unique index refuses."""
        unknown = set(statement.values or {}) - set(table.positions)
        if unknown:
            raise WorkloadError(f"line {statement.line}: no column {sorted(unknown)[0]!r}")
        if statement.verb is Verb.INSERT:
            self._plan_insert(table, statement.trx, table.row(statement.values or {}), planned)
            return
        if statement.verb is Verb.INSERT_SEQ:
            first, last = statement.bounds
            name = table.primary[0]
            for number in range(first, last + 1):
                self._plan_insert(table, statement.trx, table.row({name: number}), planned)
            return
        key = self._key(table, statement)
        self._check_lock(table, statement.trx, key)
        row = table.current(key)
        if row is None:
            raise Failure("DB_RECORD_NOT_FOUND")
        if statement.verb is Verb.DELETE:
            planned.append((key, None))
            return
        image = list(row)
        for name, value in (statement.values or {}).items():
            if name in table.primary:
                raise WorkloadError(f"line {statement.line}: {name} is of the primary key")
            image[table.positions[name]] = table.encode(name, value)
        planned.append((key, tuple(image)))
        table.check_unique(statement.trx, key, tuple(image), row)

    def _plan_insert(
        self,
        table: Table,
        trx: str,
        row: Row,
        planned: list[tuple[bytes, Row | None]],
    ) -> None:
        key = table.key_of(row)
        self._check_lock(table, trx, key)
        if table.current(key) is not None:
            raise Failure("DB_DUPLICATE_KEY")
        try:
            table.check_unique(trx, key, row, None, planned)
        finally:
            planned.append((key, row))

    def _check_lock(self, table: Table, trx: str, key: bytes) -> None:
        owner = table.owner.get(key)
        if owner is not None and owner != trx:
            raise Failure("DB_LOCK_CONFLICT")

    def _commit(self, touched: dict[tuple[str, bytes], None], line: int) -> None:
        for name, key in touched:
            table = self._catalogue.tables[name]
            table.put(key, table.settle(key))
        if touched:
            self._snapshot(line)

    def _undo(self, touched: dict[tuple[str, bytes], None]) -> None:
        for name, key in touched:
            self._catalogue.tables[name].undo(key)

    def _end_export(self) -> None:
        """The target's clean end does, and no statement tells of that: it may follow the last one."""
        for table in self._catalogue.tables.values():
            if table.exported:
                self._catalogue.end_build(table)
                self._snapshot(self.steps[-1].line)
                self.end = len(self.states) - 1

    def _snapshot(self, line: int) -> None:
        self.states.append({name: table.digest() for name, table in self._catalogue.tables.items()})
        if self._catalogue.exported:
            self.exports[len(self.states) - 1] = self._catalogue.exported
        self.commit_lines.append(line)
