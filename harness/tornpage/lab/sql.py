"""Scripts of clients in the engine's language as SQL of a MariaDB server.

One connection takes it all, so that one transaction may be open at a time. What tells the engine when to work
in the background has no SQL: a server knows by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.script import Column, IndexDef, Script, Statement, Value, Verb

__all__ = ["sql_of"]

_BACKGROUND = frozenset({Verb.AT, Verb.CLEAN, Verb.PURGE, Verb.CHECKPOINT})


def sql_of(script: Script, table_options: str = "") -> str:
    """All statements. table_options: behind each table's definition. WorkloadError for a statement that no
    client has."""
    lines = [_sql(statement, table_options) for statement in script.statements]
    return "".join(f"{line};\n" for line in lines if line)


def _sql(statement: Statement, options: str) -> str:
    table, values, key = statement.table, statement.values or {}, statement.key or {}
    match statement.verb:
        case verb if verb in _BACKGROUND:
            return ""
        case Verb.BEGIN | Verb.COMMIT | Verb.ROLLBACK as verb:
            return verb
        case Verb.CREATE_TABLE:
            columns = ", ".join(map(_column, statement.columns))
            primary = ", ".join(statement.primary)
            return f"create table {table} ({columns}, primary key ({primary})) {options}".rstrip()
        case Verb.INSERT:
            items = ", ".join(map(_value, values.values()))
            return f"insert into {table} ({', '.join(values)}) values ({items})"
        case Verb.UPDATE:
            return f"update {table} set {_equal(values, ', ')} where {_equal(key, ' and ')}"
        case Verb.DELETE:
            return f"delete from {table} where {_equal(key, ' and ')}"
        case Verb.SELECT:
            return f"select * from {table} where {_equal(key, ' and ')}"
        case Verb.ADD_INDEX:
            return f"alter table {table} {', '.join(map(_index, statement.indexes))}"
        case Verb.DROP_INDEX:
            return f"alter table {table} drop index {statement.name}"
        case Verb.REBUILD_TABLE:
            return f"alter table {table} force"
        case verb:
            raise WorkloadError(f"{verb}: there is no SQL for it")


def _column(column: Column) -> str:
    """What an insert does not name is 0, an empty text, or NULL where that may be."""
    length = f"({column.length})" if column.is_text else ""
    kind = ("varchar" if column.varying else "char") if column.is_text else "bigint"
    usual = "" if column.nullable else f" not null default {_value(b'' if column.is_text else 0)}"
    return f"{column.name} {kind}{length}{usual}"


def _index(index: IndexDef) -> str:
    kind = "unique index" if index.unique else "index"
    columns = (f"{name}({length})" if length else name for name, length in index.columns)
    return f"add {kind} {index.name} ({', '.join(columns)})"


def _equal(values: Mapping[str, Value], between: str) -> str:
    return between.join(f"{name} = {_value(value)}" for name, value in values.items())


def _value(value: Value) -> str:
    if value is None:
        return "null"
    return str(value) if isinstance(value, int) else f"x'{value.hex()}'"
