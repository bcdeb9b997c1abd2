"""The book that a generator keeps of what exists: tables, live keys, open transactions. A script has
expected errors on purpose only.

Every statement of a generator goes through it. Keys that were just changed, deleted or rolled back are
hot: half of the changes go back to them, while their old versions are still there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tornpage.workloads.rowlog import ONLINE_LOG_MAX, SORT_BUFFER, Changes, log_capacity
from tornpage.workloads.script import (
    AUTOCOMMIT,
    Algorithm,
    Column,
    IndexDef,
    Lock,
    Statement,
    Value,
    Verb,
)
from tornpage.workloads.shapes import LONG, LONG_PAGE_MAX, LONGER, Shape
from tornpage.workloads.table import Table
from tornpage.workloads.values import Values

__all__ = ["Book", "other_name"]

HOT_SHARE = 0.5


@dataclass(slots=True)
class Book(Values):
    """One script in the making. undo: per open transaction table, key, whether the row was live before, and
    its serial value. dblwr_pages: of the target, for the sizes that matter to it. quiet: no
    checkpoint is asked for; copy_share: of the statements that alter a table, those with ALGORITHM=COPY;
    exclusive_share: of those that do not have LOCK=NONE, those with LOCK=EXCLUSIVE; system_share: of the
    tables, those in the system tablespace;
    sort_buffer_size, online_alter_log_max_size: of the target, in bytes."""

    dblwr_pages: int = 16
    clean_pages: int = 6
    quiet: bool = False
    copy_share: float = 0
    exclusive_share: float = 0
    system_share: float = 0
    sort_buffer_size: int = SORT_BUFFER
    online_alter_log_max_size: int = ONLINE_LOG_MAX
    out: list[Statement] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    undo: dict[str, list[tuple[Table, int, bool, bytes | None]]] = field(default_factory=dict)
    trx_serial: int = 0

    def add(self, verb: Verb, **fields: object) -> None:
        """The next statement."""
        self.out.append(Statement(len(self.out) + 1, verb, **fields))  # type: ignore[arg-type]

    # -- tables ---------------------------------------------------------------------------------

    def create(self, name: str, shape: Shape, system: bool | None = None) -> Table:
        """A new table; of long values with some that are long for the page. system: whether it is in the
        system tablespace; None: as system_share has it."""
        if shape is LONG and self.page_size > LONG_PAGE_MAX:
            shape = LONGER
        if system is None:
            system = self.system_share > 0 and self.rng.random() < self.system_share
        fields = {"columns": shape.columns, "primary": (shape.primary,), "system": system}
        self.add(Verb.CREATE_TABLE, table=name, **fields)
        self.tables[name] = Table(name, shape, system=system)
        return self.tables[name]

    def drop(self, table: Table) -> None:
        """Drops a table that no transaction has changed."""
        self.release(table)
        self.add(Verb.DROP_TABLE, table=table.name)
        del self.tables[table.name]

    def truncate(self, table: Table) -> None:
        """Empties a table that no transaction has changed."""
        self.release(table)
        self.add(Verb.TRUNCATE_TABLE, table=table.name)
        for key in sorted(table.live):
            table.touch(key, live=False)
            table.keep_serial(key, None)

    def rename(self, table: Table, name: str) -> None:
        """Renames a table that no transaction has changed."""
        self.release(table)
        self.add(Verb.RENAME_TABLE, table=table.name, name=name)
        self.tables[name] = self.tables.pop(table.name)
        table.name = name

    # -- transactions ---------------------------------------------------------------------------

    def begin(self) -> str:
        """Opens a transaction and returns its name."""
        self.trx_serial += 1
        trx = f"T{self.trx_serial}"
        self.undo[trx] = []
        self.add(Verb.BEGIN, trx=trx)
        return trx

    def end(self, trx: str, commit: bool) -> None:
        """Ends it; a rollback brings the live keys back."""
        self.add(Verb.COMMIT if commit else Verb.ROLLBACK, trx=trx)
        self._end(trx, commit)

    def _end(self, trx: str, commit: bool) -> None:
        for table, key, was_live, serial in reversed(self.undo.pop(trx)):
            table.held.pop(key, None)
            table.pinned = [pin for pin in table.pinned if pin[0] != trx]
            if not commit:
                if table.changes is not None:
                    table.changes.add(key in table.live, was_live)
                table.touch(key, was_live)
                table.keep_serial(key, serial)

    def restart(self, clean: bool, options: Mapping[str, str]) -> None:
        """The target ends, in one way or the other, and starts with these options changed; transactions and
        builds are given up."""
        self.add(Verb.RESTART, full=clean, options=options)
        for table in self.tables.values():
            table.build, table.changes, table.packing, table.exported = None, None, False, False
            table.new_shape, table.kept = None, None
        for trx in sorted(self.undo):
            self._end(trx, commit=False)

    def release(self, table: Table) -> None:
        """Ends every transaction that has changed the table, and its build."""
        self.release_rows(table)
        if table.build is not None:
            self.end_build(table, finish=False)

    # -- rows -----------------------------------------------------------------------------------

    def free_key(self, table: Table, live: bool) -> int | None:
        """A key that no open transaction holds: of a live row, or one that is unused. Hot ones half of the
        time."""
        hot = [key for key in table.hot if key not in table.held and (key in table.live) is live]
        if hot and self.rng.random() < HOT_SHARE:
            return self.rng.choice(hot)
        if live:
            keys = sorted(table.live - set(table.held))
            return self.rng.choice(keys) if keys else None
        limit = 2 * len(table.live) + 20
        for _ in range(50):
            key = self.rng.randrange(max(-limit, table.shape.floor), 2 * limit)
            if key not in table.live and key not in table.held:
                return key
        return None

    def _key_for(self, table: Table, key: int | None, live: bool) -> int | None:
        """This key, or without one a free one; None if it is not what is wanted."""
        if key is None:
            key = self.free_key(table, live)
        return key if key is not None and (key in table.live) is live else None

    def insert(
        self,
        table: Table,
        trx: str = AUTOCOMMIT,
        key: int | None = None,
        serial: bytes | None = None,
        values: Mapping[str, Value] | None = None,
    ) -> None:
        """A row of this key, or of one that is unused; serial, values: instead of what is drawn."""
        key = self._key_for(table, key, live=False)
        if key is not None:
            drawn = self.values(table, 0.7) if values is None else values
            values = {**drawn, **table.shape.mirrored(key)}
            if table.shape.serial and serial is None and not self.is_null(table.shape):
                serial = self.serial_value(table)
            self._change(table, trx, key, serial, Verb.INSERT, values)

    def update(
        self,
        table: Table,
        trx: str = AUTOCOMMIT,
        key: int | None = None,
        serial: bytes | None = None,
        values: Mapping[str, Value] | None = None,
    ) -> None:
        """New values for the row of this key, if it is there, or for one that is; serial: one of them;
        values: instead of what is drawn."""
        key = self._key_for(table, key, live=True)
        if key is not None:
            while not values:
                values = self.values(table, 0.4)
            if table.shape.serial and serial is None and self.rng.random() < 0.4:
                serial = self.serial_value(table)
            self._change(table, trx, key, serial, Verb.UPDATE, values)

    def delete(self, table: Table, trx: str = AUTOCOMMIT, key: int | None = None) -> None:
        """The row of this key goes, or one of many."""
        if key is None and len(table.live) > 8:
            key = self.free_key(table, live=True)
        if key is not None:
            self.add(Verb.DELETE, trx=trx, table=table.name, key=table.shape.key(key))
            self._touch(table, trx, key, live=False)

    def insert_seq(self, table: Table, first: int, last: int, trx: str = AUTOCOMMIT) -> None:
        """Rows of nothing but consecutive keys, in one statement."""
        self.add(Verb.INSERT_SEQ, trx=trx, table=table.name, bounds=(first, last))
        for key in range(first, last + 1):
            self._touch(table, trx, key, live=True)

    def _change(
        self,
        table: Table,
        trx: str,
        key: int,
        serial: bytes | None,
        verb: Verb,
        values: Mapping[str, Value],
    ) -> None:
        """An insert or update; serial: the new value of that column, which a unique index may refuse."""
        row = table.shape.key(key)
        if serial is not None:
            values = {**values, table.shape.serial: serial}
        if verb is Verb.INSERT:
            self.add(verb, trx=trx, table=table.name, values={**row, **values})
        else:
            self.add(verb, trx=trx, table=table.name, key=row, values=values)
        if serial is None or not table.collides(trx, key, serial):
            kept = table.serials.get(key) if serial is None else serial
            self._touch(table, trx, key, live=True, serial=kept)
        elif table.changes is not None:
            table.changes.add_doubtful()

    def _touch(
        self, table: Table, trx: str, key: int, live: bool, serial: bytes | None = None
    ) -> None:
        before = table.serials.get(key)
        if table.changes is not None:
            table.changes.add(key in table.live, live)
        if trx != AUTOCOMMIT:
            self.undo[trx].append((table, key, key in table.live, before))
            table.held[key] = trx
            table.pinned += [(trx, key, value) for value in (before, serial) if value is not None]
        table.touch(key, live)
        table.keep_serial(key, serial)

    # -- indexes --------------------------------------------------------------------------------

    def missing_indexes(self, table: Table) -> list[IndexDef]:
        """Those of its shape that the table does not have; it may be getting them."""
        return [index for index in table.shape.indexes if index.name not in table.indexes]

    def alter(self, verb: Verb, table: Table, **fields: object) -> None:
        """A statement that alters a table, carried out in one of the ways that there are."""
        algorithm = fields.pop("algorithm", Algorithm.DEFAULT)
        lock = fields.pop("lock", Lock.DEFAULT)
        free = algorithm is Algorithm.DEFAULT
        if (
            free
            and self.copy_share
            and lock is not Lock.NONE
            and self.rng.random() < self.copy_share
        ):
            algorithm = Algorithm.COPY
        if lock is Lock.DEFAULT and self.exclusive_share:
            lock = Lock.EXCLUSIVE if self.rng.random() < self.exclusive_share else lock
        self.add(verb, table=table.name, algorithm=algorithm, lock=lock, **fields)

    def add_indexes(self, table: Table, indexes: Sequence[IndexDef]) -> None:
        """Builds them in one statement, which fails for a duplicate in a unique one."""
        self.release(table)
        self.alter(Verb.ADD_INDEX, table, indexes=tuple(indexes))
        if not table.has_duplicates(indexes):
            table.indexes += [index.name for index in indexes]

    def drop_index(self, table: Table, name: str) -> None:
        """Drops one that is there."""
        self.release(table)
        self.alter(Verb.DROP_INDEX, table, name=name)
        table.indexes.remove(name)

    def rename_index(self, table: Table, name: str) -> None:
        """Another name for an index, or the one that it had before."""
        self.release(table)
        new = other_name(name)
        self.alter(Verb.RENAME_INDEX, table, name=name, to=new)
        table.indexes[table.indexes.index(name)] = new
        table.shape = table.shape.rename_index(name, new)

    def rename_column(self, table: Table, name: str) -> None:
        """The same for a column."""
        self.release(table)
        new = other_name(name)
        self.alter(Verb.RENAME_COLUMN, table, name=name, to=new)
        table.shape = table.shape.rename_column(name, new)

    def resize_column(self, table: Table, name: str, length: int) -> None:
        """Another length for a VARCHAR whose values are not longer."""
        self.release(table)
        self.alter(Verb.MODIFY_COLUMN, table, columns=(Column(name, length, varying=True),))
        table.shape = table.shape.resize_column(name, length)

    def start_build(self, table: Table, indexes: Sequence[IndexDef], online: bool = False) -> None:
        """Starts a build in steps: until it ends, the table takes no changes, unless it is `online`."""
        self.release(table)
        lock = Lock.NONE if online else Lock.DEFAULT
        self.alter(Verb.START_INDEX, table, indexes=tuple(indexes), lock=lock)
        table.build = tuple(indexes)
        table.changes = self.watch(table, indexes) if online else None

    def rebuild(self, table: Table, in_steps: bool, online: bool = False) -> None:
        """Rebuilds the table in one statement, or starts that."""
        self.release(table)
        lock = Lock.NONE if online else Lock.DEFAULT
        self.alter(Verb.START_REBUILD if in_steps else Verb.REBUILD_TABLE, table, lock=lock)
        table.build = () if in_steps else None
        table.changes = self.watch(table, ()) if online and in_steps else None

    def reshape(
        self, verb: Verb, table: Table, shape: Shape, lock: Lock = Lock.DEFAULT, **fields: object
    ) -> None:
        """A statement that gives the table this shape, or that starts it."""
        self.release(table)
        self.alter(verb, table, lock=lock, **fields)
        if not verb.startswith("start"):
            table.shape = shape
            return
        table.build, table.new_shape = (), shape
        table.changes = self.watch(table, ()) if lock is Lock.NONE else None

    def defragment(self, table: Table, index: str, in_steps: bool) -> None:
        """Packs the leaves of an index, or of all ("") in one statement, or starts that."""
        self.release(table)
        verb = Verb.START_DEFRAGMENT if in_steps else Verb.DEFRAGMENT_TABLE
        self.add(verb, table=table.name, name=index)
        table.build = () if in_steps else None
        table.packing = in_steps

    def export(self, table: Table) -> None:
        """Brings the table's file up to date and locks it; ends transactions and another export."""
        for trx in sorted(self.undo):
            self.end(trx, commit=self.rng.random() < 0.5)
        self.release(table)
        for other in self.tables.values():
            if other.exported:
                self.unlock(other)
        self.add(Verb.FLUSH_EXPORT, table=table.name)
        table.build, table.exported = (), True

    def unlock(self, table: Table) -> None:
        """Ends its export."""
        self.add(Verb.UNLOCK_TABLE, table=table.name)
        table.build, table.exported = None, False

    def import_rows(self, table: Table, source: Table) -> None:
        """All that an exported table of the same definition has."""
        self.release(table)
        self.add(Verb.IMPORT_TABLE, table=table.name, name=source.name)
        table.live = set(source.live)
        table.serials = dict(source.serials)

    def watch(self, table: Table, indexes: Sequence[IndexDef]) -> Changes:
        """What a build of these indexes, without any a rebuild, knows of changes."""
        capacity = log_capacity(self.sort_buffer_size, self.online_alter_log_max_size, len(indexes))
        return Changes(capacity, table.shape.columns, table.shape.primary, indexes)

    def step_build(self, table: Table, number: int, rows: int) -> None:
        """So many steps of so many rows."""
        self.add(Verb.STEP_INDEX, table=table.name, number=number, rows=rows)

    def end_build(self, table: Table, finish: bool) -> None:
        """Finishes or aborts it. With LOCK=NONE it can be finished when no open transaction has changed the
        table; and it is not when nobody knows whether its log has had room for all changes."""
        changes = table.changes
        if changes is not None and finish:
            self._let_finish(table)
            finish = not changes.unsure
        table.changes, table.packing, table.exported = None, False, False
        self.add(Verb.FINISH_INDEX if finish else Verb.ABORT_INDEX, table=table.name)
        built, table.build = table.build or (), None
        overflowed = changes is not None and changes.overflowed
        if finish and not overflowed and not table.has_duplicates(built):
            table.become(built)
        table.new_shape, table.kept = None, None

    def release_rows(self, table: Table) -> None:
        """Ends every transaction that has changed the table; a build of it goes on."""
        for trx in sorted(set(table.held.values())):
            self.end(trx, commit=self.rng.random() < 0.5)

    def _let_finish(self, table: Table) -> None:
        """Ends the transactions that have changed the table."""
        for trx in sorted(set(table.held.values())):
            if self.rng.random() < 0.3:
                self.add(Verb.FINISH_INDEX, table=table.name)  # refused
            self.end(trx, commit=self.rng.random() < 0.5)

    def set_optimize(self, on: bool) -> None:
        """Switches log_optimize_ddl, which no build may see."""
        for table in self.tables.values():
            if table.build is not None:
                self.end_build(table, finish=self.rng.random() < 0.5)
        self.add(Verb.SET_OPTIMIZE, full=on)


def other_name(name: str) -> str:
    """What a column or an index is called in turn."""
    return name.removesuffix("_") if name.endswith("_") else f"{name}_"
