"""The tables of a script by their names, and the statements that change what they are: data definition, and
builds in steps. They raise Failure where the target must refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tornpage.oracle.alter import (
    PRIMARY,
    altered,
    check_clauses,
    check_instant,
    check_new_indexes,
    drop_index,
    new_indexes,
    recast_by,
    rename_column,
    rename_index,
)
from tornpage.oracle.rowlog import RowLogs
from tornpage.oracle.table import Failure, Row, Table, built_index, entry_maker, index_parts
from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.script import Algorithm, Lock, Statement, Verb, row_size

__all__ = ["BUILDS", "DDL", "Catalogue"]

_BEST = {
    Verb.ADD_INDEX: Algorithm.NOCOPY,
    Verb.START_INDEX: Algorithm.NOCOPY,
    Verb.DROP_INDEX: Algorithm.NOCOPY,
    Verb.REBUILD_TABLE: Algorithm.INPLACE,
    Verb.START_REBUILD: Algorithm.INPLACE,
    Verb.RENAME_INDEX: Algorithm.INSTANT,
    Verb.RENAME_COLUMN: Algorithm.INSTANT,
    Verb.MODIFY_COLUMN: Algorithm.INSTANT,
    Verb.ADD_COLUMN: Algorithm.INPLACE,
    Verb.DROP_COLUMN: Algorithm.INPLACE,
    Verb.START_ADD_COLUMN: Algorithm.INPLACE,
    Verb.START_DROP_COLUMN: Algorithm.INPLACE,
    Verb.CHANGE_PRIMARY: Algorithm.INPLACE,
    Verb.START_PRIMARY: Algorithm.INPLACE,
}
"""The most that ALGORITHM may promise of a statement, whatever the table: but for one column more."""
_RANK = tuple(Algorithm)
"""What promises less comes first."""


@dataclass(slots=True)
class Catalogue:
    """options: of the target; open: transactions, in the hands of the oracle; defragment: it is on."""

    options: Mapping[str, str]
    open: Mapping[str, object]
    tables: dict[str, Table] = field(default_factory=dict)
    defragment: bool = True

    def execute(self, statement: Statement) -> None:
        """One of DDL or BUILDS."""
        if statement.clauses or statement.verb in _BEST:
            _check_options(statement)
        (DDL.get(statement.verb) or BUILDS[statement.verb])(self, statement)

    @property
    def exported(self) -> str:
        """The table that is exported, "" without one."""
        return next((table.name for table in self.tables.values() if table.exported), "")

    def table(self, name: str) -> Table:
        """Raises Failure if there is none."""
        table = self.tables.get(name)
        if table is None:
            raise Failure("DB_NOT_FOUND")
        return table

    def readable(self, name: str) -> Table:
        """The same, and if a build lets nobody read it."""
        table = self.table(name)
        if table.exclusive:
            raise Failure("DB_TABLE_LOCKED")
        return table

    def unlocked(self, name: str) -> Table:
        """The same, and if a transaction has changed it or it is being built."""
        table = self.table(name)
        if table.owner or table.build is not None:
            raise Failure("DB_TABLE_LOCKED")
        return table

    def _create_table(self, statement: Statement) -> None:
        if statement.table in self.tables:
            raise Failure("DB_ALREADY_EXISTS")
        positions = {column.name: at for at, column in enumerate(statement.columns)}
        if set(statement.primary) - set(positions):
            raise WorkloadError(f"line {statement.line}: unknown column in primary key")
        self.tables[statement.table] = Table(
            statement.table, statement.columns, positions, statement.primary, statement.system
        )

    def _drop_table(self, statement: Statement) -> None:
        self.unlocked(statement.table)
        del self.tables[statement.table]

    def _rename_table(self, statement: Statement) -> None:
        table = self.unlocked(statement.table)
        if statement.name in self.tables:
            raise Failure("DB_ALREADY_EXISTS")
        del self.tables[statement.table]
        table.name = statement.name
        self.tables[statement.name] = table

    def _add_index(self, statement: Statement) -> None:
        self._start_index(statement)
        self._finish_index(statement)

    def _start_index(self, statement: Statement) -> None:
        table = self.unlocked(statement.table)
        check_new_indexes(table, statement)
        entries = [entry_maker(index_parts(table, item)) for item in statement.indexes]
        self._begin_build(table, statement, entries)
        table.build = statement.indexes

    def _begin_build(
        self,
        table: Table,
        statement: Statement,
        entries: Sequence[Callable[[Row], bytes]] | None = None,
    ) -> None:
        """A build of indexes with these entries; None: a rebuild."""
        table.build = ()
        table.exclusive = statement.lock is Lock.EXCLUSIVE
        if statement.lock is Lock.NONE:
            keys = [table.columns[table.positions[name]].size for name in table.primary]
            table.logs = RowLogs(
                options=self.options,
                entries=entries,
                row_size=row_size(table.columns),
                key_size=sum(keys),
            )

    def _start_alter(self, statement: Statement) -> None:
        """The build of several clauses."""
        table = self.unlocked(statement.table)
        made = altered(table, statement.clauses, rows=False)
        added = [index for clause in new_indexes(statement.clauses) for index in clause.indexes]
        entries = [entry_maker(index_parts(made, item)) for item in added]
        table.clauses = statement.clauses
        rebuilds = any(_BEST[clause.verb] is Algorithm.INPLACE for clause in statement.clauses)
        self._begin_build(table, statement, None if rebuilds else entries)

    def _alter_table(self, statement: Statement) -> None:
        self._start_alter(statement)
        self._finish_index(statement)

    def _building(self, statement: Statement) -> Table:
        table = self.table(statement.table)
        if table.build is None:
            raise Failure("DB_NOT_FOUND")
        return table

    def _advancing(self, statement: Statement) -> Table:
        """The table of a build that goes on: not a defragmentation that is off."""
        table = self._building(statement)
        if table.packing:
            self._check_defragment()
        return table

    def _check_defragment(self) -> None:
        if not self.defragment:
            raise Failure("DB_PAUSED")

    def _step_index(self, statement: Statement) -> None:
        self._advancing(statement)

    def _abort_index(self, statement: Statement) -> None:
        self.end_build(self._building(statement))

    def end_build(self, table: Table) -> None:
        """Of whatever kind, an export too."""
        table.build, table.cast, table.logs, table.exclusive = None, None, None, False
        table.packing, table.exported, table.new_primary, table.clauses = False, False, (), ()

    def _finish_index(self, statement: Statement) -> None:
        table = self._advancing(statement)
        if table.owner and not table.packing:
            raise Failure("DB_TABLE_LOCKED")
        definitions = table.build or ()
        cast, primary, clauses = table.cast, table.new_primary, table.clauses
        overflowed = table.logs is not None and table.logs.overflowed
        self.end_build(table)
        if overflowed:
            raise Failure("DB_ONLINE_LOG_TOO_BIG")
        built = [built_index(table, definition) for definition in definitions]
        for index in built:
            table.indexes[index.name] = index
        if cast is not None:
            table.recast(cast)
        if primary:
            table.change_primary(primary)
        if clauses:
            self.tables[table.name] = altered(table, clauses)

    def _rebuild_table(self, statement: Statement) -> None:
        self.unlocked(statement.table)

    def _start_defragment(self, statement: Statement) -> None:
        table = self.unlocked(statement.table)
        if statement.name not in ("", PRIMARY, *table.indexes):
            raise Failure("DB_NOT_FOUND")
        table.build, table.packing = (), True

    def _defragment_table(self, statement: Statement) -> None:
        self._check_defragment()
        self._start_defragment(statement)
        self._finish_index(statement)

    def _with_file(self, name: str) -> Table:
        """An unlocked one that is not in the system tablespace."""
        table = self.unlocked(name)
        if table.system:
            raise Failure("DB_UNSUPPORTED")
        return table

    def _flush_export(self, statement: Statement) -> None:
        table = self._with_file(statement.table)
        if self.open or any(other.exported for other in self.tables.values()):
            raise Failure("DB_TABLE_LOCKED")
        table.build, table.exported = (), True

    def _import_table(self, statement: Statement) -> None:
        table = self._with_file(statement.table)
        source = self.tables.get(statement.name)
        if source is None or not source.exported:
            raise Failure("DB_NOT_FOUND")
        if not table.has_definition_of(source):
            raise Failure("DB_ERROR")
        table.take_rows_of(source)

    def _truncate_table(self, statement: Statement) -> None:
        self.unlocked(statement.table).empty()

    def _start_rebuild(self, statement: Statement) -> None:
        self._begin_build(self.unlocked(statement.table), statement)

    def _drop_index(self, statement: Statement) -> None:
        drop_index(self.unlocked(statement.table), statement)

    def _rename_index(self, statement: Statement) -> None:
        rename_index(self.unlocked(statement.table), statement)

    def _rename_column(self, statement: Statement) -> None:
        rename_column(self.unlocked(statement.table), statement)

    def _start_recast(self, statement: Statement) -> None:
        table = self.unlocked(statement.table)
        table.cast = recast_by(table, statement)
        self._begin_build(table, statement)

    def _recast(self, statement: Statement) -> None:
        self._start_recast(statement)
        self._finish_index(statement)

    def _add_column(self, statement: Statement) -> None:
        if statement.algorithm not in (Algorithm.NOCOPY, Algorithm.INSTANT):
            self._recast(statement)
            return
        table = self.unlocked(statement.table)
        check_instant(table, statement)
        table.recast(recast_by(table, statement))

    def _start_primary(self, statement: Statement) -> None:
        table = self.unlocked(statement.table)
        if set(statement.primary) - set(table.positions):
            raise Failure("DB_NOT_FOUND")
        columns = [table.columns[table.positions[name]] for name in statement.primary]
        if any(column.nullable or column.varying for column in columns):
            raise Failure("DB_ERROR")
        if len(set(statement.primary)) < len(columns):
            raise Failure("DB_ERROR")
        table.new_primary = statement.primary
        self._begin_build(table, statement)

    def _change_primary(self, statement: Statement) -> None:
        self._start_primary(statement)
        self._finish_index(statement)

    def _modify_column(self, statement: Statement) -> None:
        table = self.unlocked(statement.table)
        (wanted,) = statement.columns
        if wanted.name not in table.positions:
            raise Failure("DB_NOT_FOUND")
        position = table.positions[wanted.name]
        column = table.columns[position]
        if not (column.varying and wanted.varying):
            raise Failure("DB_UNSUPPORTED")
        shorter = wanted.length < column.length
        whole = any(i.has_whole(position, column.length) for i in table.indexes.values())
        if shorter or (whole and wanted.length > column.length):
            if statement.algorithm not in (Algorithm.DEFAULT, Algorithm.COPY):
                raise Failure("DB_UNSUPPORTED")
            if statement.lock is Lock.NONE:
                raise Failure("DB_UNSUPPORTED")
        table.resize_column(position, wanted.length)


def _check_options(statement: Statement) -> None:
    """What an ALTER statement asks for must be possible, whatever the table."""
    algorithm, verb = statement.algorithm, statement.verb
    check_clauses(statement.clauses)
    best = min(_RANK.index(_BEST[clause.verb]) for clause in statement.clauses or (statement,))
    if _RANK.index(algorithm) > best and verb is not Verb.ADD_COLUMN:
        raise Failure("DB_UNSUPPORTED")
    changes_key = verb in (Verb.CHANGE_PRIMARY, Verb.START_PRIMARY)
    if statement.lock is Lock.NONE and (changes_key or algorithm is Algorithm.COPY):
        raise Failure("DB_UNSUPPORTED")


DDL = {
    Verb.CREATE_TABLE: Catalogue._create_table,
    Verb.DROP_TABLE: Catalogue._drop_table,
    Verb.RENAME_TABLE: Catalogue._rename_table,
    Verb.ADD_INDEX: Catalogue._add_index,
    Verb.DROP_INDEX: Catalogue._drop_index,
    Verb.RENAME_INDEX: Catalogue._rename_index,
    Verb.RENAME_COLUMN: Catalogue._rename_column,
    Verb.MODIFY_COLUMN: Catalogue._modify_column,
    Verb.ADD_COLUMN: Catalogue._add_column,
    Verb.DROP_COLUMN: Catalogue._recast,
    Verb.CHANGE_PRIMARY: Catalogue._change_primary,
    Verb.ALTER_TABLE: Catalogue._alter_table,
    Verb.REBUILD_TABLE: Catalogue._rebuild_table,
    Verb.TRUNCATE_TABLE: Catalogue._truncate_table,
    Verb.DEFRAGMENT_TABLE: Catalogue._defragment_table,
    Verb.UNLOCK_TABLE: Catalogue._finish_index,
    Verb.IMPORT_TABLE: Catalogue._import_table,
    Verb.FINISH_INDEX: Catalogue._finish_index,
}
"""Each makes a new prefix."""

BUILDS = {
    Verb.START_INDEX: Catalogue._start_index,
    Verb.START_REBUILD: Catalogue._start_rebuild,
    Verb.START_ADD_COLUMN: Catalogue._start_recast,
    Verb.START_DROP_COLUMN: Catalogue._start_recast,
    Verb.START_PRIMARY: Catalogue._start_primary,
    Verb.START_ALTER: Catalogue._start_alter,
    Verb.START_DEFRAGMENT: Catalogue._start_defragment,
    Verb.FLUSH_EXPORT: Catalogue._flush_export,
    Verb.STEP_INDEX: Catalogue._step_index,
    Verb.ABORT_INDEX: Catalogue._abort_index,
}
"""They change the catalogue (a step, a defragmentation and an export do not), but no state: an index appears
when its build is finished."""
