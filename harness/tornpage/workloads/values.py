"""Values of rows, drawn: short and long ones, equal ones, and ones that a unique index refuses."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tornpage.workloads.script import Column, Value
from tornpage.workloads.shapes import UNIQUE_PREFIX, Shape
from tornpage.workloads.table import Table

__all__ = ["Values"]

WORDS = ("", "a", "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
NULL_SHARE = 0.2
"""Values that are NULL, of a column that may be."""
COPIED_SHARE = 0.06
"""Values of a serial column that another row has, while a unique index refuses that."""
COPIED_SHARE_FREE = 0.004
"""The same while nothing refuses it: the next build of a unique index does."""
REUSED_SHARE = 0.2
"""Values that a row had before."""


@dataclass(slots=True)
class Values:
    """page_size: of the target, for the sizes that matter to it; serial: how many numbers values have had."""

    rng: random.Random
    page_size: int = 4096
    serial: int = 0

    def text(self, limit: int = 255, unique: bool = False) -> bytes:
        """A value from a small set, sometimes with a unique tail, so that prefixes collide; sometimes long,
        of one letter or of any, so that a page compresses well at one time and badly at another."""
        word = self.rng.choice(WORDS)
        if unique or self.rng.random() < 0.5:
            self.serial += 1
            word = f"{word}{self.serial:05d}"
        chance = self.rng.random()
        if chance < 0.3:
            word = word.ljust(self.rng.randint(20, 200), self.rng.choice("xyz"))
        elif chance < 0.5:
            word += "".join(self.rng.choices(LETTERS, k=self.rng.randint(20, 250)))
        return word.encode()[:limit]

    def value(self, column: Column) -> Value:
        """A new value for the column."""
        if column.nullable and self.rng.random() < NULL_SHARE:
            return None
        if column.varying:
            return self.varying_text(column.length)
        return self.text(column.length) if column.is_text else self.rng.randrange(1000)

    def varying_text(self, limit: int) -> bytes:
        """A text of any length: mostly a short one, sometimes a long one, or one at the limit of the column,
        of half a page, of the pages that a long value has, or of what never leaves its record."""
        chance = self.rng.random()
        if chance < 0.6:
            return self.text(limit)
        if chance < 0.65:
            return self.text(3) + b" " * self.rng.randrange(3)
        half, part = (self.page_size - 92) // 2 - 4, self.page_size - 66
        edges = (40, half - 60, half - 40, half, part, 2 * part, limit)
        length = self.rng.choice(edges) + self.rng.choice((-1, 0, 0, 1))
        if chance < 0.8:
            length = self.rng.randint(0, limit)
        return self._repeated(min(length, limit))

    def long_text(self, limit: int) -> bytes:
        """A text of a page and more, which has pages of its own."""
        return self._repeated(self.rng.randint(self.page_size, max(self.page_size, limit)))

    def _repeated(self, length: int) -> bytes:
        self.serial += 1
        unit = f"{self.rng.choice(WORDS)}{self.serial:05d}.".encode()
        return (unit * (length // len(unit) + 1))[:length]

    def values(self, table: Table, chance: float) -> dict[str, Value]:
        """New values for some columns."""
        return {
            column.name: self.value(column)
            for column in table.shape.columns
            if column.name not in (table.shape.primary, table.shape.serial, table.shape.mirror)
            and self.rng.random() < chance
        }

    def is_null(self, shape: Shape) -> bool:
        """Does a row get no value of the serial column?"""
        nullable = any(column.name == shape.serial and column.nullable for column in shape.columns)
        return nullable and self.rng.random() < NULL_SHARE

    def serial_value(self, table: Table) -> bytes:
        """A new value of the serial column; now and then one that a row has, the start of one, or one that a
        row had."""
        share = COPIED_SHARE if table.unique_lengths(table.indexes) else COPIED_SHARE_FREE
        chance = self.rng.random()
        if chance < share and table.serials:
            value = table.serials[self.rng.choice(sorted(table.serials))]
            return value if self.rng.random() < 0.5 else value[:UNIQUE_PREFIX] + b"copy"
        if chance > 1 - REUSED_SHARE and table.freed:
            return self.rng.choice(table.freed)
        return self.new_serial()

    def new_serial(self) -> bytes:
        """A value of the serial column that no row has had."""
        self.serial += 1
        start = "".join(self.rng.choice(LETTERS) for _ in range(UNIQUE_PREFIX))
        return f"{start}{self.serial:05d}".encode()
