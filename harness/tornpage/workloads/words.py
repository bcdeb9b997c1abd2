"""The words of a line of the engine's script language, and what one word can be: a name, a number, a column
with its type, an index, a value.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tornpage.workloads.script import AUTOCOMMIT, Column, IndexDef, Value

__all__ = [
    "AND",
    "COLUMNS_MAX",
    "INT64_MAX",
    "INT64_MIN",
    "Words",
    "column_of",
    "index_of",
    "name_of",
    "nullable",
    "typed",
    "value_of",
]

ALTER_OPTIONS = ("algorithm=", "lock=")
"""How the options of an ALTER statement begin."""
AND = "and"
"""Between two of its clauses."""
WORDS_MAX = 128
COLUMNS_MAX = 32
CHAR_MAX = 255
VARCHAR_MAX = 16_000
PREFIX_MAX = 3072
INT32_MAX = (1 << 31) - 1
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


_NAME = re.compile(r"[A-Za-z0-9_]{1,63}")
_TRX = re.compile(r"[A-Za-z0-9]{1,63}")
_INTEGER = re.compile(r"-?[0-9]+")
_TYPE = re.compile(r"(var|)char\((-?[0-9]{1,8})\)")
_INDEX = re.compile(r"([^(]*)\((.*)\)")
_TEXT = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\]|\\x[0-9a-fA-F]{2})*)"(?:\*(.*))?')
_ESCAPE = re.compile(rb'\\(?:x([0-9a-fA-F]{2})|(["\\]))')


class Words:
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
        return name_of(self.next())

    def trx(self, autocommit: bool) -> str:
        token = self.next()
        if not (autocommit and token == AUTOCOMMIT) and not _TRX.fullmatch(token):
            raise ValueError(f"bad transaction name {token!r}")
        return token

    def number(self, least: int = 1, most: int = INT32_MAX) -> int:
        return integer_of(self.next(), least, most)

    def values(self) -> dict[str, Value]:
        """COL=VALUE words up to `set` or the end; at least one."""
        values: dict[str, Value] = {}
        while not values or (self._left and self._left[-1] != "set"):
            name, sep, text = self.next().partition("=")
            if not sep or name_of(name) in values:
                raise ValueError("COLUMN=VALUE expected, each column once")
            values[name] = value_of(text)
        return values

    def at_option(self) -> bool:
        """Is the next word an option of an ALTER statement?"""
        return bool(self._left) and self._left[-1].startswith(ALTER_OPTIONS)

    def at_and(self) -> bool:
        """Does another clause of an ALTER statement follow?"""
        return self._left[-1:] == [AND]

    def end(self) -> None:
        if self._left:
            raise ValueError(f"{self._left[-1]!r} is too much")


def name_of(token: str) -> str:
    if not _NAME.fullmatch(token):
        raise ValueError(f"bad name {token!r}")
    return token


def integer_of(token: str, least: int, most: int) -> int:
    if not _INTEGER.fullmatch(token) or not least <= int(token) <= most:
        raise ValueError(f"an integer from {least} to {most} expected, not {token!r}")
    return int(token)


def column_of(token: str) -> Column:
    name, _, kind = token.partition(":")
    return typed(name_of(name), kind)


def typed(name: str, kind: str) -> Column:
    """The column of this name and TYPE."""
    if kind == "bigint":
        return Column(name)
    match = _TYPE.fullmatch(kind)
    if match is None:
        raise ValueError(f"bad type {kind!r}")
    varying = match[1] == "var"
    length = integer_of(match[2], 1, VARCHAR_MAX if varying else CHAR_MAX)
    return Column(name, length, varying)


def nullable(words: Words, column: Column) -> Column:
    """`null` or `not null` behind a type."""
    refused = words.word("not")
    nullable = words.word("null")
    if refused and not nullable:
        raise ValueError("`null` expected behind `not`")
    return replace(column, nullable=nullable and not refused)


def index_of(token: str) -> IndexDef:
    match = _INDEX.fullmatch(token)
    if match is None:
        raise ValueError("INDEX(COLUMN[:PREFIX],...) without blanks expected")
    columns = []
    for part in match[2].split(","):
        name, sep, length = part.partition(":")
        columns.append((name_of(name), integer_of(length, 1, PREFIX_MAX) if sep else 0))
    if len(columns) > COLUMNS_MAX:
        raise ValueError("too many columns")
    return IndexDef(name_of(match[1]), tuple(columns))


def value_of(text: str) -> Value:
    if text == "null":
        return None
    if not text.startswith('"'):
        return integer_of(text, INT64_MIN, INT64_MAX)
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError("text is not closed, or has a bad character or escape")
    data = _ESCAPE.sub(lambda m: bytes([int(m[1], 16)]) if m[1] else m[2], match[1].encode("ascii"))
    if len(data) > VARCHAR_MAX:
        raise ValueError(f"text is longer than {VARCHAR_MAX} bytes")
    return data if match[2] is None else _repeated(data, match[2])


def _repeated(data: bytes, number: str) -> bytes:
    """The text again and again, so many bytes together."""
    length = integer_of(number, 1, VARCHAR_MAX)
    if not data:
        raise ValueError("no text cannot be repeated")
    return (data * (length // len(data) + 1))[:length]
