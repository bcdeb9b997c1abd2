"""The parser of the engine's script language (docs/SCRIPT.md): what it refuses, `engine run` refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.restart import LOG_FORMAT, option_of
from tornpage.workloads.script import (
    PLACED,
    Algorithm,
    Column,
    IndexDef,
    Lock,
    Script,
    Statement,
    Verb,
)
from tornpage.workloads.words import (
    AND,
    COLUMNS_MAX,
    INT64_MAX,
    INT64_MIN,
    Words,
    column_of,
    index_of,
    name_of,
    nullable,
    typed,
    value_of,
)

__all__ = ["STEP_ROWS", "parse_script"]

STEP_ROWS = 1000
"""Rows of a step of an index build if the statement does not say."""
STEP_PAGES = 64
"""Pages of a step of a backup if the statement does not say."""
INDEXES_MAX = 64


_Parse = Callable[[Words, Statement], Statement]
_TOKEN = re.compile(r'(?:[^ \t"]|"(?:[^"\\]|\\.)*(?:"|\\?$))+')


def parse_script(text: str) -> Script:
    """Parses a script; what it refuses, `engine run` refuses, and the other way round.

    Raises WorkloadError with the line number of what is not understood.
    """
    statements = []
    for line, raw in enumerate(text.split("\n"), start=1):
        tokens = _TOKEN.findall(raw.removesuffix("\r"))
        if raw.lstrip(" \t").startswith("#") or not tokens:
            continue
        try:
            words = Words(tokens)
            statement = _parse(words, line)
            words.end()
        except ValueError as error:
            raise WorkloadError(
                f"script line {line}: cannot parse {raw.strip()!r}: {error}"
            ) from error
        statements.append(statement)
    return Script(text, tuple(statements))


def _parse(words: Words, line: int) -> Statement:
    first = words.next()
    unique = first in _UNIQUE and words.word("unique")
    two = f"{first} {words.next()}" if words.more() and first in _FIRST_OF_TWO else first
    if two not in _PARSE:
        raise ValueError("unknown statement")
    statement = _PARSE[Verb(two)](words, Statement(line, Verb(two)))
    if unique and not statement.indexes:
        raise ValueError("`index` expected behind `unique`")
    return _made_unique(statement) if unique else statement


def _made_unique(s: Statement) -> Statement:
    return replace(s, indexes=tuple(replace(index, unique=True) for index in s.indexes))


_UNIQUE = ("add", "start")
_FIRST_OF_TWO = {verb.value.split()[0] for verb in Verb if " " in verb.value}


def _create_table(words: Words, s: Statement) -> Statement:
    table = words.name()
    columns: list[Column] = []
    while words.more() and not words.word("primary"):
        columns.append(nullable(words, column_of(words.next())))
    primary = words.next().split(",")
    names = [column.name for column in columns]
    if len(set(names)) < len(names) or len(set(primary)) < len(primary):
        raise ValueError("a column twice")
    if len(names) > COLUMNS_MAX or not set(primary) <= set(names):
        raise ValueError("too many columns, or a primary key column that is none of them")
    system = words.word("in")
    if system and not words.word("system"):
        raise ValueError("`in system` expected")
    return replace(s, table=table, columns=tuple(columns), primary=tuple(primary), system=system)


def _new_indexes(words: Words, s: Statement) -> Statement:
    indexes: list[IndexDef] = []
    while (words.more() and not words.at_option() and not words.at_and()) or not indexes:
        indexes.append(index_of(words.next()))
    if len(indexes) > INDEXES_MAX:
        raise ValueError("too many indexes")
    return replace(s, indexes=tuple(indexes))


def _options(words: Words, s: Statement) -> Statement:
    """Of an ALTER statement, each at most once."""
    while words.at_option():
        name, _, value = words.next().partition("=")
        if not value or (s.algorithm if name == "algorithm" else s.lock):
            raise ValueError(f"{name}: a value, and once only")
        if name == "algorithm":
            s = replace(s, algorithm=Algorithm(value))
        if name == "lock":
            s = replace(s, lock=Lock(value))
    return s


def _one_name(words: Words, s: Statement) -> Statement:
    return replace(s, name=words.name())


def _two_names(words: Words, s: Statement) -> Statement:
    return replace(s, name=words.name(), to=words.name())


def _modify(words: Words, s: Statement) -> Statement:
    name = words.name()
    return replace(s, columns=(typed(name, words.next()),))


def _new_column(words: Words, s: Statement) -> Statement:
    column = nullable(words, column_of(words.next()))
    default = words.option("default")
    values = None if default is None else {column.name: value_of(default)}
    after = words.option("after")
    to = "first" if after is None and words.word("first") else ""
    if after is not None:
        to = f"after={name_of(after)}"
    return replace(s, columns=(column,), values=values, to=to)


def _primary(words: Words, s: Statement) -> Statement:
    names = words.next().split(",")
    if len(names) > COLUMNS_MAX:
        raise ValueError("too many columns")
    return replace(s, primary=tuple(map(name_of, names)))


_CLAUSES: dict[Verb, _Parse] = {
    Verb.ADD_INDEX: _new_indexes,
    Verb.DROP_INDEX: _one_name,
    Verb.RENAME_INDEX: _two_names,
    Verb.ADD_COLUMN: _new_column,
    Verb.DROP_COLUMN: _one_name,
    Verb.RENAME_COLUMN: _two_names,
}


def _clause(words: Words) -> Statement:
    first = words.next()
    if first == "force":
        return Statement(0, Verb.REBUILD_TABLE)
    unique = first == "add" and words.word("unique")
    two = f"{first} {words.next()}"
    if two not in _CLAUSES or (unique and two != Verb.ADD_INDEX):
        raise ValueError(f"unknown clause {two!r}")
    clause = _CLAUSES[Verb(two)](words, Statement(0, Verb(two)))
    return _made_unique(clause) if unique else clause


def _clauses(words: Words, s: Statement) -> Statement:
    clauses = [_clause(words)]
    while words.word(AND):
        clauses.append(_clause(words))
    if sum(clause.verb is Verb.ADD_COLUMN for clause in clauses) > 1:
        raise ValueError("a statement adds one column")
    return replace(s, clauses=tuple(clauses))


def _alter(parse: _Parse) -> _Parse:
    """A statement that alters a table: what it says behind the table, and options."""

    def parsed(words: Words, s: Statement) -> Statement:
        return _options(words, parse(words, replace(s, table=words.name())))

    return parsed


def _start_column(parse: _Parse) -> _Parse:
    def parsed(words: Words, s: Statement) -> Statement:
        if not words.word("column"):
            raise ValueError("`column` expected")
        return parse(words, s)

    return parsed


def _table(words: Words, s: Statement) -> Statement:
    return replace(s, table=words.name())


def _table_and_name(words: Words, s: Statement) -> Statement:
    return replace(s, table=words.name(), name=words.name())


def _step_index(words: Words, s: Statement) -> Statement:
    table = words.name()
    number = words.number() if words.more() else 1
    rows = words.number() if words.more() else STEP_ROWS
    return replace(s, table=table, number=number, rows=rows)


def _start_backup(words: Words, s: Statement) -> Statement:
    s = replace(s, name=words.name())
    lock = next((lock for lock in Lock if lock and words.word(f"lock={lock}")), Lock.DEFAULT)
    return replace(s, lock=lock)


def _step_backup(words: Words, s: Statement) -> Statement:
    return replace(s, name=words.name(), number=words.number() if words.more() else STEP_PAGES)


def _backup(words: Words, s: Statement) -> Statement:
    return replace(s, name=words.name())


def _trx(words: Words, s: Statement) -> Statement:
    return replace(s, trx=words.trx(autocommit=False))


def _insert(words: Words, s: Statement) -> Statement:
    return replace(s, trx=words.trx(True), table=words.name(), values=words.values())


def _insert_seq(words: Words, s: Statement) -> Statement:
    trx, table = words.trx(True), words.name()
    first = words.number(INT64_MIN, INT64_MAX)
    return replace(s, trx=trx, table=table, bounds=(first, words.number(first, INT64_MAX)))


def _update(words: Words, s: Statement) -> Statement:
    s = replace(s, trx=words.trx(True), table=words.name(), key=words.values())
    if not words.word("set"):
        raise ValueError("`set` expected")
    return replace(s, values=words.values())


def _delete(words: Words, s: Statement) -> Statement:
    return replace(s, trx=words.trx(True), table=words.name(), key=words.values())


def _select(words: Words, s: Statement) -> Statement:
    return replace(s, table=words.name(), key=words.values())


def _table_and_index(words: Words, s: Statement) -> Statement:
    return replace(s, table=words.name(), name=words.name() if words.more() else "")


def _purge(words: Words, s: Statement) -> Statement:
    return replace(s, number=-1 if words.word("all") else words.number())


def _clean(words: Words, s: Statement) -> Statement:
    return replace(s, number=words.number())


def _checkpoint(words: Words, s: Statement) -> Statement:
    return replace(s, full=words.word("full"))


def _at(words: Words, s: Statement) -> Statement:
    number, act = words.number(), words.next()
    if act not in PLACED:
        raise ValueError(f"{', '.join(PLACED[:-1])} or {PLACED[-1]} expected")
    return replace(s, number=number, name=act, full=act == PLACED[0] and words.word("full"))


def _switch(words: Words, s: Statement) -> Statement:
    on = words.word("on")
    if not on and not words.word("off"):
        raise ValueError("on or off expected")
    return replace(s, full=on)


def _restart(words: Words, s: Statement) -> Statement:
    crash = words.word("crash")
    if not crash:
        words.word("clean")
    options: dict[str, str] = {}
    while words.more():
        options.update([option_of(words.next(), options)])
    if crash and LOG_FORMAT in options:
        raise ValueError("a log is converted after a clean close only")
    return replace(s, full=not crash, options=options)


def _nothing(_: Words, s: Statement) -> Statement:
    return s


_PARSE: dict[Verb, _Parse] = {
    Verb.CREATE_TABLE: _create_table,
    Verb.DROP_TABLE: _table,
    Verb.RENAME_TABLE: _table_and_name,
    Verb.ADD_INDEX: _alter(_new_indexes),
    Verb.DROP_INDEX: _alter(_one_name),
    Verb.REBUILD_TABLE: _alter(_nothing),
    Verb.START_REBUILD: _alter(_nothing),
    Verb.TRUNCATE_TABLE: _table,
    Verb.FLUSH_EXPORT: _table,
    Verb.UNLOCK_TABLE: _table,
    Verb.IMPORT_TABLE: _table_and_name,
    Verb.DEFRAGMENT_TABLE: _table_and_index,
    Verb.START_DEFRAGMENT: _table_and_index,
    Verb.RENAME_COLUMN: _alter(_two_names),
    Verb.RENAME_INDEX: _alter(_two_names),
    Verb.MODIFY_COLUMN: _alter(_modify),
    Verb.ADD_COLUMN: _alter(_new_column),
    Verb.DROP_COLUMN: _alter(_one_name),
    Verb.START_ADD_COLUMN: _start_column(_alter(_new_column)),
    Verb.START_DROP_COLUMN: _start_column(_alter(_one_name)),
    Verb.CHANGE_PRIMARY: _alter(_primary),
    Verb.START_PRIMARY: _alter(_primary),
    Verb.ALTER_TABLE: _alter(_clauses),
    Verb.START_ALTER: _alter(_clauses),
    Verb.START_INDEX: _alter(_new_indexes),
    Verb.STEP_INDEX: _step_index,
    Verb.FINISH_INDEX: _table,
    Verb.ABORT_INDEX: _table,
    Verb.START_BACKUP: _start_backup,
    Verb.STEP_BACKUP: _step_backup,
    Verb.FINISH_BACKUP: _backup,
    Verb.ABORT_BACKUP: _backup,
    Verb.BEGIN: _trx,
    Verb.COMMIT: _trx,
    Verb.ROLLBACK: _trx,
    Verb.INSERT: _insert,
    Verb.INSERT_SEQ: _insert_seq,
    Verb.UPDATE: _update,
    Verb.DELETE: _delete,
    Verb.SELECT: _select,
    Verb.SCAN: _table_and_index,
    Verb.PURGE: _purge,
    Verb.CLEAN: _clean,
    Verb.CHECKPOINT: _checkpoint,
    Verb.AT: _at,
    Verb.FLUSH_TABLE: _table,
    Verb.FLUSH_LOG: _nothing,
    Verb.SET_OPTIMIZE: _switch,
    Verb.SET_DEFRAGMENT: _switch,
    Verb.RESTART: _restart,
    Verb.STATUS: _nothing,
}
