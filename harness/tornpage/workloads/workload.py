"""Workloads: named generators that turn parameters and a seed into a script.

A campaign names a workload and its parameters:

    [workload]
    name = "smoke"
    rows = 60

The generators ask the oracle's model nothing; they keep their own small book of what exists, so that a
script has expected errors on purpose only.

May import: churn, errors, parse, script, seeds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tornpage.vocabulary.errors import WorkloadError
from tornpage.vocabulary.seeds import make_rng
from tornpage.workloads.churn import ChurnParams, generate_churn
from tornpage.workloads.parse import parse_script
from tornpage.workloads.script import Column, IndexDef, Script, Statement, Verb

__all__ = [
    "FileParams",
    "InlineParams",
    "SmokeParams",
    "SqliteSmokeParams",
    "generate",
    "validate_params",
    "workload_names",
]


class SmokeParams(BaseModel):
    """The seeds' table under DML before, between and after index builds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: int = Field(default=48, ge=8, le=100_000)
    """Rows of the seeds' table before the first index build."""
    changes: int = Field(default=12, ge=1, le=100_000)
    """Statements of each of the seven rounds of mixed DML."""
    clean_pages: int = Field(default=6, ge=1, le=10_000)
    """Pages per page cleaner step."""


class SqliteSmokeParams(BaseModel):
    """The same tables for a database with one writer: one open transaction at a time, small data."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: int = Field(default=64, ge=8, le=100_000)
    """Rows of the seeds' table before the first index build."""
    changes: int = Field(default=8, ge=1, le=100_000)
    """Statements, or whole transactions, of each of the five rounds of DML."""


class FileParams(BaseModel):
    """A script in a file, run as it is; the seed changes nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path


class InlineParams(BaseModel):
    """A script given in full, so that a trial needs no file beside the store; the seed changes nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    script: str = Field(max_length=16_000_000)


TABLE = "t1"
SMALL = "s1"
INDEXES = {
    "ib": ("b", 0),
    "ic": ("c", 0),
    "id": ("d", 0),
    "ie": ("e", 10),
    "if": ("f", 4),
    "ig": ("g", 5),
    "ih": ("h", 5),
}
WORDS = ("", "a", "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")


@dataclass(slots=True)
class _Book:
    """What the generator knows to exist."""

    rng: random.Random
    out: list[Statement] = field(default_factory=list)
    rows: dict[str, set[int]] = field(default_factory=dict)
    """Live keys, those of open transactions included, by table."""
    held: dict[int, str] = field(default_factory=dict)
    """Keys of TABLE that an open transaction has changed."""
    undo: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)
    """Per open transaction: key and whether it was live before."""
    serial: int = 0
    trx_serial: int = 0

    def add(self, verb: Verb, **fields: object) -> None:
        self.out.append(Statement(0, verb, **fields))  # type: ignore[arg-type]

    def text(self, unique: bool = False) -> bytes:
        """A value from a small set, sometimes with a unique tail, so that prefixes collide."""
        word = self.rng.choice(WORDS)
        if unique or self.rng.random() < 0.5:
            self.serial += 1
            word = f"{word}{self.serial:05d}"
        if self.rng.random() < 0.3:
            word = word.ljust(self.rng.randint(20, 200), self.rng.choice("xyz"))
        return word.encode()


def _column_values(book: _Book, chance: float) -> dict[str, int | bytes]:
    return {name: book.text() for name in "bcdefgh" if book.rng.random() < chance}


def _create_seed_table(book: _Book) -> None:
    columns = (Column("a"), *(Column(name, 255) for name in "bcdefgh"))
    book.add(Verb.CREATE_TABLE, table=TABLE, columns=columns, primary=("a",))
    book.rows[TABLE] = set()


def _create_small_table(book: _Book, name: str) -> None:
    columns = (Column("k"), Column("v", 40), Column("w"))
    book.add(Verb.CREATE_TABLE, table=name, columns=columns, primary=("k",))
    book.rows[name] = set()


def _add_indexes(book: _Book, names: list[str]) -> None:
    indexes = tuple(IndexDef(name, (INDEXES[name],)) for name in names)
    book.add(Verb.ADD_INDEX, table=TABLE, indexes=indexes)


def _stepped_build(book: _Book, params: SmokeParams, names: list[str], finish: bool) -> None:
    """A build in steps of few rows; between them DML on the other table, purge, cleaning, checkpoints."""
    indexes = tuple(IndexDef(name, (INDEXES[name],)) for name in names)
    book.add(Verb.START_INDEX, table=TABLE, indexes=indexes)
    for _ in range(book.rng.randint(2, 10)):
        for _ in range(book.rng.randint(0, 2)):
            (_small_dml if book.rng.random() < 0.7 else _on_build)(book, SMALL)
        if book.rng.random() < 0.5:
            _housekeeping(book, params)
        number, rows = book.rng.randint(1, 4), book.rng.randint(1, params.rows)
        book.add(Verb.STEP_INDEX, table=TABLE, number=number, rows=rows)
    book.add(Verb.FINISH_INDEX if finish else Verb.ABORT_INDEX, table=TABLE)


def _on_build(book: _Book, _: str) -> None:
    """What a table refuses or allows while its index is being built."""
    kind = book.rng.randrange(6)
    key = book.rng.choice(sorted(book.rows[TABLE]))
    if kind == 0:
        book.add(Verb.UPDATE, trx="-", table=TABLE, key={"a": key}, values={"c": book.text()})
    elif kind == 1:
        book.add(Verb.SELECT, table=TABLE, key={"a": key})
    elif kind == 2:
        index = IndexDef("ib", (INDEXES["ib"],))
        book.add(Verb.START_INDEX, table=TABLE, indexes=(index,))
    elif kind == 3:
        book.add(Verb.SET, full=True)
    elif kind == 4:
        book.add(Verb.FLUSH_TABLE, table=TABLE)
    else:
        book.add(Verb.CREATE_TABLE, table="s3", columns=(Column("k"),), primary=("k",))
        book.add(Verb.DROP_TABLE, table="s3")


def _begin(book: _Book) -> str:
    book.trx_serial += 1
    trx = f"T{book.trx_serial}"
    book.undo[trx] = []
    book.add(Verb.BEGIN, trx=trx)
    return trx


def _end(book: _Book, trx: str, commit: bool) -> None:
    book.add(Verb.COMMIT if commit else Verb.ROLLBACK, trx=trx)
    live = book.rows[TABLE]
    for key, was_live in reversed(book.undo.pop(trx)):
        book.held.pop(key, None)
        if not commit:
            (live.add if was_live else live.discard)(key)


def _touch(book: _Book, trx: str, key: int, live_after: bool) -> None:
    live = book.rows[TABLE]
    if trx != "-":
        book.undo[trx].append((key, key in live))
        book.held[key] = trx
    (live.add if live_after else live.discard)(key)


def _free_key(book: _Book, live: bool) -> int | None:
    """A key that no open transaction holds: of a live row, or one that is unused."""
    if live:
        keys = sorted(book.rows[TABLE] - set(book.held))
        return book.rng.choice(keys) if keys else None
    limit = 2 * len(book.rows[TABLE]) + 20
    for _ in range(50):
        key = book.rng.randrange(-limit, 2 * limit)
        if key not in book.rows[TABLE] and key not in book.held:
            return key
    return None


def _insert(book: _Book, trx: str) -> None:
    key = _free_key(book, live=False)
    if key is not None:
        book.add(Verb.INSERT, trx=trx, table=TABLE, values={"a": key, **_column_values(book, 0.7)})
        _touch(book, trx, key, live_after=True)


def _update(book: _Book, trx: str) -> None:
    key = _free_key(book, live=True)
    if key is not None:
        values = _column_values(book, 0.4) or {"b": book.text(unique=True)}
        book.add(Verb.UPDATE, trx=trx, table=TABLE, key={"a": key}, values=values)
        _touch(book, trx, key, live_after=True)


def _delete(book: _Book, trx: str) -> None:
    key = _free_key(book, live=True)
    if key is not None and len(book.rows[TABLE]) > 8:
        book.add(Verb.DELETE, trx=trx, table=TABLE, key={"a": key})
        _touch(book, trx, key, live_after=False)


def _expected_error(book: _Book, trx: str) -> None:
    """A duplicate key, a missing row, or a conflict with the row of another transaction."""
    kind = book.rng.randrange(3)
    others = sorted(key for key, owner in book.held.items() if owner != trx)
    if kind == 0 and others:
        key = book.rng.choice(others)
        book.add(Verb.UPDATE, trx=trx, table=TABLE, key={"a": key}, values={"c": book.text()})
    elif kind == 1:
        key = _free_key(book, live=True) or 0
        if key in book.rows[TABLE]:
            book.add(Verb.INSERT, trx=trx, table=TABLE, values={"a": key, "b": b"duplicate"})
    else:
        book.add(Verb.DELETE, trx=trx, table=TABLE, key={"a": 10_000_000 + book.rng.randrange(9)})


def _small_dml(book: _Book, name: str) -> None:
    live = book.rows[name]
    if live and book.rng.random() < 0.5:
        key = book.rng.choice(sorted(live))
        if book.rng.random() < 0.3:
            book.add(Verb.DELETE, trx="-", table=name, key={"k": key})
            live.discard(key)
        else:
            values: dict[str, int | bytes] = {"w": book.rng.randrange(1000)}
            book.add(Verb.UPDATE, trx="-", table=name, key={"k": key}, values=values)
        return
    key = max(live, default=0) + 1
    values = {"k": key, "v": book.text()[:40], "w": -key}
    book.add(Verb.INSERT, trx="-", table=name, values=values)
    live.add(key)


def _housekeeping(book: _Book, params: SmokeParams) -> None:
    kind = book.rng.randrange(8)
    if kind < 4:
        book.add(Verb.CLEAN, number=params.clean_pages)
    elif kind < 6:
        book.add(Verb.PURGE, number=book.rng.choice((4, 16, -1)))
    else:
        book.add(Verb.CHECKPOINT, full=kind == 7 and book.rng.random() < 0.3)


def _mixed(book: _Book, params: SmokeParams, small: str) -> None:
    """One round of DML: several transactions at once, some rolled back, with expected errors."""
    open_trx: list[str] = []
    for _ in range(params.changes):
        choice = book.rng.random()
        if choice < 0.2 and len(open_trx) < 3:
            open_trx.append(_begin(book))
        elif choice < 0.26 and open_trx:
            trx = open_trx.pop(book.rng.randrange(len(open_trx)))
            _end(book, trx, commit=book.rng.random() < 0.6)
        elif choice < 0.36:
            _housekeeping(book, params)
        elif choice < 0.44:
            _small_dml(book, small)
        else:
            trx = book.rng.choice([*open_trx, *open_trx, "-"])
            change = book.rng.choice((_insert, _insert, _update, _update, _update, _delete))
            (_expected_error if choice > 0.92 else change)(book, trx)
    if open_trx and book.rng.random() < 0.5:
        book.add(Verb.DROP_TABLE, table=TABLE) if book.undo[open_trx[0]] else None
    for trx in open_trx:
        _end(book, trx, commit=book.rng.random() < 0.7)
    if book.rng.random() < 0.7:  # it rests while a transaction is open
        book.add(Verb.PURGE, number=book.rng.choice((4, 16, -1)))


def _generate_smoke(params: SmokeParams, rng: random.Random) -> Script:
    book = _Book(rng)
    _create_seed_table(book)
    _create_small_table(book, SMALL)
    first = params.rows // 2
    book.add(Verb.INSERT_SEQ, trx="-", table=TABLE, bounds=(1, first))
    book.rows[TABLE].update(range(1, first + 1))
    while len(book.rows[TABLE]) < params.rows:
        _insert(book, "-")
    _mixed(book, params, SMALL)
    book.add(Verb.CHECKPOINT)
    _mixed(book, params, SMALL)
    names = list(INDEXES)
    rng.shuffle(names)
    _add_indexes(book, names[:3])
    _mixed(book, params, SMALL)
    _add_indexes(book, names[3:])
    _mixed(book, params, SMALL)
    again = rng.sample(names, 3)
    for name in again:
        book.add(Verb.DROP_INDEX, table=TABLE, name=name)
    book.add(Verb.SET, full=False)
    _mixed(book, params, SMALL)
    _add_indexes(book, again[:1])
    book.add(Verb.SET, full=True)
    _stepped_build(book, params, again[1:], finish=False)
    _mixed(book, params, SMALL)
    _stepped_build(book, params, again[1:], finish=True)
    book.add(Verb.RENAME_TABLE, table=SMALL, name="s2")
    book.rows["s2"] = book.rows.pop(SMALL)
    _mixed(book, params, "s2")
    book.add(Verb.DROP_TABLE, table="s2")
    _create_small_table(book, SMALL)
    for _ in range(4):
        _small_dml(book, SMALL)
    book.add(Verb.FLUSH_TABLE, table=TABLE)
    book.add(Verb.PURGE, number=-1)
    _update(book, "-")
    return Script.of(book.out)


def _serial(book: _Book, params: SqliteSmokeParams, small: str) -> None:
    """One round of DML, each transaction ended before anything else happens."""
    for _ in range(params.changes):
        choice = book.rng.random()
        if choice < 0.4:
            trx = _begin(book)
            for _ in range(book.rng.randint(1, 6)):
                change = book.rng.choice((_insert, _insert, _update, _update, _update, _delete))
                (_expected_error if book.rng.random() < 0.08 else change)(book, trx)
            _end(book, trx, commit=book.rng.random() < 0.65)
        elif choice < 0.5:
            book.add(Verb.CHECKPOINT, full=book.rng.random() < 0.3)
        elif choice < 0.65:
            _small_dml(book, small)
        else:
            change = book.rng.choice((_insert, _insert, _update, _update, _update, _delete))
            (_expected_error if choice > 0.95 else change)(book, "-")


def _generate_sqlite_smoke(params: SqliteSmokeParams, rng: random.Random) -> Script:
    book = _Book(rng)
    _create_seed_table(book)
    _create_small_table(book, SMALL)
    first = params.rows // 2
    book.add(Verb.INSERT_SEQ, trx="-", table=TABLE, bounds=(1, first))
    book.rows[TABLE].update(range(1, first + 1))
    trx = _begin(book)
    while len(book.rows[TABLE]) < params.rows:
        _insert(book, trx)
    _end(book, trx, commit=True)
    _serial(book, params, SMALL)
    names = list(INDEXES)
    rng.shuffle(names)
    _add_indexes(book, names[:2])
    _serial(book, params, SMALL)
    book.add(Verb.CHECKPOINT)
    _add_indexes(book, names[2:4])
    _serial(book, params, SMALL)
    book.add(Verb.DROP_INDEX, table=TABLE, name=names[0])
    book.add(Verb.RENAME_TABLE, table=SMALL, name="s2")
    book.rows["s2"] = book.rows.pop(SMALL)
    _serial(book, params, "s2")
    _add_indexes(book, [names[0]])
    book.add(Verb.DROP_TABLE, table="s2")
    _create_small_table(book, SMALL)
    _serial(book, params, SMALL)
    return Script.of(book.out)


def _generate_file(params: FileParams, rng: random.Random) -> Script:  # noqa: ARG001 - one shape
    try:
        text = params.path.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{params.path}: {error}") from error
    return parse_script(text)


def _generate_inline(params: InlineParams, rng: random.Random) -> Script:  # noqa: ARG001 - one shape
    return parse_script(params.script)


_WORKLOADS: dict[str, tuple[type[BaseModel], Callable[..., Script]]] = {
    "smoke": (SmokeParams, _generate_smoke),
    "churn": (ChurnParams, generate_churn),
    "sqlite_smoke": (SqliteSmokeParams, _generate_sqlite_smoke),
    "file": (FileParams, _generate_file),
    "inline": (InlineParams, _generate_inline),
}


def workload_names() -> list[str]:
    """The workloads that generate() knows."""
    return sorted(_WORKLOADS)


def validate_params(name: str, params: Mapping[str, int | str]) -> dict[str, int | str]:
    """The parameters with their defaults filled in. Raises WorkloadError naming what is wrong."""
    if name not in _WORKLOADS:
        raise WorkloadError(f"unknown workload {name!r} (known: {', '.join(workload_names())})")
    model = _WORKLOADS[name][0]
    try:
        return model.model_validate(dict(params)).model_dump(mode="json")
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise WorkloadError(f"workload {name!r}: {key}: {first['msg']}") from error


def generate(name: str, params: Mapping[str, int | str], seed: int) -> Script:
    """The script of a workload. The same arguments give the same text."""
    checked = validate_params(name, params)
    model, make = _WORKLOADS[name]
    return make(model.model_validate(checked), make_rng(seed, "workload", name))
