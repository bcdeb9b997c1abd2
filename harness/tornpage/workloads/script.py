"""The engine's script language as typed statements: parse, format.

The grammar is `engine run`'s (docs/SCRIPT.md). The oracle and the generators speak in these
statements, and only their text goes to the target.

May import: errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from tornpage.vocabulary.errors import WorkloadError

__all__ = [
    "Column",
    "IndexDef",
    "Script",
    "Statement",
    "Value",
    "Verb",
    "format_value",
    "parse_script",
]

Value = int | bytes
STEP_ROWS = 1000
"""Rows of a step of an index build if the statement does not say."""


class Verb(StrEnum):
    """What a statement does."""

    CREATE_TABLE = "create table"
    DROP_TABLE = "drop table"
    RENAME_TABLE = "rename table"
    ADD_INDEX = "add index"
    DROP_INDEX = "drop index"
    START_INDEX = "start index"
    STEP_INDEX = "step index"
    FINISH_INDEX = "finish index"
    ABORT_INDEX = "abort index"
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
    FLUSH_TABLE = "flush table"
    FLUSH_LOG = "flush log"
    SET = "set"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: length is bytes of a CHAR, 0 for BIGINT."""

    name: str
    length: int = 0

    @property
    def is_char(self) -> bool:
        """CHAR(length) rather than BIGINT."""
        return self.length > 0


@dataclass(frozen=True, slots=True)
class IndexDef:
    """An index: columns with their prefix length in bytes, 0 = whole column."""

    name: str
    columns: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement on line `line` (from 1). Fields that its verb does not use are empty.

    key: primary key columns of update, delete, select; values: new column values.
    number: of purge (-1 = all), clean and step index; rows: of a step of that; full: of checkpoint and
    set; bounds: of insert_seq.
    """

    line: int
    verb: Verb
    table: str = ""
    name: str = ""
    trx: str = ""
    columns: tuple[Column, ...] = ()
    primary: tuple[str, ...] = ()
    indexes: tuple[IndexDef, ...] = ()
    key: Mapping[str, Value] | None = None
    values: Mapping[str, Value] | None = None
    bounds: tuple[int, int] = (0, 0)
    number: int = 0
    rows: int = 0
    full: bool = False

    def text(self) -> str:
        """The statement as the engine reads it, without newline."""
        return _FORMAT[self.verb](self)


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script: text and statements say the same."""

    text: str
    statements: tuple[Statement, ...]

    @classmethod
    def of(cls, statements: Iterable[Statement]) -> Script:
        """Numbers the statements from line 1, one per line."""
        numbered = tuple(replace(item, line=i) for i, item in enumerate(statements, start=1))
        return cls("".join(item.text() + "\n" for item in numbered), numbered)


def format_value(value: Value) -> str:
    """A VALUE of the grammar: a decimal integer or quoted text."""
    if isinstance(value, int):
        return str(value)
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


def _column_text(column: Column) -> str:
    return f"{column.name}:char({column.length})" if column.is_char else f"{column.name}:bigint"


_FORMAT: dict[Verb, Callable[[Statement], str]] = {
    Verb.CREATE_TABLE: lambda s: " ".join(
        ["create table", s.table, *map(_column_text, s.columns), "primary", ",".join(s.primary)]
    ),
    Verb.DROP_TABLE: lambda s: f"drop table {s.table}",
    Verb.RENAME_TABLE: lambda s: f"rename table {s.table} {s.name}",
    Verb.ADD_INDEX: lambda s: " ".join(["add index", s.table, *map(_index_text, s.indexes)]),
    Verb.DROP_INDEX: lambda s: f"drop index {s.table} {s.name}",
    Verb.START_INDEX: lambda s: " ".join(["start index", s.table, *map(_index_text, s.indexes)]),
    Verb.STEP_INDEX: lambda s: f"step index {s.table} {s.number} {s.rows}",
    Verb.FINISH_INDEX: lambda s: f"finish index {s.table}",
    Verb.ABORT_INDEX: lambda s: f"abort index {s.table}",
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
    Verb.FLUSH_TABLE: lambda s: f"flush table {s.table}",
    Verb.FLUSH_LOG: lambda _: "flush log",
    Verb.SET: lambda s: f"set log_optimize_ddl {'on' if s.full else 'off'}",
    Verb.STATUS: lambda _: "status",
}

_TOKEN = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*")+')
_INDEX = re.compile(r"(\w+)\(([^()]*)\)$")
_ESCAPE = re.compile(rb'\\(?:x([0-9a-fA-F]{2})|(["\\]))')


def parse_script(text: str) -> Script:
    """Parses a script. Raises WorkloadError with the line number of what is not understood."""
    statements = []
    for line, raw in enumerate(text.split("\n"), start=1):
        tokens = _TOKEN.findall(raw)
        if not tokens or tokens[0].startswith("#"):
            continue
        try:
            if _TOKEN.sub("", raw).strip():
                raise ValueError("unbalanced quotes")
            statements.append(_parse(line, tokens))
        except (ValueError, IndexError, KeyError) as error:
            raise WorkloadError(f"script line {line}: cannot parse {raw.strip()!r}") from error
    return Script(text, tuple(statements))


def _parse(line: int, tokens: list[str]) -> Statement:
    two = " ".join(tokens[:2])
    if two in _TWO_WORDS:
        return _parse_ddl(line, Verb(two), tokens[2:])
    verb, rest = Verb(tokens[0]), tokens[1:]
    if verb in (Verb.BEGIN, Verb.COMMIT, Verb.ROLLBACK):
        _count(rest, 1)
        return Statement(line, verb, trx=rest[0])
    if verb is Verb.INSERT:
        return Statement(line, verb, trx=rest[0], table=rest[1], values=_values(rest[2:]))
    if verb is Verb.INSERT_SEQ:
        _count(rest, 4)
        bounds = (int(rest[2]), int(rest[3]))
        return Statement(line, verb, trx=rest[0], table=rest[1], bounds=bounds)
    if verb is Verb.UPDATE:
        cut = rest.index("set")
        key, values = _values(rest[2:cut]), _values(rest[cut + 1 :])
        return Statement(line, verb, trx=rest[0], table=rest[1], key=key, values=values)
    if verb is Verb.DELETE:
        return Statement(line, verb, trx=rest[0], table=rest[1], key=_values(rest[2:]))
    if verb is Verb.SELECT:
        return Statement(line, verb, table=rest[0], key=_values(rest[1:]))
    return _parse_housekeeping(line, verb, rest)


_TWO_WORDS = {verb.value for verb in Verb if " " in verb.value}


def _parse_ddl(line: int, verb: Verb, rest: list[str]) -> Statement:
    if verb is Verb.CREATE_TABLE:
        cut = rest.index("primary")
        columns = tuple(_column(token) for token in rest[1:cut])
        _count(rest[cut:], 2)
        return Statement(
            line, verb, table=rest[0], columns=columns, primary=tuple(rest[cut + 1].split(","))
        )
    if verb is Verb.STEP_INDEX:
        return _parse_step(line, rest)
    if verb in (Verb.ADD_INDEX, Verb.START_INDEX):
        indexes = tuple(_index(token) for token in rest[1:])
        if not indexes:
            raise ValueError("no index")
        return Statement(line, verb, table=rest[0], indexes=indexes)
    if verb in (Verb.RENAME_TABLE, Verb.DROP_INDEX):
        _count(rest, 2)
        return Statement(line, verb, table=rest[0], name=rest[1])
    if verb is Verb.FLUSH_LOG:
        _count(rest, 0)
        return Statement(line, verb)
    _count(rest, 1)
    return Statement(line, verb, table=rest[0])


def _parse_step(line: int, rest: list[str]) -> Statement:
    table, *counts = rest
    if len(counts) > 2:
        raise ValueError("wrong number of words")
    number, rows = [*map(int, counts), *(1, STEP_ROWS)[len(counts) :]]
    if number < 1 or rows < 1:
        raise ValueError("counts are positive")
    return Statement(line, Verb.STEP_INDEX, table=table, number=number, rows=rows)


def _parse_housekeeping(line: int, verb: Verb, rest: list[str]) -> Statement:
    if verb is Verb.SCAN:
        return Statement(line, verb, table=rest[0], name=rest[1] if len(rest) > 1 else "")
    if verb is Verb.PURGE:
        return Statement(line, verb, number=-1 if rest[0] == "all" else int(rest[0]))
    if verb is Verb.CLEAN:
        return Statement(line, verb, number=int(rest[0]))
    if verb is Verb.CHECKPOINT:
        return Statement(line, verb, full=rest == ["full"])
    if verb is Verb.SET:
        if rest[0] != "log_optimize_ddl" or rest[1] not in ("on", "off"):
            raise ValueError("unknown setting")
        return Statement(line, verb, full=rest[1] == "on")
    if verb is Verb.STATUS:
        return Statement(line, verb)
    raise ValueError("unknown word")


def _count(tokens: list[str], wanted: int) -> None:
    if len(tokens) != wanted:
        raise ValueError("wrong number of words")


def _column(token: str) -> Column:
    name, _, kind = token.partition(":")
    if kind == "bigint":
        return Column(name)
    match = re.fullmatch(r"char\((\d+)\)", kind)
    if match is None or not 1 <= int(match[1]) <= 255:
        raise ValueError("bad type")
    return Column(name, int(match[1]))


def _index(token: str) -> IndexDef:
    match = _INDEX.match(token)
    if match is None:
        raise ValueError("bad index")
    columns = []
    for part in match[2].split(","):
        name, _, length = part.partition(":")
        columns.append((name, int(length) if length else 0))
    return IndexDef(match[1], tuple(columns))


def _values(tokens: list[str]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for token in tokens:
        name, sep, text = token.partition("=")
        if not sep or name in values:
            raise ValueError("bad value")
        values[name] = _value(text)
    return values


def _value(text: str) -> Value:
    if not text.startswith('"'):
        return int(text)
    if len(text) < 2 or not text.endswith('"'):
        raise ValueError("unterminated text")
    return _ESCAPE.sub(
        lambda m: bytes([int(m[1], 16)]) if m[1] else m[2], text[1:-1].encode("ascii")
    )
