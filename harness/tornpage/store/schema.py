"""The tables of the store, for every database that it may be in. Views are in views.sql; a change of
either is a new VERSION. JSON columns hold the values of model.py as codec.to_json() writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    REAL,
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy import Text as SqlText
from sqlalchemy.dialects import sqlite
from sqlalchemy.types import TypeEngine

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

    Insert = sqlite.Insert | postgresql.Insert

__all__ = [
    "OF_RUN",
    "TABLES",
    "VERSION",
    "bug",
    "contents",
    "explanation",
    "exploration",
    "golden_run",
    "golden_run_violation",
    "insert_into",
    "inserts_of",
    "life",
    "night",
    "replay",
    "run",
    "sighting",
    "trial",
    "version",
    "violation",
]

VERSION = 5
"""Of this schema."""


class Text(TypeDecorator[str]):
    """Text without NUL, which PostgreSQL cannot hold: what a target says may have one."""

    impl = SqlText
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """U+2400, the picture of NUL, stands for it."""
        return value.replace("\0", "\u2400") if value is not None else None


NUMBER = BigInteger().with_variant(Integer(), "sqlite")
SECONDS: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")
TABLES = MetaData()


def _text(name: str, **given: Any) -> Column[str]:
    return Column(name, Text, **{"nullable": False, **given})


def _number(name: str, *given: Any, **options: Any) -> Column[int]:
    return Column(name, NUMBER, *given, **{"nullable": False, **options})


def _key(name: str, *given: Any) -> Column[int]:
    return _number(name, *given, primary_key=True, autoincrement=False)


def _run_key() -> Column[int]:
    return _key("run", ForeignKey("run.id"))


def _one_of(column: str, *values: str) -> CheckConstraint:
    names = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} in ({names})")


def _clustered(name: str, *parts: Any) -> Table:
    """A table whose rows lie in the order of their key."""
    return Table(name, TABLES, *parts, sqlite_with_rowid=False)


# One row: the VERSION that the store was made with. A store of another one is refused.
version = Table("tornpage_version", TABLES, _number("schema"))

# A night: past findings played again, then campaigns with new seeds, for as long as its plan says.
night = Table(
    "night",
    TABLES,
    Column("id", NUMBER, primary_key=True),
    _text("plan"),  # JSON NightPlan: seed, campaigns, time
    _text("state"),
    Column("seconds", SECONDS, nullable=False),  # spent so far, over all resumptions
    _text("origin"),  # JSON Origin
    _one_of("state", "running", "finished", "failed"),
)

# A campaign that was started, finished or not.
run = Table(
    "run",
    TABLES,
    _key("id"),
    _text("campaign"),  # name, as "smoke"
    _text(
        "target"
    ),  # where it was found: a name, as "engine", or the path of a target file (below.py)
    _number("seed"),
    _number("trials"),  # planned
    _text("settings"),  # JSON: the whole campaign after --option, from which trials are drawn again
    _text("state"),
    _text(
        "verdict"
    ),  # at its end: clean, violations, unsure, nothing; '' before, and where not known
    Column("seconds", SECONDS, nullable=False),  # spent on trials so far, over all resumptions
    _text("origin"),  # JSON Origin: when, where, version, command line, target, hashes of programs
    _number("night", ForeignKey("night.id"), nullable=True),
    _one_of("state", "running", "finished", "stopped", "failed"),
)

# One fault-free run: what it writes, and its verdict.
golden_run = _clustered(
    "golden_run",
    _run_key(),
    _text("config", primary_key=True),
    _number("crashed"),  # 1: its script gets trials or is explored; 0: it is only run and judged
    _text("hash"),  # of the event stream
    _number("events"),
    _number("writes"),
    _text("counters"),  # JSON: status counters at its end
)

# A trial: the row is written before it starts, the verdict when it is known.
trial = _clustered(
    "trial",
    _run_key(),
    _key("number"),  # counts from 0; "RUN.NUMBER" is the id that `tornpage replay` takes
    _text("spec"),  # JSON TrialSpec: all that a replay needs
    _text("config"),
    _text("site"),
    _text("mask"),
    _text("outcome", nullable=True),  # null while it runs
    _text("result", nullable=True),  # JSON TrialResult without contents, null while it runs
)
Index("trial_outcome", trial.c.run, trial.c.outcome)

# Before and after of the write that a trial's fault hit, where they are kept.
contents = _clustered(
    "contents",
    _run_key(),
    _key("number"),
    Column("old", LargeBinary, nullable=False),
    Column("new", LargeBinary, nullable=False),
)

# What the power-loss explorer found in a configuration: one row when it is done.
exploration = _clustered(
    "exploration",
    _run_key(),
    _text("config", primary_key=True),
    _text("summary"),  # JSON: the explorer's last object
)

# What `tornpage explain` has found of a finding; the last one.
explanation = _clustered(
    "explanation",
    _run_key(),
    _text(
        "name", primary_key=True
    ),  # behind the run in its ID: "117", or "s3" of a run without a fault
    _text("found"),  # JSON Explained
)

# What is wrong with a target: one cause, however many findings tell of it. Runs are deleted, bugs are not.
bug = Table(
    "bug",
    TABLES,
    Column("id", NUMBER, primary_key=True),
    _text("target"),  # which one it is: its name; of a target file with a hash of what it says
    _text("fingerprint"),  # of its root, see oracle/root.py
    _text("title"),  # its first finding without names and numbers
    _text("invariants"),  # JSON list: what its findings broke
    _text("status", server_default="new"),
    _text("reason", server_default=""),  # why it has this status
    _number("run"),  # its reproducer: a trial, the smallest that is known,
    _number("trial", nullable=True),  # or null: the fault-free run of config
    _text("config"),
    UniqueConstraint("target", "fingerprint"),
    _one_of("status", "new", "open", "not-reproduced", "back", "known", "fixed", "ignored"),
)

# Each status that a bug has had, the newest last: `status` and `reason` of its row are those of the last
# one. It stays when its run is deleted.
life = _clustered(
    "life",
    _key("bug", ForeignKey("bug.id")),
    _key("number"),  # counts from 1
    _text("status"),
    _text("reason"),
    _text("at"),  # when the run began, or somebody said so; ISO 8601
    _text("build"),  # hash of the target's programs, '' of what somebody said
    _text("revision"),  # of their sources, '' where they are in no Git checkout
    _text("host"),
    _number("run", nullable=True),  # that gave it, null where somebody said so
    _number("night", nullable=True),  # of the run
)

# A bug in a run. It stays when the run is deleted: the bug's history.
sighting = _clustered(
    "sighting",
    _key("bug", ForeignKey("bug.id")),
    _key("run"),
    _text("started"),  # of the run, ISO 8601
    _text("build"),  # hash of the target's programs
    _text("novelty"),  # never seen before; was fixed; neither
    _number("count"),  # trials, power-loss states and fault-free runs that show it
    _one_of("novelty", "new", "back", "again"),
)


def _broken() -> list[Column[Any]]:
    """What is told of a violation, whatever showed it."""
    return [
        _key("position"),
        _number("invariant"),
        _text("site", nullable=True),
        _text("path"),
        _text("what"),
        _text("source"),  # state, rule or run: who says so
    ]


# The broken invariants of a trial. bug is null of an unstable one, which is no finding.
violation = _clustered(
    "violation",
    _run_key(),
    _key("trial"),
    *_broken(),
    _number("bug", ForeignKey("bug.id"), nullable=True),
)
Index("violation_bug", violation.c.bug)

# The broken invariants of a fault-free run.
golden_run_violation = _clustered(
    "golden_run_violation",
    _run_key(),
    _text("config", primary_key=True),
    *_broken(),
    _number("bug", ForeignKey("bug.id")),
)
Index("golden_run_violation_bug", golden_run_violation.c.bug)

# What became of a bug's reproducer when a run played it again.
replay = _clustered(
    "replay",
    _run_key(),
    _key("bug", ForeignKey("bug.id")),
    _text("answer"),
    _text("note"),
    _one_of("answer", "reproduced", "not reproduced", "cannot be played"),
)


OF_RUN = (
    golden_run,
    exploration,
    trial,
    contents,
    violation,
    golden_run_violation,
    explanation,
    replay,
)
"""Tables with rows that go with their run."""


def inserts_of(dialect: str) -> Callable[[Table], Insert]:
    """Makes an insert for a database of this name that may say what becomes of a row that is there."""
    if dialect == "sqlite":
        return sqlite.insert
    from sqlalchemy.dialects import postgresql  # most stores are files, and it has much to load

    return postgresql.insert


def insert_into(db: Connection, table: Table) -> Insert:
    """An insert that may say what becomes of a row that is there already."""
    return inserts_of(db.dialect.name)(table)
