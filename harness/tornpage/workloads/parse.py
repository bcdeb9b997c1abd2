"""The parser of the engine's script language (docs/SCRIPT.md): what it refuses, `engine run` refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.restart import LOG_FORMAT, option_of
from tornpage.workloads.script import (
    AUTOCOMMIT,
    PLACED,
    Algorithm,
    Column,
    IndexDef,
    Lock,
    Script,
    Statement,
    Value,
    Verb,
)

__all__ = ["STEP_ROWS", "parse_script"]

STEP_ROWS = 1000
"""Rows of a step of an index build if the statement does not say."""
STEP_PAGES = 64
"""Pages of a step of a backup if the statement does not say."""
WORDS_MAX = 128
COLUMNS_MAX = 32
INDEXES_MAX = 64
CHAR_MAX = 255
VARCHAR_MAX = 16_000
PREFIX_MAX = 3072
INT32_MAX = (1 << 31) - 1
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


_TOKEN = re.compile(r'(?:[^ \t"]|"(?:[^"\\]|\\.)*(?:"|\\?$))+')
_NAME = re.compile(r"[A-Za-z0-9_]{1,63}")
_TRX = re.compile(r"[A-Za-z0-9]{1,63}")
_INTEGER = re.compile(r"-?[0-9]+")
_TYPE = re.compile(r"(var|)char\((-?[0-9]{1,8})\)")
_INDEX = re.compile(r"([^(]*)\((.*)\)")
_TEXT = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\]|\\x[0-9a-fA-F]{2})*)"(?:\*(.*))?')
_ESCAPE = re.compile(rb'\\(?:x([0-9a-fA-F]{2})|(["\\]))')


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
            words = _Words(tokens)
            statement = _parse(words, line)
            words.end()
        except ValueError as error:
            raise WorkloadError(
                f"script line {line}: cannot parse {raw.strip()!r}: {error}"
            ) from error
        statements.append(statement)
    return Script(text, tuple(statements))


class _Words:
    """The words of a line, taken one after the other. Raises ValueError for one that cannot be."""

    def __init__(self, tokens: list[str]) -> None:
        if len(tokens) > WORDS_MAX:
            raise ValueError(f"more than {WORDS_MAX} words")
        self._left = tokens[::-1]

    def more(self) -> bool:
        return bool(self._left)

    def next(self) -> str:
        if not self._left:
            raise ValueError("a word is missing")
        return self._left.pop()

    def word(self, wanted: str) -> bool:
        """Takes the next word if it is this one."""
        found = self._left[-1:] == [wanted]
        if found:
            self._left.pop()
        return found

    def option(self, name: str) -> str | None:
        """The value of the next word if it is this option, which it then takes."""
        if not self._left or not self._left[-1].startswith(f"{name}="):
            return None
        return self._left.pop().partition("=")[2]

    def name(self) -> str:
        return _name(self.next())

    def trx(self, autocommit: bool) -> str:
        token = self.next()
        if not (autocommit and token == AUTOCOMMIT) and not _TRX.fullmatch(token):
            raise ValueError(f"bad transaction name {token!r}")
        return token

    def number(self, least: int = 1, most: int = INT32_MAX) -> int:
        return _integer(self.next(), least, most)

    def values(self) -> dict[str, Value]:
        """COL=VALUE words up to `set` or the end; at least one."""
        values: dict[str, Value] = {}
        while not values or (self._left and self._left[-1] != "set"):
            name, sep, text = self.next().partition("=")
            if not sep or _name(name) in values:
                raise ValueError("COLUMN=VALUE expected, each column once")
            values[name] = _value(text)
        return values

    def at_option(self) -> bool:
        """Is the next word an option of an ALTER statement?"""
        return bool(self._left) and self._left[-1].startswith(_OPTIONS)

    def end(self) -> None:
        if self._left:
            raise ValueError(f"{self._left[-1]!r} is too much")


def _parse(words: _Words, line: int) -> Statement:
    first = words.next()
    unique = first in _UNIQUE and words.word("unique")
    two = f"{first} {words.next()}" if words.more() and first in _FIRST_OF_TWO else first
    if two not in _PARSE:
        raise ValueError("unknown statement")
    statement = _PARSE[Verb(two)](words, Statement(line, Verb(two)))
    if unique:
        if not statement.indexes:
            raise ValueError("`index` expected behind `unique`")
        indexes = tuple(replace(index, unique=True) for index in statement.indexes)
        statement = replace(statement, indexes=indexes)
    return statement


_UNIQUE = ("add", "start")
_OPTIONS = ("algorithm=", "lock=")
_FIRST_OF_TWO = {verb.value.split()[0] for verb in Verb if " " in verb.value}


def _create_table(words: _Words, s: Statement) -> Statement:
    table = words.name()
    columns: list[Column] = []
    while words.more() and not words.word("primary"):
        columns.append(_nullable(words, _column(words.next())))
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


def _indexes(words: _Words, s: Statement) -> Statement:
    table = words.name()
    indexes: list[IndexDef] = []
    while (words.more() and not words.at_option()) or not indexes:
        indexes.append(_index(words.next()))
    if len(indexes) > INDEXES_MAX:
        raise ValueError("too many indexes")
    return _options(words, replace(s, table=table, indexes=tuple(indexes)))


def _options(words: _Words, s: Statement) -> Statement:
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


def _drop_part(words: _Words, s: Statement) -> Statement:
    return _options(words, replace(s, table=words.name(), name=words.name()))


def _rebuild(words: _Words, s: Statement) -> Statement:
    return _options(words, replace(s, table=words.name()))


def _rename_part(words: _Words, s: Statement) -> Statement:
    s = replace(s, table=words.name(), name=words.name(), to=words.name())
    return _options(words, s)


def _modify(words: _Words, s: Statement) -> Statement:
    table, name = words.name(), words.name()
    return _options(words, replace(s, table=table, columns=(_typed(name, words.next()),)))


def _add_column(words: _Words, s: Statement) -> Statement:
    table, column = words.name(), _nullable(words, _column(words.next()))
    default = words.option("default")
    values = None if default is None else {column.name: _value(default)}
    after = words.option("after")
    to = "first" if after is None and words.word("first") else ""
    if after is not None:
        to = f"after={_name(after)}"
    return _options(words, replace(s, table=table, columns=(column,), values=values, to=to))


def _change_primary(words: _Words, s: Statement) -> Statement:
    table, names = words.name(), words.next().split(",")
    if len(names) > COLUMNS_MAX:
        raise ValueError("too many columns")
    return _options(words, replace(s, table=table, primary=tuple(map(_name, names))))


def _start_column(
    parse: Callable[[_Words, Statement], Statement],
) -> Callable[[_Words, Statement], Statement]:
    def parsed(words: _Words, s: Statement) -> Statement:
        if not words.word("column"):
            raise ValueError("`column` expected")
        return parse(words, s)

    return parsed


def _table(words: _Words, s: Statement) -> Statement:
    return replace(s, table=words.name())


def _table_and_name(words: _Words, s: Statement) -> Statement:
    return replace(s, table=words.name(), name=words.name())


def _step_index(words: _Words, s: Statement) -> Statement:
    table = words.name()
    number = words.number() if words.more() else 1
    rows = words.number() if words.more() else STEP_ROWS
    return replace(s, table=table, number=number, rows=rows)


def _start_backup(words: _Words, s: Statement) -> Statement:
    s = replace(s, name=words.name())
    lock = next((lock for lock in Lock if lock and words.word(f"lock={lock}")), Lock.DEFAULT)
    return replace(s, lock=lock)


def _step_backup(words: _Words, s: Statement) -> Statement:
    return replace(s, name=words.name(), number=words.number() if words.more() else STEP_PAGES)


def _backup(words: _Words, s: Statement) -> Statement:
    return replace(s, name=words.name())


def _trx(words: _Words, s: Statement) -> Statement:
    return replace(s, trx=words.trx(autocommit=False))


def _insert(words: _Words, s: Statement) -> Statement:
    return replace(s, trx=words.trx(True), table=words.name(), values=words.values())


def _insert_seq(words: _Words, s: Statement) -> Statement:
    trx, table = words.trx(True), words.name()
    first = words.number(INT64_MIN, INT64_MAX)
    return replace(s, trx=trx, table=table, bounds=(first, words.number(first, INT64_MAX)))


def _update(words: _Words, s: Statement) -> Statement:
    s = replace(s, trx=words.trx(True), table=words.name(), key=words.values())
    if not words.word("set"):
        raise ValueError("`set` expected")
    return replace(s, values=words.values())


def _delete(words: _Words, s: Statement) -> Statement:
    return replace(s, trx=words.trx(True), table=words.name(), key=words.values())


def _select(words: _Words, s: Statement) -> Statement:
    return replace(s, table=words.name(), key=words.values())


def _table_and_index(words: _Words, s: Statement) -> Statement:
    return replace(s, table=words.name(), name=words.name() if words.more() else "")


def _purge(words: _Words, s: Statement) -> Statement:
    return replace(s, number=-1 if words.word("all") else words.number())


def _clean(words: _Words, s: Statement) -> Statement:
    return replace(s, number=words.number())


def _checkpoint(words: _Words, s: Statement) -> Statement:
    return replace(s, full=words.word("full"))


def _at(words: _Words, s: Statement) -> Statement:
    number, act = words.number(), words.next()
    if act not in PLACED:
        raise ValueError(f"{', '.join(PLACED[:-1])} or {PLACED[-1]} expected")
    return replace(s, number=number, name=act, full=act == PLACED[0] and words.word("full"))


def _set(words: _Words, s: Statement) -> Statement:
    if not words.word("log_optimize_ddl"):
        raise ValueError("only log_optimize_ddl can be set")
    on = words.word("on")
    if not on and not words.word("off"):
        raise ValueError("on or off expected")
    return replace(s, full=on)


def _restart(words: _Words, s: Statement) -> Statement:
    crash = words.word("crash")
    if not crash:
        words.word("clean")
    options: dict[str, str] = {}
    while words.more():
        options.update([option_of(words.next(), options)])
    if crash and LOG_FORMAT in options:
        raise ValueError("a log is converted after a clean close only")
    return replace(s, full=not crash, options=options)


def _nothing(_: _Words, s: Statement) -> Statement:
    return s


_PARSE: dict[Verb, Callable[[_Words, Statement], Statement]] = {
    Verb.CREATE_TABLE: _create_table,
    Verb.DROP_TABLE: _table,
    Verb.RENAME_TABLE: _table_and_name,
    Verb.ADD_INDEX: _indexes,
    Verb.DROP_INDEX: _drop_part,
    Verb.REBUILD_TABLE: _rebuild,
    Verb.START_REBUILD: _rebuild,
    Verb.TRUNCATE_TABLE: _table,
    Verb.FLUSH_EXPORT: _table,
    Verb.UNLOCK_TABLE: _table,
    Verb.IMPORT_TABLE: _table_and_name,
    Verb.DEFRAGMENT_TABLE: _table_and_index,
    Verb.START_DEFRAGMENT: _table_and_index,
    Verb.RENAME_COLUMN: _rename_part,
    Verb.RENAME_INDEX: _rename_part,
    Verb.MODIFY_COLUMN: _modify,
    Verb.ADD_COLUMN: _add_column,
    Verb.DROP_COLUMN: _drop_part,
    Verb.START_ADD_COLUMN: _start_column(_add_column),
    Verb.START_DROP_COLUMN: _start_column(_drop_part),
    Verb.CHANGE_PRIMARY: _change_primary,
    Verb.START_PRIMARY: _change_primary,
    Verb.START_INDEX: _indexes,
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
    Verb.SET: _set,
    Verb.RESTART: _restart,
    Verb.STATUS: _nothing,
}


def _name(token: str) -> str:
    if not _NAME.fullmatch(token):
        raise ValueError(f"bad name {token!r}")
    return token


def _integer(token: str, least: int, most: int) -> int:
    if not _INTEGER.fullmatch(token) or not least <= int(token) <= most:
        raise ValueError(f"an integer from {least} to {most} expected, not {token!r}")
    return int(token)


def _column(token: str) -> Column:
    name, _, kind = token.partition(":")
    return _typed(_name(name), kind)


def _typed(name: str, kind: str) -> Column:
    """The column of this name and TYPE."""
    if kind == "bigint":
        return Column(name)
    match = _TYPE.fullmatch(kind)
    if match is None:
        raise ValueError(f"bad type {kind!r}")
    varying = match[1] == "var"
    length = _integer(match[2], 1, VARCHAR_MAX if varying else CHAR_MAX)
    return Column(name, length, varying)


def _nullable(words: _Words, column: Column) -> Column:
    """`null` or `not null` behind a type."""
    refused = words.word("not")
    nullable = words.word("null")
    if refused and not nullable:
        raise ValueError("`null` expected behind `not`")
    return replace(column, nullable=nullable and not refused)


def _index(token: str) -> IndexDef:
    match = _INDEX.fullmatch(token)
    if match is None:
        raise ValueError("INDEX(COLUMN[:PREFIX],...) without blanks expected")
    columns = []
    for part in match[2].split(","):
        name, sep, length = part.partition(":")
        columns.append((_name(name), _integer(length, 1, PREFIX_MAX) if sep else 0))
    if len(columns) > COLUMNS_MAX:
        raise ValueError("too many columns")
    return IndexDef(_name(match[1]), tuple(columns))


def _value(text: str) -> Value:
    if text == "null":
        return None
    if not text.startswith('"'):
        return _integer(text, INT64_MIN, INT64_MAX)
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError("text is not closed, or has a bad character or escape")
    data = _ESCAPE.sub(lambda m: bytes([int(m[1], 16)]) if m[1] else m[2], match[1].encode("ascii"))
    if len(data) > VARCHAR_MAX:
        raise ValueError(f"text is longer than {VARCHAR_MAX} bytes")
    return data if match[2] is None else _repeated(data, match[2])


def _repeated(data: bytes, number: str) -> bytes:
    """The text again and again, so many bytes together."""
    length = _integer(number, 1, VARCHAR_MAX)
    if not data:
        raise ValueError("no text cannot be repeated")
    return (data * (length // len(data) + 1))[:length]
