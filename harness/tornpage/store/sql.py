"""What statements of the store need beside its tables."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Connection, func, select, union_all
from sqlalchemy.exc import DBAPIError

__all__ = ["line_of", "next_id"]


def next_id(db: Connection, *columns: Column[Any]) -> int:
    """A number above all that are in these columns."""
    highest = union_all(*(select(func.max(column)) for column in columns))
    return 1 + max(number or 0 for number in db.execute(highest).scalars())


def line_of(error: DBAPIError) -> str:
    """What the database, or the library that speaks with it, says: its first line."""
    return str(error.orig).strip().splitlines()[0]
