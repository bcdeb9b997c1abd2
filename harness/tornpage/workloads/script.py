"""The engine's script language as typed statements.

The grammar is `engine run`'s (docs/SCRIPT.md). The oracle and the generators speak in these
statements, and only their text goes to the target.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

__all__ = [
    "AUTOCOMMIT",
    "PLACED",
    "Algorithm",
    "Column",
    "IndexDef",
    "Lock",
    "Script",
    "Statement",
    "Value",
    "Verb",
    "format_value",
    "row_size",
]

AUTOCOMMIT = "-"
"""In place of a transaction: the statement is one of its own."""

PLACED = ("checkpoint", "clean", "evict", "fill")
"""What can be done at a yield point."""

REPEATED_MIN = 64
"""Shorter texts are written as they are."""
PERIOD_MAX = 40
"""Longest text that is looked for as what a long one repeats."""
_PLAIN = re.compile(rb"[ !#-\[\]-~]*")
"""A text that is quoted as it is."""

Value = int | bytes | None
"""Of a column; None is NULL."""


class Verb(StrEnum):
    """What a statement does."""

    CREATE_TABLE = "create table"
    DROP_TABLE = "drop table"
    RENAME_TABLE = "rename table"
    ADD_INDEX = "add index"
    DROP_INDEX = "drop index"
    REBUILD_TABLE = "rebuild table"
    START_REBUILD = "start rebuild"
    TRUNCATE_TABLE = "truncate table"
    DEFRAGMENT_TABLE = "defragment table"
    START_DEFRAGMENT = "start defragment"
    FLUSH_EXPORT = "flush export"
    UNLOCK_TABLE = "unlock table"
    IMPORT_TABLE = "import table"
    RENAME_COLUMN = "rename column"
    RENAME_INDEX = "rename index"
    MODIFY_COLUMN = "modify column"
    ADD_COLUMN = "add column"
    DROP_COLUMN = "drop column"
    START_ADD_COLUMN = "start add"
    START_DROP_COLUMN = "start drop"
    CHANGE_PRIMARY = "change primary"
    START_PRIMARY = "start primary"
    ALTER_TABLE = "alter table"
    START_ALTER = "start alter"
    START_INDEX = "start index"
    STEP_INDEX = "step index"
    FINISH_INDEX = "finish index"
    ABORT_INDEX = "abort index"
    START_BACKUP = "start backup"
    STEP_BACKUP = "step backup"
    FINISH_BACKUP = "finish backup"
    ABORT_BACKUP = "abort backup"
    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    INSERT = "insert"
    INSERT_SEQ = "insert_seq"
    UPDATE = "update"
    DELETE = "delete"
    SELECT = "select"
    SCAN = "scan"
    PURGE = "purge"
    CLEAN = "clean"
    CHECKPOINT = "checkpoint"
    AT = "at"
    FLUSH_TABLE = "flush table"
    FLUSH_LOG = "flush log"
    SET_OPTIMIZE = "set log_optimize_ddl"
    SET_DEFRAGMENT = "set defragment"
    RESTART = "restart"
    STATUS = "status"
    LINE = "line"
    """Of a target's own language: `name` is the whole of it, and nothing here reads it."""


class Algorithm(StrEnum):
    """How an ALTER statement is to be carried out."""

    DEFAULT = ""
    COPY = "copy"
    INPLACE = "inplace"
    NOCOPY = "nocopy"
    INSTANT = "instant"


class Lock(StrEnum):
    """What others may do to the table of an ALTER statement."""

    DEFAULT = ""
    NONE = "none"
    SHARED = "shared"
    EXCLUSIVE = "exclusive"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: length is bytes of a CHAR or, at most, of a VARCHAR; 0 for BIGINT. nullable: may be NULL."""

    name: str
    length: int = 0
    varying: bool = False
    nullable: bool = False

    @property
    def is_text(self) -> bool:
        """CHAR(length) or VARCHAR(length) rather than BIGINT."""
        return self.length > 0

    @property
    def size(self) -> int:
        """Bytes in a row in memory."""
        return (self.length or 8) + 2 * self.varying


@dataclass(frozen=True, slots=True)
class IndexDef:
    """An index: columns with their prefix length in bytes, 0 = whole column. unique: no two rows have the
    same; all indexes of a statement are, or none."""

    name: str
    columns: tuple[tuple[str, int], ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement on line `line` (from 1). Fields that its verb does not use are empty.

    system: of create table, its place is the system tablespace.
    key: primary key columns of update, delete, select; values: new column values.
    number: of purge (-1 = all), clean, at, step index and step backup; rows: of a step of that; full: of
    checkpoint, at and set, of restart a clean one; options: of restart; bounds: of insert_seq; name, to: of
    a rename; name: of a backup, of at what is done there; columns: of modify, the one that changes, of add
    column the new one; to: where it comes to stand, `first` or `after=COL`, values: what it is in each row;
    clauses: of alter table, each as the statement that it would be alone, without table and options, a
    rebuild for `force`; algorithm, lock: of statements that ALTER; lock: of start backup.
    """

    line: int
    verb: Verb
    table: str = ""
    name: str = ""
    to: str = ""
    trx: str = ""
    columns: tuple[Column, ...] = ()
    primary: tuple[str, ...] = ()
    system: bool = False
    indexes: tuple[IndexDef, ...] = ()
    key: Mapping[str, Value] | None = None
    values: Mapping[str, Value] | None = None
    bounds: tuple[int, int] = (0, 0)
    number: int = 0
    rows: int = 0
    full: bool = False
    options: Mapping[str, str] | None = None
    clauses: tuple[Statement, ...] = ()
    algorithm: Algorithm = Algorithm.DEFAULT
    lock: Lock = Lock.DEFAULT

    def text(self) -> str:
        """The statement as the engine reads it, without newline."""
        return _FORMAT[self.verb](self) + _options_text(self)


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script: text and statements say the same. prepared: the last line before those that power
    losses are about, 0: they are about all; over: the last one of these, 0: they are about all behind it."""

    text: str
    statements: tuple[Statement, ...]
    prepared: int = 0
    over: int = 0

    @classmethod
    def of(cls, statements: Iterable[Statement], prepared: int = 0, over: int = 0) -> Script:
        """Numbers the statements from line 1, one per line."""
        numbered = tuple(
            item if item.line == line else replace(item, line=line)
            for line, item in enumerate(statements, start=1)
        )
        return cls("".join(item.text() + "\n" for item in numbered), numbered, prepared, over)


def row_size(columns: Collection[Column]) -> int:
    """Bytes of a row in memory, which is what a rebuild logs: VARCHAR at its full length, and NULL bits."""
    nullable = sum(column.nullable for column in columns)
    return sum(column.size for column in columns) + (nullable + 7) // 8


def format_value(value: Value) -> str:
    """A VALUE of the grammar: null, a decimal integer or quoted text, a long one by what it repeats."""
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    for period in range(1, PERIOD_MAX + 1) if len(value) >= REPEATED_MIN else ():
        if value[period:] == value[:-period]:
            return f"{_quoted(value[:period])}*{len(value)}"
    return _quoted(value)


def _quoted(value: bytes) -> str:
    if _PLAIN.fullmatch(value):
        return f'"{value.decode("ascii")}"'
    out = ['"']
    for byte in value:
        if byte in (0x22, 0x5C):
            out.append("\\" + chr(byte))
        elif 0x20 <= byte < 0x7F:
            out.append(chr(byte))
        else:
            out.append(f"\\x{byte:02x}")
    out.append('"')
    return "".join(out)


def _pairs(values: Mapping[str, Value] | None) -> str:
    return " ".join(f"{name}={format_value(value)}" for name, value in (values or {}).items())


def _index_text(index: IndexDef) -> str:
    columns = ",".join(f"{name}:{length}" if length else name for name, length in index.columns)
    return f"{index.name}({columns})"


def _indexes_text(word: str, statement: Statement) -> str:
    unique = ["unique"] if any(index.unique for index in statement.indexes) else []
    return " ".join([word, *unique, "index", statement.table, *map(_index_text, statement.indexes)])


def _options_text(statement: Statement) -> str:
    options = (("algorithm", statement.algorithm), ("lock", statement.lock))
    return "".join(f" {name}={value}" for name, value in options if value)


def _type_text(column: Column) -> str:
    kind = "varchar" if column.varying else "char"
    return f"{kind}({column.length})" if column.is_text else "bigint"


def _column_text(column: Column) -> str:
    return f"{column.name}:{_type_text(column)}" + (" null" if column.nullable else "")


def _create_text(s: Statement) -> str:
    place = ["in system"] if s.system else []
    columns = map(_column_text, s.columns)
    return " ".join(["create table", s.table, *columns, "primary", ",".join(s.primary), *place])


def _restart_text(statement: Statement) -> str:
    options = [f"{name}={value}" for name, value in (statement.options or {}).items()]
    return " ".join(["restart", "clean" if statement.full else "crash", *options])


def _new_column_text(word: str, s: Statement) -> str:
    (column,) = s.columns
    default = [f"default={format_value(value)}" for value in (s.values or {}).values()]
    return " ".join([word, s.table, _column_text(column), *default, *([s.to] if s.to else [])])


def _modify_text(statement: Statement) -> str:
    (column,) = statement.columns
    return f"modify column {statement.table} {column.name} {_type_text(column)}"


def _clause_text(clause: Statement) -> str:
    if clause.verb is Verb.REBUILD_TABLE:
        return "force"
    return _FORMAT[clause.verb](clause).replace("  ", " ", 1)  # where the table would be


def _clauses_text(s: Statement) -> str:
    return f"{s.verb} {s.table} {' and '.join(map(_clause_text, s.clauses))}"


def _switch_text(statement: Statement) -> str:
    return f"{statement.verb} {'on' if statement.full else 'off'}"


_FORMAT: dict[Verb, Callable[[Statement], str]] = {
    Verb.CREATE_TABLE: _create_text,
    Verb.DROP_TABLE: lambda s: f"drop table {s.table}",
    Verb.RENAME_TABLE: lambda s: f"rename table {s.table} {s.name}",
    Verb.ADD_INDEX: lambda s: _indexes_text("add", s),
    Verb.DROP_INDEX: lambda s: f"drop index {s.table} {s.name}",
    Verb.REBUILD_TABLE: lambda s: f"rebuild table {s.table}",
    Verb.START_REBUILD: lambda s: f"start rebuild {s.table}",
    Verb.DEFRAGMENT_TABLE: lambda s: f"defragment table {s.table} {s.name}".rstrip(),
    Verb.START_DEFRAGMENT: lambda s: f"start defragment {s.table} {s.name}".rstrip(),
    Verb.FLUSH_EXPORT: lambda s: f"flush export {s.table}",
    Verb.UNLOCK_TABLE: lambda s: f"unlock table {s.table}",
    Verb.IMPORT_TABLE: lambda s: f"import table {s.table} {s.name}",
    Verb.TRUNCATE_TABLE: lambda s: f"truncate table {s.table}",
    Verb.RENAME_COLUMN: lambda s: f"rename column {s.table} {s.name} {s.to}",
    Verb.RENAME_INDEX: lambda s: f"rename index {s.table} {s.name} {s.to}",
    Verb.MODIFY_COLUMN: _modify_text,
    Verb.ADD_COLUMN: lambda s: _new_column_text("add column", s),
    Verb.DROP_COLUMN: lambda s: f"drop column {s.table} {s.name}",
    Verb.START_ADD_COLUMN: lambda s: _new_column_text("start add column", s),
    Verb.START_DROP_COLUMN: lambda s: f"start drop column {s.table} {s.name}",
    Verb.CHANGE_PRIMARY: lambda s: f"change primary {s.table} {','.join(s.primary)}",
    Verb.START_PRIMARY: lambda s: f"start primary {s.table} {','.join(s.primary)}",
    Verb.ALTER_TABLE: _clauses_text,
    Verb.START_ALTER: _clauses_text,
    Verb.START_INDEX: lambda s: _indexes_text("start", s),
    Verb.STEP_INDEX: lambda s: f"step index {s.table} {s.number} {s.rows}",
    Verb.FINISH_INDEX: lambda s: f"finish index {s.table}",
    Verb.ABORT_INDEX: lambda s: f"abort index {s.table}",
    Verb.START_BACKUP: lambda s: f"start backup {s.name}",
    Verb.STEP_BACKUP: lambda s: f"step backup {s.name} {s.number}",
    Verb.FINISH_BACKUP: lambda s: f"finish backup {s.name}",
    Verb.ABORT_BACKUP: lambda s: f"abort backup {s.name}",
    Verb.BEGIN: lambda s: f"begin {s.trx}",
    Verb.COMMIT: lambda s: f"commit {s.trx}",
    Verb.ROLLBACK: lambda s: f"rollback {s.trx}",
    Verb.INSERT: lambda s: f"insert {s.trx} {s.table} {_pairs(s.values)}",
    Verb.INSERT_SEQ: lambda s: f"insert_seq {s.trx} {s.table} {s.bounds[0]} {s.bounds[1]}",
    Verb.UPDATE: lambda s: f"update {s.trx} {s.table} {_pairs(s.key)} set {_pairs(s.values)}",
    Verb.DELETE: lambda s: f"delete {s.trx} {s.table} {_pairs(s.key)}",
    Verb.SELECT: lambda s: f"select {s.table} {_pairs(s.key)}",
    Verb.SCAN: lambda s: f"scan {s.table} {s.name}".rstrip(),
    Verb.PURGE: lambda s: "purge all" if s.number < 0 else f"purge {s.number}",
    Verb.CLEAN: lambda s: f"clean {s.number}",
    Verb.CHECKPOINT: lambda s: "checkpoint full" if s.full else "checkpoint",
    Verb.AT: lambda s: f"at {s.number} {s.name}" + " full" * s.full,
    Verb.FLUSH_TABLE: lambda s: f"flush table {s.table}",
    Verb.FLUSH_LOG: lambda _: "flush log",
    Verb.SET_OPTIMIZE: _switch_text,
    Verb.SET_DEFRAGMENT: _switch_text,
    Verb.RESTART: _restart_text,
    Verb.STATUS: lambda _: "status",
    Verb.LINE: lambda s: s.name,
}
